"""Looks up the codes of categorical values, those of several columns together.

A batch has dozens of columns, most of a few distinct values. Looked up one column at a time, their cost is that of
hundreds of calls, during which no other thread can run Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seqatt.data.files.encoding.columns import CategoricalColumn, encode_dictionary
from seqatt.data.files.encoding.hashing import hash_texts

VALUES_AT_ONCE = 1 << 16  # distinct values of several columns that are looked up together, at most
LARGEST_HASH = np.uint64(0xFFFFFFFFFFFFFFFF)


class CodeTable:
    """The codes of all known values of some categorical columns.

    The known hashes of a column are sorted and uniform, so that their first bits tell about where one is: ``_first``
    has for each value of these bits the position of the first known hash that has these bits or more.
    """

    def __init__(self, columns: Sequence[CategoricalColumn]) -> None:
        self._names = [column.name for column in columns]
        known_counts = np.array([len(column.known) for column in columns], dtype=np.int64)
        bits = np.array([max(1, count).bit_length() + 1 for count in known_counts.tolist()], dtype=np.int64)
        self._shift = (64 - bits).astype(np.uint64)
        # After those of each column there is a hash that no value is looked up beyond.
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
            sizes = np.array([len(each) for each in values])
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


Dictionary = tuple[Any, NDArray[np.int32]]  # distinct values of a column, and which of them each row has


def _together(coded: Iterator[Dictionary]) -> Iterator[tuple[int, list[Dictionary]]]:
    """Columns that are looked up together, with the number of the first of them."""
    some: list[Dictionary] = []
    first, size = 0, 0
    for dictionary in coded:
        if some and size + len(dictionary[0]) > VALUES_AT_ONCE:
            yield first, some
            first, size, some = first + len(some), 0, []
        some.append(dictionary)
        size += len(dictionary[0])
    if some:
        yield first, some
