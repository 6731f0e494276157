"""Options about files: how they are read and what their columns are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seqatt.data.memory import memory_size
from seqatt.data.tables.options import TableOptions
from seqatt.options import FILES, RUNNING, option
from seqatt.validation import choice, integer


def one_character(name: str, value: Any) -> str | None:
    """Check: a single character, or None; "tab" and a backslash with t are for command lines."""
    value = "\t" if value in ("tab", "\\t") else value
    if value is not None and not (isinstance(value, str) and len(value) == 1 and value not in '"\r\n'):
        raise ValueError(f"{name}: must be a single character such as ';', or 'tab', got {value!r}")
    return value


def point_or_comma(name: str, value: Any) -> str | None:
    """Check: the character of decimals, or None."""
    if value not in (None, ".", ","):
        raise ValueError(f"{name}: must be '.' or ',', got {value!r}")
    return None if value is None else str(value)


@dataclass(frozen=True)
class FileOptions(TableOptions):
    """Options about the columns of files, as of a table, and about reading them."""

    memory: int | str | None = option(
        None,
        memory_size,
        'Files whose table fits into this memory ("2GB", or a number of bytes) are read into it; larger ones are read '
        "batch by batch. By default a quarter of the available memory; 0 reads all files batch by batch.",
        group=FILES,
    )
    delimiter: str | None = option(
        None,
        one_character,
        "Character between the columns of text files; by default that of the ending, or else the one that fits.",
        group=FILES,
    )
    decimal: str | None = option(
        None,
        point_or_comma,
        "Decimal point or comma of text files; by default the comma where it makes numbers of columns that are "
        "separated by ';', else the point.",
        group=FILES,
    )
    schema_rows: int = option(
        1 << 16,
        integer(2),
        "Rows of the schema sample, from which means, categories and classes are fitted.",
        group=FILES,
    )
    shuffle_rows: int = option(1 << 17, integer(2), "Rows that are shuffled at a time.", group=FILES)
    hash_buckets: int = option(
        1 << 16,
        integer(4),
        "Most codes of a categorical column of files that are read batch by batch.",
        group=FILES,
    )
    shards: int | None = option(
        None,
        integer(1, optional=True),
        "Shares of the rows, read in parallel; by default one per rank.",
        group=RUNNING,
    )
    on_bad_file: str = option(
        "stop",
        choice(["stop", "skip"]),
        "If data cannot be read: stop, or skip it and report it.",
        group=RUNNING,
    )

    @property
    def skips_bad_files(self) -> bool:
        """Whether data that cannot be read is skipped, with a warning, instead of stopping."""
        return self.on_bad_file == "skip"
