"""Columns of data frames as Arrow arrays.

Numbers and times keep their type and, where possible, their memory. Text, categories and objects become a
dictionary: each distinct text once, without missing values, and an int32 index per row, null where missing. Python
looks at distinct values only, never at every row.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types as of

from seqatt.data.number_texts import not_a_number, to_dates, to_numbers, to_numbers_or_dates
from seqatt.data.tables.objects import COMPLEX, find_distinct, find_missing, value_types

MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}  # per tick
TEMPORAL = (nw.Date, nw.Datetime, nw.Duration, nw.Time)


class CategoricalValues(NamedTuple):
    """A categorical column: distinct texts (an Arrow array), and the position (rows,) of each row's, -1 if missing."""

    texts: Any
    positions: NDArray[np.int32]


def read_column(series: nw.Series[Any], argument: str) -> Any:
    """A column of a data frame as an Arrow array or chunked array."""
    native = series.to_native()
    native_type = getattr(native, "dtype", None)
    if isinstance(native_type, np.dtype) and native_type.kind in "iuf":
        return pa.array(native.to_numpy())  # shares memory; NaN stays NaN
    if hasattr(native, "sparse"):  # a sparse column of pandas; other columns have no such accessor
        return pa.array(native.sparse.to_dense().to_numpy())
    dtype = series.dtype
    if dtype == nw.Object or (isinstance(native_type, np.dtype) and native_type.kind == "O"):
        return _read_objects(series.to_numpy(), series.name, argument)
    if isinstance(native_type, np.dtype) and native_type.kind == "c":
        raise ValueError(f"{argument}: column {series.name!r}: {COMPLEX}")
    # An Arrow dictionary in pandas has no categories; it is read as Arrow below.
    if hasattr(native_type, "categories") and series.implementation.is_pandas_like():
        codes = native.cat.codes.to_numpy().astype(np.int32)
        categories = native.cat.categories
        is_number = isinstance(categories.dtype, np.dtype) and categories.dtype.kind in "iuf"
        texts = _texts(
            pa.array(categories.to_numpy()) if is_number else pa.array(map(str, categories.tolist()))
        )
        return as_dictionary(pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), texts))
    known = dtype.is_numeric() or dtype in (nw.Boolean, nw.String, nw.Categorical, nw.Enum, *TEMPORAL)
    if not known and series.null_count() < len(series):
        period = str(native_type).startswith("period")
        remedy = "a time, with .dt.to_timestamp()" if period else "numbers or text"
        raise ValueError(
            f"{argument}: column {series.name!r} has type {native_type or dtype}, which cannot be a feature; "
            f"convert it to {remedy}, or leave it out with ignore={[series.name]}"
        )
    if dtype in (nw.Int128, nw.UInt128):  # Arrow has no such type
        series = series.cast(nw.Float64)
    column = series.alias("").to_arrow()  # polars panics if a name has a NUL
    return as_dictionary(column) if dtype in (nw.String, nw.Categorical, nw.Enum) else column


def as_category_values(column: Any) -> Any:
    """A column as categories: NaN counts as missing, and a time has the same text in every unit."""
    if of.is_timestamp(column.type) or of.is_date(column.type):
        return column.cast(pa.timestamp("us"), safe=False)
    return pc.if_else(pc.is_nan(column), None, column) if of.is_floating(column.type) else column


def as_dictionary(column: Any) -> Any:
    """Any column as a dictionary of distinct texts; NaN counts as missing, and times have the text of microseconds."""
    if of.is_dictionary(column.type):
        column = column.unify_dictionaries() if isinstance(column, pa.ChunkedArray) else column
    else:
        column = as_category_values(column)
        numbers = not (of.is_string(column.type) or of.is_large_string(column.type))
        column = column.dictionary_encode()
        if numbers:  # a whole number has the same text in a column of integers and in one of floats
            column = column.cast(pa.dictionary(pa.int32(), pa.string()))
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # in older releases of Arrow, or without chunks
            chunks = column.chunks or [pa.array([], column.type)]
            column = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    texts, indices = _texts(column.dictionary), column.indices
    distinct = texts.dictionary_encode()
    if distinct.null_count or len(distinct.dictionary) < len(texts):  # a missing text, or one text twice
        texts, indices = distinct.dictionary, distinct.indices.take(indices)
    return pa.DictionaryArray.from_arrays(indices.cast(pa.int32()), texts)


def _texts(values: Any) -> Any:
    """Distinct values as texts. A whole number has the same one whether it is an integer or a float: 3, not 3.0."""
    if of.is_string(values.type) or of.is_large_string(values.type):
        return values
    if of.is_integer(values.type) or of.is_floating(values.type):
        return values.cast(pa.string())
    return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())


def categorical_values(column: Any) -> CategoricalValues:
    """Texts and positions of a column of any kind."""
    if isinstance(column, pa.ChunkedArray) and column.num_chunks == 1:
        column = column.chunk(0)
    coded = column if isinstance(column, pa.DictionaryArray) else as_dictionary(column)
    return CategoricalValues(coded.dictionary, coded.indices.fill_null(-1).to_numpy(zero_copy_only=False))


