"""What a column of a file is: a number, a boolean or a category."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pyarrow as pa
from pyarrow import types as of

from seqatt.data.tables.containers import Kind

KINDS = ("numeric", "boolean", "categorical")


def column_kind(type_: Any) -> Kind | None:
    """By the type in the file; None for what cannot be a feature."""
    if of.is_boolean(type_):
        return "boolean"
    if of.is_integer(type_) or of.is_floating(type_) or of.is_decimal(type_):
        return "numeric"
    if of.is_null(type_) or of.is_timestamp(type_) or of.is_date(type_) or of.is_duration(type_):
        return "numeric"
    if of.is_string(type_) or of.is_large_string(type_) or of.is_dictionary(type_):
        return "categorical"
    return None


def describe_type(type_: Any) -> str:
    """What a column holds, for errors. Times are numbers to a model, but never the same as other numbers."""
    if of.is_timestamp(type_) or of.is_date(type_):
        return "times"
    if of.is_duration(type_):
        return "durations"
    kind = column_kind(type_)
    if kind is None:
        return f"values of type {type_}"
    return {"numeric": "numbers", "boolean": "booleans", "categorical": "text"}[kind]


def compatible(one: Any, other: Any) -> bool:
    """Whether two files can hold one column so. An empty column goes with anything."""
    if of.is_null(one) or of.is_null(other):
        return True
    kind = column_kind(one)
    return kind == column_kind(other) and (kind is None or describe_type(one) == describe_type(other))


def decide_kinds(types: Mapping[str, Any], names: list[str], told: Mapping[str, str]) -> dict[str, Kind]:
    """What the user says, else what the type says."""
    for name, kind in told.items():
        if name not in types:
            raise ValueError(f"kinds: no column {name!r}; the columns are {', '.join(list(types)[:8])}")
        if kind not in KINDS:
            raise ValueError(f"kinds: {kind!r} for {name!r} is unknown; use one of {', '.join(KINDS)}")
    decided: dict[str, Kind] = {}
    for name in names:
        decision = told[name] if name in told else column_kind(types[name])
        if decision is None:
            raise ValueError(
                f"X: column {name!r} has type {types[name]}, which cannot be a feature; "
                "turn it into numbers or text, or leave it out with ignore"
            )
        if decision != "categorical" and column_kind(types[name]) == "categorical":
            raise ValueError(f"kinds: column {name!r} holds text, so it cannot be {decision}")
        decided[name] = cast(Kind, decision)
    return decided


def reading_type(type_: Any, kind: Kind | None) -> Any:
    """What text is read as: whole numbers may turn out to be others, and categories are words."""
    if kind == "categorical":
        return pa.string()
    if of.is_integer(type_) or of.is_null(type_):
        return pa.float64()
    return type_
