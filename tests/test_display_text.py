"""Names of users and files cannot change a terminal."""

from __future__ import annotations

import pytest

from seqatt.display_text import escape_controls


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("age", "age"),
        ("größe 身長 R²", "größe 身長 R²"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x07\x00\x9b31m", r"\x07\x00\x9b31m"),
        ("abc\u202egnp.exe", r"abc\u202egnp.exe"),  # reverses the direction of the text
        ("\udc80", r"\udc80"),  # cannot be encoded: half of a surrogate pair
    ],
)
def test_control_characters_are_shown_escaped(text, shown):
    assert escape_controls(text) == shown
    escape_controls(text).encode()
