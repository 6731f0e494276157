"""From columns of files to what a model takes: numbers, standardised, and categories as places in a table.

All that is fitted is fitted in a bounded first look and stays as it is; later rows change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types as of

FARTHEST = 10.0  # spreads from the mean, beyond which a later value is held
BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of FNV-1a
TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # in a second
SPARE = 4  # places kept free for each category that was seen but once, a sign of more to come


@dataclass(frozen=True)
class NumericColumn:
    """One numeric feature: ``log1p`` first, then less ``shift``, over ``scale``; missing is the mean."""

    name: str
    log1p: bool
    shift: float
    scale: float
    indicator: bool
    constant: bool

    @property
    def width(self) -> int:
        return 1 + self.indicator

    def write(self, column: Any, out: NDArray[np.float32]) -> None:
        """Into ``out`` (width, n): a line for each of its columns."""
        values = _scaled(read_numbers(column, self.name), self.log1p)
        gap = np.isnan(values)
        values -= self.shift
        values /= self.scale
        np.clip(values, -FARTHEST, FARTHEST, out=values)
        values[gap] = 0.0
        out[0] = values
        if self.indicator:
            out[1] = gap


@dataclass(frozen=True)
class CategoricalColumn:
    """One categorical feature, as places in a table.

    Place 0 is for missing values. Then come the ``known`` ones, a place each, by their sorted hashes; all
    others share the last ``shared`` places, by their hash.
    """

    name: str
    known: NDArray[np.uint64]
    shared: int
    counts: NDArray[np.int64]  # of missing and known ones, in the first look
    constant: bool

    @property
    def size(self) -> int:
        return 1 + len(self.known) + self.shared

    def places(self, column: Any) -> NDArray[np.int32]:
        hashes, which = _hashes(column)
        at = self._find(hashes)
        known = self._edged[at] == hashes
        known &= at < len(self.known)
        other = (hashes % np.uint64(self.shared)).astype(np.int32) + np.int32(1 + len(self.known))
        places = np.append(np.where(known, at + np.int32(1), other), np.int32(0))  # the last one is missing
        return places.take(which)

    def _find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """As ``np.searchsorted``, but faster: hashes are even, so their first bits lead close."""
        at: NDArray[np.int32] = self._first[hashes >> self._shift]
        behind = np.flatnonzero(self._edged[at] < hashes)
        while len(behind):
            at[behind] += 1
            behind = behind[self._edged[at[behind]] < hashes[behind]]
        return at

    @cached_property
    def _edged(self) -> NDArray[np.uint64]:
        """``known`` with an end that no hash is above."""
        return np.append(self.known, np.uint64(0xFFFFFFFFFFFFFFFF))

    @cached_property
    def _shift(self) -> np.uint64:
        return np.uint64(64 - max(1, len(self.known)).bit_length() - 1)

    @cached_property
    def _first(self) -> NDArray[np.int32]:
        """For every beginning of a hash, the first of ``known`` that has it or comes after."""
        starts = np.arange(1 << (64 - int(self._shift)), dtype=np.uint64) << self._shift
        return np.searchsorted(self.known, starts).astype(np.int32)

    def frequent(self, most: int) -> NDArray[np.int64]:
        """For every place its number among the ``most`` frequent, or -1; one of two values is enough."""
        numbers = np.full(self.size, -1)
        seen = np.flatnonzero(self.counts)
        ranked = seen[np.lexsort((seen, -self.counts[seen]))]
        kept = ranked[len(ranked) == 2 :][:most]
        numbers[kept] = np.arange(len(kept))
        return numbers


def fit_number(name: str, column: Any, *, log1p: bool, indicator: bool) -> NumericColumn:
    values = _scaled(read_numbers(column, name), log1p)
    present = values[~np.isnan(values)]
    missing = len(present) < len(values)
    with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at below
        spread = float(present.std()) if len(present) else 0.0
    constant = not len(present) or bool((present == present[0]).all())
    if not np.isfinite(spread):
        raise ValueError(f"X: column {name!r} holds values too large to work with; rescale it")
    return NumericColumn(
        name,
        log1p,
        float(present.mean()) if len(present) else 0.0,
        spread if spread > 0 and not constant else 1.0,
        indicator and missing,
        constant and not (indicator and missing and len(present)),
    )


def fit_category(name: str, column: Any, most: int) -> CategoricalColumn:
    """A place for each value seen, the most frequent first, and places to share for those to come.

    ``most`` bounds the table. How many values are still unseen shows in how many were seen only once
    (Good and Turing), so a feature of a few values shares a single place.
    """
    hashes, which = _hashes(column)
    seen, back = np.unique(hashes, return_inverse=True)
    present = which[which < len(hashes)]
    counts = np.bincount(back[present], minlength=len(seen))
    missing = len(which) - len(present)
    once = int((counts == 1).sum())
    room = most - 1
    shared = 1 if not once else 1 << (SPARE * once - 1).bit_length()
    shared = max(1, min(shared, room // 2))
    kept = np.sort(np.lexsort((seen, -counts))[: max(0, room - shared)])
    return CategoricalColumn(
        name,
        seen[kept],
        shared,
        np.concatenate([[missing], counts[kept]]),
        int((counts > 0).sum()) + (missing > 0) <= 1,
    )


def comparable(column: Any) -> Any:
    """As categories: what is not a number is missing, and a time is the same word whatever a file's unit."""
    if of.is_timestamp(column.type) or of.is_date(column.type):
        return column.cast(pa.timestamp("us"), safe=False)
    return pc.if_else(pc.is_nan(column), None, column) if of.is_floating(column.type) else column


