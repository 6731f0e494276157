"""Names in the options of an estimator whose table has none: behind a scaler, x5 would be another column than before.

``select`` calls the columns of an array x0, x1, ..., and takes these names. A pipeline fitted on a frame with columns
x1, x2, ... may hand an array to its last step, which would then read the user's names as those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from seqatt.algorithms.constraint_options import series_to_dict
from seqatt.column_names import is_sparse
from seqatt.selection import Selection
from seqatt.validation import name_text, show

OF_FEATURES = ("keep", "forbid", "candidates")
REMEDY = 'call .set_output(transform="pandas") on the steps before, so that X is a data frame'


def refuse_names(table: Any, options: Mapping[str, Any]) -> None:
    """Raise if ``options`` of ``select`` name columns, and the table is an array; names of groups are known."""
    if not (isinstance(table, np.ndarray) or is_sparse(table)):
        return
    groups = _groups(options.get("groups"))
    for argument, items in _items(options, groups):
        for item in items:
            if isinstance(item, str | tuple) and (argument == "groups" or name_text(item) not in groups):
                # These two take names alone.
                positions = "" if argument in ("log1p", "column_types") else "give its position, or "
                raise ValueError(
                    f"{argument}: {show(item)} is a name, but X has no column names; {positions}{REMEDY}"
                )
    for argument in OF_FEATURES:
        given = options.get(argument)
        if isinstance(given, Selection) and any(name != f"x{i}" for i, name in enumerate(given.input_names)):
            raise ValueError(
                f"{argument}: the Selection has names, but X has no column names; give its indices, or {REMEDY}"
            )


def _items(options: Mapping[str, Any], groups: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """The names and positions in each option; values of another form are refused later."""
    for argument in (*OF_FEATURES, "log1p"):
        yield argument, _listed(options.get(argument))
    yield "column_types", list(_entries(options.get("column_types")))
    for columns in groups.values():
        yield "groups", _listed(columns)
    for quota in _entries(options.get("quotas")).values():
        yield "quotas", _listed(_entries(quota).get("features"))
    for name, cost in _entries(series_to_dict("costs", options.get("costs"))).items():
        yield "costs", _listed(cost.get("features")) if isinstance(cost, Mapping) else [name]


def _groups(groups: Any) -> Mapping[str, Any]:
    """The columns of each group, by the name of the group."""
    if isinstance(groups, Mapping):
        return {name_text(name): columns for name, columns in groups.items()}
    return {"+".join(map(str, _listed(columns))): columns for columns in _listed(groups)}


def _entries(given: Any) -> Mapping[Any, Any]:
    return given if isinstance(given, Mapping) else {}


def _listed(given: Any) -> list[Any]:
    if isinstance(given, str):
        return [given]
    items = given.tolist() if hasattr(given, "tolist") else given
    return (
        list(items)
        if isinstance(items, Iterable) and not isinstance(items, Selection | bytes | Iterator)
        else []
    )
