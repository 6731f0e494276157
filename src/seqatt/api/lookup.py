"""Lookup of columns or features that a user gives by position, by name, as a mask or as a ``Selection``."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import index
from typing import Any, Literal

import numpy as np

from seqatt.selection import FeatureLayout, Selection
from seqatt.validation import list_names, name_text, show, suggest


def find_positions(
    requested: Any,
    names: Sequence[str],
    *,
    named: bool,
    kind: Literal["column", "feature"],
    argument: str,
    table: str,
    given_names: Sequence[Any] = (),
    prefer_names: bool = False,
) -> list[int]:
    """Positions of the requested columns or features among ``names``, each once.

    ``named`` is False if the table came without names and ``names`` are ``x0, x1, ...``. ``argument`` and ``table``
    are what error messages call the request and the table. ``given_names`` are the user's names, which ``names`` are
    the texts of: where a whole number may be a name or a position, it is an error, or with ``prefer_names`` a name.
    """
    if isinstance(requested, Selection):
        return _find_selected(requested, names, named, kind, argument, table)
    # The bools of a tensor become Python's.
    items = requested.tolist() if hasattr(requested, "tolist") else requested
    items = [items] if isinstance(items, str) else items
    if isinstance(items, bytes) or not isinstance(items, Iterable):
        raise TypeError(
            f"{argument}: must be positions or names of {kind}s, a mask or a Selection, got {show(requested)}"
        )
    items = list(items)
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        if len(items) != len(names):
            raise ValueError(
                f"{argument}: the mask has {len(items)} values, {table} has {len(names)} {kind}s"
            )
        return [position for position, selected in enumerate(items) if selected]
    position_of = {name: position for position, name in enumerate(names)}
    numbered = _find_numbered(items, names, given_names, kind, argument, table, prefer_names)
    positions: dict[int, None] = {}  # a dict as an ordered set
    for item in items:
        text = name_text(item)
        is_number = hasattr(item, "__index__")
        if isinstance(item, str | tuple) or (numbered if is_number else text in position_of):
            position = position_of.get(text, -1)
        else:
            position = _as_position(item, kind, argument)
        if not 0 <= position < len(names):
            others = (not is_number and suggest(item, names)) or list_names(names, f"{kind}s")
            hint = f"; {others}" if isinstance(item, str) or numbered else ""
            raise ValueError(
                f"{argument}: {show(item)} is not a {kind} of {table}, which has {len(names)}{hint}"
            )
        if position in positions:
            raise ValueError(f"{argument}: {show(item)} appears twice")
        positions[position] = None
    return list(positions)


def find_features(
    data: FeatureLayout, requested: Any, argument: str, *, named: bool, prefer_names: bool = False
) -> list[int]:
    """Features that the user requests, as features of ``data``, which may order them differently."""
    in_user_order = np.argsort(data.user_position)
    given_names = [data.given_names[f] for f in in_user_order]
    _refuse_columns_of_groups(data, requested, argument)
    positions = find_positions(
        requested,
        [str(name) for name in given_names],
        named=named,
        kind="feature",
        argument=argument,
        table="X",
        given_names=given_names,
        prefer_names=prefer_names,
    )
    return [int(in_user_order[position]) for position in positions]


def _refuse_columns_of_groups(data: FeatureLayout, requested: Any, argument: str) -> None:
    """Raise an error that names the group if a requested column is only a part of one."""
    if not isinstance(requested, list | tuple):
        return
    for feature, columns in zip(data.given_names, data.input_columns, strict=True):
        members = {data.given_input_names[column] for column in columns} if len(columns) > 1 else set()
        inside = [item for item in requested if isinstance(item, Hashable) and item in members]
        if inside and feature not in requested:
            raise ValueError(
                f"{argument}: {show(inside[0])} is a column of the group {show(feature)}, which is selected as a "
                "whole; name the group"
            )


def _find_numbered(
    items: Sequence[Any],
    names: Sequence[str],
    given_names: Sequence[Any],
    kind: str,
    argument: str,
    table: str,
    prefer_names: bool,
) -> bool:
    """Whether whole numbers among ``items`` are names; an error if they may be both names and positions."""
    known = {name for name in given_names if isinstance(name, int)}
    numbers = [int(item) for item in items if hasattr(item, "__index__") and not isinstance(item, bool)]
    if known and prefer_names:
        return True
    if not known or not numbers or not known.issuperset(numbers):
        return False
    are_positions = all(0 <= number < len(names) for number in numbers)
    if are_positions and any(names[number] != str(number) for number in numbers):
        raise ValueError(
            f"{argument}: {numbers[0]} may be the name of a {kind} of {table} or its position; pass names as text, "
            f"such as '{numbers[0]}', or the Selection itself, or a mask"
        )
    return True


def _as_position(item: Any, kind: str, argument: str) -> int:
    if not isinstance(item, bool | np.bool_):  # a bool among other values is neither a mask nor a position
        try:
            return index(item)
        except TypeError:
            pass
    raise TypeError(
        f"{argument}: {show(item)} is not a {kind}; use its position, a whole number, or its name"
    )


def _find_selected(
    selection: Selection, names: Sequence[str], named: bool, kind: str, argument: str, table: str
) -> list[int]:
    """By name if the table has names, so that the order of its columns does not matter; else by position."""
    columns = kind == "column"
    all_names = [str(name) for name in (selection.input_names if columns else selection.names)]
    selected = [int(position) for position in (selection.columns if columns else selection.indices)]
    if not named:
        if len(names) != len(all_names):
            raise ValueError(
                f"{argument}: the selection is of {len(all_names)} {kind}s, {table} has {len(names)}"
            )
        return selected
    position_of = {name: position for position, name in enumerate(names)}
    missing = [all_names[position] for position in selected if all_names[position] not in position_of]
    if missing:
        raise ValueError(f"{argument}: the selection has {kind} {missing[0]!r}, {table} does not")
    return [position_of[all_names[position]] for position in selected]