def read_numbers(column: Any, name: str) -> NDArray[np.float64]:
    """A fresh array; missing values are NaN, and times are seconds, since files differ in their units."""
    ticks = 1.0
    if of.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    if of.is_timestamp(column.type) or of.is_duration(column.type):
        ticks = TICKS[column.type.unit]
        column = column.cast(pa.int64())
    elif of.is_boolean(column.type):
        column = column.cast(pa.int8())
    # Not safe: a whole number beyond 2^53 is rounded, as everywhere else, and not refused.
    values = np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    values /= ticks
    if np.isinf(values).any():
        raise ValueError(
            f"X: column {name!r} contains infinity; replace infinite values, for example by NaN, "
            "which is read as missing"
        )
    return values


def _scaled(values: NDArray[np.float64], log1p: bool) -> NDArray[np.float64]:
    return np.sign(values) * np.log1p(np.abs(values)) if log1p else values


def _hashes(column: Any) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Hashes of the values that occur, and for each row which of them it has; one more is missing."""
    coded = column if of.is_dictionary(column.type) else comparable(column).dictionary_encode()
    names = coded.dictionary
    which = coded.indices.cast(pa.int32()).fill_null(len(names)).to_numpy(zero_copy_only=False)
    if names.null_count:
        gaps = np.append(names.is_null().to_numpy(zero_copy_only=False), True)
        which = np.where(gaps[which], np.int32(len(names)), which)
    return hash_texts(names), which


def hash_texts(texts: Any) -> NDArray[np.uint64]:
    """Of a pyarrow array of any type that can be said in words; missing ones hash like an empty text."""
    array = texts.cast(pa.large_string())
    if not len(array):
        return np.empty(0, dtype=np.uint64)
    _, places, letters = array.buffers()
    ends = np.frombuffer(places, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(letters, dtype=np.uint8) if letters else np.empty(0, dtype=np.uint8)
    starts, lengths = ends[:-1], np.diff(ends)
    state = np.full(len(array), BASIS)
    letter = int(lengths.min())
    for i in range(letter):  # as far as all texts go, nothing has to be picked out
        state ^= data[starts + i]
        state *= PRIME
    going = np.flatnonzero(lengths > letter)
    while len(going):
        state[going] = (state[going] ^ data[starts[going] + letter]) * PRIME
        letter += 1
        going = going[lengths[going] > letter]
    return _stir(state)


def _stir(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    half = np.uint64(33)
    state = (state ^ (state >> half)) * np.uint64(0xFF51AFD7ED558CCD)
    state = (state ^ (state >> half)) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(state ^ (state >> half))
