"""Checks of arguments, shared by every part of the package.

A check is a function ``(name, value) -> value``: it returns the value in its canonical type, or raises an error
that names the argument, what was wrong and what would be right.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any

from seqatt.display_text import NO_NAME

Check = Callable[[str, Any], Any]
LISTED = 20  # names of columns in an error message, at most
# What other libraries call an argument of ours.
SYNONYMS = {
    "random_state": "seed",
    "random_seed": "seed",
    "n_features_to_select": "k",
    "n_features": "k",
    "num_features": "k",
    "lr": "learning_rate",
    "n_epochs": "epochs",
    "num_epochs": "epochs",
    "max_epochs": "epochs",
    "weights": "sample_weight",
    "cat_features": "column_types",
    "verbose": "progress",
}
SEVERAL_SEEDS = ("evaluate", "compare")  # functions that take seeds


def integer(minimum: int, *, maximum: int | None = None, optional: bool = False) -> Check:
    """An integer from ``minimum`` to ``maximum``; with ``optional`` also None."""

    def check(name: str, value: Any) -> int | None:
        if value is None and optional:
            return None
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < minimum:
            raise ValueError(f"{name}: must be a whole number of at least {minimum}, got {show(value)}")
        if maximum is not None and value > maximum:
            raise ValueError(f"{name}: must be a whole number of at most {maximum}, got {show(value)}")
        return int(value)

    return check


def number(
    *,
    minimum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    maximum: float | None = None,
    optional: bool = False,
) -> Check:
    """A finite number within bounds; with ``optional`` also None."""
    bounds = {"at least": minimum, "above": above, "below": below, "at most": maximum}
    described = " and ".join(f"{word} {bound}" for word, bound in bounds.items() if bound is not None)

    def check(name: str, value: Any) -> float | None:
        if value is None and optional:
            return None
        try:
            converted = math.nan if isinstance(value, bool | str) else float(value)
        except (TypeError, ValueError):
            converted = math.nan
        inside = (
            math.isfinite(converted)
            and (minimum is None or converted >= minimum)
            and (above is None or converted > above)
            and (below is None or converted < below)
            and (maximum is None or converted <= maximum)
        )
        if not inside:
            raise ValueError(f"{name}: must be a number {described}, got {show(value)}")
        return converted

    return check


def boolean(*, optional: bool = False) -> Check:
    """True or False; with ``optional`` also None."""

    def check(name: str, value: Any) -> bool | None:
        if value is None and optional:
            return None
        plain = value.item() if hasattr(value, "dtype") and not getattr(value, "shape", True) else value
        if not isinstance(plain, bool):  # one of NumPy is now one of Python
            raise TypeError(f"{name}: must be True or False, got {show(value)}")
        return plain

    return check


def choice(allowed: Iterable[str], *, optional: bool = False) -> Check:
    """One of several strings; with ``optional`` also None."""
    names = list(allowed)

    def check(name: str, value: Any) -> str | None:
        if value is None and optional:
            return None
        if value not in names:
            raise ValueError(f"{name}: unknown {show(value)}; use one of {', '.join(names)}")
        return str(value)

    check.choices = names  # type: ignore[attr-defined]  # the command line lists them
    return check


def layer_widths(name: str, value: Any) -> tuple[int, ...]:
    """The widths of hidden layers: one integer or several, each at least 1."""
    plain = value.tolist() if hasattr(value, "tolist") else value  # an array of widths has __index__ too
    widths = (plain,) if hasattr(plain, "__index__") else plain
    widths = tuple(widths) if isinstance(widths, Iterable) else (None,)
    if any(isinstance(width, bool) or not hasattr(width, "__index__") or width < 1 for width in widths):
        raise ValueError(f"{name}: must be widths of at least 1, such as (67,), got {show(value)}")
    return tuple(int(width) for width in widths)


def function(what: str) -> Check:
    """A module, a function or another callable, or None; ``what`` says which, for the error."""

    def check(name: str, value: Any) -> Any:
        if value is not None and not callable(value):
            raise TypeError(f"{name}: must be {what}, got {show(value)}")
        return value

    return check


def n_jobs(name: str, value: Any) -> int | None:
    """A number of threads; -1 for every core, None to follow ``OMP_NUM_THREADS``."""
    jobs: int | None = value if value in (None, -1) else integer(1)(name, value)
    return jobs


def column_names(name: str, value: Any) -> tuple[str, ...]:
    """The names of columns, as text: one text, or several names of any type, such as the tuples of a MultiIndex."""
    listed = [value] if isinstance(value, str) else value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(listed, list | tuple | set | frozenset) or not all(map(_is_name, listed)):
        raise TypeError(f"{name}: must be names of columns, in a list, got {show(value)}")
    return tuple(map(name_text, listed))


def name_text(name: Any) -> str:
    """The name of a column as text, with Python's own numbers for NumPy's, also within a tuple."""
    if isinstance(name, tuple):
        return str(tuple(part.item() if hasattr(part, "item") else part for part in name))
    return str(name)


def _is_name(value: Any) -> bool:
    """The columns of a data frame may have names of any type that can be a key."""
    return isinstance(value, Hashable) and not isinstance(value, bool | bytes | None)


def values_or_name(name: str, value: Any) -> Any:
    """Values per row, which are checked against the data, or the name of a column: a whole number is one."""
    is_number = (
        hasattr(value, "__index__") and not isinstance(value, bool) and not getattr(value, "shape", ())
    )
    return str(value) if is_number else value


def anything(name: str, value: Any) -> Any:
    """No check here: whoever uses the value checks it against the data."""
    return value


def show(value: Any) -> str:
    """The value as in ``repr``, but NumPy's scalars as plain ones: 0.0 instead of np.float64(0.0), also in lists."""
    import numpy as np  # here, because a program that shows no value need not wait for it

    if isinstance(value, np.datetime64):
        return str(value)
    legacy: Any = "1.25" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else False
    with np.printoptions(legacy=legacy):
        return repr(value)


