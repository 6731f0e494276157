"""Checkpoints of a training: saved between two chunks of steps, and loaded on all ranks."""

from __future__ import annotations

import json
import warnings
from contextlib import ExitStack
from typing import Any

from seqatt.callbacks.monitor import Part, StopRequested
from seqatt.checkpoints.checkpoint import Checkpoint
from seqatt.checkpoints.checkpointer import Checkpointer
from seqatt.checkpoints.run_description import check_same_run
from seqatt.distributed.process_group import ProcessGroup, RankLost
from seqatt.trace import Trace
from seqatt.training.loop import TrainingHook
from seqatt.training.schedule import Schedule
from seqatt.training.trial_group import TrialGroup


class CheckpointHook(TrainingHook):
    """Saves the state of the group that trains and the traces of those that are finished; loads them again.

    Rank 0 writes. With several ranks, all of them agree on when to save: the loader of a stream does that with every
    batch, and on tables, where every rank does the same, rank 0 decides.
    """

    one_at_a_time = True

    def __init__(
        self, checkpointer: Checkpointer, ranks: ProcessGroup, run: dict[str, Any], part: Part | None = None
    ) -> None:
        super().__init__(part)
        self._checkpointer, self._ranks, self._run = checkpointer, ranks, run
        self._stack = ExitStack()
        self._saved: Checkpoint | None = None  # on rank 0, until it is loaded
        self._metadata: dict[str, Any] = {}  # of the checkpoint, on all ranks
        self._finished: dict[int, list[Trace]] = {}  # by number of the group
        self._exchanged: list[Trace] | None = None
        self._number = 0

    def open(self) -> None:
        """Read the checkpoint to resume from, if there is one, and share it with all ranks."""
        metadata = {}
        try:
            self._saved = self._stack.enter_context(self._checkpointer.open())
            if self._saved is not None:
                check_same_run(self._saved.metadata["run"], self._run, self._saved.path)
                metadata = self._saved.metadata
        except Exception as error:  # of any kind: the other ranks must not wait for rank 0
            self._ranks.broadcast_text(json.dumps({"error": str(error)}))
            raise
        self._metadata = json.loads(self._ranks.broadcast_text(json.dumps(metadata)))
        if "error" in self._metadata:
            raise RankLost(self._metadata["error"])
        if len(set(self._ranks.allgather_texts(json.dumps(self._run, sort_keys=True)))) > 1:
            raise ValueError("ranks: not all ranks have the same files and options; start all with the same")
        self._checkpointer.clear_finished()
        for number, traces in self._metadata.get("finished", {}).items():
            self._finished[int(number)] = [Trace.from_dict(trace) for trace in traces]
        if "exchanged" in self._metadata:
            self._exchanged = [Trace.from_dict(trace) for trace in self._metadata["exchanged"]]

    def release_signals(self) -> bool:
        """Training is over: let signals end the process at once. Returns whether Ctrl-C came too late to end it."""
        return self._checkpointer.release_signals()

    def close(self) -> None:
        """Wait for the last checkpoint and release the folder."""
        self._stack.close()

    def finished(self, number: int) -> list[Trace] | None:
        return self._finished.get(number)

    def exchanged(self) -> list[Trace] | None:
        return self._exchanged

    def advance(self, steps: int) -> None:
        super().advance(steps)
        # What was trained is saved. Other ranks may not have received the signal: several end after this work.
        if self._ranks.size == 1 and self._checkpointer.stop_requested():
            self._checkpointer.end()

    def start(self, group: TrialGroup, number: int, schedule: Schedule) -> None:
        self._number = number
        if self._metadata.get("group") != number:
            super().start(group, number, schedule)
            return
        arrays = self._ranks.broadcast_arrays({} if self._saved is None else self._saved.arrays)
        try:
            group.load(self._metadata["state"], arrays, schedule)
        except (KeyError, ValueError, RuntimeError) as error:
            where = self._checkpointer.folder if self._saved is None else self._saved.path
            raise ValueError(f"checkpoint: {where} cannot be resumed: {error}") from None
        self._saved = None
        super().start(group, number, schedule)
        before = sum(phase.steps for phase in schedule[: group.phase])
        self.part.count(before + group.done)

    def after_chunk(self, group: TrialGroup) -> None:
        monitor = self.part.monitor
        if group.stream is not None and group.stream.current is not None:
            save, stop = group.stream.current.save, group.stream.current.stop
            stop = stop or (monitor.stop_requested and self._ranks.size == 1)
        else:
            flags = self._checkpointer.flags()
            save, stop = flags if self._ranks.size == 1 else self._agree(flags)
        if not (save or stop):
            return
        state = group.state_dict()  # on all ranks: each knows the cursor of its own shards
        if self._ranks.rank == 0:
            metadata = self._with_finished({"group": self._number, "state": state})
            self._checkpointer.save(metadata, group.state_arrays(), wait=stop)
        if stop:
            # A rank that left earlier would look lost to rank 0, which still writes.
            asked = self._ranks.allgather_texts(json.dumps(monitor.stop_requested))
            if any(json.loads(text) for text in asked):
                monitor.stop_requested = True
                raise StopRequested
            self._checkpointer.end()

    def finish(self, group: TrialGroup, number: int, traces: list[Trace]) -> None:
        """Save a finished group at once: it is small."""
        self._finished[number] = traces
        self._metadata = {}
        self._save_result({})

    def finish_exchanges(self, traces: list[Trace]) -> None:
        self._exchanged = traces
        self._save_result({})

    def complete(self) -> None:
        """Mark the run as finished."""
        self._save_result({"complete": True})

    def _save_result(self, state: dict[str, Any]) -> None:
        """A result is never lost because its checkpoint cannot be written."""
        try:
            self._checkpointer.save(self._with_finished(state), {}, wait=True)
        except RuntimeError as error:
            warnings.warn(str(error), stacklevel=2)

    def _agree(self, flags: tuple[bool, bool]) -> tuple[bool, bool]:
        """Whether any rank wants to save, and whether any has to stop."""
        texts = self._ranks.allgather_texts(json.dumps(flags))
        save, stop = zip(*(json.loads(text) for text in texts), strict=True)
        return any(save), any(stop)

    def _with_finished(self, state: dict[str, Any]) -> dict[str, Any]:
        finished = {str(number): [t.to_dict() for t in traces] for number, traces in self._finished.items()}
        if self._exchanged is not None:
            state = {"exchanged": [trace.to_dict() for trace in self._exchanged], **state}
        return {"run": self._run, "finished": finished, **state}
