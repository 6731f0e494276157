"""What a comparison is asked for: methods and their options, numbers of features, seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seqatt.algorithms.registry import METHODS
from seqatt.api.select import TABLE_OPTIONS, make_options
from seqatt.comparison.runs import ALL
from seqatt.data.tables.table_data import SparseColumns, TableData, resolve_k
from seqatt.training.options import check_seeds

# Of what is registered: the network's own choice, rivals of its kind, quick ones, and the two references.
# The three linear methods give one answer, so one of them is enough.
USUAL = (
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


def usual_methods(source: TableData) -> list[str]:
    """For a table: mutual_information weighs no rows and opens no large sparse table, cmim does both."""
    hard = source.weights is not None or isinstance(source.columns, SparseColumns)
    names = ["cmim" if hard and name == "mutual_information" else name for name in USUAL]
    return [name for name in names if name == ALL or name in METHODS]


def check_methods(methods: Sequence[str]) -> list[str]:
    names = [methods] if isinstance(methods, str) else list(methods)
    if not names:
        raise ValueError("methods: at least one is needed")
    for name in names:
        if name != ALL and name not in METHODS:
            raise ValueError(f"methods: unknown {name!r}; use some of {', '.join([*METHODS, ALL])}")
    if len(set(names)) < len(names):
        raise ValueError("methods: one stands twice")
    return names


def check_options(
    options: Mapping[str, Mapping[str, Any]] | None, names: list[str]
) -> dict[str, dict[str, Any]]:
    own: dict[str, dict[str, Any]] = {}
    for method, given in (options or {}).items():
        if not isinstance(given, Mapping):
            raise TypeError(f"options: {method!r} needs a dict of options, got {given!r}")
        own[method] = dict(given)
        if method not in names:
            raise ValueError(f"options: {method!r} is not among the methods {', '.join(names)}")
        if method == ALL:
            raise ValueError(f"options: {ALL!r} has none; it takes every feature")
        shared = sorted(set(given) & set(TABLE_OPTIONS))
        if shared:
            raise ValueError(f"options: {shared[0]!r} is for all methods alike; give it to compare itself")
        make_options(method, own[method])
    return own


def check_distinct_seeds(seeds: Any) -> list[int]:
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        raise TypeError(f"seeds: must be a list such as range(5), got {seeds!r}")
    checked = check_seeds(list(seeds))
    if len(set(checked)) < len(checked):
        raise ValueError("seeds: one stands twice; a run again would look like evidence")
    return checked


def check_ks(k: Any, features: int) -> list[int]:
    several = list(k) if isinstance(k, Iterable) and not isinstance(k, str) else [k]
    if not several:
        raise ValueError("k: at least one number of features is needed")
    return sorted({resolve_k(one, features) for one in several})
