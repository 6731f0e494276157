"""Options of the library, as messages name them, in the words of the command line."""

from __future__ import annotations

import re
from functools import partial

OPTIONS = (
    (r"column_types=\{(?:'([^']+)'|name): 'categorical'\}", "--categorical"),
    (r"\bdelimiter=('[^']+')", "--delimiter"),
    (r"\bdecimal=('[^']+')", "--decimal"),
)


def name_flags(message: str) -> str:
    """A message with ``--delimiter ';'`` for ``delimiter=';'``, and so on."""
    for pattern, flag in OPTIONS:
        message = re.sub(pattern, partial(_as_flag, flag), message)
    return re.sub(r"\bwith resume\b", "with --resume", message)


def _as_flag(flag: str, found: re.Match[str]) -> str:
    return f"{flag} {found.group(1) or 'NAME'}"
