"""What the columns of a table are: features of some kind, target, weights, or none of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from seqatt.data.tables.consistency import check_same_order
from seqatt.data.tables.containers import KINDS, InputTable, Kind, feature_names, read_input_table
from seqatt.validation import column_names, list_names, show, suggest


class ColumnRoles(NamedTuple):
    """The features of a table, its target and its weights, each as the user gave it or as a column of the table."""

    table: InputTable
    y: Any
    sample_weight: Any


def read_columns(
    X: Any,
    y: Any,
    sample_weight: Any,
    ignore: Any,
    column_types: Mapping[str, str],
    arguments: tuple[str, str],
) -> ColumnRoles:
    """Read a table; ``y`` and ``sample_weight`` given as a name are columns of it and no features."""
    ignored = column_names("ignore", ignore)
    check_same_order(X, y, arguments)
    check_same_order(X, sample_weight, (arguments[0], "sample_weight"))
    target = y if isinstance(y, str) else None
    weight = sample_weight if isinstance(sample_weight, str) else None
    if target in ignored:
        raise ValueError(f"ignore: {target!r} is the target, which is never a feature; leave it out")
    table = read_input_table(X, arguments[0], [name for name in ignored if name != weight])
    if target is not None or weight is not None:
        inputs = feature_names(table.names, (), target, weight, arguments[1])
        y = y if target is None else table.column(target)
        sample_weight = sample_weight if weight is None else table.column(weight)
        table = table.select([table.names.index(name) for name in inputs])
    return ColumnRoles(_with_kinds(table, column_types, ignored), y, sample_weight)


def check_column_types(names: Sequence[str], requested: Any) -> None:
    """Check that ``column_types`` gives columns a kind."""
    if not isinstance(requested, Mapping):
        raise TypeError(
            f"column_types: must be a dict such as {{'site': 'categorical'}}, got {show(requested)}"
        )
    for name, kind in requested.items():
        if name not in names:
            raise ValueError(f"column_types: no column {name!r}; {suggest(name, names) or list_names(names)}")
        if kind not in KINDS:
            raise ValueError(
                f"column_types: {show(kind)} for {name!r} is unknown; use one of {', '.join(KINDS)}"
            )


def _with_kinds(table: InputTable, requested: Mapping[str, str], ignored: Sequence[str]) -> InputTable:
    if not requested:
        return table
    check_column_types([*table.names, *ignored], requested)
    kinds = list(table.kinds)
    for position, name in enumerate(table.names):
        kind = cast(Kind, requested.get(name, kinds[position]))
        if kind != "categorical" and kinds[position] == "categorical":
            raise ValueError(
                f"column_types: column {name!r} holds text, so it cannot be {kind}; use 'categorical'"
            )
        if kind == "categorical" and table.sparse:
            raise ValueError(
                f"column_types: column {name!r} of a sparse matrix cannot be categorical; use a DataFrame"
            )
        kinds[position] = kind
    return replace(table, kinds=tuple(kinds))


def log1p_columns(log1p: Any, names: Sequence[str], kinds: Sequence[str]) -> list[int]:
    """The positions of the numeric columns of which logarithms are taken: all (True), none (False) or some."""
    numeric = {name: i for i, (name, kind) in enumerate(zip(names, kinds, strict=True)) if kind == "numeric"}
    if isinstance(log1p, bool):
        return list(numeric.values()) if log1p else []
    for name in (wanted := column_names("log1p", log1p)):
        if name not in numeric:
            raise ValueError(
                f"log1p: {name!r} is not a numeric feature; leave it out, or set its type with column_types"
            )
    return sorted(numeric[name] for name in set(wanted))
