"""Accumulates sums over all rows of files: every row once, on all ranks, with checkpoints.

Each rank keeps its own sums until all rows are read, so each rank writes its own checkpoints: rank 0 in the
checkpoint folder itself, the others in the subfolders ``rank-1``, ``rank-2``, ...
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from seqatt.callbacks.monitor import Monitor
from seqatt.checkpoints.checkpoint import Checkpoint
from seqatt.checkpoints.checkpointer import Checkpointer
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.checkpoints.run_description import check_same_run
from seqatt.data.files import loader
from seqatt.data.files.encoding.rows import BatchAgreement, EncodedRows, FileBatch
from seqatt.data.files.errors import UnreadableFile
from seqatt.data.files.file_data import FileData
from seqatt.data.files.loader import Cursor, FileLoader, Synchronize
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import shards_of_rank
from seqatt.distributed.process_group import ProcessGroup, RankLost
from seqatt.progress import Advance
from seqatt.training.state import Arrays

SHARD_BATCH_ROWS = 1 << 15  # rows per shard and batch, at most; fewer where the shuffle buffer is smaller

SumLayout = list[list[float]]


class Accumulator(Protocol):
    """Sums over rows that several ranks can compute and that a checkpoint can hold."""

    def layout(self) -> SumLayout:
        """Columns and bins that the sums are over; only sums of the same layout can be added."""

    def add(self, rows: EncodedRows) -> None:
        """Add some rows, possibly none."""

    def state_dict(self) -> Arrays:
        """Copies of the sums, which later calls of ``add`` do not change."""

    def load_state_dict(self, arrays: Arrays) -> None:
        """Replace the sums by those of ``state_dict``."""

    def allreduce(self, group: ProcessGroup) -> None:
        """Replace the sums by the totals over all ranks."""


def accumulate(
    data: FileData,
    options: FileOptions,
    shards: int,
    sums: Accumulator,
    run: dict[str, Any],
    group: ProcessGroup,
    checkpoint_options: CheckpointOptions,
    advance: Advance,
) -> dict[str, Any]:
    """Add all rows to ``sums``, from the start or from the checkpoint of the same ``run``.

    Returns settings for the record: the number of rows, and what was skipped if skipping is allowed.
    """
    own_options = _options_of_rank(checkpoint_options, group.rank)
    checkpointer = Checkpointer(own_options, writes=True, monitor=Monitor(alone=group.size == 1))
    size = max(1, min(SHARD_BATCH_ROWS, loader.count_window_rows(data, options) // shards))
    run = run | {"ranks": group.size, "shard_batch_rows": size}
    with ExitStack() as stack:
        metadata, all_ranks = _begin(stack, checkpointer, sums, run, group)
        _clear_finished(checkpointer, checkpoint_options, group)
        advance(sum(rank["seen"] for rank in all_ranks))
        seen, complete = metadata.get("seen", 0), metadata.get("complete", False)
        synchronize = _synchronizer(group, checkpointer)
        batches = _make_loader(data, options, shards, size, group, synchronize, metadata.get("cursor"))

        def save(complete: bool, *, wait: bool) -> None:
            state = {"run": run, "layout": sums.layout(), "cursor": batches.cursor(), "seen": seen}
            checkpointer.save(state | {"complete": complete}, sums.state_dict(), wait=wait)

        if not all(rank["complete"] for rank in all_ranks):
            for batch in _empty_batches(synchronize, data.empty_rows()) if complete else batches:
                sums.add(batch.rows)
                seen += batch.rows.count
                advance(batch.total)
                if batch.stop:
                    if not complete:
                        save(False, wait=True)
                    group.barrier()  # a rank that left earlier would look lost to those that still write
                    checkpointer.end(Path(checkpoint_options.checkpoint or "."))
                if batch.save and not complete:
                    save(False, wait=False)
        reports = [json.loads(text) for text in group.allgather_texts(json.dumps([seen, batches.skips]))]
        total = sum(rows for rows, _ in reports)
        if not total:
            raise UnreadableFile(f"{data.files.row_groups[0].path}: no row of any file could be read")
        if checkpointer.active and not complete:
            save(True, wait=True)
    sums.allreduce(group)
    settings: dict[str, Any] = {"rows": total}
    if options.skips_bad_files:
        settings["skipped"] = data.files.unopened + [skip for _, skips in reports for skip in skips]
    return settings


def _options_of_rank(options: CheckpointOptions, rank: int) -> CheckpointOptions:
    """The options with the folder of this rank."""
    if options.checkpoint is None or rank == 0:
        return options
    return replace(options, checkpoint=Path(options.checkpoint) / f"rank-{rank}")


def _begin(
    stack: ExitStack, checkpointer: Checkpointer, sums: Accumulator, run: dict[str, Any], group: ProcessGroup
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Resume on all ranks or on none: the metadata of this rank's checkpoint, and the state of every rank."""
    failure: Exception | None = None
    metadata: dict[str, Any] = {}
    try:
        metadata = _resume(stack.enter_context(checkpointer.open()), sums, run)
    except Exception as error:
        failure = error
    state = {"run": run, "layout": sums.layout(), "error": failure and str(failure)}
    state |= {"seen": metadata.get("seen", 0), "complete": metadata.get("complete", False)}
    all_ranks = [json.loads(text) for text in group.allgather_texts(json.dumps(state))]
    if failure is not None:
        raise failure
    for rank in all_ranks:
        if rank["error"]:
            raise RankLost(rank["error"])
    first = all_ranks[0]
    if any(
        rank["run"] != first["run"] or not _same_layout(rank["layout"], first["layout"]) for rank in all_ranks
    ):
        raise ValueError("ranks: not all ranks have the same files and options; start all with the same")
    return metadata, all_ranks


