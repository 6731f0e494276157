"""Reads batches of arrays or tensors, as a ``torch.utils.data.DataLoader`` yields them, like a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seqatt.data.files.formats.file_format import RowGroup
from seqatt.data.files.remote import FilePath, RemoteFile, Stat
from seqatt.data.tables.containers import Kind
from seqatt.data.tables.objects import tensor_values

TARGET, WEIGHTS = "y", "weights"  # names of columns; features are x0, x1, ...


class ArrayBatch(NamedTuple):
    """Features (n, d), target (n,) or (n, outputs), and weights (n,) or None."""

    x: NDArray[Any]
    y: NDArray[Any]
    weights: NDArray[Any] | None


@dataclass(frozen=True)
class BatchSource(RemoteFile):
    """An iterable of batches in the place of a file; it has no bytes, and its size is its number of batches."""

    batches: Any = field(default=None, compare=False, repr=False)

    def stat(self) -> Stat:
        return Stat(len(self.batches), 0)

    def arrays(self) -> Iterator[ArrayBatch]:
        """The batches, from the first one on; all must have the shape of the first."""
        first: ArrayBatch | None = None
        for number, batch in enumerate(self.batches):
            arrays = _check_batch(batch, f"batch {number}")
            first = first or arrays
            if arrays.x.shape[1] != first.x.shape[1] or arrays.y.shape[1:] != first.y.shape[1:]:
                raise ValueError(
                    f"X: batch {number} has features of shape {arrays.x.shape} and targets of shape "
                    f"{arrays.y.shape}, the first batch {first.x.shape} and {first.y.shape}; "
                    "all batches need the same columns"
                )
            if (arrays.weights is None) != (first.weights is None):
                raise ValueError(
                    f"X: batch {number} has {'no ' if arrays.weights is None else ''}weights, unlike the first "
                    "batch; yield (X, y) or (X, y, weights) throughout"
                )
            yield arrays


class IterableFormat:
    compressible = False

    def describe(
        self, path: FilePath, stamp: tuple[int, int], known_types: dict[str, Any]
    ) -> tuple[dict[str, Any], list[RowGroup]]:
        """The columns of the first batch, and all batches as one row group."""
        assert isinstance(path, BatchSource)
        first = next(path.arrays(), None)
        if first is None:
            raise ValueError("X: there are no batches")
        columns = _columns(first)
        types = {name: pa.array(column[:1]).type for name, column in columns.items()}
        return types, [RowGroup(path, None, None, stamp[0], stamp)]

    def read(
        self, row_group: RowGroup, types: dict[str, Any], kinds: dict[str, Kind], batch_rows: int
    ) -> Iterator[tuple[Any, float]]:
        assert isinstance(row_group.path, BatchSource)
        for number, arrays in enumerate(row_group.path.arrays(), 1):
            columns = _columns(arrays)
            batch = pa.RecordBatch.from_arrays([pa.array(columns[name]) for name in types], list(types))
            share = number / max(number, row_group.size)
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows), share


def _check_batch(batch: Any, name: str) -> ArrayBatch:
    """A batch as arrays; an error names what is wrong with it."""
    if not isinstance(batch, list | tuple) or len(batch) not in (2, 3):
        found = f"{len(batch)} parts" if isinstance(batch, list | tuple) else type(batch).__name__
        raise TypeError(f"X: {name} must be (X, y) or (X, y, weights), got {found}")
    x, y, *rest = map(_as_array, batch)
    weights = rest[0] if rest else None
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise ValueError(
            f"X: the features of {name} must be numbers of shape (rows, columns), got {x.dtype} of shape {x.shape}; "
            "reshape images and the like to (rows, -1)"
        )
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim not in (1, 2) or len(y) != len(x):
        raise ValueError(f"X: the targets of {name} must be one per row ({len(x)}), got shape {y.shape}")
    if weights is not None and (weights.size != len(x) or weights.dtype.kind not in "biuf"):
        raise ValueError(
            f"X: the weights of {name} must be one number per row ({len(x)}), got {weights.shape}"
        )
    return ArrayBatch(x, y, None if weights is None else weights.reshape(-1))


def _as_array(values: Any) -> NDArray[Any]:
    """A NumPy array of an array, a list or a tensor on any device."""
    return np.asarray(tensor_values(values))


def _columns(arrays: ArrayBatch) -> dict[str, NDArray[Any]]:
    if arrays.y.ndim != 1:
        raise ValueError(
            f"X: batches that are read one by one have one target per row, got {arrays.y.shape[1]}; "
            "several targets are for tables in memory"
        )
    columns = {f"x{j}": column for j, column in enumerate(np.ascontiguousarray(arrays.x.T))}
    columns[TARGET] = arrays.y
    return columns if arrays.weights is None else columns | {WEIGHTS: arrays.weights}
