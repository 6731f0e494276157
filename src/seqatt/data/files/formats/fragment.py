"""Reads the fragments of a ``pyarrow.dataset.Dataset`` like files: those of Parquet one row group at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from seqatt.data.files.formats.file_format import RowGroup, types_by_name
from seqatt.data.files.remote import FilePath, RemoteFile, Stat
from seqatt.data.tables.containers import Kind

# One scan at a time, on this thread: the rows come in one order, and little is read ahead.
SCAN = {"use_threads": False, "batch_readahead": 1, "fragment_readahead": 1}


@dataclass(frozen=True)
class FragmentFile(RemoteFile):
    """A fragment in the place of a file: its schema, and how each of its row groups is scanned.

    ``groups`` are the rows and the bytes of each row group.
    """

    schema: Any = field(default=None, compare=False, repr=False)
    scans: tuple[Callable[..., Iterator[Any]], ...] = field(default=(), compare=False, repr=False)
    groups: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)

    def stat(self) -> Stat:
        return Stat(sum(size for _, size in self.groups), 0) if self.filesystem is None else super().stat()


class FragmentFormat:
    compressible = False

    def describe(
        self, path: FilePath, stamp: tuple[int, int], known_types: dict[str, Any]
    ) -> tuple[dict[str, Any], list[RowGroup]]:
        assert isinstance(path, FragmentFile)
        groups = [RowGroup(path, g, *group, stamp) for g, group in enumerate(path.groups)]
        return types_by_name(path, path.schema), groups

    def read(
        self, row_group: RowGroup, types: dict[str, Any], kinds: dict[str, Kind], batch_rows: int
    ) -> Iterator[tuple[Any, float]]:
        assert isinstance(row_group.path, FragmentFile)
        rows, count = 0, max(1, row_group.stored_rows or 0)
        scan = row_group.path.scans[row_group.group or 0]
        for batch in scan(columns=list(types), batch_size=batch_rows, **SCAN):
            for start in range(0, batch.num_rows, batch_rows):
                part = batch.slice(start, batch_rows)
                rows += part.num_rows
                yield part, rows / max(rows, count)


def find_fragments(dataset: Any) -> list[FragmentFile]:
    """The fragments of a dataset; a filtered or projected one, which does not tell them, is a single fragment."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:
        rows = dataset.count_rows()
        return [FragmentFile("the dataset", "", None, dataset.schema, (dataset.to_batches,), ((rows, rows),))]
    return [_fragment_file(n, fragment, dataset.schema) for n, fragment in enumerate(fragments)]


def _fragment_file(number: int, fragment: Any, schema: Any) -> FragmentFile:
    path = getattr(fragment, "path", "")
    filesystem: Any = fragment.filesystem if path else None
    parts = fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]
    if parts == [fragment]:
        rows = fragment.count_rows()
        groups = [(rows, filesystem.get_file_info(path).size if path else rows * len(schema))]
    else:
        groups = [(g.num_rows, g.total_byte_size) for part in parts for g in part.row_groups]
    scans = tuple(partial(part.to_batches, schema=schema) for part in parts)
    return FragmentFile(path or f"fragment {number}", path, filesystem, schema, scans, tuple(groups))
