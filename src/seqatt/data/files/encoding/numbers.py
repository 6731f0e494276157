"""Standardises the numbers of files, with means and limits fitted on the schema sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as of

from seqatt.data.tables.numbers.extremes import find_limits
from seqatt.data.tables.numbers.moments import infinity_message, signed_log1p

MAX_DEVIATION = 10.0  # standard deviations from the mean; values beyond are clipped
BLOCK_CELLS = 1 << 17  # float64 cells that are encoded at a time, so that they fit into one core's cache
TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # ticks per second


@dataclass(frozen=True)
class NumericColumn:
    """One numeric feature: ``(x - shift) / scale``, after ``sign(x) log(1 + |x|)`` if ``log1p``.

    A missing value becomes the mean, ``missing`` after scaling. Values beyond ``limits``, after scaling, are clipped.
    With ``indicator`` a second column is 1 where the value is missing. ``low`` and ``high`` are the smallest and the
    largest value of the schema sample that is not extreme, and ``clipped`` says whether it has extreme ones.
    """

    name: str
    log1p: bool
    shift: float
    scale: float
    indicator: bool
    constant: bool
    low: float
    high: float
    missing: float = 0.0
    limits: tuple[float, float] = (-MAX_DEVIATION, MAX_DEVIATION)
    clipped: bool = False

    @property
    def width(self) -> int:
        return 1 + self.indicator

    def scaled(self, scaling: str) -> NumericColumn:
        """The standardised column in the range from 0 to 1 ("min-max") or as it is ("none")."""
        if scaling == "none":
            low, high = (self.shift + limit * self.scale for limit in self.limits)
            return replace(self, shift=0.0, scale=1.0, missing=self.shift, limits=(low, high))
        span = self.high - self.low if self.high > self.low else 1.0
        return replace(
            self, shift=self.low, scale=span, missing=(self.shift - self.low) / span, limits=(0.0, 1.0)
        )


def fit_number(name: str, column: Any, *, log1p: bool, indicator: bool) -> NumericColumn:
    """Fit the encoding of a numeric column of the schema sample."""
    values = read_numbers(column, name)
    values = signed_log1p(values) if log1p else values
    present = values[~np.isnan(values)]
    missing = len(present) < len(values)
    extremes = find_limits(present)
    present = present if extremes is None else np.clip(present, *extremes)
    with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
        spread = float(present.std()) if len(present) else 0.0
    constant = not len(present) or bool((present == present[0]).all())
    if not np.isfinite(spread):
        raise ValueError(f"X: column {name!r} holds values too large to work with; rescale it")
    shift, scale = (
        float(present.mean()) if len(present) else 0.0,
        spread if spread > 0 and not constant else 1.0,
    )
    limits = (-MAX_DEVIATION, MAX_DEVIATION)
    if extremes is not None:
        limits = (
            max(limits[0], (extremes[0] - shift) / scale),
            min(limits[1], (extremes[1] - shift) / scale),
        )
    return NumericColumn(
        name,
        log1p,
        shift,
        scale,
        indicator and missing,
        constant and not (indicator and missing and len(present)),
        float(present.min()) if len(present) else 0.0,
        float(present.max()) if len(present) else 0.0,
        limits=limits,
        clipped=extremes is not None,
    )


def write_numbers(numbers: Sequence[NumericColumn], batch: Any, out: NDArray[np.float32]) -> None:
    """Encode the numeric features of a record batch of n rows into ``out`` (total width, n)."""
    # Several columns at a time: a batch of thousands of columns would otherwise spend its time on calls.
    size = max(1, BLOCK_CELLS // max(1, batch.num_rows))
    row = 0
    for start in range(0, len(numbers), size):
        block = numbers[start : start + size]
        values = np.empty((len(block), batch.num_rows))
        for i, number in enumerate(block):
            column = batch.column(number.name)
            plain = not column.null_count and (of.is_integer(column.type) or of.is_floating(column.type))
            values[i] = column.to_numpy() if plain else _as_floats(column)
        is_missing = None if np.isfinite(values).all() else np.isnan(values)
        if is_missing is not None and (infinite := np.isinf(values).any(axis=1)).any():
            raise ValueError(infinity_message(block[int(infinite.argmax())].name))
        log1p = [i for i, number in enumerate(block) if number.log1p]
        if log1p:
            which = slice(None) if len(log1p) == len(block) else log1p
            values[which] = signed_log1p(values[which])
        values -= np.array([number.shift for number in block])[:, None]
        values /= np.array([number.scale for number in block])[:, None]
        low, high = np.array([number.limits for number in block]).T[:, :, None]
        np.clip(values, low, high, out=values)
        if is_missing is not None:
            np.copyto(values, np.array([number.missing for number in block])[:, None], where=is_missing)
        if not any(number.indicator for number in block):
            out[row : row + len(block)] = values
            row += len(block)
            continue
        for i, number in enumerate(block):
            out[row] = values[i]
            if number.indicator:
                out[row + 1] = 0.0 if is_missing is None else is_missing[i]
            row += number.width


def read_numbers(column: Any, name: str) -> NDArray[np.float64]:
    """A column as a new array; missing values are NaN, times are in seconds because units differ between files."""
    values = _as_floats(column)
    if np.isinf(values).any():
        raise ValueError(infinity_message(name))
    return values


def _as_floats(column: Any) -> NDArray[np.float64]:
    ticks = 1.0
    if of.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    if of.is_timestamp(column.type) or of.is_duration(column.type) or of.is_time(column.type):
        ticks = TICKS[column.type.unit]
        column = column.cast(pa.int32() if of.is_time32(column.type) else pa.int64())
    elif of.is_boolean(column.type):
        column = column.cast(pa.int8())
    # Not safe: a whole number beyond 2^53 is rounded, not refused, as for tables in memory.
    values = np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    values /= ticks
    return values
