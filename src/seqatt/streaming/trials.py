"""Trials that train over files: one after another, by all ranks together, each kept as it goes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from seqatt.checkpoints.checkpoint import Checkpoint
from seqatt.checkpoints.checkpointer import Checkpointer, Terminated
from seqatt.checkpoints.run_description import check_same_run, describe_run
from seqatt.checkpoints.trace_json import trace_from_json, trace_to_json
from seqatt.data.files import loader
from seqatt.data.files.file_data import FileData
from seqatt.data.files.loader import Cursor, FileLoader, Vote
from seqatt.data.files.shards import shards_of_rank
from seqatt.distributed.process_group import ProcessGroup, RankLost
from seqatt.progress import Advance
from seqatt.selection import Trace
from seqatt.streaming import trial as walk
from seqatt.streaming.options import StreamTrainingOptions
from seqatt.streaming.snapshot import copy_state
from seqatt.streaming.trained_methods import StreamedMethod
from seqatt.streaming.trial import StreamTrial, TrialProgress
from seqatt.training.schedule import Schedule


class StreamTraining:
    """What all trials of a run share."""

    def __init__(
        self,
        stream: FileData,
        options: StreamTrainingOptions,
        its: StreamedMethod,
        schedule: Schedule,
        resolved: dict[str, Any],
        device: torch.device,
        team: ProcessGroup,
        keeper: Checkpointer,
    ) -> None:
        self._stream, self._options, self._its, self._schedule = stream, options, its, schedule
        self._resolved, self._device, self._team, self._keeper = resolved, device, team, keeper
        self._stack = ExitStack()
        self._saved: Checkpoint | None = None
        self._about: dict[str, Any] = {}
        self._run: dict[str, Any] = {}
        self.finished: dict[int, tuple[Trace, float]] = {}  # and the seconds it took

    def begin(self, method: str, k: int, seeds: Sequence[int]) -> None:
        """Find out, all ranks alike, whether there is something to go on from."""
        if not self._keeper.active and self._team.size == 1:
            return
        self._run = describe_run(self._stream, method, k, list(seeds), self._resolved)
        said = {}
        try:
            self._saved = self._stack.enter_context(self._keeper.open())
            if self._saved is not None:
                check_same_run(self._saved.about["run"], self._run, self._saved.path)
                said = self._saved.about
        except Exception as error:  # whatever it is, nobody must wait for rank 0
            self._team.tell(json.dumps({"error": str(error)}))
            raise
        self._about = json.loads(self._team.tell(json.dumps(said)))
        if "error" in self._about:
            raise RankLost(self._about["error"])
        if len(set(self._team.gather_texts(json.dumps(self._run, sort_keys=True)))) > 1:
            raise ValueError("ranks: not all ranks see the same files and options; give them the same")
        self._keeper.clear_finished()
        plain = self._about.get("finished", {})
        self.finished = {int(seed): (trace_from_json(trace), took) for seed, (trace, took) in plain.items()}

    def end(self) -> None:
        self._stack.close()

    def trial(self, seed: int, advance: Advance) -> Trace:
        """Train, from the start or from where an earlier run was."""
        about = self._about if self._about.get("seed") == seed else {}
        coming = self._batches(seed, about.get("position"))

        def start(walk: StreamTrial) -> TrialProgress | None:
            if not about:
                return None
            arrays = copy_state(walk.held()) if self._saved is None else self._saved.arrays
            try:
                walk.load_state_dict(about["walk"], self._team.share(arrays))
            except ValueError as error:
                where = self._keeper.folder if self._saved is None else self._saved.path
                raise ValueError(f"checkpoint: {where} cannot be gone on from: {error}") from None
            self._saved = None
            return TrialProgress(about["phase"], about["seen"])

        def keep(walk: StreamTrial, course: TrialProgress, end: bool) -> None:
            position = self._position(coming)
            now = {"seed": seed, "position": position, "walk": walk.about(), **course._asdict()}
            if self._team.rank == 0:
                self._keeper.keep(self._all_of(now), copy_state(walk.held()), wait=end)
            if end:
                self._team.tell("kept")  # nobody leaves before it is written
                warnings.warn(f"told to end; go on with resume from {self._keeper.folder}", stacklevel=2)
                raise Terminated(self._keeper.folder)

        trace = walk.train_trial(
            self._stream,
            seed,
            self._options,
            self._device,
            self._schedule,
            self._its.make_gate,
            coming,
            advance,
            team=self._team,
            start=start,
            keep=keep,
        )
        if self._options.on_bad_file == "skip":
            known = [{"file": path, "why": why, "rows": None} for path, why in self._stream.files.bad]
            trace.settings["skipped"] = known + self._position(coming)["skips"]
        return trace

    def finish(self, seed: int, trace: Trace, seconds: float, last: bool) -> None:
        """What is finished is small, and kept at once."""
        self.finished[seed] = trace, seconds
        self._keeper.keep(self._all_of({"over": last}), {}, wait=True)

    def _all_of(self, now: dict[str, Any]) -> dict[str, Any]:
        finished = {str(seed): (trace_to_json(trace), took) for seed, (trace, took) in self.finished.items()}
        return {"run": self._run, "finished": finished, **now}

    def _batches(self, seed: int, position: Cursor | None) -> FileLoader:
        shards = self._resolved["shards"]

        def agree(rows: int, expected: float, failed: bool) -> Vote:
            keeper = self._keeper
            return self._team.vote(rows, expected, keeper.due(), keeper.ending(), failed)

        return loader.make_loader(
            self._stream,
            self._options,
            self._resolved["batch_size"],
            seed,
            passes=self._options.passes,
            shards=shards,
            mine=shards_of_rank(shards, self._team.rank, self._team.size),
            agree=agree,
            position=position,
        )

    def _position(self, coming: FileLoader) -> Cursor:
        """Where all ranks are together."""
        said = self._team.gather_texts(json.dumps(coming.position()))
        first, *others = (json.loads(text) for text in said)
        for other in others:
            first["shards"] |= other["shards"]
            first["skips"] += other["skips"]
        return dict(first)
