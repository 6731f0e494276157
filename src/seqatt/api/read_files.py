"""Reads files into a table if that fits into memory, else batch by batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch.utils.data import RandomSampler

from seqatt.api.read_data import Reading, StreamEncoding, are_streams, read_table
from seqatt.data.files.encoding.rows import BatchAgreement
from seqatt.data.files.file_columns import FileColumns, open_columns
from seqatt.data.files.file_data import FileData, read_file_data
from seqatt.data.files.file_set import FileSet
from seqatt.data.files.formats.iterable import BatchSource
from seqatt.data.files.loader import FileLoader, make_loader
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import count_shards, shards_of_rank
from seqatt.data.files.streams import open_stream, read_batches
from seqatt.data.files.validation_rows import hold_out_rows
from seqatt.data.files.whole_files import count_rows, sample_rows
from seqatt.data.memory import available_memory, parse_size
from seqatt.data.tables.options import Categories
from seqatt.data.tables.table_data import read_table_data
from seqatt.distributed.process_group import ProcessGroup, world_size
from seqatt.distributed.reducer import RankReducer
from seqatt.options import names_of
from seqatt.training.group_factory import StreamSource
from seqatt.training.reducer import Reducer
from seqatt.training.trainer import VALIDATION_ROWS

MEMORY_SHARE = 4  # one in this many bytes of the available memory may hold a table read from files


def read_files(
    where: Any,
    target: Any,
    options: FileOptions,
    categories: Categories,
    *,
    encoding: StreamEncoding | None,
    ranks: ProcessGroup,
    by_name: bool = True,
    seed: int = 0,
    when_read: Callable[[], None] = lambda: None,
) -> Reading:
    """Files as a table if that fits into memory, else to be read batch by batch.

    A method that cannot read batch by batch (``encoding`` is None) gets a table of as many rows as fit, spread over
    the files. Several ranks share the work on files that are read batch by batch, so they read a table only if
    ``memory`` is given. ``when_read`` is called when the rows are in memory, before they are encoded.
    """
    columns = open_columns(where, target, options)
    files, _, targets, kinds, types, _ = columns
    needed = columns.table_bytes(categories, options.max_categories)
    budget = memory_budget(options, ranks.size)
    facts: dict[str, Any] = {"files": files.count, "table_bytes": needed}
    given = columns.table_options({name: getattr(options, name) for name in names_of(FileOptions)})
    given |= {"categories": categories, "by_name": by_name, "arguments": ("X", "target")}
    batches = files.row_groups[0].path
    if needed <= budget and isinstance(batches, BatchSource):
        X, y, weights = read_batches(batches.batches)
        when_read()
        table_data = read_table(X, y, replace(options, sample_weight=weights), categories, by_name=by_name)
        return Reading(table_data, facts | {"reading": "memory"})
    skips: list[dict[str, Any]] = []
    if needed <= budget:
        X, y = columns.read_table(options, skips)
        when_read()
        table_data = read_table_data(X, y, **given)
        facts |= {"reading": "memory"} | (
            {"skipped": files.unopened + skips} if options.skips_bad_files else {}
        )
        return Reading(table_data, facts)
    if isinstance(batches, BatchSource):
        _warn_about_shuffling(batches.batches)
    if encoding is not None and len(targets) == 1:
        data = read_file_data(
            files,
            targets[0],
            options,
            encoding.max_codes or options.hash_buckets,
            one_hot=encoding.one_hot,
            share_rare=encoding.share_rare,
        )
        return Reading(data, facts | {"reading": "batches", "columns": dict(data.kinds)})
    if not budget:
        budget = available_memory() // MEMORY_SHARE
    count = count_rows(files, types, kinds)
    rows = max(2, int(count * budget / needed))
    table = columns.decide(sample_rows(files, kinds, types, rows, seed, options, skips), count)[1]
    when_read()
    facts |= {"reading": "sample"} | ({"skipped": files.unopened + skips} if options.skips_bad_files else {})
    return Reading(read_table_data(*columns.separate(table), **given), facts)


def open_rows(X: Any, target: Any, options: FileOptions) -> Any:
    """Queries and streams as files, which may be read more than once; anything else as it is."""
    if not are_streams(X):
        return X
    ranks = world_size()

    def check(columns: FileSet) -> FileColumns:
        return open_columns(columns, target, options)

    return open_stream(X, check, memory_budget(options, ranks), ranks)


def memory_budget(options: FileOptions, ranks: int) -> int:
    """The bytes that a table read from files may take; by default several ranks read none."""
    if options.memory is not None:
        return parse_size("memory", options.memory)
    return 0 if ranks > 1 else available_memory() // MEMORY_SHARE


def _warn_about_shuffling(batches: Any) -> None:
    """Several passes over a DataLoader must give the same rows in the same order."""
    if isinstance(getattr(batches, "sampler", None), RandomSampler):
        warnings.warn(
            "X: this DataLoader shuffles its rows, so that every pass reads them in another order: rows that are held "
            "out in one are trained on in the next. Use shuffle=False; seqatt shuffles them",
            stacklevel=2,
        )


def make_source(
    data: FileData,
    options: FileOptions,
    ranks: ProcessGroup,
    agree: Any = None,
    *,
    hold_out: bool = True,
) -> tuple[FileData, StreamSource]:
    """The data with rows held out for validation, and how its batches are read by all ranks.

    ``agree`` returns whether this rank wants a checkpoint and whether it has to stop.
    """
    shards = count_shards(options.shards, ranks.size)
    validation = None
    if hold_out:
        data, validation = hold_out_rows(data, VALIDATION_ROWS, options)
        if validation is None:
            raise ValueError(
                f"X: about {data.rows} rows are too few to be read batch by batch; leave memory out, so that they are "
                "read into a table"
            )
    reducer = RankReducer(ranks) if ranks.size > 1 else Reducer()

    def synchronize(rows: int, expected: float, failed: bool) -> BatchAgreement:
        save, stop = (False, False) if agree is None else agree()
        return ranks.synchronize(rows, expected, save, stop, failed)

    def open_loader(seed: int, batch_size: int, passes: int) -> FileLoader:
        if batch_size < shards:
            raise ValueError(
                f"batch_size: {batch_size} is less than one row for each of {shards} shards; use at least {shards}"
            )
        if isinstance(reducer, RankReducer):
            reducer.max_rows = -(-batch_size // ranks.size)
        return make_loader(
            data,
            options,
            batch_size,
            seed,
            passes=passes,
            shards=shards,
            own_shards=shards_of_rank(shards, ranks.rank, ranks.size),
            synchronize=synchronize,
        )

    return data, StreamSource(open_loader, validation, reducer, ranks.allgather_texts)
