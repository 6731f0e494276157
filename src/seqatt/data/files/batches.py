"""A ``torch.utils.data.DataLoader``, or any iterable of batches with a length, as data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.files.file_set import FileSet
from seqatt.data.files.formats.iterable import TARGET, WEIGHTS, BatchSource, IterableFormat

__all__ = ["TARGET", "WEIGHTS", "open_batches", "read_batches"]


def open_batches(batches: Any) -> FileSet:
    """Batches ``(X, y)`` or ``(X, y, weights)`` as one file that is read by iterating over them anew.

    The columns are ``x0``, ``x1``, ..., ``y`` and, if the batches have them, ``weights``. The number of rows is
    estimated from the number of batches until the first pass is over.
    """
    source = _source(batches)
    types, row_groups = IterableFormat().describe(source, (len(batches), 0), {})
    return FileSet(types, tuple(row_groups))


def read_batches(batches: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """All batches in memory: features (n, d), targets (n,) or (n, outputs), and weights (n,) or None."""
    parts = list(_source(batches).arrays())
    if not parts:
        raise ValueError("X: there are no batches")
    weights = [part.weights for part in parts if part.weights is not None]
    return (
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate(weights) if weights else None,
    )


def _source(batches: Any) -> BatchSource:
    if not hasattr(batches, "__iter__") or iter(batches) is batches:
        raise TypeError(
            f"X: {type(batches).__name__} can be read only once; pass an object that can be iterated over again, "
            "such as a DataLoader"
        )
    try:
        length = len(batches)
    except TypeError:  # also raised by a DataLoader of an IterableDataset without a length
        raise TypeError(
            f"X: {type(batches).__name__} has no length; define __len__, the number of batches"
        ) from None
    if not length:
        raise ValueError("X: there are no batches")
    return BatchSource(type(batches).__name__, "", None, batches)
