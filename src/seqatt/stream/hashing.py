"""One number for each text, the same in every process, on every machine and in every year.

FNV-1a (Fowler, Noll, Vo) over the bytes of UTF-8, then MurmurHash3's last stirring, for all texts at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


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
