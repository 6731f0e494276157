"""Sums over all rows of files: by all ranks together, every row once, kept as they go.

A rank's sums are its own until the rows are over, so every rank keeps checkpoints of its own: the first in
the folder itself, the others in folders within it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from seqatt.checkpoints.checkpoint import Checkpoint
from seqatt.checkpoints.checkpointer import Checkpointer, CheckpointOptions, Terminated
from seqatt.checkpoints.run_description import check_same_run
from seqatt.data.files import loader
from seqatt.data.files.file_data import FileData
from seqatt.data.files.loader import Cursor, FileBatch, FileLoader, Synchronize, Vote
from seqatt.data.files.rows import EncodedRows
from seqatt.data.files.shards import shards_of_rank
from seqatt.data.tables.whole_file import UnreadableFile
from seqatt.distributed.process_group import ProcessGroup, RankLost
from seqatt.progress import Advance
from seqatt.streaming.options import SumOptions
from seqatt.streaming.snapshot import Arrays

AT_ONCE = 1 << 15  # rows of a shard, if the buffer is not smaller

SumLayout = list[list[float]]


class Accumulator(Protocol):
    def layout(self) -> SumLayout:
        """What is summed apart: sums of another layout do not add."""

    def add(self, rows: EncodedRows) -> None:
        """Take in some rows, or none."""

    def held(self) -> Arrays:
        """All of it, in arrays that change no more."""

    def load_state_dict(self, arrays: Arrays) -> None:
        """Be as the sums were that held these."""

    def join(self, team: ProcessGroup) -> None:
        """Become the sums of all ranks."""


def accumulate(
    stream: FileData,
    options: SumOptions,
    shards: int,
    sums: Accumulator,
    run: dict[str, Any],
    team: ProcessGroup,
    keeping: CheckpointOptions,
    advance: Advance,
) -> dict[str, Any]:
    """Fill ``sums``, from the start or from where an earlier ``run`` was; what came of it, for a record."""
    keeper = Checkpointer(_own(keeping, team.rank), writes=True)
    size = max(1, min(AT_ONCE, options.buffer // shards))
    run = run | {"ranks": team.size, "at_once": size}
    with ExitStack() as stack:
        about, everyone = _begin(stack, keeper, sums, run, team)
        _settle(keeper, keeping, team)
        advance(sum(other["seen"] for other in everyone))
        seen, over = about.get("seen", 0), about.get("over", False)
        coming = _batches(stream, options, shards, size, team, _agree(team, keeper), about.get("position"))

        def keep(over: bool, *, wait: bool) -> None:
            now = {"run": run, "layout": sums.layout(), "position": coming.position(), "seen": seen}
            keeper.keep(now | {"over": over}, sums.held(), wait=wait)

        if not all(other["over"] for other in everyone):
            none = stream.no_rows()
            for batch in _wait_for_others(_agree(team, keeper), none) if over else coming:
                sums.add(batch.rows)
                seen += batch.rows.count
                advance(batch.total)
                if batch.stop:
                    if not over:
                        keep(False, wait=True)
                    team.tell("kept")  # nobody leaves before all have written
                    warnings.warn(f"told to end; go on with resume from {keeping.checkpoint}", stacklevel=2)
                    raise Terminated(Path(keeping.checkpoint or "."))
                if batch.save and not over:
                    keep(False, wait=False)
        said = [json.loads(text) for text in team.gather_texts(json.dumps([seen, coming.skips]))]
        total = sum(rows for rows, _ in said)
        if not total:
            raise UnreadableFile(f"{stream.files.parts[0].path}: no row of any file could be read")
        if keeper.active and not over:
            keep(True, wait=True)
    sums.join(team)
    found: dict[str, Any] = {"rows": total}
    if options.on_bad_file == "skip":
        known = [{"file": path, "why": why, "rows": None} for path, why in stream.files.bad]
        found["skipped"] = known + [skip for _, skips in said for skip in skips]
    return found


def _own(keeping: CheckpointOptions, rank: int) -> CheckpointOptions:
    if keeping.checkpoint is None or rank == 0:
        return keeping
    return replace(keeping, checkpoint=Path(keeping.checkpoint) / f"rank-{rank}")


def _begin(
    stack: ExitStack, keeper: Checkpointer, sums: Accumulator, run: dict[str, Any], team: ProcessGroup
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What there is to go on from, and what everyone says; where one rank cannot begin, nobody does."""
    failure: Exception | None = None
    about: dict[str, Any] = {}
    try:
        about = _take_up(stack.enter_context(keeper.open()), sums, run)
    except Exception as error:
        failure = error
    mine = {"run": run, "layout": sums.layout(), "error": failure and str(failure)}
    mine |= {"seen": about.get("seen", 0), "over": about.get("over", False)}
    everyone = [json.loads(text) for text in team.gather_texts(json.dumps(mine))]
    if failure is not None:
        raise failure
    for other in everyone:
        if other["error"]:
            raise RankLost(other["error"])
    first = everyone[0]
    if any(
        other["run"] != first["run"] or not _alike(other["layout"], first["layout"]) for other in everyone
    ):
        raise ValueError("ranks: not all ranks see the same files and options; give them the same")
    return about, everyone


def _take_up(saved: Checkpoint | None, sums: Accumulator, run: dict[str, Any]) -> dict[str, Any]:
    if saved is None:
        return {}
    check_same_run(saved.about["run"], run, saved.path)
    if not _alike(saved.about["layout"], sums.layout()):
        raise ValueError(
            f"checkpoint: {saved.path} cannot be gone on from: the first look finds other bins or categories"
        )
    try:
        sums.load_state_dict(saved.arrays)
    except (KeyError, ValueError) as error:
        raise ValueError(f"checkpoint: {saved.path} cannot be gone on from: {error}") from None
    return saved.about


def _alike(one: SumLayout, other: SumLayout) -> bool:
    """But for what another machine rounds otherwise."""
    return len(one) == len(other) and all(
        len(a) == len(b) and np.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in zip(one, other, strict=True)
    )


def _settle(keeper: Checkpointer, keeping: CheckpointOptions, team: ProcessGroup) -> None:
    """Now that all ranks begin: what runs left that are over goes, those of more ranks too."""
    keeper.clear_finished()
    if team.rank or keeping.checkpoint is None:
        return
    for folder in Path(keeping.checkpoint).glob("rank-*"):
        if folder.name[5:].isdecimal() and int(folder.name[5:]) >= team.size:
            Checkpointer(replace(keeping, checkpoint=folder, resume=False), writes=True).clear_finished()


def _agree(team: ProcessGroup, keeper: Checkpointer) -> Synchronize:
    def agree(rows: int, expected: float, failed: bool) -> Vote:
        return team.vote(rows, expected, keeper.due(), keeper.ending(), failed)

    return agree


def _wait_for_others(agree: Synchronize, none: EncodedRows) -> Iterator[FileBatch]:
    """Take part with no rows, as one who has read all of his."""
    while (vote := agree(0, 0.0, False)).total:
        yield FileBatch(none, vote.expected, vote.total, vote.save, vote.stop)


def _batches(
    stream: FileData,
    options: SumOptions,
    shards: int,
    size: int,
    team: ProcessGroup,
    agree: Synchronize,
    position: Cursor | None,
) -> FileLoader:
    return loader.make_loader(
        stream,
        options,
        size * shards,
        seed=0,
        shards=shards,
        mine=shards_of_rank(shards, team.rank, team.size),
        agree=agree,
        position=position,
    )
