"""Whether a table agrees with its target and with other tables: the order of rows, names and contents of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from seqatt.data.tables.containers import InputTable


def check_same_order(X: Any, y: Any, arguments: tuple[str, str]) -> None:
    """Refuse a pandas ``y`` whose index is that of ``X`` in another order: its rows may belong to other rows of X."""
    ours: Any = getattr(X, "index", None)  # of a list, a method
    theirs: Any = getattr(y, "index", None)
    if not (hasattr(ours, "equals") and hasattr(theirs, "equals")) or len(ours) != len(theirs):
        return
    if not ours.equals(theirs) and ours.isin(theirs).all() and theirs.isin(ours).all():
        table, values = arguments
        raise ValueError(
            f"{values}: has the index of {table} in another order; pass {values}.loc[{table}.index] to go by the "
            f"index, or {values}.to_numpy() if its rows are in the order of {table}"
        )


def check_same_columns(train: InputTable, test: InputTable, arguments: tuple[str, str]) -> None:
    """Check that test columns have the names and contents of the training columns.

    Otherwise the text "1" would count as an unknown category of a column that held the number 1.0.
    """
    train_argument, test_argument = arguments
    if train.names != test.names:
        raise ValueError(
            f"{test_argument}: must have the same columns as {train_argument}, in the same order"
        )
    pairs = zip(_contents(train), _contents(test), strict=True)
    for position, (expected, actual) in enumerate(pairs):
        if expected != actual and not _is_empty(test, position):
            raise ValueError(
                f"{test_argument}: column {train.names[position]!r} holds {actual}, but {expected} in "
                f"{train_argument}; convert it to {expected}"
            )


def numeric_contents(table: InputTable) -> dict[str, str]:
    """Contents of the columns that are no text, by name: "numbers" or "times"."""
    return {name: held for name, held in zip(table.names, _contents(table), strict=True) if held != "text"}


def _contents(table: InputTable) -> list[str]:
    """Contents of each column, for error messages: "text", "numbers" or "times"."""
    contents = ["text" if kind == "categorical" else "numbers" for kind in table.kinds]
    if table.framed:
        from pyarrow import types

        for position, type_ in enumerate(table.data.schema.types):
            contents[position] = "times" if types.is_temporal(type_) else contents[position]
    return contents


def _is_empty(table: InputTable, position: int) -> bool:
    """Whether a column has only missing values, which mean the same in a column of any kind."""
    if not table.framed or table.kinds[position] == "categorical":
        return False
    return bool(np.isnan(table.numbers([position])).all())
