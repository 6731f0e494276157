"""Names and numbers of reports: made plain for JSON, and as text for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from seqatt.display_text import LOWER_IS_BETTER, NO_NAME, escape_controls, metric_name

NO_VALUE = "–"


def show_name(name: Any) -> str:
    """The name of a column as text that is safe to show."""
    return escape_controls(str(name)) or NO_NAME


def finite(value: Any) -> float | None:
    """A number as a float; None for none, NaN and infinity, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else float(value)


def plain_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts that JSON can hold."""
    return {name: to_plain(value) for name, value in facts.items()}


def to_plain(value: Any) -> Any:
    """Dicts, lists, texts and finite numbers, whatever was given."""
    if isinstance(value, Mapping):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return finite(value)
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return to_plain(value.tolist())
    return [to_plain(item) for item in value] if isinstance(value, list | tuple | set) else str(value)


def html(value: Any) -> str:
    """Text for HTML, in an element or in a quoted attribute: no name can become markup."""
    return escape(escape_controls(str(value)), quote=True)


def number(value: float | None, digits: int = 3) -> str:
    """A number with some decimals, or as many significant digits where it is large or small; a dash for none."""
    if value is None:
        return NO_VALUE
    size = abs(value)
    if value == int(value) and size < 1e6:
        return f"{int(value):,}".replace("-", "−")
    text = f"{value:.{digits}f}" if 10 ** (1 - digits) <= size < 1000 else f"{value:,.{digits + 1}g}"
    return text.replace("-", "−")


def aligned(values: Sequence[float | None]) -> list[str]:
    """The numbers of a column with as many decimals each: three, or three digits of the largest if it is small."""
    known = [abs(value) for value in values if value is not None]
    largest = max(known, default=0.0)
    if all(value == int(value) for value in known) or largest >= 1000:
        return [number(value) for value in values]
    places = 3 if largest >= 0.01 else 2 - math.floor(math.log10(largest))
    return [NO_VALUE if v is None else f"{v:.{places}f}".replace("-", "−") for v in values]


def short(value: float) -> str:
    """A number with three significant digits."""
    text = f"{value:.3g}" if abs(value) < 1000 or abs(value) >= 1e6 else f"{value:,.0f}"
    return text.replace("-", "−")


def score(value: float | None) -> str:
    """A metric with three decimals, or four significant digits where it is large."""
    if value is None:
        return NO_VALUE
    return (f"{value:.3f}" if abs(value) < 100 else f"{value:,.4g}").replace("-", "−")


def count(value: int, noun: str) -> str:
    """A number of things: "1 row", "1,234 rows"."""
    return f"{value:,} {noun}" + ("" if value == 1 else "s" if not noun.endswith("s") else "es")


def capital(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def seconds(value: float) -> str:
    """Seconds as people say them: "4.2 s", "3 min 20 s"."""
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes:,} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


__all__ = [
    "LOWER_IS_BETTER",
    "NO_VALUE",
    "aligned",
    "capital",
    "count",
    "finite",
    "html",
    "metric_name",
    "number",
    "plain_facts",
    "score",
    "seconds",
    "short",
    "show_name",
    "to_plain",
]
