"""Reads a whole CSV, TSV, Parquet or Arrow file, compressed or not, with pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}  # delimiter per ending
ARROW = (".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}


class UnreadableFile(ValueError):
    """A file that does not exist, is not a table or is damaged; the message is one sentence that names it."""


def read_whole_file(path: str | Path) -> Any:
    """The whole file as a pyarrow Table; the ending of its name decides the format."""
    import pyarrow as pa

    path = Path(path)
    if not path.exists():
        raise UnreadableFile(f"{path}: no such file")
    if path.is_dir():
        raise UnreadableFile(f"{path}: is a folder; name a file in it")
    if path.stat().st_size == 0:
        raise UnreadableFile(f"{path}: the file is empty")
    suffixes = [s.lower() for s in path.suffixes]
    compression = COMPRESSED.get(suffixes[-1]) if suffixes else None
    ending = (suffixes[:-1] if compression else suffixes)[-1:] or [""]
    try:
        table = _read(path, ending[0], compression)
    except UnreadableFile:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UnreadableFile(f"{path}: cannot be read as a table ({reason})") from None
    if table.num_rows == 0:
        raise UnreadableFile(f"{path}: the table has no rows")
    return table


def _read(path: Path, ending: str, compression: str | None) -> Any:
    import pyarrow as pa

    if ending not in TEXT and ending not in ARROW and ending not in PARQUET:
        known = ", ".join([*TEXT, *PARQUET, *ARROW])
        raise UnreadableFile(
            f"{path}: the ending {ending or '(none)'!r} is not one of {known} "
            f"(each may be followed by {', '.join(COMPRESSED)})"
        )
    with pa.input_stream(str(path), compression=compression) as stream:
        if ending in TEXT:
            return _read_text(stream, TEXT[ending], path)
        data = pa.BufferReader(stream.read()) if compression else pa.memory_map(str(path))
        if ending in PARQUET:
            import pyarrow.parquet as pq

            return pq.read_table(data)
        return _read_arrow(data)


def _read_text(stream: Any, delimiter: str, path: Path) -> Any:
    from pyarrow import csv

    table = csv.read_csv(
        stream,
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    )
    if table.num_columns < 2:
        raise UnreadableFile(
            f"{path}: only one column was found; is the delimiter {delimiter!r} right for this file?"
        )
    return table


def _read_arrow(data: Any) -> Any:
    import pyarrow as pa
    from pyarrow import feather

    try:
        with pa.ipc.open_file(data) as reader:
            return reader.read_all()
    except pa.ArrowInvalid:
        data.seek(0)
    try:
        with pa.ipc.open_stream(data) as reader:
            return reader.read_all()
    except pa.ArrowInvalid:
        data.seek(0)
    return feather.read_table(data)
