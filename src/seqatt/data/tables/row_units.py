"""Rows that belong together, and their order in time: how rows are divided wherever some are held out.

A unit is what is never divided: a group of rows, such as the visits of one patient, or the rows of one time. Units
that are in time are numbered in that order, and rows are only held out from networks that trained on earlier rows.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.containers import to_array

Rows = NDArray[np.int64]
TIME_BLOCKS = 40  # into which time is divided where halves of the rows are drawn
BLOCKS_PER_PART = 4  # blocks of neighbouring rows, where rows have neither groups nor times
MIN_LATEST_ROWS = 8  # held out per network; with fewer, all networks hold out the same latest rows


@dataclass(frozen=True)
class RowUnits:
    """The unit (n,) of each row, by number; ``in_time`` if units are in order."""

    unit: Rows
    in_time: bool

    def take(self, rows: NDArray[Any]) -> RowUnits:
        """The units of some rows, given by number or as a mask."""
        return RowUnits(np.unique(self.unit[rows], return_inverse=True)[1], self.in_time)

    def parts(self, count: int, rng: np.random.Generator) -> list[Rows]:
        """The rows of ``count`` parts of whole units, drawn at random, with about the same number of rows."""
        sizes = np.bincount(self.unit)
        if len(sizes) < count:
            raise ValueError(
                f"groups_of_rows: {len(sizes)} groups are too few to be divided into {count} parts; leave it out, or "
                "name smaller groups"
            )
        # The largest first, each to the part that has the fewest rows so far.
        order = rng.permutation(len(sizes))
        order = order[np.argsort(-sizes[order], kind="stable")]
        part_of, parts = np.empty(len(sizes), dtype=np.int64), [(0, part) for part in range(count)]
        for unit in order.tolist():
            rows, part = parts[0]
            part_of[unit] = part
            heapq.heapreplace(parts, (rows + int(sizes[unit]), part))
        return [np.flatnonzero(part_of[self.unit] == part) for part in range(count)]

    def latest(self, rows: int) -> tuple[Rows, Rows]:
        """All but the latest rows, and the latest: at least ``rows`` of them, in whole units."""
        by_time = np.sort(self.unit)
        first = max(int(by_time[len(by_time) - rows]), int(by_time[0]) + 1)
        late = self.unit >= first
        return np.flatnonzero(~late), np.flatnonzero(late)

    def draw(self, share: float, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Training rows, and a share of the rows as test rows: the latest, or random groups."""
        count = max(1, round(share * len(self.unit)))
        if self.in_time:
            return self.latest(count)
        sizes = np.bincount(self.unit)
        if len(sizes) < 2:
            raise ValueError("groups_of_rows: all rows are one group; none can be held out")
        order = rng.permutation(len(sizes))
        tested = order[: max(1, int((np.cumsum(sizes[order]) <= count).sum()))]
        is_test = np.isin(self.unit, tested)
        return np.flatnonzero(~is_test), np.flatnonzero(is_test)

    def folds(self, count: int, rng: np.random.Generator) -> list[Rows]:
        """The rows of each fold; those that are in time follow each other, after a first block that is no fold."""
        if not self.in_time:
            return self.parts(count, rng)
        by_time = np.sort(self.unit)
        first = np.array([by_time[len(by_time) * i // (count + 1)] for i in range(1, count + 1)])
        block = np.searchsorted(first, self.unit, side="right")
        if len(np.unique(block)) <= count:
            raise ValueError(f"time: too few different times to divide the rows into {count + 1} blocks")
        return [np.flatnonzero(block == i) for i in range(1, count + 1)]

    def outside(self, rows: Rows) -> Rows:
        """The rows to train on for these test rows: all others or, in time, the earlier ones."""
        if self.in_time:
            return np.flatnonzero(self.unit < self.unit[rows].min())
        return np.setdiff1d(np.arange(len(self.unit)), rows)

    def halves(self, rng: np.random.Generator) -> list[Rows]:
        """Two halves of whole units; time is divided into blocks, so that neighbours stay together."""
        if not self.in_time:
            return self.parts(2, rng)
        first = np.searchsorted(np.sort(self.unit), self.unit)  # rows before the unit of each row
        block = np.unique(first * TIME_BLOCKS // len(first), return_inverse=True)[1]
        return RowUnits(block, False).parts(2, rng)

    def hold_out(self, parts: int, networks: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
        """Training rows and held-out rows per network: each network holds out another of ``parts`` parts of the rows.

        In time, all networks train on the same earlier rows and hold out the latest ones, or a share of them each; of
        rows of a single time, as before the first of a few times, each holds out a random part. All networks have the
        same numbers of rows, as they may train in one tensor.
        """
        if self.in_time and not self.unit.any():
            held = np.array_split(rng.permutation(len(self.unit)), parts)[:networks]
            pairs = [(np.setdiff1d(np.arange(len(self.unit)), rows), rows) for rows in held]
        elif self.in_time:
            early, late = self.latest(len(self.unit) // parts)
            late = rng.permutation(late)
            enough = len(late) // networks >= MIN_LATEST_ROWS
            pairs = [(early, late[i::networks] if enough else late) for i in range(networks)]
        else:
            pairs = [(self.outside(held), held) for held in self.parts(parts, rng)[:networks]]
        trained, held_out = (min(map(len, rows)) for rows in zip(*pairs, strict=True))
        return [(self._shuffle(t, rng)[:trained], self._shuffle(h, rng)[:held_out]) for t, h in pairs]

    def _shuffle(self, rows: Rows, rng: np.random.Generator) -> Rows:
        """Rows in random order, those of a group next to each other: the first ones are of whole groups."""
        rows = rng.permutation(rows)
        return rows if self.in_time else rows[adjacent_order(self.unit[rows])]


def keep_neighbours_together(
    strata: Rows, parts: int, rng: np.random.Generator, *, deal_rare: bool = False
) -> Rows:
    """All rows in an order whose ``parts`` equal parts are made of blocks of neighbours, dealt to the parts in turn.

    Rows next to each other are often related (measurements of one person, frames of one recording), and a network that
    has seen one of them is not tested by the other. So the rows of each stratum are cut into four blocks of neighbours
    per part. Every part has its share of every stratum; where neighbours are unrelated, it is as good as a random one.
    A stratum of fewer rows than blocks may miss a part, unless ``deal_rare`` deals its rows to the parts one by one.
    """
    by_stratum = np.argsort(strata, kind="stable")
    sizes = np.bincount(strata)
    place = np.empty(len(strata))
    place[by_stratum] = np.arange(len(strata)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    blocks, start, row = BLOCKS_PER_PART * parts, rng.random(), place
    place = ((row + 0.5) / sizes[strata] + start) % 1  # the first block may start anywhere
    block = (place * blocks).astype(np.int64)
    if deal_rare:
        rare = sizes[strata] < blocks
        block[rare] = (row[rare] + strata[rare] + int(start * blocks)).astype(np.int64)
        place[rare] = 0.5  # not at an end, where rows move to the next part to make the parts equal
    return np.lexsort((place, block % parts))


def adjacent_order(unit: NDArray[Any]) -> Rows:
    """An order in which equal values are next to each other, sorted by where each value occurs first."""
    _, first, number = np.unique(unit, return_index=True, return_inverse=True)
    return np.argsort(first[number], kind="stable")


def with_queries(of_rows: dict[str, Any], y: Any, task: str | None) -> dict[str, Any]:
    """Groups and times of rows; the rows of a query to be ranked are a group, unless others are given."""
    is_group = task == "ranking" and of_rows["groups_of_rows"] is None and getattr(y, "ndim", 1) == 2
    return of_rows | {"groups_of_rows": y[:, -1].astype(str)} if is_group else of_rows


def read_row_units(groups_of_rows: Any, time: Any, rows: int) -> RowUnits | None:
    """The units of a table's rows; None if neither groups nor times are given.

    A group with times is as late as its latest row.
    """
    if groups_of_rows is None and time is None:
        return None
    group = None if groups_of_rows is None else _numbered(groups_of_rows, rows, "groups_of_rows")
    if time is None:
        assert group is not None
        return RowUnits(group, False)
    times = _numbered(time, rows, "time", in_order=True)
    if rows and not times.any():
        raise ValueError("time: is the same for all rows; leave it out")
    if group is None:
        return RowUnits(times, True)
    latest = np.zeros(group.max() + 1, dtype=np.int64)
    np.maximum.at(latest, group, times)
    rank = np.empty_like(latest)
    rank[np.argsort(latest, kind="stable")] = np.arange(len(latest))
    return RowUnits(rank[group], True)


def _numbered(given: Any, rows: int, argument: str, *, in_order: bool = False) -> Rows:
    """The number of each row's value among the distinct values; ``in_order`` of time where these are text."""
    series = nw.from_native(given, eager_only=True, series_only=True, pass_through=True)
    values = series.to_numpy() if isinstance(series, nw.Series) else to_array(given, argument)
    if values.shape != (rows,):
        raise ValueError(
            f"{argument}: must have one value for each of the {rows} rows, got shape {values.shape}"
        )
    missing = np.array([v is None for v in values]) if values.dtype == object else values != values
    if missing.any():
        raise ValueError(f"{argument}: contains missing values; fill them in or drop those rows")
    try:
        distinct, number = np.unique(values, return_inverse=True)
    except TypeError:
        raise ValueError(
            f"{argument}: mixes values that have no order; convert all of them to text"
        ) from None
    if in_order and isinstance(distinct[0], str):
        from seqatt.data.number_texts import parse_times  # here, because it imports pyarrow

        number = np.unique(parse_times(distinct, argument)[number], return_inverse=True)[1]
    return number.astype(np.int64)
