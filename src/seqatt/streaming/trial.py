"""One training over files: phases follow the rows, so each has rows of its own."""

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
from seqatt.training.loop import Diverged, pool_scores
from seqatt.training.schedule import Phase, Schedule
from seqatt.training.selection_state import SelectionState

STEPS_A_CHOICE, STEPS = 32, 400  # that a batch size is chosen for, and for all choices together
FEW_STEPS = 20  # a choice from fewer is told of
SMALLEST, LARGEST = 64, 4096  # rows in a batch


def batch_size_for(stream: FileData, schedule: Schedule, options: StreamTrainingOptions) -> int:
    """What the user says, else the power of two that gives every phase and the whole enough steps."""
    if options.batch_size is not None:
        return int(options.batch_size)
    rows = options.passes * stream.expected / max(STEPS_A_CHOICE * len(schedule), STEPS)
    return int(min(max(SMALLEST, 1 << max(0, int(rows)).bit_length() >> 1), LARGEST))


def settings(stream: FileData, schedule: Schedule, options: StreamTrainingOptions) -> dict[str, Any]:
    """The options as they were resolved for these files."""
    size = batch_size_for(stream, schedule, options)
    steps = options.passes * stream.expected / size / len(schedule)
    if steps < 1:
        raise ValueError(
            f"k: {len(schedule)} phases need a batch each, but there are about {stream.expected:,.0f} rows "
            f"in batches of {size}; use a smaller batch_size, more passes or a smaller k"
        )
    if steps < FEW_STEPS:
        warnings.warn(
            f"every choice comes from about {steps:.0f} steps; a smaller batch_size gives it more",
            stacklevel=2,
        )
    return options.resolved(stream.expected) | {"batch_size": size, "phases": len(schedule)}


class TrialProgress(NamedTuple):
    """Where a trial is in its schedule."""

    phase: int
    seen: int


SaveCheckpoint = Callable[
    ["StreamTrial", TrialProgress, bool], None
]  # at this place, and whether it is to end here
LoadCheckpoint = Callable[["StreamTrial"], TrialProgress | None]  # where an earlier run stopped


def train_trial(
    stream: FileData,
    seed: int,
    options: StreamTrainingOptions,
    device: torch.device,
    schedule: Schedule,
    make_gate: MakeGate,
    coming: Iterable[FileBatch],
    advance: Callable[[int], None],
    *,
    team: ProcessGroup = SINGLE_PROCESS,
    start: LoadCheckpoint = lambda walk: None,
    keep: SaveCheckpoint = lambda walk, course, end: None,
) -> Trace:
    """One trial, on the batches that are coming; ``advance`` hears of rows done.

    The host looks at the device at the ends of phases only.
    """
    coming = iter(coming)
    total = sum(phase.steps for phase in schedule)
    ends = [end / total for end in accumulate(phase.steps for phase in schedule)]
    size = batch_size_for(stream, schedule, options)
    with training_threads(size * stream.features * options.hidden[0], device):
        walk = StreamTrial(stream, seed, options, device, make_gate, team, -(-size // team.size))
        before = start(walk)
        first, seen = before or TrialProgress(0, 0)
        advance(seen)
        for number in range(first, len(schedule)):
            phase, end = schedule[number], ends[number]
            if before is None or number > first:
                walk.enter()
            for batch in coming:
                walk.step(phase, batch)
                seen += batch.total
                advance(batch.total)
                if seen >= end * options.passes * batch.expected and end < 1:
                    break
                if batch.save or batch.stop:
                    keep(walk, TrialProgress(number, seen), batch.stop)
            walk.leave(phase)
    trace = walk.trace()
    trace.settings["rows"] = seen // options.passes
    return trace


class StreamTrial:
    """Networks that train beside each other on the same rows, and what they chose together."""

    def __init__(
        self,
        stream: FileData,
        seed: int,
        options: StreamTrainingOptions,
        device: torch.device,
        make_gate: MakeGate,
        team: ProcessGroup,
        most: int,
    ) -> None:
        """``most`` rows are a rank's in a step."""
        self.state = SelectionState(1, stream.constant, device)
        self.members: list[StreamedMember] = []
        for number in range(options.members(stream.expected)):
            beside = self.members[0] if self.members else None
            own = member_seed(seed, number)
            self.members.append(
                StreamedMember(stream, own, options, self.state, make_gate, team, most, beside)
            )
        self._carrier = DeviceTransfer(device)
        self.steps = 0
        self.records: list[PhaseRecord] = []
        self._last = np.zeros(stream.features)
        self._started = time.perf_counter()

    def enter(self) -> None:
        for member in self.members:
            member.enter()
        self.steps = 0
        self._started = time.perf_counter()

    def step(self, phase: Phase, batch: FileBatch) -> None:
        """One step of each; an accelerator replays it, but for batches of another size than the first."""
        rows = self._carrier.bring(batch.rows)
        replayed = self._carrier.recorded == batch.rows.count
        for member in self.members:
            member.step(rows, batch.total, phase.sees == "attended", replayed)
        self.steps += 1

    def leave(self, phase: Phase) -> None:
        losses = [float(member.loss) for member in self.members]
        loss = sum(losses) / len(losses) / max(1, self.steps)
        scores = self._scores()
        if not (np.isfinite(loss) and np.isfinite(scores).all()):
            raise Diverged([self.trace()])
        if phase.take and not self.steps:
            raise ValueError(
                f"k: the rows ended after {len(self.state.order[0])} choices; use a smaller batch_size, more "
                "passes or a smaller k"
            )
        step = PhaseRecord(self.steps, phase.sees, loss, time.perf_counter() - self._started)
        if phase.take:
            step.taken = self.state.take(scores, phase.take)[0]
            step.scores = self._last = scores[0]
        self.records.append(step)

    def _scores(self) -> NDArray[np.float64]:
        """(1, d), of several members what they say together."""
        said = torch.stack([member.scores() for member in self.members]).cpu().numpy()
        return said if len(said) == 1 else pool_scores(said[None], self.state.free())

    def about(self) -> dict[str, Any]:
        """What ``arrays`` does not say, as JSON has it: a copy, written while training goes on."""
        return {
            "steps": self.steps,
            "records": [phase_to_json(step) for step in self.records],
            "order": list(self.state.order[0]),
            "last": self._last.tolist(),
            "seconds": time.perf_counter() - self._started,
        }

    def held(self) -> Iterator[tuple[str, Stateful]]:
        yield "selected", self.state.selected
        yield "blocked", self.state.blocked
        for number, member in enumerate(self.members):
            for name, held in member.held():
                yield f"{number}.{name}", held

    def load_state_dict(self, about: dict[str, Any], arrays: Arrays) -> None:
        """Be as the walk was that said so."""
        load_state(self.held(), arrays)
        self.steps = about["steps"]
        self.records = [phase_from_json(step) for step in about["records"]]
        self.state.order[0][:] = about["order"]
        self._last = np.array(about["last"])
        self._started = time.perf_counter() - about["seconds"]

    def trace(self) -> Trace:
        return Trace(list(self.state.order[0]), self.state.rest(0, self._last), self.records)


def to_device(values: Any, device: torch.device) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)
