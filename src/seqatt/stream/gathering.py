"""Sums over all rows of files: by all ranks together, every row once, kept as they go.

A rank's sums are its own until the rows are over, so every rank keeps checkpoints of its own: the first in
the folder itself, the others in folders within it.
"""

from __future__ import annotations

import json
import warnings
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from seqatt.progress import Advance
from seqatt.stream import dealing
from seqatt.stream.batches import Batches, Position, Vote
from seqatt.stream.checkpoint import Saved
from seqatt.stream.description import insist_on_same
from seqatt.stream.keeping import Keeper, Keeping, Terminated
from seqatt.stream.options import GatheringOnFiles
from seqatt.stream.ranks import RankGone, Team
from seqatt.stream.rows import Rows
from seqatt.stream.snapshot import Arrays
from seqatt.stream.source import Stream

AT_ONCE = 1 << 15  # rows of a shard


class Sums(Protocol):
    def add(self, rows: Rows) -> None:
        """Take in some rows."""

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
    run = run | {"ranks": team.size}
    with ExitStack() as stack:
        about, seen = _begin(stack, keeper, sums, run, team), 0
        coming = _batches(stream, options, shards, team, keeper, about.get("position"))

        def keep(**others: Any) -> None:
            now = {"run": run, "position": coming.position(), "seen": seen, **others}
            keeper.keep(now, sums.held(), wait=bool(others))

        seen = about.get("seen", 0)
        advance(seen * team.size)
        for batch in coming:
            sums.add(batch.rows)
            seen += batch.rows.count
            advance(batch.total)
            if batch.stop:
                keep(over=False)
                team.tell("kept")  # nobody leaves before all have written
                warnings.warn(f"told to end; go on with resume from {keeping.checkpoint}", stacklevel=2)
                raise Terminated(Path(keeping.checkpoint or "."))
            if batch.save:
                keep()
        if keeper.active:
            keep(over=True)
    said = [json.loads(text) for text in team.gather_texts(json.dumps([seen, coming.skips]))]
    sums.join(team)
    found: dict[str, Any] = {"rows": sum(rows for rows, _ in said)}
    if options.on_bad_file == "skip":
        known = [{"file": path, "why": why, "rows": None} for path, why in stream.files.bad]
        found["skipped"] = known + [skip for _, skips in said for skip in skips]
    return found


def _own(keeping: Keeping, rank: int) -> Keeping:
    if keeping.checkpoint is None or rank == 0:
        return keeping
    return replace(keeping, checkpoint=Path(keeping.checkpoint) / f"rank-{rank}")


def _begin(stack: ExitStack, keeper: Keeper, sums: Sums, run: dict[str, Any], team: Team) -> dict[str, Any]:
    """What there is to go on from; where one rank cannot begin, nobody does."""
    failure: Exception | None = None
    about: dict[str, Any] = {}
    try:
        about = _take_up(stack.enter_context(keeper.open()), sums, run)
    except Exception as error:
        failure = error
    said = team.gather_texts(json.dumps({"run": run, "error": failure and str(failure)}, sort_keys=True))
    if failure is not None:
        raise failure
    others = [json.loads(text) for text in said]
    for other in others:
        if other["error"]:
            raise RankGone(other["error"])
    if any(other["run"] != others[0]["run"] for other in others):
        raise ValueError("ranks: not all ranks see the same files and options; give them the same")
    return about


def _take_up(saved: Saved | None, sums: Sums, run: dict[str, Any]) -> dict[str, Any]:
    if saved is None:
        return {}
    insist_on_same(saved.about["run"], run, saved.path)
    try:
        sums.take_up(saved.arrays)
    except (KeyError, ValueError) as error:
        raise ValueError(f"checkpoint: {saved.path} cannot be gone on from: {error}") from None
    return saved.about


def _batches(
    stream: Stream,
    options: GatheringOnFiles,
    shards: int,
    team: Team,
    keeper: Keeper,
    position: Position | None,
) -> Batches:
    def agree(rows: int, expected: float, failed: bool) -> Vote:
        return team.vote(rows, expected, keeper.due(), keeper.ending(), failed)

    return dealing.batches_of(
        stream,
        options,
        AT_ONCE * shards,
        seed=0,
        shards=shards,
        mine=dealing.own_shards(shards, team.rank, team.size),
        agree=agree,
        position=position,
    )
