"""Amounts and dates that are written as text, such as "1,234.50", "1.234,50", "12 %", "$5", "(5.00)", "2026-11-18".

Each text has one meaning, whatever the other rows hold: "12 %" is 0.12, parentheses are a minus, a comma before three
digits separates thousands, else it is a decimal comma, and in a date with dots the day comes first. Only dates with
slashes ("01/02/2026") have no such meaning: whether the day or the month comes first is known from other rows at best.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

CURRENCIES = "$€£¥"
_NUMBER = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_COMMA = r"(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+|[0-9]+,(?:[0-9]{1,2}|[0-9]{4,}))"  # with a decimal comma


def _amount(number: str) -> str:
    signed = (
        rf"[+-]?[{CURRENCIES}] ?{number}|[{CURRENCIES}] ?[+-]{number}|[+-]?{number}(?: ?[%{CURRENCIES}])?"
    )
    return rf"^(?:{signed}|\((?:[{CURRENCIES}] ?)?{number}(?: ?[{CURRENCIES}])?\))$"


AMOUNT, COMMA_AMOUNT = _amount(_NUMBER), _amount(_COMMA)
PLAIN_COMMA = (
    r"^(?:[+-]?[0-9]+,[0-9]+|\([0-9]+,[0-9]+\))$"  # may be a number with a decimal comma, or two numbers
)
_YEAR, _MONTH, _DAY = r"(?P<year>[0-9]{4})", r"(?P<month>[0-9]{1,2})", r"(?P<day>[0-9]{1,2})"
_CLOCK = r"(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9](?:\.[0-9]{1,9})?))?"
_ZONE = r"(?:Z|(?P<sign>[+-])(?P<zone_hour>[01][0-9]):?(?P<zone_minute>[0-5][0-9]))?"
_TIME = rf"(?:[T ]{_CLOCK}{_ZONE})?$"
DATES = (
    f"^{_YEAR}-{_MONTH}-{_DAY}{_TIME}",
    f"^{_YEAR}/{_MONTH}/{_DAY}{_TIME}",
    rf"^{_DAY}\.{_MONTH}\.{_YEAR}{_TIME}",
)
SLASHES = (f"^{_DAY}/{_MONTH}/{_YEAR}{_TIME}", f"^{_MONTH}/{_DAY}/{_YEAR}{_TIME}")


def parse_amounts(texts: Any) -> Any:
    """Trimmed texts as float64, without currency signs; null where a text is not an amount."""
    bare = pc.replace_substring_regex(texts, f"[{CURRENCIES}%() ]", "")
    with_point = pc.replace_substring(bare, ",", "")
    with_comma = pc.replace_substring(pc.replace_substring(bare, ".", ""), ",", ".")
    nothing = pa.scalar(None, bare.type)
    is_point, is_comma = (pc.match_substring_regex(texts, each) for each in (AMOUNT, COMMA_AMOUNT))
    numbers = pc.if_else(is_point, with_point, pc.if_else(is_comma, with_comma, nothing)).cast(pa.float64())
    numbers = pc.if_else(pc.starts_with(texts, "("), pc.negate(numbers), numbers)
    return pc.if_else(pc.ends_with(texts, "%"), pc.divide(numbers, 100.0), numbers)


def are_consistent(texts: Any) -> bool:
    """Whether amounts all have the same currency or per cent sign, or none, and the same decimal sign."""
    signs = pc.replace_substring_regex(texts, f"[^{CURRENCIES}%]", "")
    has_comma = pc.match_substring_regex(texts, COMMA_AMOUNT)
    others = texts.filter(pc.invert(has_comma))
    mixed = pc.any(has_comma).as_py() and pc.any(pc.match_substring_regex(others, "[.,]")).as_py()
    return len(signs.drop_null().unique()) <= 1 and not mixed


def may_be_lists(texts: Any) -> bool:
    """Whether these amounts may be lists of numbers, such as "1,2" and "3,4", and none is like "1.234,5" or "3,5 %"."""
    has_comma = pc.match_substring_regex(texts, COMMA_AMOUNT)
    is_plain = pc.match_substring_regex(texts, PLAIN_COMMA)
    return bool(pc.any(has_comma).as_py()) and bool(pc.all(pc.or_(is_plain, pc.invert(has_comma))).as_py())


def parse_dates(texts: Any) -> Any:
    """Trimmed texts as times (timestamp[us], UTC where a zone is given); null where a text is no date."""
    return pc.coalesce(*(_parse(texts, pattern) for pattern in DATES))


def parse_dates_with_slashes(texts: Any) -> list[Any]:
    """Trimmed texts such as "31/12/2026" as ``parse_dates``, once for each order of day and month that is possible."""
    parsed = [_parse(texts, pattern) for pattern in SLASHES]
    return [dates for dates in parsed if not dates.null_count]


def _parse(texts: Any, pattern: str) -> Any:
    found = pc.extract_regex(texts.cast(pa.string()), pattern)

    def part(name: str) -> Any:
        text = pc.struct_field(found, name)
        return pc.if_else(pc.equal(text, ""), "0", text)

    days = pc.strptime(
        pc.binary_join_element_wise(part("year"), part("month"), part("day"), "-"),
        format="%Y-%m-%d",
        unit="us",
        error_is_null=True,
    )
    days = pc.if_else(pc.equal(pc.day(days), part("day").cast(pa.int64())), days, None)  # not February 30
    sign = pc.if_else(pc.equal(part("sign"), "-"), -1, 1)
    offset = pc.multiply(sign, _minutes(part("zone_hour"), part("zone_minute")))
    minutes = pc.subtract(_minutes(part("hour"), part("minute")), offset)
    seconds = pc.multiply(part("second").cast(pa.float64()), 1e6).cast(pa.int64(), safe=False)
    microseconds = pc.add(pc.multiply(minutes, 60_000_000), seconds)
    return pc.add(days.cast(pa.int64()), microseconds).cast(pa.timestamp("us"))


def _minutes(hours: Any, minutes: Any) -> Any:
    return pc.add(pc.multiply(hours.cast(pa.int64()), 60), minutes.cast(pa.int64()))
