"""Reads CSV and TSV files, compressed or not, in blocks of whole lines.

Each block comes with the share of the file that has been read, from which the number of rows is estimated.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import types as of

from seqatt.data.files.encoding.column_types import reading_type
from seqatt.data.files.errors import IgnoredFiles, UnreadableFile, refuse_binary
from seqatt.data.files.formats.file_format import RowGroup, check_unique_names, split_ending
from seqatt.data.files.remote import FilePath, RemoteFile
from seqatt.data.number_texts import MISSING, PLACEHOLDERS, ReadAs, examine_texts, has_leading_zero
from seqatt.data.tables.containers import Kind

BLOCK_BYTES = 1 << 22  # bytes of text per block
MAX_LINE_BYTES = 1 << 26  # bytes per line; a longer line means that a quote was not closed
DELIMITERS = (",", "\t", ";", "|")
SNIFFED_LINES = 20  # lines that must all have the same number of columns


class Dialect(NamedTuple):
    """The delimiter, and the decimal point or comma."""

    delimiter: str
    decimal: str = "."


@dataclass(frozen=True)
class DelimitedFormat:
    """Text with a header line; the file stores neither types nor its number of rows.

    With ``sniff`` a file may have another delimiter, if that one divides its lines into more columns.
    ``decimal`` None is the comma if it makes numbers of a file with semicolons between its columns, else the point.
    """

    delimiter: str
    sniff: bool = True
    decimal: str | None = None
    compressible: ClassVar[bool] = True

    def describe(
        self, path: FilePath, stamp: tuple[int, int], known_types: dict[str, Any]
    ) -> tuple[dict[str, Any], list[RowGroup]]:
        """Column types, and the whole file as one row group."""
        block = next(_blocks(path), (b"", 0.0))[0]
        refuse_binary(path, block)
        delimiter = find_delimiter(path, block, self.delimiter, sniff=self.sniff)
        decimal = self.decimal or (_find_decimal(block) if delimiter == ";" else None)
        dialect = Dialect(delimiter, decimal or ".")
        types, read_as = _infer_types(path, block, dialect, known_types)
        if "" in types and "" not in known_types and (known_types or _is_index(block, dialect)):
            del types[""]
            if not known_types:
                warnings.warn(
                    f"{path}: the first column has no name and a different whole number in each row; it is left out "
                    "as an index of the rows; give it a name if it is a feature",
                    IgnoredFiles,
                    stacklevel=2,
                )
        other = None if delimiter == self.delimiter else delimiter
        return types, [RowGroup(path, None, None, stamp[0], stamp, other, decimal, read_as=read_as)]

    def read(
        self, row_group: RowGroup, types: dict[str, Any], kinds: dict[str, Kind], batch_rows: int
    ) -> Iterator[tuple[Any, float]]:
        types = {name: reading_type(type_, kinds.get(name)) for name, type_ in types.items()}
        names: list[str] | None = None
        before = 0.0
        dialect = Dialect(row_group.delimiter or self.delimiter, row_group.decimal or ".")
        parse: Callable[..., Any] = _parse
        for block, share in _blocks(row_group.path):
            try:
                table = parse(block, dialect, names, types)
            except pa.ArrowInvalid:
                # Perhaps there are placeholders. To look for them in every file would cost time for nothing.
                parse = _parse_placeholders
                try:
                    table = parse(block, dialect, names, types)
                except pa.ArrowInvalid as error:
                    header = names or read_header(block, dialect.delimiter)
                    raise pa.ArrowInvalid(_name_column(str(error), header)) from None
            names = names or read_header(block, dialect.delimiter)
            done = 0
            for batch in table.to_batches(max_chunksize=batch_rows):
                done += batch.num_rows
                yield batch, before + (share - before) * done / table.num_rows
            before = share


def find_delimiter(path: FilePath, block: bytes, usual: str, *, sniff: bool) -> str:
    """The delimiter that divides the first lines into most columns; ``usual`` in a tie, or without ``sniff``."""
    columns, names = count_columns(block, usual), [len(read_header(block, other)) for other in DELIMITERS]
    if columns > 1 and columns >= max(names):
        return usual
    others = {other: count_columns(block, other) for other in DELIMITERS if other != usual}
    best = max(others, key=lambda other: others[other])
    if sniff and others[best] > max(columns, 1):
        return best
    divided = len(read_header(block, usual)) > 1
    if divided and (columns or others[best] < 2):
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


def _is_index(block: bytes, dialect: Dialect) -> bool:
    """Whether the first column is the index of a data frame: it has no name, and a different whole number per row."""
    if read_header(block, dialect.delimiter)[0]:
        return False
    values = _parse(block, dialect, None, {}, columns=[""])[""]
    return of.is_integer(values.type) and not values.null_count and len(values.unique()) == len(values)


def _infer_types(
    path: FilePath, block: bytes, dialect: Dialect, known_types: dict[str, Any]
) -> tuple[dict[str, Any], tuple[tuple[str, ReadAs], ...]]:
    """The type of each column, inferred from the first block, and the columns whose values allow several types.

    Types of earlier files are kept, except for columns that were empty so far.
    """
    names = read_header(block, dialect.delimiter)
    check_unique_names(path, names)
    types = {name: known_types.get(name, pa.null()) for name in names} if known_types else {}
    if types and not any(of.is_null(type_) and name in known_types for name, type_ in types.items()):
        return types, ()
    inferred, read_as = _infer_from_values(block, dialect)
    known = {name: type_ for name, type_ in types.items() if not of.is_null(type_)}
    return inferred | known, tuple((name, read) for name, read in read_as.items() if name not in known)


def _infer_from_values(block: bytes, dialect: Dialect) -> tuple[dict[str, Any], dict[str, ReadAs]]:
    """Types as Arrow infers them, but numbers and times may have placeholders, and codes are text."""
    table = _parse(block, dialect, None, {})
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    read_as: dict[str, ReadAs] = {}
    texts = [name for name, type_ in types.items() if of.is_string(type_)]
    found = _parse(block, dialect, None, {}, columns=texts, missing=PLACEHOLDERS).schema if texts else ()
    for field in found:
        distinct = table[field.name].unique().drop_null()
        times = of.is_temporal(field.type) and len(distinct) > 2
        read = ReadAs("numbers", _placeholder(distinct)) if times else examine_texts(distinct)
        if read.numeric and of.is_string(field.type):
            continue  # amounts and dates that Arrow does not know: decided by the values, as in other files
        if read.numeric:
            types[field.name] = field.type
        if read.contents != "text":
            read_as[field.name] = read
    whole = {
        name: pa.string() for name, type_ in types.items() if of.is_integer(type_) and name not in read_as
    }
    digits = _parse(block, dialect, None, whole) if whole else {}
    for name in whole:
        if pc.any(has_leading_zero(digits[name])).as_py():
            types[name] = pa.string()
            read_as[name] = examine_texts(digits[name].unique().drop_null())
    return types, read_as


def _find_decimal(block: bytes) -> str | None:
    """The comma, if it makes numbers of more columns than the point does; None if nothing decides."""
    counts = {}
    for decimal in ".,":
        types = _parse(block, Dialect(";", decimal), None, {}, missing=PLACEHOLDERS).schema.types
        counts[decimal] = sum(of.is_floating(type_) for type_ in types)
    return "," if counts[","] > counts["."] else None


def _placeholder(distinct: Any) -> str | None:
    """A value that is a placeholder."""
    found = distinct.filter(pc.is_in(distinct, value_set=pa.array(PLACEHOLDERS)))
    return found[0].as_py() if len(found) else None


def _parse(
    block: bytes,
    dialect: Dialect,
    names: list[str] | None,
    types: dict[str, Any],
    *,
    columns: Sequence[str] = (),
    missing: Sequence[str] = MISSING,
    missing_texts: bool = True,
) -> Any:
    """The columns of ``types``, or those of ``columns`` with the types that Arrow infers, by default all."""
    return arrow_csv.read_csv(
        pa.BufferReader(block),
        read_options=arrow_csv.ReadOptions(column_names=names),
        parse_options=arrow_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=b'"' in block),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=[*types, *columns],
            null_values=missing,
            decimal_point=dialect.decimal,
            strings_can_be_null=missing_texts,
        ),
    )


def _parse_placeholders(
    block: bytes, dialect: Dialect, names: list[str] | None, types: dict[str, Any]
) -> Any:
    """``_parse``, with placeholders missing from numbers and times, but not from text, where they may be categories."""
    table = _parse(block, dialect, names, types, missing=PLACEHOLDERS, missing_texts=False)
    for position, name in enumerate(table.column_names):
        column = table[name]
        if of.is_string(column.type):
            is_missing = pc.is_in(column, value_set=pa.array(MISSING))
            table = table.set_column(position, name, pc.if_else(is_missing, None, column))
    return table


def _name_column(message: str, names: Sequence[str]) -> str:
    """An error of Arrow with the name of a column in the place of its position."""
    return re.sub(r"In CSV column #(\d+):", lambda found: f"in column {names[int(found[1])]!r}:", message)


def _blocks(path: FilePath) -> Iterator[tuple[bytes, float]]:
    """Blocks of whole lines, each with the share of the file read so far (0 to 1)."""
    _, compression = split_ending(path)
    rest = b""
    with path.open() if isinstance(path, RemoteFile) else pa.OSFile(str(path)) as raw:
        size = raw.size()
        with pa.CompressedInputStream(raw, compression) if compression else raw as stream:
            while more := stream.read(BLOCK_BYTES):
                rest += more
                end = _end_of_lines(rest)
                if end:
                    yield rest[:end], raw.tell() / size
                    rest = rest[end:]
                elif len(rest) > MAX_LINE_BYTES:
                    raise UnreadableFile(f"{path}: a line does not end; is a quote not closed?")
    if rest.strip():
        yield rest, 1.0


def _end_of_lines(text: bytes) -> int:
    """The position after the last line break that is not inside quotes; 0 if there is none."""
    end = text.rfind(b"\n") + 1
    open_quote = text.count(b'"', 0, end) % 2
    while end and open_quote:
        before = text.rfind(b"\n", 0, end - 1) + 1
        open_quote = (open_quote - text.count(b'"', before, end)) % 2
        end = before
    return end
