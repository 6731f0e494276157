"""Features: each declared group of columns, and each column outside of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqatt.data.tables.containers import InputTable

Groups = Mapping[str, Sequence[str | int]] | Sequence[Sequence[str | int]]
Feature = tuple[str, tuple[int, ...]]


def features_of(table: InputTable, groups: Groups | None) -> list[Feature]:
    """Names and input columns, in the order of their first columns."""
    if groups is None:
        return [(name, (i,)) for i, name in enumerate(table.names)]
    taken: dict[int, str] = {}
    features: list[Feature] = []
    for name, columns in _pairs(groups):
        members = [_position(table, column, name) for column in columns]
        if not members:
            raise ValueError(f"groups: {name!r} has no columns")
        for position in members:
            if position in taken:
                raise ValueError(
                    f"groups: column {table.names[position]!r} is in both {taken[position]!r} "
                    f"and {name!r}; a column belongs to one group"
                )
            taken[position] = name
        features.append((name, tuple(sorted(members))))
    alone: list[Feature] = [(name, (i,)) for i, name in enumerate(table.names) if i not in taken]
    clash = {name for name, _ in features} & {name for name, _ in alone}
    if clash:
        raise ValueError(f"groups: the name {min(clash)!r} is also a column; use another")
    return sorted(features + alone, key=lambda feature: feature[1][0])


def _pairs(groups: Groups) -> list[tuple[str, list[Any]]]:
    """Named groups; a group in a list is named after its columns."""
    if isinstance(groups, str) or not isinstance(groups, Mapping | Sequence):
        raise TypeError("groups: must be a dict {name: columns} or a list of lists of columns")
    items: list[tuple[Any, Any]] = (
        list(groups.items()) if isinstance(groups, Mapping) else [(None, group) for group in groups]
    )
    pairs = []
    for name, columns in items:
        if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray | set | frozenset):
            shown = repr(columns) if name is None else repr(name)
            raise TypeError(f"groups: {shown} must be a list of columns")
        listed = sorted(columns, key=str) if isinstance(columns, set | frozenset) else list(columns)
        pairs.append(("+".join(map(str, listed)) if name is None else str(name), listed))
    return pairs


def _position(table: InputTable, column: Any, group: str) -> int:
    """A column by its name where columns have names, else by its number."""
    if str(column) in table.names:
        return table.names.index(str(column))
    if (
        isinstance(column, int | np.integer)
        and not isinstance(column, bool)
        and 0 <= column < len(table.names)
    ):
        return int(column)
    raise ValueError(f"groups: {group!r} names {column!r}, which is not a column of X")
