"""One training over files: phases follow the rows, so each has rows of its own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqatt.neural.engine import Diverged
from seqatt.neural.gates.gate import Gate
from seqatt.neural.rows import Batch as Seen
from seqatt.neural.schedule import Phase, Schedule
from seqatt.neural.state import State
from seqatt.neural.threads import threads_for
from seqatt.selection import Step, Trace
from seqatt.stream import batches
from seqatt.stream.batches import Batch
from seqatt.stream.network import Network
from seqatt.stream.options import TrainingOnFiles
from seqatt.stream.rows import Rows
from seqatt.stream.source import Stream

STEPS_A_CHOICE, STEPS = 32, 400  # that a batch size is chosen for, and for all choices together
FEW_STEPS = 20  # a choice from fewer is told of
SMALLEST, LARGEST = 64, 4096  # rows in a batch

MakeGate = Callable[[Stream, Network, Any, torch.Generator], Gate]  # of a stream, its network and options


def batch_size_for(stream: Stream, schedule: Schedule, options: TrainingOnFiles) -> int:
    """What the user says, else the power of two that gives every phase and the whole enough steps."""
    if options.batch_size is not None:
        return options.batch_size
    rows = options.passes * stream.expected / max(STEPS_A_CHOICE * len(schedule), STEPS)
    return int(min(max(SMALLEST, 1 << max(0, int(rows)).bit_length() >> 1), LARGEST))


def settings(stream: Stream, schedule: Schedule, options: TrainingOnFiles) -> dict[str, Any]:
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
            f"every choice comes from about {steps:.0f} steps; more passes over the rows make it surer",
            stacklevel=2,
        )
    return options.record() | {"batch_size": size, "phases": len(schedule)}


def choose(
    stream: Stream,
    seed: int,
    options: TrainingOnFiles,
    device: torch.device,
    schedule: Schedule,
    make_gate: MakeGate,
    coming: Iterable[Batch],
    advance: Callable[[int], None],
) -> Trace:
    """One trial, on the batches that are coming; ``advance`` hears of rows done.

    The host looks at the device at the ends of phases only.
    """
    coming = iter(coming)
    total = sum(phase.steps for phase in schedule)
    ends = [end / total for end in accumulate(phase.steps for phase in schedule)]
    seen = 0
    work = batch_size_for(stream, schedule, options) * stream.features * options.hidden[0]
    with threads_for(work, device):
        walk = Walk(stream, seed, options, device, make_gate)
        for phase, end in zip(schedule, ends, strict=True):
            walk.enter()
            for batch in coming:
                walk.step(phase, batch.rows)
                seen += batch.rows.count
                advance(batch.rows.count)
                if seen >= end * options.passes * batch.expected and end < 1:
                    break
            walk.leave(phase)
    trace = walk.trace()
    trace.settings["rows"] = seen // options.passes
    return trace


def batches_of(stream: Stream, options: TrainingOnFiles, size: int, seed: int) -> Iterator[Batch]:
    """All passes, each in an order of its own; once one is over, the number of rows is known."""
    known: int | None = None
    for number in range(options.passes):
        mixing = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        count = 0
        for batch in batches.one_pass(stream.files.parts, stream.read, size, options.buffer, mixing):
            count += batch.rows.count
            yield batch if known is None else Batch(batch.rows, known)
        known = count


class Walk:
    """A network, its gate and what was chosen."""

    def __init__(
        self,
        stream: Stream,
        seed: int,
        options: TrainingOnFiles,
        device: torch.device,
        make_gate: MakeGate,
    ) -> None:
        self.device = device
        self.state = State(1, stream.constant, device)
        self.network = Network(
            stream, options.hidden, options.activation, options.learning_rate, options.embedding, seed, device
        )
        self.gate = make_gate(stream, self.network, options, torch.Generator().manual_seed(seed + 1))
        self.everything = torch.ones(stream.features, device=device)
        self.loss = torch.zeros((), device=device)
        self.steps = 0
        self.records: list[Step] = []
        self._last = np.zeros(stream.features)
        self._started = time.perf_counter()

    def enter(self) -> None:
        self.gate.reset()
        self.gate.refresh(self.state)
        self.loss.zero_()
        self.steps = 0
        self._started = time.perf_counter()

    def step(self, phase: Phase, rows: Rows) -> None:
        attended = phase.sees == "attended"
        numbers, places, target, row_weights = (
            send(values, self.device) for values in (rows.numbers, rows.places, rows.target, rows.weights)
        )
        x = self.network.open(numbers, places)
        if attended:
            self.gate.look(Seen(x.detach().unsqueeze(0), target, row_weights), self.state)
        weights = self.gate.weights[0] if attended else self.everything
        loss, grad = self.network.train(x, target, row_weights, weights)
        self.loss += loss
        self.steps += 1
        if attended:
            self.gate.learn(grad.unsqueeze(0), self.state)

    def leave(self, phase: Phase) -> None:
        loss = float(self.loss) / max(1, self.steps)
        scores = self.gate.scores().double().cpu().numpy()
        if not (np.isfinite(loss) and np.isfinite(scores).all()):
            raise Diverged([self.trace()])
        if phase.take and not self.steps:
            raise ValueError(
                f"k: the rows ended after {len(self.state.order[0])} choices; use a smaller batch_size, more "
                "passes or a smaller k"
            )
        step = Step(self.steps, phase.sees, loss, time.perf_counter() - self._started)
        if phase.take:
            step.taken = self.state.take(scores, phase.take)[0]
            step.scores = self._last = scores[0]
        self.records.append(step)

    def trace(self) -> Trace:
        return Trace(list(self.state.order[0]), self.state.rest(0, self._last), self.records)


def send(values: Any, device: torch.device) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)
