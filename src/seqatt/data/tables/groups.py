"""Features: one per group of columns, and one per column outside of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqatt.validation import name_text, show

Groups = Mapping[str, Sequence[str | int]] | Sequence[Sequence[str | int]]
Feature = tuple[str, tuple[int, ...]]  # name and input columns


def list_features(names: Sequence[str], groups: Groups | None) -> list[Feature]:
    """All features, in the order of their first input columns."""
    if groups is None:
        return [(name, (i,)) for i, name in enumerate(names)]
    group_of: dict[int, str] = {}
    features: list[Feature] = []
    for name, columns in _pairs(groups):
        positions = [_position(names, column, name) for column in columns]
        if not positions:
            raise ValueError(f"groups: {show(name)} has no columns")
        for position in positions:
            if position in group_of:
                raise ValueError(
                    f"groups: column {names[position]!r} is in both {group_of[position]!r} "
                    f"and {show(name)}; a column belongs to one group"
                )
            group_of[position] = name
        features.append((name, tuple(sorted(positions))))
    ungrouped: list[Feature] = [(name, (i,)) for i, name in enumerate(names) if i not in group_of]
    clash = {name for name, _ in features} & {name for name, _ in ungrouped}
    if clash:
        raise ValueError(f"groups: the name {min(clash)!r} is also a column; use another")
    return sorted(features + ungrouped, key=lambda feature: feature[1][0])


def given_feature_names(
    features: Sequence[Feature], names: Sequence[str], given_names: Sequence[Any], groups: Groups | None
) -> list[Any]:
    """The name of each feature as the user gave it: that of its column, or that of its group.

    ``given_names`` are the user's names of the columns, ``names`` their texts.
    """
    group_names = {str(name): name for name in groups} if isinstance(groups, Mapping) else {}
    return [
        given_names[columns[0]] if names[columns[0]] == name else group_names.get(name, name)
        for name, columns in features
    ]


def _pairs(groups: Groups) -> list[tuple[str, list[Any]]]:
    """Name and columns of each group; a group without a name is named after its columns, as in "b+e"."""
    if isinstance(groups, str) or not isinstance(groups, Mapping | Sequence):
        raise TypeError("groups: must be a dict {name: columns} or a list of lists of columns")
    items: list[tuple[Any, Any]] = (
        list(groups.items()) if isinstance(groups, Mapping) else [(None, group) for group in groups]
    )
    pairs = []
    for name, columns in items:
        if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray | set | frozenset):
            raise TypeError(f"groups: {show(columns if name is None else name)} must be a list of columns")
        listed = sorted(columns, key=str) if isinstance(columns, set | frozenset) else list(columns)
        pairs.append(("+".join(map(str, listed)) if name is None else str(name), listed))
    return pairs


def _position(names: Sequence[str], column: Any, group: str) -> int:
    """The position of a column that is given by name or, where no column has that name, by position."""
    if name_text(column) in names:
        return names.index(name_text(column))
    if isinstance(column, int | np.integer) and not isinstance(column, bool) and 0 <= column < len(names):
        return int(column)
    raise ValueError(f"groups: {show(group)} names {show(column)}, which is not a column of X")
