"""A short name for data: the same for the same values, another for any other."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from seqatt.data.tables.containers import InputTable


def fingerprint(*parts: Any) -> str:
    """Of tables and arrays, in order."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, InputTable):
            _add_table(digest, part)
        elif part is not None:
            _add_array(digest, np.asarray(part))
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
        for position, kind in enumerate(table.kinds):
            numeric = kind != "categorical"
            _add_array(digest, table.numbers([position]) if numeric else table.labels(position))


def _add_array(digest: Any, array: np.ndarray[Any, Any]) -> None:
    digest.update(f"{array.dtype.str}{array.shape}".encode())
    if array.dtype.hasobject:
        digest.update(repr(array.tolist()).encode())
    else:
        digest.update(np.ascontiguousarray(array).view(np.uint8))
