"""A hash of tables and arrays, to recognise whether two comparisons use the same data."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from seqatt.data.tables.containers import InputTable


def fingerprint(*items: Any) -> str:
    """The BLAKE2b hash (128 bits, hexadecimal) of tables and arrays, in order; None is allowed."""
    digest = hashlib.blake2b(digest_size=16)
    for item in items:
        if isinstance(item, InputTable):
            _add_table(digest, item)
        elif item is not None:
            _add_array(digest, np.asarray(item))
        digest.update(b"|")
    return digest.hexdigest()


def _add_table(digest: Any, table: InputTable) -> None:
    digest.update(repr((table.names, table.kinds, table.rows)).encode())
    if table.sparse:
        for array in (table.data.data, table.data.indices, table.data.indptr):
            _add_array(digest, array)
    elif isinstance(table.data, np.ndarray):
        _add_array(digest, table.data)
    else:
        for column, kind in enumerate(table.kinds):
            numeric = kind != "categorical"
            _add_array(digest, table.numbers([column]) if numeric else table.labels(column))


def _add_array(digest: Any, array: np.ndarray[Any, Any]) -> None:
    digest.update(f"{array.dtype.str}{array.shape}".encode())
    if array.dtype.hasobject:
        digest.update(repr(array.tolist()).encode())
    else:
        digest.update(np.ascontiguousarray(array).view(np.uint8))
