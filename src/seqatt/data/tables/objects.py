"""Arrays of Python objects, such as columns of pandas that mix types: missing values and distinct values; and objects
of torch in the place of an array.

``map`` calls a built-in function for every row; other Python code runs once per distinct value or type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMPLEX = "complex numbers cannot be features; pass the real and the imaginary parts as columns of their own"
# By name: pandas is optional, and its NA has no truth value.
MISSING_TYPES = ("NoneType", "NAType", "NaTType")
DATASET = ("torch.utils.data.dataset", "Dataset")


def find_missing(values: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Where an array of objects is None, NaN, NaT or pandas' NA."""
    flat = values.ravel()
    types, type_of = _find_types(flat)
    missing = np.isin(type_of, [i for i, type_ in enumerate(types) if type_.__name__ in MISSING_TYPES])
    present = flat[~missing]
    missing[~missing] = np.asarray(present != present, dtype=bool)  # NaN differs from itself
    return missing.reshape(values.shape)


def find_distinct(values: NDArray[np.object_]) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values, and the position of each row's value among them.

    Values of two types, such as True and 1, are distinct even if they are equal.
    """
    types, type_of = _find_types(values)
    distinct: list[Any] = []
    positions = np.empty(len(values), dtype=np.int64)
    for number in range(len(types)):
        rows = np.flatnonzero(type_of == number)
        members = values[rows].tolist()
        position = {value: i for i, value in enumerate(dict.fromkeys(members), len(distinct))}
        positions[rows] = np.fromiter(map(position.__getitem__, members), np.int64, len(members))
        distinct += position
    return distinct, positions


def value_types(values: NDArray[np.object_]) -> set[type]:
    """The types that occur in an array of objects."""
    return set(map(type, values.ravel()))


def _find_types(values: NDArray[np.object_]) -> tuple[list[type], NDArray[np.int64]]:
    """The types that occur, and the position of each value's type among them."""
    types = list(value_types(values))
    if len(types) == 1:
        return types, np.zeros(len(values), dtype=np.int64)
    position = {type_: i for i, type_ in enumerate(types)}
    return types, np.fromiter(map(position.__getitem__, map(type, values)), np.int64, len(values))


def tensor_values(values: Any) -> Any:
    """A tensor of torch as an array, from any device and with any type of numbers; other values as they are."""
    if not (hasattr(values, "detach") and hasattr(values, "cpu")):
        return values
    values = values.detach().cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()


def refuse_dicts(X: Any, argument: str) -> None:
    """Refuse a dict of columns and a list of dicts, one per row: pandas makes a table of either."""
    if hasattr(X, "shape"):  # some sparse matrices are dicts
        return
    rows = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)
    if rows or isinstance(X, Mapping):
        what = "a list of dicts" if rows else "a dict"
        raise TypeError(f"{argument}: {what} is no table; pass pandas.DataFrame({argument})")


def refuse_batches(X: Any, argument: str) -> None:
    """Refuse a Dataset, an iterator, and batches that are passed together with a target: none is a table."""
    if any((base.__module__, base.__name__) == DATASET for base in type(X).__mro__):
        raise TypeError(f"{argument}: a Dataset has no batches; pass DataLoader({argument}, batch_size=256)")
    if not hasattr(X, "__iter__") or any(hasattr(X, name) for name in ("__getitem__", "__array__")):
        return
    remedy = (
        "if its batches are (features, target), leave out y and target"
        if hasattr(X, "__len__")
        else "gather its rows into an array"
    )
    raise TypeError(f"{argument}: must be a table of rows and columns, got {type(X).__name__}; {remedy}")
