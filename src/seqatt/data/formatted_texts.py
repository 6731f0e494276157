"""Amounts and dates that are written as text, such as "1,234.50", "12 %", "2026-11-18" and "18.11.2026".

Each text is read by itself, so that training rows, test rows and batches of files agree. Only dates with slashes
("01/02/2026") cannot be: whether the day or the month comes first is known from other rows at best.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

CURRENCIES = "$€£¥"
AMOUNT = rf"^[+-]?[{CURRENCIES}]? ?[+-]?([0-9]{{1,3}}(,[0-9]{{3}})+|[0-9]+)(\.[0-9]+)? ?[%{CURRENCIES}]?$"
_YEAR, _MONTH, _DAY = r"(?P<year>[0-9]{4})", r"(?P<month>[0-9]{1,2})", r"(?P<day>[0-9]{1,2})"
_TIME = r"(?:[T ](?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}(?:\.[0-9]{1,9})?))?Z?)?$"
YEAR_FIRST = f"^{_YEAR}[-/]{_MONTH}[-/]{_DAY}{_TIME}"
DAY_FIRST = rf"^{_DAY}\.{_MONTH}\.{_YEAR}{_TIME}"
SLASHES = {"day": f"^{_DAY}/{_MONTH}/{_YEAR}{_TIME}", "month": f"^{_MONTH}/{_DAY}/{_YEAR}{_TIME}"}


def parse_amounts(texts: Any) -> Any:
    """Trimmed texts as float64 without currency and per cent signs; null where a text is not an amount."""
    bare = pc.replace_substring_regex(texts, f"[{CURRENCIES}%, ]", "")
    is_amount = pc.match_substring_regex(texts, AMOUNT)
    return pc.if_else(is_amount, bare, pa.scalar(None, bare.type)).cast(pa.float64())


def have_one_unit(texts: Any) -> bool:
    """Whether all texts have the same currency or per cent sign, or none has one."""
    signs = pc.replace_substring_regex(texts, f"[^{CURRENCIES}%]", "")
    return len(signs.drop_null().unique()) <= 1


def parse_dates(texts: Any) -> Any:
    """Trimmed texts as float64, in microseconds since 1970; null where a text is neither 2026-11-18 nor 18.11.2026."""
    return pc.coalesce(_parse(texts, YEAR_FIRST), _parse(texts, DAY_FIRST))


def parse_dates_with_slashes(texts: Any) -> list[Any]:
    """Trimmed texts such as "31/12/2026" as ``parse_dates``, once for each order of day and month that is possible."""
    parsed = [_parse(texts, pattern) for pattern in SLASHES.values()]
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
    minutes = pc.add(pc.multiply(part("hour").cast(pa.float64()), 60.0), part("minute").cast(pa.float64()))
    seconds = pc.add(pc.multiply(minutes, 60.0), part("second").cast(pa.float64()))
    microseconds = days.cast(pa.int64()).cast(pa.float64(), safe=False)
    return pc.add(microseconds, pc.multiply(seconds, 1e6))
