"""Extreme values of numeric columns, such as -999 for missing or a slip of the decimal point.

A value is extreme if it is more than ``FENCE`` interquartile ranges beyond a quartile, few others are, and together
they make the standard deviation at least ``INFLATION`` times as large: a single value can make it so large that all
others look the same. Long tails do less and stay as they are (docs/decisions/0030-extreme-values.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.containers import InputTable
from seqatt.data.tables.numbers.moments import Floats, Moments, dense_moments, map_numbers, to_floats

FENCE = 10.0  # interquartile ranges from a quartile, beyond which a value is extreme
EXTREME_SHARE = 0.05  # largest share of extreme values in a column: more are no exception
INFLATION = 4.0  # smallest ratio of the standard deviations with and without extreme values
MIN_DEVIATION = 4.0  # of the farthest value from the mean, in standard deviations: nearer ones inflate little
FENCE_ROWS, FENCE_CELLS = 2_000, 1 << 22  # rows that quartiles are computed from; cells at a time (32 MiB)


@dataclass(frozen=True)
class Extremes:
    """Columns that hold extreme values, such as -999 for missing, and the limits that these are clipped to.

    ``columns`` are positions among the numeric columns. ``low`` and ``high`` are the smallest and the largest value
    that is not extreme. ``rows`` is the number of extreme values of each, ``farthest`` the one farthest away.
    """

    columns: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    low: Floats = field(default_factory=lambda: np.zeros(0))
    high: Floats = field(default_factory=lambda: np.zeros(0))
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    farthest: Floats = field(default_factory=lambda: np.zeros(0))

    def clip(self, values: Floats) -> None:
        """Clip the numbers (rows, numeric columns) in place; infinity stays, because it is refused later."""
        if len(self.columns):
            raw = values[:, self.columns]
            values[:, self.columns] = np.where(np.isinf(raw), raw, np.clip(raw, self.low, self.high))

    def take(self, kept: NDArray[np.bool_]) -> Extremes:
        """Extremes of a subset of the numeric columns, renumbered from 0; ``kept`` marks the subset."""
        extremes = self.only(kept[self.columns])
        return replace(extremes, columns=(np.cumsum(kept) - 1)[extremes.columns])

    def only(self, mask: NDArray[np.bool_]) -> Extremes:
        """Extremes of the columns where ``mask`` (columns,) is True."""
        return Extremes(
            self.columns[mask], self.low[mask], self.high[mask], self.rows[mask], self.farthest[mask]
        )


def find_fences(sample: Floats) -> tuple[Floats, Floats]:
    """The fences (columns,) of ``sample`` (columns, rows); infinite where the interquartile range is zero."""
    ordered = np.sort(sample, axis=1)  # NaN last
    last = np.maximum(0, np.count_nonzero(~np.isnan(sample), axis=1) - 1)
    column = np.arange(len(sample))
    first_quartile, third_quartile = ordered[column, last // 4], ordered[column, last - last // 4]
    with np.errstate(over="ignore", invalid="ignore"):
        far = FENCE * (third_quartile - first_quartile)
        wide = far > 0
        return np.where(wide, first_quartile - far, -np.inf), np.where(wide, third_quartile + far, np.inf)


def find_limits(values: Floats) -> tuple[float, float] | None:
    """The smallest and the largest of these values, none missing, that is not extreme; None if none is extreme."""
    if len(values) * EXTREME_SHARE < 1:
        return None
    step = -(-len(values) // FENCE_ROWS)
    (below,), (above,) = find_fences(values[None, ::step])
    inside = values[(values >= below) & (values <= above)]
    if not len(values) * (1 - EXTREME_SHARE) <= len(inside) < len(values):
        return None
    low, high = float(inside.min()), float(inside.max())
    with np.errstate(over="ignore", invalid="ignore"):  # values that are too large are refused later
        inflated = values.std() >= INFLATION * np.clip(values, low, high).std()
    return (low, high) if low < high and inflated else None


def clipped_moments(
    table: InputTable, numeric: list[int], logarithms: list[int], weights: Floats | None, argument: str
) -> tuple[Moments, Extremes]:
    """The moments of a dense table with its extreme values clipped, and these extremes."""
    moments = dense_moments(table, numeric, logarithms, weights, argument)
    extremes = find_extremes(table, numeric, logarithms, moments)
    if len(extremes.columns):
        affected = [numeric[j] for j in extremes.columns]
        with_logarithms = np.flatnonzero(np.isin(extremes.columns, logarithms)).tolist()
        renumbered = replace(extremes, columns=np.arange(len(affected)))
        clipped = dense_moments(table, affected, with_logarithms, weights, argument, renumbered.clip)
        inflated = moments.spread[extremes.columns] >= INFLATION * clipped.spread
        extremes = extremes.only(inflated)
        for whole, part in zip(moments, clipped, strict=True):
            whole[extremes.columns] = part[inflated]
    return moments, extremes


def find_extremes(table: InputTable, numeric: list[int], logarithms: list[int], moments: Moments) -> Extremes:
    """The extreme values of a dense table, which has these moments.

    Only columns with a value far from the mean are looked at again; the quartiles are those of a sample of the rows.
    """
    mean, spread, ends = moments.mean, moments.spread, np.stack([moments.low, moments.high])
    reach = MIN_DEVIATION * spread
    far = np.flatnonzero((spread > 0) & ((ends[1] - mean > reach) | (mean - ends[0] > reach)))
    step = -(-table.rows // FENCE_ROWS)
    fences = np.empty((2, len(far)))
    # The columns of an array are selected after its rows, because an array copies what it selects.
    sampled = table.select(numeric) if table.framed else table
    if step > 1:
        sampled = sampled.select_rows(np.arange(table.rows) % step == 0)
    place = range(len(numeric)) if table.framed else numeric
    size = max(1, FENCE_CELLS // sampled.rows)
    for start in range(0, len(far), size):
        block = far[start : start + size]
        with_logarithms = np.flatnonzero(np.isin(block, logarithms)).tolist()
        sample = to_floats(sampled.numbers([place[j] for j in block]), with_logarithms)
        fences[:, start : start + size] = find_fences(np.ascontiguousarray(sample.T))
    beyond = (ends[0][far] < fences[0]) | (ends[1][far] > fences[1])
    far, (below, above) = far[beyond], fences[:, beyond]
    if not len(far):
        return Extremes()
    with_logarithms = np.flatnonzero(np.isin(far, logarithms)).tolist()

    def count(rows: slice, raw: NDArray[Any]) -> tuple[Any, ...]:
        values = to_floats(raw, with_logarithms)
        extreme = (values < below) | (values > above)
        inside = np.where(extreme | np.isnan(values), np.nan, values)
        low, high = np.fmin.reduce(inside, axis=0), np.fmax.reduce(inside, axis=0)
        return low, high, extreme.sum(0), (~np.isnan(values)).sum(0)

    low, high = np.full(len(far), np.inf), np.full(len(far), -np.inf)
    extreme, present = np.zeros(len(far), dtype=np.int64), np.zeros(len(far), dtype=np.int64)
    for chunk_low, chunk_high, chunk_extreme, chunk_present in map_numbers(
        table, [numeric[j] for j in far], count
    ):
        low, high = np.fmin(low, chunk_low), np.fmax(high, chunk_high)
        extreme, present = extreme + chunk_extreme, present + chunk_present
    farthest = np.where(ends[1][far] - high > low - ends[0][far], ends[1][far], ends[0][far])
    few = (extreme <= EXTREME_SHARE * present) & (low < high)
    return Extremes(far[few], low[few], high[few], extreme[few], farthest[few])
