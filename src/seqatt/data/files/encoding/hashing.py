"""Hashes of texts, the same on every machine and in every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FNV_BASIS, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of the hash FNV-1a


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
