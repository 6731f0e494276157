"""One trial over files. Phases are shares of the rows, so each phase trains on rows of its own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.checkpoints.trace_json import phase_from_json, phase_to_json
from seqatt.data.files.file_data import FileData
from seqatt.data.files.loader import FileBatch
from seqatt.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from seqatt.selection import PhaseRecord, Trace
from seqatt.streaming.device_transfer import DeviceTransfer
from seqatt.streaming.member import MakeGate, StreamedMember, member_seed
from seqatt.streaming.options import StreamTrainingOptions
from seqatt.streaming.snapshot import Arrays, Stateful, load_state
from seqatt.training.backend.threads import training_threads
from seqatt.training.defaults import resolve_stream_batch_size
from seqatt.training.ensemble import pool_scores
from seqatt.training.loop import Diverged
from seqatt.training.schedule import Phase, Schedule
from seqatt.training.selection_state import SelectionState

FEW_STEPS = 20  # steps per phase below which a warning is given


def batch_size_for(data: FileData, schedule: Schedule, options: StreamTrainingOptions) -> int:
    """Rows per step: the option, or the default for these files and this schedule."""
    return resolve_stream_batch_size(options.passes * data.expected_rows, options.batch_size, len(schedule))


def resolve_settings(data: FileData, schedule: Schedule, options: StreamTrainingOptions) -> dict[str, Any]:
    """The options with the defaults resolved for these files; too few rows are an error or a warning."""
    size = batch_size_for(data, schedule, options)
    steps = options.passes * data.expected_rows / size / len(schedule)
    if steps < 1:
        raise ValueError(
            f"k: {len(schedule)} phases need a batch each, but there are about {data.expected_rows:,.0f} rows "
            f"in batches of {size}; use a smaller batch_size, more passes or a smaller k"
        )
    if steps < FEW_STEPS:
        warnings.warn(
            f"each phase has about {steps:.0f} steps; a smaller batch_size gives it more",
            stacklevel=2,
        )
    return options.resolved(data.expected_rows) | {"batch_size": size, "phases": len(schedule)}


class TrialProgress(NamedTuple):
    """How far a trial is: the index of its phase, and the rows seen so far."""

    phase: int
    seen: int


SaveCheckpoint = Callable[["StreamTrial", TrialProgress, bool], None]  # the flag: stop after saving
LoadCheckpoint = Callable[["StreamTrial"], TrialProgress | None]  # None: start from the beginning


def train_trial(
    data: FileData,
    seed: int,
    options: StreamTrainingOptions,
    device: torch.device,
    schedule: Schedule,
    make_gate: MakeGate,
    batches: Iterable[FileBatch],
    advance: Callable[[int], None],
    *,
    group: ProcessGroup = SINGLE_PROCESS,
    load: LoadCheckpoint = lambda trial: None,
    save: SaveCheckpoint = lambda trial, progress, stop: None,
) -> Trace:
    """Train one trial on ``batches``; ``advance`` is called with the rows of each.

    The host waits for the device only at the end of a phase.
    """
    batches = iter(batches)
    total = sum(phase.steps for phase in schedule)
    ends = [end / total for end in accumulate(phase.steps for phase in schedule)]
    size = batch_size_for(data, schedule, options)
    with training_threads(size * data.features * options.hidden[0], device):
        trial = StreamTrial(data, seed, options, device, make_gate, group, -(-size // group.size))
        resumed = load(trial)
        first, seen = resumed or TrialProgress(0, 0)
        advance(seen)
        for number in range(first, len(schedule)):
            phase, end = schedule[number], ends[number]
            if resumed is None or number > first:
                trial.start_phase()
            for batch in batches:
                trial.step(phase, batch)
                seen += batch.total
                advance(batch.total)
                if seen >= end * options.passes * batch.expected_rows and end < 1:
                    break
                if batch.save or batch.stop:
                    save(trial, TrialProgress(number, seen), batch.stop)
            trial.end_phase(phase)
    trace = trial.trace()
    trace.settings["rows"] = seen // options.passes
    return trace


class StreamTrial:
    """The members of an ensemble, trained on the same rows, and the features they select together.

    ``max_rows`` is the largest number of rows per step on this rank.
    """

    def __init__(
        self,
        data: FileData,
        seed: int,
        options: StreamTrainingOptions,
        device: torch.device,
        make_gate: MakeGate,
        group: ProcessGroup,
        max_rows: int,
    ) -> None:
        self.state = SelectionState(1, data.constant, device)
        self.members: list[StreamedMember] = []
        for number in range(options.members(data.expected_rows)):
            first_member = self.members[0] if self.members else None
            own_seed = member_seed(seed, number)
            self.members.append(
                StreamedMember(data, own_seed, options, self.state, make_gate, group, max_rows, first_member)
            )
        self._transfer = DeviceTransfer(device)
        self.steps = 0
        self.records: list[PhaseRecord] = []
        self._last_scores = np.zeros(data.features)
        self._started = time.perf_counter()

    def start_phase(self) -> None:
        """Reset the gates, losses and the clock."""
        for member in self.members:
            member.start_phase()
        self.steps = 0
        self._started = time.perf_counter()

    def step(self, phase: Phase, batch: FileBatch) -> None:
        """One step per member. On a GPU it is a CUDA graph, except for batches of another size than the first."""
        rows = self._transfer.transfer(batch.rows)
        replayed = self._transfer.fixed_size == batch.rows.count
        for member in self.members:
            member.step(rows, batch.total, phase.sees == "attended", replayed)
        self.steps += 1

    def end_phase(self, phase: Phase) -> None:
        """Select ``phase.take`` features and record the phase."""
        losses = [float(member.loss) for member in self.members]
        loss = sum(losses) / len(losses) / max(1, self.steps)
        scores = self._scores()
        if not (np.isfinite(loss) and np.isfinite(scores).all()):
            raise Diverged([self.trace()])
        if phase.take and not self.steps:
            raise ValueError(
                f"k: the rows ended after {len(self.state.order[0])} features were selected; use a smaller "
                "batch_size, more passes or a smaller k"
            )
        record = PhaseRecord(self.steps, phase.sees, loss, time.perf_counter() - self._started)
        if phase.take:
            record.taken = self.state.take(scores, phase.take)[0]
            record.scores = self._last_scores = scores[0]
        self.records.append(record)

    def _scores(self) -> NDArray[np.float64]:
        """Scores (1, d), pooled over the members."""
        scores = torch.stack([member.scores() for member in self.members]).cpu().numpy()
        return scores if len(scores) == 1 else pool_scores(scores[None], self.state.candidates())

    def metadata(self) -> dict[str, Any]:
        """The state that is not in tensors, for JSON. A copy: it is written while training continues."""
        return {
            "steps": self.steps,
            "records": [phase_to_json(record) for record in self.records],
            "order": list(self.state.order[0]),
            "last_scores": self._last_scores.tolist(),
            "seconds": time.perf_counter() - self._started,
        }

    def named_state(self) -> Iterator[tuple[str, Stateful]]:
        """The tensors that training changes, by name."""
        yield "selected", self.state.selected
        yield "blocked", self.state.blocked
        for number, member in enumerate(self.members):
            for name, value in member.named_state():
                yield f"{number}.{name}", value

    def load_state_dict(self, metadata: dict[str, Any], arrays: Arrays) -> None:
        """Restore the state of ``metadata`` and ``named_state``."""
        load_state(self.named_state(), arrays)
        self.steps = metadata["steps"]
        self.records = [phase_from_json(record) for record in metadata["records"]]
        self.state.order[0][:] = metadata["order"]
        self._last_scores = np.array(metadata["last_scores"])
        self._started = time.perf_counter() - metadata["seconds"]

    def trace(self) -> Trace:
        """The result so far."""
        return Trace(
            list(self.state.order[0]), self.state.rank_unselected(0, self._last_scores), self.records
        )


def to_device(values: Any, device: torch.device) -> Tensor:
    """An array as a tensor on the device, copied without waiting."""
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)