class NumberColumn:
    """A chunked array whose rows are read as numbers; missing values are NaN, times are in microseconds.

    Text is read as the numbers that it holds: a column may be text in the test rows and numbers in the training rows.
    """

    def __init__(self, column: Any, name: str, argument: str) -> None:
        if of.is_dictionary(column.type):
            column = read_text(column, name, argument)
        self._column = column
        plain = of.is_integer(column.type) or of.is_floating(column.type)
        shared = plain and column.num_chunks == 1 and not column.null_count
        # The same memory, without Arrow's overhead.
        self._values = column.chunk(0).to_numpy() if shared else None

    def write(self, start: int, out: NDArray[Any]) -> None:
        """Write ``len(out)`` rows from row ``start`` on into ``out``."""
        if self._values is not None:
            out[:] = self._values[start : start + len(out)]
            return
        filled = 0
        for chunk in self._column.slice(start, len(out)).chunks:
            out[filled : filled + len(chunk)] = self._to_numbers(chunk)
            filled += len(chunk)

    def _to_numbers(self, chunk: Any) -> NDArray[Any] | float:
        type_ = chunk.type
        if chunk.null_count == len(chunk):
            return np.nan
        if of.is_date(type_):
            chunk = chunk.cast(pa.timestamp("us"))
        elif of.is_boolean(type_):
            chunk = chunk.cast(pa.int8())
        if of.is_temporal(type_):
            ticks = chunk.cast(pa.int32() if of.is_time32(type_) else pa.int64()).fill_null(0).to_numpy()
            unit = chunk.type.unit
            ticks = ticks // 1_000 if unit == "ns" else ticks.astype(np.int64) * MICROSECONDS[unit]
            missing = chunk.is_null().to_numpy(zero_copy_only=False)
            return np.where(missing, np.nan, ticks) if chunk.null_count else ticks
        if of.is_decimal(type_) or chunk.null_count:
            # Not safe: a whole number beyond 2^53 is rounded, not refused.
            chunk = chunk.cast(pa.float64(), safe=False)
        return np.asarray(chunk.to_numpy(zero_copy_only=False))


def read_text(column: Any, name: str, argument: str, contents: str | None = None) -> Any:
    """A column of text as the numbers or times that it holds, placeholders as missing; any other text is an error.

    ``contents`` says which of them it is to be ("numbers" or "times"), where the training rows tell.
    """
    convert = {"numbers": to_numbers, "times": to_dates, None: to_numbers_or_dates}[contents]
    values, example = convert(column)
    if example is not None and contents == "times":
        raise ValueError(
            f"{argument}: column {name!r} holds {example!r}, but dates in the training rows; write it as 2026-12-31"
        )
    if example is not None:
        raise ValueError(f"{argument}: {not_a_number(name, example, framed=True)}")
    return values


def read_numbers(frame: nw.DataFrame[Any]) -> NDArray[Any] | None:
    """A frame of numbers of one kind as one array (rows, columns), missing values as NaN; None for any other frame.

    Whole numbers beside others would lose their last digits, which matter if they are labels.

    For a frame of more columns than rows: Python looks at each column only once. It looks at no column of a pandas
    frame, and the array shares the frame's memory where pandas stores its columns together.
    """
    native = frame.to_native()
    if frame.implementation.is_pandas():
        dtypes = set(native.dtypes)
        same = len(dtypes) == 1 and all(isinstance(t, np.dtype) and t.kind in "iuf" for t in dtypes)
        return np.asarray(native.to_numpy()) if same else None
    dtypes = set(frame.schema.values())
    whole = all(dtype.is_integer() for dtype in dtypes) and not dtypes & {nw.UInt64, nw.Int128, nw.UInt128}
    if not whole and not all(dtype.is_float() for dtype in dtypes):
        return None
    table = frame.to_arrow()
    if whole and any(column.null_count for column in table.columns):
        return None
    small = all(of.is_float32(t) or of.is_float16(t) for t in set(table.schema.types))
    of_floats = np.float32 if small else np.float64
    out = np.empty(table.shape, dtype=np.int64 if whole else of_floats, order="F")
    for values, name, column in zip(out.T, frame.columns, table.columns, strict=True):
        NumberColumn(column, name, "X").write(0, values)
    return out


def _read_objects(values: NDArray[np.object_], name: str, argument: str) -> Any:
    """Objects as booleans, numbers, times or texts: whichever all of them are; text and numbers together are texts."""
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        column = None  # several types, or values that Arrow does not hold
    if column is not None:
        if of.is_string(column.type) or of.is_large_string(column.type):
            return as_dictionary(column)
        plain = (of.is_boolean, of.is_integer, of.is_floating, of.is_null, of.is_decimal, of.is_temporal)
        if any(test(column.type) for test in plain):
            return column
    missing = find_missing(values)
    present = values[~missing]
    types = value_types(present)
    if all(issubclass(type_, bool | np.bool_) for type_ in types):
        return pa.array(values.astype(bool), mask=missing)
    if all(issubclass(type_, date) for type_ in types):  # dates and datetimes together
        moments = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[us]")
        moments[~missing] = present.astype("datetime64[us]")
        return pa.array(moments)
    if all(issubclass(type_, int | float | np.number | Decimal) for type_ in types):
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = present.astype(np.float64)
        return pa.array(numbers)
    for type_ in types:
        if not issubclass(type_, str | int | float | bool | np.generic):
            raise TypeError(
                f"{argument}: column {name!r} holds a {type_.__name__}; "
                "convert it to numbers or text, or leave it out"
            )
    distinct, positions = find_distinct(present)
    # Text that is not valid Unicode, such as half of a surrogate pair, is escaped.
    texts = [str(value).encode("utf-8", "backslashreplace").decode() for value in distinct]
    indices = np.zeros(len(values), dtype=np.int32)
    indices[~missing] = positions
    return as_dictionary(pa.DictionaryArray.from_arrays(pa.array(indices, mask=missing), pa.array(texts)))