def suggest(name: Any, known: Collection[str]) -> str:
    """The question "did you mean ...?" with the nearest of the known names; empty if none is near."""
    if name == NO_NAME and "" in known:
        return "did you mean ''?"
    near = difflib.get_close_matches(str(name), list(known), 1)
    return f"did you mean {near[0]!r}?" if near else ""


def list_names(names: Sequence[str], kind: str = "columns") -> str:
    """The names, all of them or the first 20 and how many more there are."""
    return f"the {kind} are {name_some([name or NO_NAME for name in names[:LISTED]], len(names))}"


def name_some(names: Sequence[str], total: int) -> str:
    """The names, and how many of ``total`` are not among them: "a, b and 2 more"."""
    return ", ".join(names) + (f" and {total - len(names):,} more" if total > len(names) else "")


def check_page_name(name: str, path: Any) -> None:
    """Refuse to write a page to a file of another kind, which may be the data."""
    if not str(path).lower().endswith((".html", ".htm")):
        raise ValueError(
            f"{name}: a report is a page of HTML; name a file such as report.html, got {str(path)!r}"
        )


def check_seeds(seeds: int | Iterable[int]) -> list[int]:
    """At least one integer from 0 on; a number n stands for the seeds from 0 to n - 1."""
    if isinstance(seeds, str | bool) or not (isinstance(seeds, Iterable) or hasattr(seeds, "__index__")):
        raise TypeError(f"seeds: must be a number of seeds or a list such as range(5), got {show(seeds)}")
    if not isinstance(seeds, Iterable):
        seeds = range(int(seeds))
    checked = []
    for seed in seeds:
        if isinstance(seed, bool) or not hasattr(seed, "__index__") or int(seed) < 0:
            raise ValueError(f"seed: must be a whole number of at least 0, got {show(seed)}")
        checked.append(int(seed))
    if not checked:
        raise ValueError("seeds: at least one seed is needed")
    return checked


def check_option_names(
    function: str, given: Iterable[str], known: Sequence[str], also: Sequence[str] = ()
) -> None:
    """Refuse an option that ``function`` does not have and suggest the nearest one that it has.

    ``also`` are further names that are allowed, listed after those of the function itself.
    """
    for name in given:
        if name not in (*known, *also):
            synonym = SYNONYMS.get(name)
            if synonym == "seed" and function in SEVERAL_SEEDS:
                synonym = "seeds"
            hint = f"did you mean {synonym!r}?" if synonym else suggest(name, [*known, *also])
            hint = hint or f"it has {', '.join([*known, *also]) or 'none'}"
            raise TypeError(f"{function} has no option {name!r}; {hint}")


def falling_temperatures(name: str, value: Any) -> tuple[float, float]:
    """Two positive numbers, the second at most the first."""
    try:
        first, last = (float(temperature) for temperature in value)
    except (TypeError, ValueError):
        first = last = float("nan")
    if not 0 < last <= first < float("inf"):
        raise ValueError(
            f"{name}: must be two numbers above 0, falling, such as (10, 0.01), got {show(value)}"
        )
    return first, last
