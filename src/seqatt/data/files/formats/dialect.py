"""How a text file is written: the character between its columns, and that of decimals."""

from __future__ import annotations

import csv
import io
from itertools import islice
from typing import NamedTuple

from seqatt.data.files.errors import UnreadableFile
from seqatt.data.files.remote import FilePath

DELIMITERS = (",", "\t", ";", "|")
SNIFFED_LINES = 20  # lines that must all have the same number of columns


class Dialect(NamedTuple):
    """The delimiter, and the decimal point or comma."""

    delimiter: str
    decimal: str = "."


def find_delimiter(path: FilePath, block: bytes, usual: str, *, sniff: bool) -> str:
    """The one that divides the first lines into most columns, of several the usual one; without ``sniff`` that one."""
    own, headers = count_columns(block, usual), {each: len(read_header(block, each)) for each in DELIMITERS}
    if own > 1 and own >= max(headers.values()):
        return usual
    others = {each: count_columns(block, each) for each in DELIMITERS if each != usual}
    best = max(others, key=lambda other: others[other])
    if sniff and others[best] > max(own, 1):
        return best
    divided = len(read_header(block, usual)) > 1
    if divided and (own or others[best] < 2):
        return usual
    problem = f"the lines differ in their number of columns with the delimiter {usual!r}"
    if not divided:
        problem = f"only one column was found with the delimiter {usual!r}"
    fitting = f"delimiter={best!r}" if others[best] > 1 else "the right one as delimiter"
    raise UnreadableFile(f"{path}: {problem}; pass {fitting}")


def count_columns(block: bytes, delimiter: str) -> int:
    """The number of columns of the first lines; 0 if they do not all have the same number."""
    lines = io.StringIO(block.decode("utf-8-sig"), newline="")
    rows = islice(filter(None, csv.reader(lines, delimiter=delimiter)), SNIFFED_LINES)
    try:
        widths = {len(row) for row in rows}
    except csv.Error:  # a text that is too long for a look at the delimiter
        return 0
    return widths.pop() if len(widths) == 1 else 0


def read_header(block: bytes, delimiter: str) -> list[str]:
    """The names of the columns."""
    lines = io.StringIO(block.decode("utf-8-sig"), newline="")
    return next(csv.reader(lines, delimiter=delimiter), [])
