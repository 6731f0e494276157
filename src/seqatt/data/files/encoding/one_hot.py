"""One-hot encodes columns of files, with the values and the scale of the schema sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.files.encoding.columns import encode_dictionary, hash_texts


@dataclass(frozen=True)
class OneHotColumn:
    """One categorical feature, as one column per value, shifted and scaled as for tables in memory.

    ``hashes`` are the sorted hashes of the values that have a column and ``columns`` the column of each;
    ``missing`` is the column of missing values, -1 if they have none. All other values are 0 in every column,
    before ``shift`` (width,) is subtracted and the result divided by ``scale``: the variances of the columns
    sum to 1.
    """

    name: str
    hashes: NDArray[np.uint64]
    columns: NDArray[np.int64]
    missing: int
    shift: NDArray[np.float64]
    scale: float
    constant: bool

    @property
    def width(self) -> int:
        return len(self.shift)

    def write(self, column: Any, out: NDArray[np.float32]) -> None:
        """Encode a column of n values into ``out`` (width, n)."""
        values, value_of = encode_dictionary(column)
        found = np.full(len(values) + 1, -1)  # the column of each value; the last is "missing"
        found[-1] = self.missing
        if len(self.hashes) and len(values):
            hashes = hash_texts(values)
            at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
            found[:-1] = np.where(self.hashes[at] == hashes, self.columns[at], -1)
        # One row of n equal cells and one scattered cell per row: far fewer operations than a comparison per column.
        out[:] = (-self.shift / self.scale).astype(np.float32)[:, None]
        hot = found.take(value_of)
        rows = np.flatnonzero(hot >= 0)
        hot = hot[rows]
        out[hot, rows] = ((1 - self.shift) / self.scale).astype(np.float32).take(hot)


def count_values(column: Any) -> int:
    """The number of distinct values of a column; missing counts as one."""
    values, value_of = encode_dictionary(column)
    return len(np.unique(value_of)) if len(values) else int(len(value_of) > 0)


def fit_one_hot(name: str, column: Any, max_categories: int) -> OneHotColumn:
    """Fit the columns of the ``max_categories`` most frequent values of a column of the schema sample."""
    values, value_of = encode_dictionary(column)
    counts = np.bincount(value_of, minlength=len(values) + 1)
    texts = [*values.cast("string").to_pylist(), None]
    present = np.flatnonzero(counts).tolist()
    ranked = sorted(present, key=lambda i: (-counts[i], texts[i] is None, texts[i] or ""))
    # One column distinguishes two categories.
    levels = ranked[1:] if len(ranked) == 2 else ranked[:max_categories]
    known = np.array([i for i in levels if i < len(values)], dtype=np.int64)
    hashes = hash_texts(values.take(known.tolist())) if len(known) else np.empty(0, dtype=np.uint64)
    order = np.argsort(hashes)
    shift = counts[levels] / max(1, len(value_of))
    variance = float(np.sum(shift * (1 - shift)))
    return OneHotColumn(
        name,
        hashes[order],
        np.array([levels.index(i) for i in known], dtype=np.int64)[order],
        levels.index(len(values)) if len(values) in levels else -1,
        shift,
        float(np.sqrt(variance)) if variance > 0 else 1.0,
        variance <= 0,
    )