def _resume(saved: Checkpoint | None, sums: Accumulator, run: dict[str, Any]) -> dict[str, Any]:
    """Load a checkpoint into ``sums`` and return its metadata; {} without one."""
    if saved is None:
        return {}
    check_same_run(saved.metadata["run"], run, saved.path)
    if not _same_layout(saved.metadata["layout"], sums.layout()):
        raise ValueError(
            f"checkpoint: {saved.path} cannot be resumed: the schema sample gives other bins or categories"
        )
    try:
        sums.load_state_dict(saved.arrays)
    except (KeyError, ValueError) as error:
        raise ValueError(f"checkpoint: {saved.path} cannot be resumed: {error}") from None
    return saved.metadata


def _same_layout(one: SumLayout, other: SumLayout) -> bool:
    """Whether two layouts are equal up to rounding, which differs between machines."""
    return len(one) == len(other) and all(
        len(a) == len(b) and np.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in zip(one, other, strict=True)
    )


def _clear_finished(checkpointer: Checkpointer, options: CheckpointOptions, group: ProcessGroup) -> None:
    """Once all ranks have begun: remove checkpoints of finished runs, also of runs with more ranks."""
    checkpointer.clear_finished()
    if group.rank or options.checkpoint is None:
        return
    for folder in Path(options.checkpoint).glob("rank-*"):
        if folder.name[5:].isdecimal() and int(folder.name[5:]) >= group.size:
            Checkpointer(replace(options, checkpoint=folder, resume=False), writes=True).clear_finished()


def _synchronizer(group: ProcessGroup, checkpointer: Checkpointer) -> Synchronize:
    def synchronize(rows: int, expected: float, failed: bool) -> BatchAgreement:
        return group.synchronize(rows, expected, checkpointer.due(), checkpointer.stop_requested(), failed)

    return synchronize


def _empty_batches(synchronize: Synchronize, empty: EncodedRows) -> Iterator[FileBatch]:
    """Batches without rows, for a rank whose rows are all read, until the other ranks are done."""
    while (agreed := synchronize(0, 0.0, False)).total:
        yield FileBatch(empty, agreed.expected_rows, agreed.total, agreed.save, agreed.stop)


def _make_loader(
    data: FileData,
    options: FileOptions,
    shards: int,
    size: int,
    group: ProcessGroup,
    synchronize: Synchronize,
    cursor: Cursor | None,
) -> FileLoader:
    return loader.make_loader(
        data,
        options,
        size * shards,
        seed=0,
        shards=shards,
        own_shards=shards_of_rank(shards, group.rank, group.size),
        synchronize=synchronize,
        cursor=cursor,
    )
