"""The kind of each column of a file: numeric, boolean or categorical."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyarrow import types as of

from seqatt.data.tables.column_roles import check_column_types
from seqatt.data.tables.containers import Kind


def column_kind(type_: Any) -> Kind | None:
    """The kind of a column of this Arrow type; None if it cannot be a feature."""
    if of.is_boolean(type_):
        return "boolean"
    if of.is_integer(type_) or of.is_floating(type_) or of.is_decimal(type_):
        return "numeric"
    if of.is_null(type_) or (of.is_temporal(type_) and not of.is_interval(type_)):
        return "numeric"
    if is_text(type_) or of.is_dictionary(type_):
        return "categorical"
    return None


def is_text(type_: Any) -> bool:
    """Whether a column of this Arrow type holds text, and no categories."""
    return bool(of.is_string(type_) or of.is_large_string(type_))


def value_bits(type_: Any) -> int | None:
    """Bits per value of an Arrow type; None if its values have no fixed width."""
    try:
        return int(type_.bit_width)
    except ValueError:  # text, lists and null, the type of a column without values
        return None


def describe_type(type_: Any) -> str:
    """Contents of a column, for error messages. Times and durations are not mixed with other numbers."""
    if of.is_timestamp(type_) or of.is_date(type_):
        return "times"
    if of.is_duration(type_):
        return "durations"
    if of.is_time(type_):
        return "times of day"
    kind = column_kind(type_)
    if kind is None:
        return f"values of type {type_}"
    return {"numeric": "numbers", "boolean": "booleans", "categorical": "text"}[kind]


def compatible(one: Any, other: Any) -> bool:
    """Whether one column may have these two types in two files. An empty column (null) fits any type."""
    if of.is_null(one) or of.is_null(other):
        return True
    kind = column_kind(one)
    return kind == column_kind(other) and (kind is None or describe_type(one) == describe_type(other))


def common_type(types: Collection[Any]) -> Any:
    """One type for a column that has several compatible ones; an empty column (null) fits any."""
    present = {type_ for type_ in types if not of.is_null(type_)}
    if len(present) < 2:
        return next(iter(present), pa.null())
    kind = column_kind(next(iter(present)))
    if kind == "categorical":
        return pa.string()
    units = {"times": pa.timestamp("us"), "durations": pa.duration("us"), "times of day": pa.time64("us")}
    if (unit := units.get(describe_type(next(iter(present))))) is not None:
        return unit
    if any(of.is_decimal(type_) for type_ in present):
        return pa.float64()
    return pa.from_numpy_dtype(np.result_type(*(type_.to_pandas_dtype() for type_ in present)))


def decide_kinds(types: Mapping[str, Any], names: list[str], requested: Mapping[str, str]) -> dict[str, Kind]:
    """The kind of each column in ``names``: the one the user requested, else the one of its type."""
    check_column_types(list(types), requested)
    decided: dict[str, Kind] = {}
    for name in names:
        decision = requested[name] if name in requested else column_kind(types[name])
        if decision is None:
            raise ValueError(
                f"X: column {name!r} has type {types[name]}, which cannot be a feature; "
                "convert it to numbers or text, or leave it out with ignore"
            )
        if decision == "boolean" and column_kind(types[name]) == "categorical":
            raise ValueError(
                f"column_types: column {name!r} holds text, so it cannot be boolean; use 'categorical'"
            )
        decided[name] = cast(Kind, decision)
    return decided


def reading_type(type_: Any, kind: Kind | None) -> Any:
    """The type a text column is parsed as: later values may not be whole numbers, and categories stay text."""
    if kind == "categorical":
        return pa.string()
    if of.is_integer(type_) or of.is_null(type_):
        return pa.float64()
    return type_


def reads_text(type_: Any, kind: Kind) -> bool:
    """Whether a numeric column is stored as text."""
    return kind != "categorical" and column_kind(type_) == "categorical"
