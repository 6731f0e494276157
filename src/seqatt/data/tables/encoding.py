"""From features to the columns a model sees, by what the training rows show.

Numbers are standardised, missing ones become the training mean (with an indicator column on request), and
categories become one column each. A number's column has variance 1, and so have the columns of a category
together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.containers import InputTable

CHUNK_CELLS = 1 << 17  # cells worked on at a time: float64 accuracy, in a core's own cache
FEWEST_ROWS = 16  # a chunk: what is kept of each is as wide as the table
WORKERS = min(8, os.cpu_count() or 1)  # chunks worked on at once
DENSE_CELLS = 1 << 28  # sparse tables up to this size (1 GiB) are opened once and for all

Floats = NDArray[np.float64]
Part = TypeVar("Part")


@dataclass(frozen=True)
class SparseColumns:
    """A sparse table too large to open: rows are standardised as they are asked for."""

    data: Any
    shift: Floats
    scale: Floats

    def open(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        dense = self.data[rows].toarray()
        return np.asarray((dense - self.shift) / self.scale, dtype=np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        return tuple(self.data.shape)


Columns = NDArray[np.float32] | SparseColumns


@dataclass(frozen=True)
class Encoder:
    """What was learnt of each table column; ``feature_of[c]`` is the table column that column c is from."""

    numeric: list[int]
    shift: Floats
    scale: Floats
    indicated: list[int]
    indicator_shift: Floats
    indicator_scale: Floats
    levels: dict[int, list[str | None]]
    level_shift: dict[int, Floats]
    level_scale: dict[int, float]
    feature_of: NDArray[np.int64]
    constant: NDArray[np.bool_]
    gaps: Floats

    @property
    def holds_number(self) -> NDArray[np.bool_]:
        """Which columns are numbers as they were given: not a category, nor whether a number is missing."""
        first = np.diff(self.feature_of, prepend=-1) > 0
        return np.asarray(first & np.isin(self.feature_of, self.numeric))

    @property
    def missing(self) -> Floats:
        """The share of training rows in which a column has no number, and so the mean."""
        share = np.zeros(len(self.feature_of))
        share[self.holds_number] = self.gaps
        return share

    def encode(self, table: InputTable, argument: str = "X") -> Columns:
        """The columns of any table of the same make."""
        if table.sparse:
            return self._encode_sparse(table)
        if len(self.numeric) == len(self.feature_of):
            return self._numbers(table, argument)[0]
        out = np.empty((table.rows, len(self.feature_of)), dtype=np.float32)
        values, missing = self._numbers(table, argument)
        slots: dict[int, list[int]] = {}
        for slot, position in enumerate(self.feature_of):
            slots.setdefault(int(position), []).append(slot)
        for j, position in enumerate(self.numeric):
            out[:, slots[position][0]] = values[:, j]
        for j, position in enumerate(self.indicated):
            flag = missing[:, self.numeric.index(position)]
            out[:, slots[position][1]] = (flag - self.indicator_shift[j]) / self.indicator_scale[j]
        for position, levels in self.levels.items():
            hot = _one_hot(table.labels(position), levels)
            out[:, slots[position]] = (hot - self.level_shift[position]) / self.level_scale[position]
        return out

    def _numbers(self, table: InputTable, argument: str) -> tuple[NDArray[np.float32], Any]:
        raw = table.numbers(self.numeric)
        out = np.empty(raw.shape, dtype=np.float32)
        missing = np.zeros(raw.shape, dtype=bool) if self.indicated else None

        def standardise(rows: slice) -> None:
            part = raw[rows].astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at below
                part -= self.shift
                part /= self.scale
                out[rows] = part
            if np.isfinite(out[rows]).all():
                return
            given = raw[rows].astype(np.float64)
            gap = np.isnan(given)
            _insist_on_finite(given, gap, self.numeric, table, argument)
            out[rows][gap] = 0.0  # the training mean, standardised
            _insist_on_moderate(np.abs(out[rows]).max(0), self.numeric, table, argument)
            if missing is not None:
                missing[rows] = gap

        for _ in map_chunks(raw, standardise):
            pass
        return out, missing

    def _encode_sparse(self, table: InputTable) -> Columns:
        sparse = SparseColumns(table.data, self.shift, self.scale)
        if table.rows * len(self.feature_of) > DENSE_CELLS:
            return sparse
        return sparse.open(np.arange(table.rows))


def fit_encoder(
    table: InputTable,
    weights: Floats | None,
    *,
    missing_indicator: bool = False,
    max_categories: int = 64,
    argument: str = "X",
) -> Encoder:
    """Learn means, spreads and categories from the training rows."""
    numeric = [i for i, kind in enumerate(table.kinds) if kind != "categorical"]
    if table.sparse:
        mean, spread, gaps = _sparse_moments(table, weights, argument)
    else:
        mean, spread, gaps = _moments(table, numeric, weights, argument)
    indicated = [p for p, gap in zip(numeric, gaps, strict=True) if missing_indicator and 0 < gap < 1]
    share = np.array([gap for gap in gaps if missing_indicator and 0 < gap < 1])
    constant = np.zeros(len(table.names), dtype=bool)
    constant[numeric] = spread == 0
    constant[indicated] = False
    levels: dict[int, list[str | None]] = {}
    level_shift: dict[int, Floats] = {}
    level_scale: dict[int, float] = {}
    for position, kind in enumerate(table.kinds):
        if kind == "categorical":
            levels[position] = _levels(table.labels(position), max_categories)
            hot = _one_hot(table.labels(position), levels[position])
            level_shift[position] = np.average(hot, axis=0, weights=weights)
            total = float(np.sum(level_shift[position] * (1 - level_shift[position])))
            constant[position] = total <= 0
            level_scale[position] = np.sqrt(total) if total > 0 else 1.0
    widths = [len(levels.get(p, "x")) + (p in indicated) for p in range(len(table.names))]
    return Encoder(
        numeric,
        mean,
        np.where(spread > 0, spread, 1.0),
        indicated,
        share,
        np.sqrt(share * (1 - share)),
        levels,
        level_shift,
        level_scale,
        np.repeat(np.arange(len(widths)), widths),
        constant,
        gaps,
    )


def _moments(
    table: InputTable, numeric: list[int], weights: Floats | None, argument: str
) -> tuple[Floats, Floats, Floats]:
    """Mean, spread and share of missing rows of each column: two passes, each a chunk at a time."""
    raw = table.numbers(numeric)

    def sums(rows: slice) -> tuple[Any, ...]:
        part = raw[rows].astype(np.float64)
        w = np.ones(len(part)) if weights is None else weights[rows]
        low, high = part.min(0), part.max(0)
        if np.isfinite(low).all() and np.isfinite(high).all():
            return low, high, w @ part, w.sum(), 0.0, False
        gap = np.isnan(part)
        _insist_on_finite(part, gap, numeric, table, argument)
        low = np.min(np.where(gap, np.inf, part), axis=0)
        high = np.max(np.where(gap, -np.inf, part), axis=0)
        part[gap] = 0.0
        return low, high, w @ part, w @ ~gap, w @ gap, True

    width = raw.shape[1]
    total, present, gaps = np.zeros(width), np.zeros(width), np.zeros(width)
    low, high, holes = np.full(width, np.inf), np.full(width, -np.inf), False
    for lowest, highest, weighed, there, absent, holed in map_chunks(raw, sums):
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
        total, present, gaps = total + weighed, present + there, gaps + absent
        holes = holes or holed
    mean = total / np.where(present > 0, present, 1.0)
    # Squares of very large or very small numbers leave float64; shares of the reach never do.
    reach = np.where(low < high, np.maximum(high - mean, mean - low), 1.0)
    _insist_on_moderate(mean + reach, numeric, table, argument)

    def squares(rows: slice) -> Floats:
        part = raw[rows].astype(np.float64)
        part -= mean
        part /= reach
        np.square(part, out=part)
        if holes:
            part[np.isnan(part)] = 0.0
        return np.asarray(part.sum(0) if weights is None else weights[rows] @ part)

    square = np.zeros(width)
    for some in map_chunks(raw, squares):
        square += some
    spread = reach * np.sqrt(square / (present + gaps))
    return mean, np.where(low < high, spread, 0.0), gaps / (present + gaps)


def _sparse_moments(
    table: InputTable, weights: Floats | None, argument: str
) -> tuple[Floats, Floats, Floats]:
    data = table.data.astype(np.float64)
    if not np.isfinite(data.data).all():
        raise ValueError(f"{argument}: a sparse matrix must not hold NaN or infinity; fill them in")
    w = np.ones(table.rows) if weights is None else weights
    mean = np.asarray(w @ data).ravel() / w.sum()
    # Around the mean: stored cells give (x - m)^2, the others m^2.
    low, high = (np.asarray(m.todense()).ravel() for m in (data.min(0), data.max(0)))
    reach = np.where(low < high, np.maximum(high - mean, mean - low), 1.0)
    _insist_on_moderate(mean + reach, list(range(len(mean))), table, argument)
    centred = data.copy()
    centred.data = ((centred.data - mean[centred.indices]) / reach[centred.indices]) ** 2
    pattern = data.copy()
    pattern.data = np.ones_like(pattern.data)
    stored = np.asarray(w @ pattern).ravel()
    rest = (w.sum() - stored) * (mean / reach) ** 2
    spread = reach * np.sqrt((np.asarray(w @ centred).ravel() + rest) / w.sum())
    return mean, np.where(low < high, spread, 0.0), np.zeros(len(mean))


def map_chunks(raw: NDArray[Any], work: Callable[[slice], Part]) -> Iterator[Part]:
    """What ``work`` gives for every few rows, in their order, whichever thread did it."""
    step = max(FEWEST_ROWS, CHUNK_CELLS // max(1, raw.shape[1]))
    chunks = [slice(start, start + step) for start in range(0, len(raw), step)]
    if len(chunks) < 2 * WORKERS:
        yield from map(work, chunks)
        return
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from pool.map(work, chunks)


def _insist_on_finite(
    part: Floats, gap: NDArray[np.bool_], numeric: list[int], table: InputTable, argument: str
) -> None:
    bad = ~np.isfinite(part) & ~gap
    if bad.any():
        name = table.names[numeric[int(np.argmax(bad.any(0)))]]
        raise ValueError(
            f"{argument}: column {name!r} contains infinity; replace infinite values, for example "
            "by NaN, which is read as missing"
        )


def _insist_on_moderate(values: Floats, numeric: list[int], table: InputTable, argument: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        name = table.names[numeric[int(np.argmax(bad))]]
        raise ValueError(f"{argument}: column {name!r} holds values too large to work with; rescale it")


def _levels(labels: NDArray[np.object_], most: int) -> list[str | None]:
    """The most frequent categories, missing counting as one; the rest share the zero row."""
    counts: dict[str | None, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    ranked = sorted(counts, key=lambda level: (-counts[level], level is None, str(level)))
    if len(ranked) == 2:
        return ranked[1:]  # one column tells two categories apart
    return ranked[:most]


def _one_hot(labels: NDArray[np.object_], levels: list[str | None]) -> Floats:
    place = {level: j for j, level in enumerate(levels)}
    hot = np.zeros((len(labels), len(levels)))
    for i, label in enumerate(labels):
        j = place.get(label)
        if j is not None:
            hot[i, j] = 1.0
    return hot
