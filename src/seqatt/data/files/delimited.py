"""CSV and TSV, compressed or not, in blocks of whole lines: how far we are is then always known."""

from __future__ import annotations

import csv as plain_csv
import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import csv
from pyarrow import types as of

from seqatt.data.files.column_types import reading_type
from seqatt.data.files.remote import FilePath, RemoteFile
from seqatt.data.tables.whole_file import UnreadableFile

BLOCK = 1 << 22  # bytes of text parsed at a time
LONGEST = 1 << 26  # of a single line: beyond it a quote was not closed


def describe(
    path: FilePath, delimiter: str, compression: str | None, first: dict[str, Any]
) -> dict[str, Any]:
    """Columns and types, guessed from the first block; later files need the same names, and are asked for the
    types of columns that were empty so far."""
    block = next(_blocks(path, compression), (b"", 0.0))[0]
    names = _header(block, delimiter)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UnreadableFile(f"{path}: column {twice[0]!r} stands twice; rename one")
    if len(names) < 2:
        raise UnreadableFile(
            f"{path}: only one column was found; is the delimiter {delimiter!r} right for this file?"
        )
    known = {name: first.get(name, pa.null()) for name in names} if first else {}
    if known and not any(of.is_null(type_) and name in first for name, type_ in known.items()):
        return known
    schema = _parse(block, delimiter, None, {}).schema
    guessed = dict(zip(schema.names, schema.types, strict=True))
    return {
        name: type_ if of.is_null(type_) else reading_type(type_, None)
        for name, type_ in (guessed | {n: t for n, t in known.items() if not of.is_null(t)}).items()
    }


def read(
    path: FilePath, delimiter: str, compression: str | None, types: dict[str, Any], rows: int
) -> Iterator[tuple[Any, float]]:
    """The columns in ``types``, as those types."""
    names: list[str] | None = None
    before = 0.0
    for block, share in _blocks(path, compression):
        table = _parse(block, delimiter, names, types)
        names = names or _header(block, delimiter)
        done = 0
        for batch in table.to_batches(max_chunksize=rows):
            done += batch.num_rows
            yield batch, before + (share - before) * done / table.num_rows
        before = share


def _header(block: bytes, delimiter: str) -> list[str]:
    lines = io.StringIO(block.decode("utf-8-sig"), newline="")
    return next(plain_csv.reader(lines, delimiter=delimiter), [])


def _parse(block: bytes, delimiter: str, names: list[str] | None, types: dict[str, Any]) -> Any:
    return csv.read_csv(
        pa.BufferReader(block),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in block),
        convert_options=csv.ConvertOptions(
            column_types=types, include_columns=list(types), strings_can_be_null=True
        ),
    )


def _blocks(path: FilePath, compression: str | None) -> Iterator[tuple[bytes, float]]:
    """Whole lines, and the share of the file that has been read by then."""
    left = b""
    with path.open() if isinstance(path, RemoteFile) else pa.OSFile(str(path)) as raw:
        size = raw.size()
        with pa.CompressedInputStream(raw, compression) if compression else raw as stream:
            while more := stream.read(BLOCK):
                left += more
                cut = _last_end(left)
                if cut:
                    yield left[:cut], raw.tell() / size
                    left = left[cut:]
                elif len(left) > LONGEST:
                    raise UnreadableFile(f"{path}: a line does not end; is a quote not closed?")
    if left.strip():
        yield left, 1.0


def _last_end(text: bytes) -> int:
    """Behind the last line break that does not lie between quotes."""
    end = text.rfind(b"\n") + 1
    odd = text.count(b'"', 0, end) % 2
    while end and odd:
        before = text.rfind(b"\n", 0, end - 1) + 1
        odd = (odd - text.count(b'"', before, end)) % 2
        end = before
    return end
