"""Text of users and files, such as names of columns, made safe to show in a terminal."""

from __future__ import annotations


def escape_controls(text: str) -> str:
    r"""The text with characters that a terminal obeys or cannot show as escapes: "\x1b[2J" as ``\\x1b[2J``.

    Control characters, marks that reverse the direction of text, and halves of surrogate pairs are escaped. All other
    characters stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
