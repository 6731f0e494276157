"""Columns or features as people ask for them: by position, by name, as a mask or as a ``Selection``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, Literal

import numpy as np

from seqatt.selection import Selection


def find_positions(
    asked: Any,
    names: Sequence[str],
    *,
    named: bool,
    kind: Literal["column", "feature"],
    argument: str,
    table: str,
) -> list[int]:
    """Positions among ``names``, each once; ``named`` tells names that people gave from ``x0, x1, ...``."""
    if isinstance(asked, Selection):
        return _find_selected(asked, names, named, kind, argument, table)
    given = asked.tolist() if hasattr(asked, "tolist") else asked  # of a tensor even a truth is a number
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(
            f"{argument}: must be positions or names of {kind}s, a mask or a Selection, got {asked!r}"
        )
    given = list(given)
    if given and all(isinstance(one, bool | np.bool_) for one in given):
        if len(given) != len(names):
            raise ValueError(
                f"{argument}: the mask has {len(given)} values, {table} has {len(names)} {kind}s"
            )
        return [place for place, wanted in enumerate(given) if wanted]
    places = {name: place for place, name in enumerate(names)}
    found: dict[int, None] = {}
    for one in given:
        place = places.get(one, -1) if isinstance(one, str) else _whole(one, kind, argument)
        if not 0 <= place < len(names):
            raise ValueError(f"{argument}: {one!r} is not a {kind} of {table}, which has {len(names)}")
        if place in found:
            raise ValueError(f"{argument}: {one!r} stands twice")
        found[place] = None
    return list(found)


def _whole(one: Any, kind: str, argument: str) -> int:
    if not isinstance(one, bool | np.bool_):  # a mask has nothing else beside them
        try:
            return index(one)
        except TypeError:
            pass
    raise TypeError(f"{argument}: {one!r} is no {kind}; use its position, a whole number, or its name")


def _find_selected(
    selection: Selection, names: Sequence[str], named: bool, kind: str, argument: str, table: str
) -> list[int]:
    """By name where columns have names, so that their order does not matter; else by position."""
    columns = kind == "column"
    every = selection.inputs if columns else selection.names
    chosen = [int(place) for place in (selection.columns if columns else selection.indices)]
    if not named:
        if len(names) != len(every):
            raise ValueError(
                f"{argument}: the selection is of {len(every)} {kind}s, {table} has {len(names)}"
            )
        return chosen
    places = {name: place for place, name in enumerate(names)}
    missing = [every[place] for place in chosen if every[place] not in places]
    if missing:
        raise ValueError(f"{argument}: the selection has {kind} {missing[0]!r}, {table} does not")
    return [places[every[place]] for place in chosen]
