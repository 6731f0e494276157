"""Trains the trials of a run over files: one after another, on all ranks, with checkpoints."""

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
from seqatt.data.files.loader import BatchAgreement, Cursor, FileLoader
from seqatt.data.files.shards import shards_of_rank
from seqatt.distributed.process_group import ProcessGroup, RankLost
from seqatt.progress import Advance
from seqatt.selection import Trace
from seqatt.streaming.options import StreamTrainingOptions
from seqatt.streaming.snapshot import copy_state
from seqatt.streaming.trained_methods import StreamedMethod
from seqatt.streaming.trial import StreamTrial, TrialProgress, train_trial
from seqatt.training.schedule import Schedule


class StreamTraining:
    """The trials of one run: what they share, and which of them are finished."""

    def __init__(
        self,
        data: FileData,
        options: StreamTrainingOptions,
        method: StreamedMethod,
        schedule: Schedule,
        resolved: dict[str, Any],
        device: torch.device,
        group: ProcessGroup,
        checkpointer: Checkpointer,
    ) -> None:
        self._data, self._options, self._method, self._schedule = data, options, method, schedule
        self._resolved, self._device, self._group, self._checkpointer = resolved, device, group, checkpointer
        self._stack = ExitStack()
        self._saved: Checkpoint | None = None  # on rank 0, until it is loaded
        self._metadata: dict[str, Any] = {}  # of the checkpoint, on all ranks
        self._run: dict[str, Any] = {}
        self.finished: dict[int, tuple[Trace, float]] = {}  # trace and seconds by seed

    def begin(self, method: str, k: int, seeds: Sequence[int]) -> None:
        """Read the checkpoint to resume from, if there is one, and share it with all ranks."""
        if not self._checkpointer.active and self._group.size == 1:
            return
        self._run = describe_run(self._data, method, k, list(seeds), self._resolved)
        metadata = {}
        try:
            self._saved = self._stack.enter_context(self._checkpointer.open())
            if self._saved is not None:
                check_same_run(self._saved.metadata["run"], self._run, self._saved.path)
                metadata = self._saved.metadata
        except Exception as error:  # of any kind: the other ranks must not wait for rank 0
            self._group.broadcast_text(json.dumps({"error": str(error)}))
            raise
        self._metadata = json.loads(self._group.broadcast_text(json.dumps(metadata)))
        if "error" in self._metadata:
            raise RankLost(self._metadata["error"])
        if len(set(self._group.allgather_texts(json.dumps(self._run, sort_keys=True)))) > 1:
            raise ValueError("ranks: not all ranks have the same files and options; start all with the same")
        self._checkpointer.clear_finished()
        finished = self._metadata.get("finished", {})
        self.finished = {
            int(seed): (trace_from_json(trace), seconds) for seed, (trace, seconds) in finished.items()
        }

    def end(self) -> None:
        """Wait for the last checkpoint and release the folder."""
        self._stack.close()

    def trial(self, seed: int, advance: Advance) -> Trace:
        """Train one trial, from the start or from the checkpoint."""
        metadata = self._metadata if self._metadata.get("seed") == seed else {}
        batches = self._make_loader(seed, metadata.get("cursor"))

        def load(trial: StreamTrial) -> TrialProgress | None:
            if not metadata:
                return None
            arrays = copy_state(trial.named_state()) if self._saved is None else self._saved.arrays
            try:
                trial.load_state_dict(metadata["trial"], self._group.broadcast_arrays(arrays))
            except ValueError as error:
                where = self._checkpointer.folder if self._saved is None else self._saved.path
                raise ValueError(f"checkpoint: {where} cannot be resumed: {error}") from None
            self._saved = None
            return TrialProgress(metadata["phase"], metadata["seen"])

        def save(trial: StreamTrial, progress: TrialProgress, stop: bool) -> None:
            cursor = self._cursor(batches)
            state = {"seed": seed, "cursor": cursor, "trial": trial.metadata(), **progress._asdict()}
            if self._group.rank == 0:
                self._checkpointer.save(
                    self._with_finished(state), copy_state(trial.named_state()), wait=stop
                )
            if stop:
                self._group.barrier()  # a rank that left earlier would look lost to rank 0, which still writes
                folder = self._checkpointer.folder
                warnings.warn(f"stopped by SIGTERM; continue with resume from {folder}", stacklevel=2)
                raise Terminated(folder)

        trace = train_trial(
            self._data,
            seed,
            self._options,
            self._device,
            self._schedule,
            self._method.make_gate,
            batches,
            advance,
            group=self._group,
            load=load,
            save=save,
        )
        if self._options.on_bad_file == "skip":
            skipped = self._data.files.skipped
            unopened = [{"file": path, "reason": reason, "rows": None} for path, reason in skipped]
            trace.settings["skipped"] = unopened + self._cursor(batches)["skips"]
        return trace

    def finish(self, seed: int, trace: Trace, seconds: float, last: bool) -> None:
        """Record a finished trial, and save it at once: it is small."""
        self.finished[seed] = trace, seconds
        self._checkpointer.save(self._with_finished({"complete": last}), {}, wait=True)

    def _with_finished(self, state: dict[str, Any]) -> dict[str, Any]:
        finished = {
            str(seed): (trace_to_json(trace), seconds) for seed, (trace, seconds) in self.finished.items()
        }
        return {"run": self._run, "finished": finished, **state}

    def _make_loader(self, seed: int, cursor: Cursor | None) -> FileLoader:
        shards = self._resolved["shards"]

        def synchronize(rows: int, expected: float, failed: bool) -> BatchAgreement:
            due, stop = self._checkpointer.due(), self._checkpointer.stop_requested()
            return self._group.synchronize(rows, expected, due, stop, failed)

        return loader.make_loader(
            self._data,
            self._options,
            self._resolved["batch_size"],
            seed,
            passes=self._options.passes,
            shards=shards,
            own_shards=shards_of_rank(shards, self._group.rank, self._group.size),
            synchronize=synchronize,
            cursor=cursor,
        )

    def _cursor(self, batches: FileLoader) -> Cursor:
        """The cursor of all ranks' shards: each rank's loader knows only its own."""
        texts = self._group.allgather_texts(json.dumps(batches.cursor()))
        first, *others = (json.loads(text) for text in texts)
        for other in others:
            first["shards"] |= other["shards"]
            first["skips"] += other["skips"]
        return dict(first)
