"""Checks of the arguments of ``compare``: methods and their options, numbers of features, seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seqatt.algorithms.registry import methods as method_names
from seqatt.api.select_options import make_options
from seqatt.comparison.runs import ALL
from seqatt.data.files.file_data import FileData
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.options import TableOptions
from seqatt.data.tables.table_data import SparseColumns, TableData, resolve_k
from seqatt.options import names_of
from seqatt.validation import check_option_names, check_seeds, show, suggest

# Sequential Attention, other neural methods, fast methods and two references. Of the three linear methods,
# which give the same result, one is enough.
DEFAULT_METHODS = (
    "sequential_attention",
    "lassonet",
    "group_lasso",
    "deep_lasso",
    "linear_omp",
    "mutual_information",
    "forest",
    "random",
    ALL,
)


def default_methods(data: TableData | FileData) -> list[str]:
    """The registered default methods; cmim replaces mutual_information for weighted or large sparse data.

    mutual_information supports neither sample weights nor sparse tables that are too large to be dense.
    """
    if isinstance(data, FileData):
        unsupported = not data.target_column.unweighted
    else:
        unsupported = data.weights is not None or isinstance(data.columns, SparseColumns)
    names = ["cmim" if unsupported and name == "mutual_information" else name for name in DEFAULT_METHODS]
    return [name for name in names if name == ALL or name in method_names()]


def split_method(name: str, options: Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The method that a name of ``methods`` stands for, and its options; they may give it as "method"."""
    own = dict(options.get(name, {}))
    return own.pop("method", name), own


def check_methods(
    methods: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None
) -> list[str]:
    """The names as a list; raise if one is unknown or duplicated."""
    names = [methods] if isinstance(methods, str) else list(methods)
    if not names:
        raise ValueError("methods: at least one is needed; leave the argument out for the default methods")
    known = [*method_names(), ALL]
    settings = {
        name: own for name, own in (options or {}).items() if isinstance(own, Mapping) and "method" in own
    }
    for name in names:
        if name in settings:
            _check_setting(name, settings[name]["method"])
        elif name not in known:
            hint = suggest(name, known)
            listed = f"{f'{hint} Use' if hint else 'use'} some of {', '.join(known)}"
            raise ValueError(
                f"methods: unknown {show(name)}; {listed}, or say in options which method that name stands for"
            )
    if len(set(names)) < len(names):
        raise ValueError("methods: must not contain duplicates; remove the repeated one")
    return names


def _check_setting(name: Any, method: Any) -> None:
    """Check the name of one setting of a method, and the method."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"methods: a name must be text, got {show(name)}")
    if name in (*method_names(), ALL):
        raise ValueError(
            f"options: {name!r} is a name of its own; choose another for this setting of {method}"
        )
    if method not in method_names():
        hint = suggest(method, method_names())
        listed = f"{f'{hint} Use' if hint else 'use'} one of {', '.join(method_names())}"
        raise ValueError(f"options: unknown method {show(method)} of {name!r}; {listed}")


def check_options(
    options: Mapping[str, Mapping[str, Any]] | None, names: list[str], *, files: bool = False
) -> dict[str, dict[str, Any]]:
    """A copy of ``options``; raise if a method is not compared or an option is unknown or invalid."""
    checked: dict[str, dict[str, Any]] = {}
    for method, method_options in (options or {}).items():
        if not isinstance(method_options, Mapping):
            raise TypeError(f"options: {show(method)} needs a dict of options, got {show(method_options)}")
        checked[method] = dict(method_options)
        if method not in names:
            raise ValueError(
                f"options: {show(method)} is not among the methods {', '.join(names)}; add or remove it"
            )
        if method == ALL:
            raise ValueError(f"options: {ALL!r} has no options, because it selects nothing; remove it")
        shared = sorted(set(method_options) & set(names_of(FileOptions)))
        if shared:
            raise ValueError(f"options: {shared[0]!r} applies to all methods; pass it to compare itself")
        sized = [name for name in ("fdr", "costs", "max_k", "k_rule") if name in method_options]
        if sized:
            raise ValueError(
                f"options: {sized[0]!r} lets {method} choose how many features; methods are compared at equal numbers, "
                "leave it out"
            )
        make_options(*split_method(method, checked), files=files)
    return checked


def check_data_options(options: Mapping[str, Any], *, files: bool) -> None:
    """Raise if an option about the data is unknown, or is one of files and there are none."""
    for name in options:
        if not files and name in names_of(FileOptions) and name not in names_of(TableOptions):
            raise TypeError(f"{name}: is for files; pass their path as X, or leave it out")
    check_option_names("compare", options, names_of(FileOptions), [])


def check_distinct_seeds(seeds: Any) -> list[int]:
    """The seeds as a list; raise if one is invalid or duplicated."""
    checked = check_seeds(seeds)
    if len(set(checked)) < len(checked):
        raise ValueError("seeds: must not contain duplicates; a repeated run is not independent")
    return checked


def check_ks(k: Any, features: int) -> list[int]:
    """The distinct numbers of features, ascending; fractions are resolved."""
    values = list(k) if isinstance(k, Iterable) and not isinstance(k, str) else [k]
    if not values:
        raise ValueError("k: at least one number of features is needed")
    if "auto" in [value for value in values if isinstance(value, str)]:
        raise ValueError("k: 'auto' is for select; methods are compared at equal numbers, such as k=[5, 10]")
    return sorted({resolve_k(value, features) for value in values})
