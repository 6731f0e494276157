"""Names of columns as users give them, and the columns of any container that have certain names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np


def plain_name(name: Any) -> Any:
    """The name of a column with Python's own numbers for NumPy's, also within a tuple."""
    if isinstance(name, tuple):
        return tuple(plain_name(part) for part in name)
    return name.item() if isinstance(name, np.generic) else name


def is_sparse(X: Any) -> bool:
    """Whether ``X`` is a SciPy sparse matrix. SciPy is not imported: whoever has such a matrix has imported it."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def take_columns(X: Any, columns: Sequence[int], input_names: Sequence[Any]) -> Any:
    """The columns of ``X`` at the positions ``columns`` of the table whose columns have the names ``input_names``.

    A data frame is returned as one of its library; its columns are found by name or, if the table had no names, by
    position. Any other container is one that can be indexed like an array, or a list of rows.
    """
    if not columns:
        raise ValueError("X: the selection has no features, so none can be kept; select with a number as k")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[:, _find_by_name(frame, columns, input_names)].to_native()
    shape = getattr(X, "shape", None)
    if shape is None:
        if not isinstance(X, list | tuple) or not all(isinstance(row, list | tuple) for row in X):
            raise TypeError(
                f"X: must be a table of rows and columns, got {type(X).__name__}; pass a data frame or an array"
            )
        X = np.asarray(X)
        shape = X.shape
    if len(shape) != 2 or shape[1] != len(input_names):
        raise ValueError(
            f"X: must have rows and the {len(input_names)} columns that the selection was made from, got shape "
            f"{tuple(shape)}"
        )
    return (X.tocsr() if is_sparse(X) else X)[:, list(columns)]


def _find_by_name(frame: Any, columns: Sequence[int], input_names: Sequence[Any]) -> list[int]:
    """The positions of the columns in a data frame."""
    position_of = {str(name): position for position, name in enumerate(map(plain_name, frame.columns))}
    names = [str(input_names[column]) for column in columns]
    missing = [name for name in names if name not in position_of]
    if not missing:
        return [position_of[name] for name in names]
    unnamed = list(input_names) == [f"x{i}" for i in range(len(input_names))]
    if unnamed and len(position_of) == len(input_names):  # the selection was made from an array
        return list(columns)
    raise ValueError(f"X: column {missing[0]!r} is missing, which the selection has")
