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

from seqatt.files import UnreadableFile
from seqatt.progress import Advance
from seqatt.stream import dealing
from seqatt.stream.batches import Agree, Batch, Batches, Position, Vote
from seqatt.stream.checkpoint import Saved
from seqatt.stream.description import insist_on_same
from seqatt.stream.keeping import Keeper, Keeping, Terminated
from seqatt.stream.options import GatheringOnFiles
from seqatt.stream.ranks import RankGone, Team
from seqatt.stream.rows import Rows
from seqatt.stream.snapshot import Arrays
from seqatt.stream.source import Stream

AT_ONCE = 1 << 15  # rows of a shard, if the buffer is not smaller

Layout = list[list[float]]


class Sums(Protocol):
    def layout(self) -> Layout:
        """What is summed apart: sums of another layout do not add."""

    def add(self, rows: Rows) -> None:
        """Take in some rows, or none."""

    def held(self) -> Arrays:
        """All of it, in arrays that change no more."""

    def take_up(self, arrays: Arrays) -> None:
        """Be as the sums were that held these."""

    def join(self, team: Team) -> None:
        """Become the sums of all ranks."""


def gather(
    stream: Stream,
    options: GatheringOnFiles,
    shards: int,
    sums: Sums,
    run: dict[str, Any],
    team: Team,
    keeping: Keeping,
    advance: Advance,
) -> dict[str, Any]:
    """Fill ``sums``, from the start or from where an earlier ``run`` was; what came of it, for a record."""
    keeper = Keeper(_own(keeping, team.rank), writes=True)
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


def _own(keeping: Keeping, rank: int) -> Keeping:
    if keeping.checkpoint is None or rank == 0:
        return keeping
    return replace(keeping, checkpoint=Path(keeping.checkpoint) / f"rank-{rank}")


def _begin(
    stack: ExitStack, keeper: Keeper, sums: Sums, run: dict[str, Any], team: Team
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
            raise RankGone(other["error"])
    first = everyone[0]
    if any(
        other["run"] != first["run"] or not _alike(other["layout"], first["layout"]) for other in everyone
    ):
        raise ValueError("ranks: not all ranks see the same files and options; give them the same")
    return about, everyone


def _take_up(saved: Saved | None, sums: Sums, run: dict[str, Any]) -> dict[str, Any]:
    if saved is None:
        return {}
    insist_on_same(saved.about["run"], run, saved.path)
    if not _alike(saved.about["layout"], sums.layout()):
        raise ValueError(
            f"checkpoint: {saved.path} cannot be gone on from: the first look finds other bins or categories"
        )
    try:
        sums.take_up(saved.arrays)
    except (KeyError, ValueError) as error:
        raise ValueError(f"checkpoint: {saved.path} cannot be gone on from: {error}") from None
    return saved.about


def _alike(one: Layout, other: Layout) -> bool:
    """But for what another machine rounds otherwise."""
    return len(one) == len(other) and all(
        len(a) == len(b) and np.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in zip(one, other, strict=True)
    )


def _settle(keeper: Keeper, keeping: Keeping, team: Team) -> None:
    """Now that all ranks begin: what runs left that are over goes, those of more ranks too."""
    keeper.clear_finished()
    if team.rank or keeping.checkpoint is None:
        return
    for folder in Path(keeping.checkpoint).glob("rank-*"):
        if folder.name[5:].isdecimal() and int(folder.name[5:]) >= team.size:
            Keeper(replace(keeping, checkpoint=folder, resume=False), writes=True).clear_finished()


def _agree(team: Team, keeper: Keeper) -> Agree:
    def agree(rows: int, expected: float, failed: bool) -> Vote:
        return team.vote(rows, expected, keeper.due(), keeper.ending(), failed)

    return agree


def _wait_for_others(agree: Agree, none: Rows) -> Iterator[Batch]:
    """Take part with no rows, as one who has read all of his."""
    while (vote := agree(0, 0.0, False)).total:
        yield Batch(none, vote.expected, vote.total, vote.save, vote.stop)


def _batches(
    stream: Stream,
    options: GatheringOnFiles,
    shards: int,
    size: int,
    team: Team,
    agree: Agree,
    position: Position | None,
) -> Batches:
    return dealing.batches_of(
        stream,
        options,
        size * shards,
        seed=0,
        shards=shards,
        mine=dealing.own_shards(shards, team.rank, team.size),
        agree=agree,
        position=position,
    )
