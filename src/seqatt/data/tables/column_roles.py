"""Roles of the columns of a table: features of some kind, target, weights, or none of these."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from seqatt.data.tables.consistency import check_same_order
from seqatt.data.tables.containers import (
    KINDS,
    InputTable,
    Kind,
    feature_names,
    read_input_table,
)
from seqatt.data.tables.target import target_array
from seqatt.validation import column_names, list_names, show, suggest


class ColumnRoles(NamedTuple):
    """The features of a table, its target and its weights, each as the user gave it or as a column of the table.

    ``of_rows`` are other values per row, by the name of their option.
    """

    table: InputTable
    y: Any
    sample_weight: Any
    of_rows: dict[str, Any]


def read_columns(
    X: Any,
    y: Any,
    sample_weight: Any,
    ignore: Any,
    column_types: Mapping[str, str],
    arguments: tuple[str, str],
    of_rows: Mapping[str, Any] = MappingProxyType({}),
    contents: Mapping[str, str] | None = None,
    report: bool = True,
) -> ColumnRoles:
    """Read a table; ``y``, ``sample_weight`` and ``of_rows`` given as names are columns of it and no features.

    ``y`` may name several columns, with commas. A column of text is read as numbers or times if all of it is; of
    test rows, if it is one of those that hold "numbers" or "times" in the training rows, which ``contents`` gives. With
    ``report``, a warning says so.
    """
    ignored = column_names("ignore", ignore)
    check_same_order(X, y, arguments)
    check_same_order(X, sample_weight, (arguments[0], "sample_weight"))
    for name, values in of_rows.items():
        check_same_order(X, values, (arguments[0], name))
    named = {name: column for name, column in of_rows.items() if isinstance(column, str)}
    target = y if isinstance(y, str) else None
    weight = sample_weight if isinstance(sample_weight, str) else None
    if target in ignored:
        raise ValueError(f"ignore: {target!r} is the target, which is never a feature; leave it out")
    kept = {weight, *named.values()}
    table = read_input_table(X, arguments[0], [name for name in ignored if name not in kept])
    if target is not None or weight is not None or named:
        targets = [] if target is None else split_targets(target, table.names)
        for option, column in [*((arguments[1], name) for name in targets[1:]), *named.items()]:
            feature_names(table.names, (), column, None, option)  # an unknown one is an error
        not_features = [*targets[1:], *named.values()]
        inputs = feature_names(
            table.names, not_features, targets[0] if targets else None, weight, arguments[1]
        )
        if len(targets) > 1:
            y = np.stack([target_array(table.column(name), arguments[1]) for name in targets], axis=1)
        elif targets:
            y = table.column(targets[0])
        sample_weight = sample_weight if weight is None else table.column(weight)
        of_rows = dict(of_rows) | {name: table.column(column) for name, column in named.items()}
        table = table.select([table.names.index(name) for name in inputs])
    return ColumnRoles(
        _with_kinds(table, column_types, ignored, contents, report), y, sample_weight, dict(of_rows)
    )


def split_targets(target: str, names: Collection[str]) -> list[str]:
    """The columns that a text names: one, or several with commas, after which there may be spaces."""
    if target in names or "," not in target:
        return [target]
    return [name if name in names else name.strip() for name in target.split(",")]


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


def _with_kinds(
    table: InputTable,
    requested: Mapping[str, str],
    ignored: Sequence[str],
    contents: Mapping[str, str] | None,
    report: bool,
) -> InputTable:
    if not requested and not table.texts:
        return table
    check_column_types([*table.names, *ignored], requested)
    kinds = list(table.kinds)
    converted = []
    for position, name in enumerate(table.names):
        kind = cast(Kind, requested.get(name, kinds[position]))
        if kind != "categorical" and kinds[position] == "categorical":
            if kind == "boolean":
                raise ValueError(
                    f"column_types: column {name!r} holds text, so it cannot be boolean; use 'categorical'"
                )
            converted.append(name)
            continue
        if kind == "categorical" and table.sparse:
            raise ValueError(
                f"column_types: column {name!r} of a sparse matrix cannot be categorical; use a DataFrame"
            )
        kinds[position] = kind
    undecided = [name for name in table.names if name in table.texts and name not in requested]
    if contents is None:
        contents = _find_contents(table, undecided, report)
    texts = dict.fromkeys(converted) | {name: contents[name] for name in undecided if name in contents}
    return replace(with_numbers(replace(table, kinds=tuple(kinds)), texts), texts=frozenset())


def with_numbers(table: InputTable, texts: Mapping[str, str | None]) -> InputTable:
    """The table with these columns of text as "numbers", as "times", or as whichever they are; else it is an error."""
    data, kinds = table.data, list(table.kinds)
    for name, contents in texts.items():
        from seqatt.data.tables.arrow_columns import read_text

        position = table.names.index(name)
        values = read_text(data.column(position), name, table.argument, contents)
        data, kinds[position] = data.set_column(position, name, values), "numeric"
    return replace(table, data=data, kinds=tuple(kinds))


def _find_contents(table: InputTable, undecided: Sequence[str], report: bool) -> dict[str, str]:
    """The columns of text that hold "numbers" or "times", by name; with ``report`` a warning names them."""
    if not undecided:
        return {}
    from seqatt.data.number_texts import examine_texts, report_columns

    columns = {name: table.categories(table.names.index(name)).texts for name in undecided}
    read = {name: examine_texts(texts, table.rows / max(1, len(texts))) for name, texts in columns.items()}
    if report:
        report_columns(read, table.argument, framed=True)
    contents = {"numbers": "numbers", "dates": "times"}
    return {name: contents[each.contents] for name, each in read.items() if each.numeric}


def log1p_columns(log1p: Any, names: Sequence[str], kinds: Sequence[str]) -> list[int]:
    """The positions of the numeric columns to take logarithms of: all (True), none (False) or those named."""
    numeric = {name: i for i, (name, kind) in enumerate(zip(names, kinds, strict=True)) if kind == "numeric"}
    if isinstance(log1p, bool):
        return list(numeric.values()) if log1p else []
    for name in (wanted := column_names("log1p", log1p)):
        if name not in numeric:
            raise ValueError(
                f"log1p: {name!r} is not a numeric feature; leave it out, or convert it to numbers"
            )
    return sorted(numeric[name] for name in set(wanted))
