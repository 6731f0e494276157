"""``FORMATS``: the format of each file ending. A new format is one module beside this one and one row here."""

from __future__ import annotations

from seqatt.data.files.formats.arrow_ipc import ArrowFormat
from seqatt.data.files.formats.delimited import DelimitedFormat
from seqatt.data.files.formats.file_format import FileFormat
from seqatt.data.files.formats.parquet import ParquetFormat

FORMATS: dict[str, FileFormat] = {
    **dict.fromkeys((".parquet", ".pq"), ParquetFormat()),
    ".csv": DelimitedFormat(","),
    **dict.fromkeys((".tsv", ".tab", ".txt"), DelimitedFormat("\t")),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), ArrowFormat()),
}
