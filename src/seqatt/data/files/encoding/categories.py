"""Encodes the categories of files: integer codes, or one-hot columns as those of tables.

A code is a row of the category's embedding table. Everything is fitted on the schema sample, a bounded number
of rows, and does not change with later rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as of

from seqatt.data.tables.arrow_columns import CategoricalValues, as_category_values
from seqatt.data.tables.categories import FittedCategory, find_values, fit_category, min_level_rows

UNSEEN_PER_SINGLETON = 4  # codes reserved for unseen values, per value that occurs once in the schema sample
VALUES_AT_ONCE = 1 << 16  # distinct values of several columns that are looked up together, at most
LARGEST_HASH = np.uint64(0xFFFFFFFFFFFFFFFF)
FNV_BASIS, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of the hash FNV-1a

Dictionary = tuple[Any, NDArray[np.int32]]  # distinct values of a column, and which of them each row has


@dataclass(frozen=True)
class CategoricalColumn:
    """One categorical feature, as integer codes below ``size``.

    Code 0 is a missing value. ``known`` are the sorted hashes of values with a code of their own, 1 to
    ``len(known)``; all other values share the last ``shared`` codes, chosen by their hash.
    """

    name: str
    known: NDArray[np.uint64]
    shared: int
    counts: NDArray[np.int64]  # rows of the schema sample per code 0 to len(known)
    level_rows: int  # rows of the schema sample from which on a value has a one-hot column
    constant: bool

    @property
    def size(self) -> int:
        return 1 + len(self.known) + self.shared

    def frequency_ranks(self, max_categories: int) -> NDArray[np.int64]:
        """The rank of each code among the most frequent ones (0 is the most frequent), -1 for all others.

        Of two values only one is ranked: a single one-hot column distinguishes them. Rare values are not ranked, as in
        tables, but the first always is, because every feature needs a column.
        """
        ranks = np.full(self.size, -1)
        seen = np.flatnonzero(self.counts)
        ranked = seen[np.lexsort((seen, -self.counts[seen]))]
        repeated = max(1, np.count_nonzero(self.counts >= self.level_rows))
        frequent = ranked[1:] if len(ranked) == 2 else ranked[: min(repeated, max_categories)]
        ranks[frequent] = np.arange(len(frequent))
        return ranks


def fit_codes(name: str, column: Any, max_codes: int, min_rows: float = 0.0) -> CategoricalColumn:
    """Fit the codes of a categorical column of the schema sample, at most ``max_codes``.

    The most frequent values get a code of their own; values not seen in the sample share codes. The number of unseen
    values is estimated from the values that occur once (Good-Turing), so that a feature of a few values reserves a
    single shared code. A value with fewer than ``min_rows`` rows of the sample shares a code too. If ``min_rows`` is
    above 1, there is a single shared code: unseen values are rarer still. Without ``min_rows`` the codes are for sums,
    in which they become one-hot columns, and rare values have none.
    """
    values, value_of = encode_dictionary(column)
    hashes = hash_texts(values)
    seen, unique_of = np.unique(hashes, return_inverse=True)
    present = value_of[value_of < len(hashes)]
    counts = np.bincount(unique_of[present], minlength=len(seen))
    missing = len(value_of) - len(present)
    singletons = int((counts == 1).sum())
    available = max_codes - 1
    shared = 1 if not singletons else 1 << (UNSEEN_PER_SINGLETON * singletons - 1).bit_length()
    shared = 1 if min_rows > 1 else max(1, min(shared, available // 2))
    frequent = int((counts >= min_rows).sum())
    known = np.sort(np.lexsort((seen, -counts))[: max(0, min(frequent, available - shared))])
    level_rows = min_level_rows(len(value_of))
    distinct = int((counts > 0).sum()) + (missing > 0)
    one_code = not len(known) and shared == 1 and not missing
    all_rare = min_rows == 0 and max(missing, counts.max(initial=0)) < level_rows and distinct > 2
    return CategoricalColumn(
        name,
        seen[known],
        shared,
        np.concatenate([[missing], counts[known]]),
        level_rows,
        bool(distinct <= 1 or one_code or all_rare),
    )


class CodeTable:
    """The codes of all known values of some categorical columns, which are looked up together.

    A batch has dozens of columns, most of a few distinct values. Looked up one column at a time, their cost is that of
    hundreds of calls, during which no other thread can run Python.

    The known hashes of a column are sorted and uniform, so that the first bits of a hash tell about where it is. For
    each value of these bits, ``_first`` has the position of the first known hash that begins with this value or more.
    """

    def __init__(self, columns: Sequence[CategoricalColumn]) -> None:
        self._names = [column.name for column in columns]
        known_counts = np.array([len(column.known) for column in columns], dtype=np.int64)
        bits = np.array([max(1, count).bit_length() + 1 for count in known_counts.tolist()], dtype=np.int64)
        self._shift = (64 - bits).astype(np.uint64)
        # The hashes of each column end with the largest one, so that no search goes beyond them.
        known = [np.append(column.known, LARGEST_HASH) for column in columns]
        self._known = np.concatenate([np.empty(0, dtype=np.uint64), *known])
        self._known_start = np.cumsum(known_counts + 1) - (known_counts + 1)
        self._known_end = self._known_start + known_counts
        self._first_start = np.cumsum(1 << bits) - (1 << bits)
        firsts = [
            np.searchsorted(column.known, np.arange(1 << int(b), dtype=np.uint64) << shift) + start
            for column, b, shift, start in zip(columns, bits, self._shift, self._known_start, strict=True)
        ]
        self._first = np.concatenate([np.empty(0, dtype=np.int64), *firsts])
        self._shared = np.array([column.shared for column in columns], dtype=np.uint64)

    def write(self, batch: Any, out: NDArray[np.int32]) -> None:
        """Write the codes of a record batch of n rows into ``out`` (columns, n)."""
        coded = (encode_dictionary(batch.column(name)) for name in self._names)
        for first, dictionaries in _together(coded):
            values = [values.cast(pa.large_string()) for values, _ in dictionaries]
            sizes = np.array([len(texts) for texts in values])
            column = np.repeat(np.arange(first, first + len(sizes)), sizes)
            found = self._find(hash_texts(pa.concat_arrays(values)), column)
            codes = np.zeros(len(found) + len(sizes), dtype=np.int32)  # the last of each column is "missing"
            codes[np.arange(len(found)) + column - first] = found
            ends = np.cumsum(sizes + 1)
            for i, (start, end) in enumerate(zip(ends - sizes - 1, ends, strict=True)):
                np.take(codes[start:end], dictionaries[i][1], out=out[first + i], mode="clip")

    def _find(self, hashes: NDArray[np.uint64], column: NDArray[np.int64]) -> NDArray[np.int64]:
        """The codes of hashed values (n,) of the columns of these numbers (n,)."""
        at = self._first[self._first_start[column] + (hashes >> self._shift[column]).astype(np.int64)]
        too_low = np.flatnonzero(self._known[at] < hashes)
        while len(too_low):
            at[too_low] += 1
            too_low = too_low[self._known[at[too_low]] < hashes[too_low]]
        is_known = (self._known[at] == hashes) & (at < self._known_end[column])
        shared = self._known_end[column] + (hashes % self._shared[column]).astype(np.int64)
        return np.asarray(np.where(is_known, at, shared) - self._known_start[column] + 1)


def _together(coded: Iterator[Dictionary]) -> Iterator[tuple[int, list[Dictionary]]]:
    """Groups of columns that are looked up together, each with the number of its first column."""
    group: list[Dictionary] = []
    first, size = 0, 0
    for dictionary in coded:
        if group and size + len(dictionary[0]) > VALUES_AT_ONCE:
            yield first, group
            first, size, group = first + len(group), 0, []
        group.append(dictionary)
        size += len(dictionary[0])
    if group:
        yield first, group


@dataclass(frozen=True)
class OneHotColumn:
    """One categorical feature, as one column per value of ``category``."""

    name: str
    category: FittedCategory

    @property
    def width(self) -> int:
        return len(self.category.values)

    @property
    def constant(self) -> bool:
        return self.category.constant

    def unscaled(self) -> OneHotColumn:
        """The columns as 0 and 1."""
        fitted = self.category
        return replace(self, category=replace(fitted, shift=np.zeros_like(fitted.shift), scale=1.0))

    def write(self, column: Any, out: NDArray[np.float32]) -> None:
        """Encode a column of n values into ``out`` (width, n)."""
        out[:] = self.category.one_hot_rows()[
            find_values(_categorical_values(column), self.category.values)
        ].T


def fit_one_hot(name: str, column: Any, max_categories: int) -> OneHotColumn:
    """Fit the columns of the ``max_categories`` most frequent values of a column of the schema sample."""
    return OneHotColumn(name, fit_category(_categorical_values(column), None, len(column), max_categories))


def _categorical_values(column: Any) -> CategoricalValues:
    values, value_of = encode_dictionary(column)
    return CategoricalValues(
        values.cast(pa.string()), np.where(value_of < len(values), value_of, np.int32(-1))
    )


def encode_dictionary(column: Any) -> Dictionary:
    """Distinct values, and the index of the value of each row; ``len(values)`` means missing."""
    coded = column if of.is_dictionary(column.type) else as_category_values(column).dictionary_encode()
    values = coded.dictionary
    indices = coded.indices if coded.indices.type == pa.int32() else coded.indices.cast(pa.int32())
    if indices.null_count:
        indices = indices.fill_null(len(values))
    value_of = indices.to_numpy(zero_copy_only=False)
    if values.null_count:
        is_null = np.append(values.is_null().to_numpy(zero_copy_only=False), True)
        value_of = np.where(is_null[value_of], np.int32(len(values)), value_of)
    return values, value_of


def hash_texts(texts: Any) -> NDArray[np.uint64]:
    """FNV-1a hashes of a pyarrow array that can be cast to text; missing values hash like an empty text."""
    array = texts.cast(pa.large_string())
    if not len(array):
        return np.empty(0, dtype=np.uint64)
    _, offset_buffer, byte_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(byte_buffer, dtype=np.uint8) if byte_buffer else np.empty(0, dtype=np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    state = np.full(len(array), FNV_BASIS)
    position = int(lengths.min())
    for i in range(position):  # up to the shortest length every text has a byte: no selection is needed
        state ^= data[starts + i]
        state *= FNV_PRIME
    longer = np.flatnonzero(lengths > position)
    while len(longer):
        state[longer] = (state[longer] ^ data[starts[longer] + position]) * FNV_PRIME
        position += 1
        longer = longer[lengths[longer] > position]
    return _finalize(state)


def _finalize(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """MurmurHash3's 64-bit finalizer: spreads the hashes evenly over all 64 bits."""
    half = np.uint64(33)
    state = (state ^ (state >> half)) * np.uint64(0xFF51AFD7ED558CCD)
    state = (state ^ (state >> half)) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(state ^ (state >> half))
