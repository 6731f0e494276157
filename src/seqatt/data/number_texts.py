"""Numbers that are written as text: which texts are numbers, which stand for a missing value, which are codes.

One rule for text files and for text columns of tables: a column is numeric if all of its values are numbers, apart from
missing values and placeholders such as "?". Whole numbers with leading zeros ("00123") are codes, and stay text. So do
other whole numbers of a text column that repeat, as categories do: many people convert integers to text to say so, and
as a category they lose nothing. A placeholder beside them explains why they are text, so that they are numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

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
NEARLY = 0.95  # share of distinct values that are numbers, from which a text column is reported
CATEGORY_ROWS = 10  # mean rows per value, from which whole numbers that are written as text are categories
HEAD = 1000  # distinct values that are looked at first; the others only if half of these are numbers
LISTED = 8  # columns in a warning


class ReadAs(NamedTuple):
    """What a text column is read as, and why: "numbers", "codes", "nearly" numbers, or any other "text".

    ``example`` is a placeholder of numbers, a code, or a value that is not a number.
    """

    contents: Literal["numbers", "codes", "nearly", "text"]
    example: str | None = None


TEXT = ReadAs("text")


def examine_texts(texts: Any, rows_per_value: float = 0.0) -> ReadAs:
    """What a column holds whose distinct values are ``texts``, an Arrow array without missing values.

    ``rows_per_value`` is the mean number of rows per value; 0 for text files, where the user did not choose text.
    """
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

    The first is None if there is such a text.
    """
    if isinstance(column, pa.ChunkedArray):
        parts = [to_numbers(chunk) for chunk in column.chunks]
        wrong = next((example for _, example in parts if example is not None), None)
        return (pa.chunked_array([part for part, _ in parts], pa.float64()) if wrong is None else None), wrong
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    trimmed = pc.utf8_trim_whitespace(column.dictionary)
    is_number = _is_number(trimmed)
    is_missing = pc.is_in(trimmed, value_set=pa.array([*PLACEHOLDERS, None], trimmed.type))
    wrong = _first(column.dictionary, pc.invert(pc.or_(is_number, is_missing)))
    if wrong is not None:
        used = column.dictionary_decode().dictionary_encode()  # without values that no row has
        return to_numbers(used) if len(used.dictionary) < len(column.dictionary) else (None, wrong)
    numbers = pc.if_else(is_number, trimmed, pa.scalar(None, trimmed.type)).cast(pa.float64())
    return numbers.take(column.indices), None


def not_a_number(name: str, example: str) -> str:
    """The message about a text where numbers are needed."""
    return (
        f"column {name!r} holds {example!r}, which is not a number; correct it, or pass "
        f"column_types={{{name!r}: 'categorical'}} if the column is a category"
    )


def report_columns(read: Mapping[str, ReadAs], source: str, *, framed: bool = False) -> None:
    """Warn, once each, about text that is read as numbers and about text that nearly is.

    ``source`` is the file that has the columns, or if ``framed`` the argument. Codes of a frame are text already; only
    those of files are reported.
    """
    found: dict[str, dict[str, str | None]] = {}
    for name, (contents, example) in read.items():
        found.setdefault(contents, {})[name] = example
    numbers = found.get("numbers", {})
    if numbers:
        placeholders = sorted({example for example in numbers.values() if example is not None})
        missing = f", and {_list(map(repr, placeholders))} as missing" if placeholders else ""
        _warn(
            f"{source}: {_list(numbers)}: text that is read as numbers{missing}; pass "
            f"{_override(numbers, framed)} for a column that is a category"
        )
    if "nearly" in found:
        name, example = next(iter(found["nearly"].items()))
        _warn(
            f"{source}: {_list(found['nearly'])}: read as text, because {example!r} in {name!r} is not a number, "
            f"though nearly all values are; correct it, or pass {_override([name], framed)} if that is right"
        )
    if not framed and "codes" in found:
        name, example = next(iter(found["codes"].items()))
        _warn(
            f"{source}: {_list(found['codes'])}: read as text, because {example!r} in {name!r} has a leading zero, as "
            f"codes have; pass column_types={{{name!r}: 'numeric'}} for a column of numbers"
        )


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)


def _override(names: Iterable[str], framed: bool) -> str:
    """How the user says that a column is a category; selectors of scikit-learn have no such option."""
    name = next(iter(names))
    return f"column_types={{{name!r}: 'categorical'}}" + f", or {name!r} with a categorical dtype," * framed


def _list(names: Iterable[str]) -> str:
    listed: Sequence[str] = list(names)
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return ", ".join(listed[:LISTED]) + more


def _is_number(trimmed: Any) -> Any:
    return pc.fill_null(pc.match_substring_regex(trimmed, NUMBER), False)


def _are_whole(trimmed: Any) -> bool:
    return bool(pc.all(pc.match_substring_regex(trimmed, WHOLE)).as_py())


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _first(texts: Any, mask: Any) -> str | None:
    position = pc.index(mask, True).as_py()
    return None if position < 0 else texts[position].as_py()
