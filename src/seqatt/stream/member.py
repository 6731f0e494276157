"""One of the networks that train over files and choose together, with its gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqatt.neural.capture import Recorder
from seqatt.neural.gates.gate import Gate
from seqatt.neural.rows import Batch as Seen
from seqatt.neural.state import State
from seqatt.stream.carrier import Arrived
from seqatt.stream.exchange import Means, train_together
from seqatt.stream.network import Network
from seqatt.stream.options import TrainingOnFiles
from seqatt.stream.ranks import Team
from seqatt.stream.snapshot import Held, lasting
from seqatt.stream.source import Stream

MakeGate = Callable[[Stream, Network, Any, torch.Generator, Means], Gate]


class Member:
    """A network and a gate on it, which look at the ``state`` that all members share.

    ``beside`` is a member that works before it, on the same threads; ``most`` rows are a rank's in a step.
    """

    def __init__(
        self,
        stream: Stream,
        seed: int,
        options: TrainingOnFiles,
        state: State,
        make_gate: MakeGate,
        team: Team,
        most: int,
        beside: Member | None = None,
    ) -> None:
        self._state, self._team, self._most = state, team, most
        device = state.kept.device
        self.network: Network = Network(
            stream,
            options.hidden,
            options.activation,
            options.learning_rate,
            options.embedding,
            seed,
            device,
            beside=None if beside is None else beside.network,
        )
        self._means = Means(team)
        draws = torch.Generator().manual_seed(seed + 1)
        self.gate = make_gate(stream, self.network, options, draws, self._means)
        # Ranks talk to each other within a step, which no recording holds.
        self._recorder = Recorder(device, enabled=self.gate.captured and team.size == 1)
        self._everything = torch.ones(stream.features, device=device)
        self.loss = torch.zeros((), device=device)

    def enter(self) -> None:
        self.gate.reset()
        self.gate.refresh(self._state)
        self.loss.zero_()

    def step(self, rows: Arrived, total: int, attended: bool, replayed: bool) -> None:
        """One step, of which all ranks have ``total`` rows; an accelerator may replay one it has seen."""
        work = partial(self._train, rows, total, attended)
        if replayed:
            self._recorder.run(attended, len(rows.weights), work)
        else:
            work()

    @torch.no_grad()
    def _train(self, rows: Arrived, total: int, attended: bool) -> None:
        x = self.network.open(rows.numbers, rows.places)
        self._means.total = total
        if attended:
            self.gate.look(Seen(x.unsqueeze(0), rows.target, rows.weights), self._state)
        weights = self.gate.weights[0] if attended else self._everything
        if self._team.size == 1:
            loss, grad = self.network.train(x, rows.target, rows.weights, weights)
        else:
            step = x, rows.target, rows.weights, weights
            loss, grad = train_together(self._team, self.network, step, total, self._most)
        self.loss += loss
        if attended:
            self.gate.learn(grad.unsqueeze(0), self._state)

    def scores(self) -> Tensor:
        """What its gates say on all ranks, on the average (d,)."""
        judged = self.gate.scores().clone()
        self._team.add_up([judged])
        return judged.double().div_(self._team.size)[0]

    def held(self) -> Iterator[tuple[str, Held]]:
        """All that a later step depends on."""
        yield "loss", self.loss
        yield from lasting(self.network, self.gate)


def seed_of(seed: int, member: int) -> int:
    """The first has the trial's own."""
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0]) if member else seed
