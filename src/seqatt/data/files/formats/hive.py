"""Hive partitions: folders named ``key=value`` above a file are columns of all its rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import types as of

MISSING = "__HIVE_DEFAULT_PARTITION__"

Partition = dict[str, str | None]


def parse_partition(folders: Sequence[str]) -> Partition:
    """The keys and values in the names of folders; ``%2F`` and the like are decoded, a missing value is None."""
    partition: Partition = {}
    for folder in folders:
        key, equals, value = folder.partition("=")
        if key and equals:
            partition[unquote(key)] = None if value == MISSING else unquote(value)
    return partition


def partition_type(values: Collection[str | None]) -> Any:
    """The type of a key, as pyarrow.dataset infers it: int32 if every value is such a number, else text."""
    try:
        present = [value for value in values if value is not None]
        return pa.array(present, pa.string()).cast(pa.int32()).type if present else pa.null()
    except pa.ArrowInvalid:
        return pa.string()


def add_partition(batch: Any, partition: dict[str, Any], types: dict[str, Any]) -> Any:
    """A batch with the columns of ``types``, in this order; those of ``partition`` have one value for all rows."""
    columns = [
        _repeat(partition[name], type_, batch.num_rows) if name in partition else batch.column(name)
        for name, type_ in types.items()
    ]
    return pa.RecordBatch.from_arrays(columns, list(types))


def _repeat(value: Any, type_: Any, rows: int) -> Any:
    if value is None or not of.is_string(type_):
        return pa.repeat(pa.scalar(None if value is None else int(value), type_), rows)
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([value]))
