"""Numbers and dates that are written as text: which texts they are, which stand for a missing value, which are codes.

One rule for text files and for text columns of tables: a column is numeric if all of its values are numbers, or all are
amounts of one unit ("12 %"), or all are dates (``formatted_texts.py``), apart from missing values and placeholders such
as "?". Whole numbers with leading zeros ("00123") are codes, and stay text. So do other whole numbers of a text column
that repeat, as categories do: many people convert integers to text to say so, and as a category they lose nothing. A
placeholder beside them explains why they are text, so that they are numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from seqatt.data.formatted_texts import (
    are_consistent,
    may_be_lists,
    parse_amounts,
    parse_dates,
    parse_dates_with_slashes,
)
from seqatt.validation import name_some

MISSING: tuple[str, ...] = tuple(csv.ConvertOptions().null_values)  # missing in a text column too
_WORDS = (
    *("?", "-", "--", ".", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "none", "null", "(null)", "nil"),
    *("missing", "unknown"),
)
_SPELLINGS = {text for word in _WORDS for text in (word, word.upper(), word.capitalize())}
# Missing where all other values of the column are numbers. In text files there is often a space after the delimiter.
PLACEHOLDERS: tuple[str, ...] = tuple(
    sorted(
        {*MISSING, "\\N", *_SPELLINGS, *(" " + text for text in _SPELLINGS), *(" " * n for n in range(1, 9))}
    )
)
NUMBER = r"^([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity))$"
WHOLE = r"^[+-]?[0-9]+$"
CODE = r"^\s*[+-]?0[0-9]+\s*$"  # a whole number with a leading zero
# The form, with 0 for every digit, of text whose order is that of time if all of it has this form: 2026-09, 2026-W47.
SORTED_FORM = "^0000[-/._ ]?[QWT]?[-/._: 0T]*Z?$"
NEARLY = 0.95  # share of distinct values that are numbers, from which a text column is reported
CATEGORY_ROWS = 10  # mean rows per value, from which whole numbers that are written as text are categories
HEAD = 1000  # distinct values that are looked at first; the others only if half of these are numbers
LISTED = 8  # columns in a warning


class ReadAs(NamedTuple):
    """The type that a text column is read as, and why.

    "numbers" and "dates" become numeric; "codes", "nearly" numbers, "slashes" (dates such as 01/02/2026) and any other
    "text" stay text. ``example`` is a placeholder of numbers or dates, a code, a value that is not a number, or a date.
    """

    contents: Literal["numbers", "dates", "codes", "nearly", "slashes", "text"]
    example: str | None = None

    @property
    def numeric(self) -> bool:
        return self.contents in ("numbers", "dates")


TEXT = ReadAs("text")


def examine_texts(texts: Any, rows_per_value: float = 0.0) -> ReadAs:
    """The type of a column whose distinct values are ``texts``, an Arrow array without missing values.

    ``rows_per_value`` is the mean number of rows per value; 0 for text files, where the user did not choose text.
    """
    read = _examine_plain_numbers(texts, rows_per_value)
    return _examine_formatted(texts) or read if read.contents in ("nearly", "text") else read


def _examine_plain_numbers(texts: Any, rows_per_value: float) -> ReadAs:
    """Whether the texts are numbers without signs and separators, nearly are, or are codes."""
    for part in (texts[:HEAD], texts):
        trimmed = pc.utf8_trim_whitespace(part)
        is_number = _is_number(trimmed)
        is_placeholder = pc.is_in(trimmed, value_set=pa.array(PLACEHOLDERS, trimmed.type))
        numbers, placeholders = _count(is_number), _count(is_placeholder)
        if not numbers or numbers < 0.5 * (len(part) - placeholders):
            return TEXT
    is_code = has_leading_zero(trimmed)
    codes, values = _count(is_code), len(texts) - placeholders
    if numbers == values and not codes:
        # A single number beside missing values tells something as a category, and nothing as a number.
        if numbers == 1:
            return TEXT
        if not placeholders and rows_per_value >= CATEGORY_ROWS and _are_whole(trimmed):
            return TEXT
        return ReadAs("numbers", _first(texts, is_placeholder))
    if numbers - codes < NEARLY * values:
        return ReadAs("codes", _first(texts, is_code)) if numbers == values else TEXT
    is_other = pc.invert(pc.or_(is_number, is_placeholder))
    return ReadAs("nearly", _first(texts, is_other) or _first(texts, is_code))


def _examine_formatted(texts: Any) -> ReadAs | None:
    """Whether the texts are amounts or dates; None if they are neither, or a single value."""
    for head in (texts[:HEAD], texts) if len(texts) > HEAD else (texts,):
        trimmed = pc.utf8_trim_whitespace(head)
        is_placeholder = pc.is_in(trimmed, value_set=pa.array(PLACEHOLDERS, trimmed.type))
        values = trimmed.filter(pc.invert(is_placeholder))
        if len(values) < 2:
            return None
        if _are_amounts(values):
            read = ReadAs("numbers", _first(head, is_placeholder))
        elif not parse_dates(values).null_count:
            read = ReadAs("dates", _first(head, is_placeholder))
        elif parse_dates_with_slashes(values):
            read = ReadAs("slashes", values[0].as_py())
        else:
            return None
    return read


def _are_amounts(values: Any) -> bool:
    """Whether all are amounts of one form, some with a sign or a separator, and none is a code."""
    if parse_amounts(values).null_count or not are_consistent(values) or may_be_lists(values):
        return False
    return not (pc.all(_is_number(values)).as_py() or pc.any(has_leading_zero(values)).as_py())


def distinct_texts(column: Any) -> Any:
    """The distinct values of a column of text, or of a dictionary of texts, without missing values."""
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    return (column.dictionary if pa.types.is_dictionary(column.type) else column.unique()).drop_null()


def rows_per_value(column: Any, expected_rows: float) -> float:
    """The mean number of rows per value among ``expected_rows`` rows; the column is a sample of them.

    The number of values is estimated from the share of the rows whose value occurs once (Good-Turing).
    """
    counts = pc.value_counts(column.drop_null()).field("counts")
    once = _count(pc.equal(counts, 1)) if expected_rows > len(column) else 0
    return expected_rows * (1 - once / max(1, len(column))) / max(1, len(counts))


def has_leading_zero(texts: Any) -> Any:
    """Where a text is a whole number with a leading zero, as codes are written."""
    return pc.match_substring_regex(texts, CODE)


def to_numbers(column: Any) -> tuple[Any, str | None]:
    """A text column, or a dictionary of texts, as float64 with placeholders missing; and a text that is not a number.

    Amounts of one unit are numbers too. The first is None if there is a text that is not.
    """

    def parse(trimmed: Any) -> Any:
        is_number = _is_number(trimmed)
        plain = pc.if_else(is_number, trimmed, pa.scalar(None, trimmed.type)).cast(pa.float64())
        others = trimmed.filter(pc.and_(pc.invert(is_number), pc.is_valid(trimmed)))
        return pc.coalesce(plain, parse_amounts(trimmed)) if len(others) and are_consistent(others) else plain

    return _convert(column, parse, pa.float64())


def to_dates(column: Any) -> tuple[Any, str | None]:
    """A text column, or a dictionary of texts, as times with placeholders missing; and a text that is not a date."""
    return _convert(column, parse_dates, pa.timestamp("us"))


def to_numbers_or_dates(column: Any) -> tuple[Any, str | None]:
    """The column as numbers, or as times if all of it is dates; and a text that is not a number if it is neither."""
    numbers, wrong = to_numbers(column)
    dates = None if wrong is None else to_dates(column)[0]
    return (numbers, None) if wrong is None else (dates, wrong if dates is None else None)


def _convert(column: Any, parse: Callable[[Any], Any], type_: Any) -> tuple[Any, str | None]:
    """The column with every text parsed, by its distinct texts; and a text that is neither parsed nor missing."""
    if isinstance(column, pa.ChunkedArray):
        parts = [_convert(chunk, parse, type_) for chunk in column.chunks]
        wrong = next((example for _, example in parts if example is not None), None)
        return (pa.chunked_array([part for part, _ in parts], type_) if wrong is None else None), wrong
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    trimmed = pc.utf8_trim_whitespace(column.dictionary)
    is_missing = pc.is_in(trimmed, value_set=pa.array([*PLACEHOLDERS, None], trimmed.type))
    values = parse(pc.if_else(is_missing, None, trimmed))
    wrong = _first(column.dictionary, pc.and_(pc.is_null(values), pc.invert(is_missing)))
    if wrong is None:
        return values.take(column.indices), None
    used = column.dictionary_decode().dictionary_encode()  # without values that no row has
    return _convert(used, parse, type_) if len(used.dictionary) < len(column.dictionary) else (None, wrong)


def parse_times(distinct: NDArray[Any], argument: str) -> NDArray[np.float64]:
    """Distinct texts, sorted, as numbers in the order of time: numbers, dates, or else the order of the text."""
    texts = pa.array(distinct.astype(str))
    first, last = str(distinct[0]), str(distinct[-1])
    times, _ = to_numbers_or_dates(texts)
    if times is not None and not times.null_count:
        return np.asarray(times, dtype=np.float64)
    with_slashes = parse_dates_with_slashes(pc.utf8_trim_whitespace(texts))
    if len(with_slashes) > 1:
        raise ValueError(
            f"{argument}: in {first!r} the day or the month may come first; convert it, with pandas.to_datetime"
        )
    if with_slashes:
        return np.asarray(with_slashes[0], dtype=np.float64)
    forms = pc.replace_substring_regex(texts, "[0-9]", "0").unique()
    if len(forms) > 1 or not pc.match_substring_regex(forms, SORTED_FORM)[0].as_py():
        _warn(
            f"{argument}: is text in the order of its letters, from {first!r} to {last!r}; convert it to dates "
            "or numbers if that is not the order of time"
        )
    return np.arange(len(distinct), dtype=np.float64)


def not_a_number(name: str, example: str, *, framed: bool = False) -> str:
    """The message about a text where numbers are needed, in a file or if ``framed`` in a data frame."""
    return (
        f"column {name!r} holds {example!r}, which is not a number; correct it, or {_make_category([name], framed)} if "
        "the column is a category"
    )


def report_columns(read: Mapping[str, ReadAs], source: str, *, framed: bool = False) -> None:
    """Warn, once each, about text that is read as numbers or dates and about text that nearly is.

    ``source`` is the file that has the columns, or if ``framed`` the argument. Codes of a frame are text already; only
    those of files are reported.
    """
    found: dict[str, dict[str, str | None]] = {}
    for name, (contents, example) in read.items():
        found.setdefault(contents, {})[name] = example
    for contents in ("numbers", "dates"):
        if columns := found.get(contents):
            placeholders = sorted({example for example in columns.values() if example is not None})
            missing = f", and {_some(map(repr, placeholders))} as missing" if placeholders else ""
            _warn(
                f"{source}: {_some(columns)}: text that is read as {contents}{missing}; "
                f"{_make_category(columns, framed)} if that is a category"
            )
    if "slashes" in found:
        name, example = next(iter(found["slashes"].items()))
        _warn(
            f"{source}: {_some(found['slashes'])}: read as text, because in {example!r} of {name!r} the day or the "
            "month may come first; write dates as 2026-12-31, as pandas.to_datetime does"
        )
    if "nearly" in found:
        name, example = next(iter(found["nearly"].items()))
        _warn(
            f"{source}: {_some(found['nearly'])}: read as text, because {example!r} in {name!r} is not a number, "
            f"though nearly all values are; correct it, or {_make_category([name], framed)} if that is right"
        )
    if not framed and "codes" in found:
        name, example = next(iter(found["codes"].items()))
        _warn(
            f"{source}: {_some(found['codes'])}: read as text, because {example!r} in {name!r} has a leading zero, as "
            f"codes have; pass column_types={{{name!r}: 'numeric'}} for a column of numbers"
        )


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)


def _make_category(names: Iterable[str], framed: bool) -> str:
    """How the user says that a column is a category; the type of a data frame says it to scikit-learn selectors too."""
    name = next(iter(names))
    if framed:
        return f"convert {name!r} to a categorical dtype"
    return f"pass column_types={{{name!r}: 'categorical'}}"


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return name_some(listed[:LISTED], len(listed))


def _is_number(trimmed: Any) -> Any:
    return pc.fill_null(pc.match_substring_regex(trimmed, NUMBER), False)


def _are_whole(trimmed: Any) -> bool:
    return bool(pc.all(pc.match_substring_regex(trimmed, WHOLE)).as_py())


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _first(texts: Any, mask: Any) -> str | None:
    position = pc.index(mask, True).as_py()
    return None if position < 0 else texts[position].as_py()
