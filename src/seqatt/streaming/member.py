"""One of the networks that train over files and choose together, with its gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqatt.data.files.file_data import FileData
from seqatt.distributed.process_group import ProcessGroup
from seqatt.streaming.allreduce import RankMeans, distributed_train_step
from seqatt.streaming.device_transfer import DeviceBatch
from seqatt.streaming.network import EmbeddingMLP
from seqatt.streaming.options import StreamTrainingOptions
from seqatt.streaming.snapshot import Stateful, state_of
from seqatt.training.backend.cuda_graphs import GraphRecorder
from seqatt.training.batch import Batch as Seen
from seqatt.training.gates.gate import Gate
from seqatt.training.selection_state import SelectionState

MakeGate = Callable[[FileData, EmbeddingMLP, Any, torch.Generator, RankMeans], Gate]


class StreamedMember:
    """A network and a gate on it, which look at the ``state`` that all members share.

    ``beside`` is a member that works before it, on the same threads; ``most`` rows are a rank's in a step.
    """

    def __init__(
        self,
        stream: FileData,
        seed: int,
        options: StreamTrainingOptions,
        state: SelectionState,
        make_gate: MakeGate,
        team: ProcessGroup,
        most: int,
        beside: StreamedMember | None = None,
    ) -> None:
        self._state, self._team, self._most = state, team, most
        device = state.selected.device
        self.network: EmbeddingMLP = EmbeddingMLP(
            stream,
            options.hidden,
            options.activation,
            options.learning_rate,
            options.embedding,
            seed,
            device,
            beside=None if beside is None else beside.network,
        )
        self._means = RankMeans(team)
        draws = torch.Generator().manual_seed(seed + 1)
        self.gate = make_gate(stream, self.network, options, draws, self._means)
        # Ranks talk to each other within a step, which no recording holds.
        self._recorder = GraphRecorder(device, enabled=self.gate.graph_capturable and team.size == 1)
        self._everything = torch.ones(stream.features, device=device)
        self.loss = torch.zeros((), device=device)

    def enter(self) -> None:
        self.gate.reset()
        self.gate.refresh(self._state)
        self.loss.zero_()

    def step(self, rows: DeviceBatch, total: int, attended: bool, replayed: bool) -> None:
        """One step, of which all ranks have ``total`` rows; an accelerator may replay one it has seen."""
        work = partial(self._train, rows, total, attended)
        if replayed:
            self._recorder.run(attended, len(rows.weights), work)
        else:
            work()

    @torch.no_grad()
    def _train(self, rows: DeviceBatch, total: int, attended: bool) -> None:
        x = self.network.open(rows.numbers, rows.places)
        self._means.total = total
        if attended:
            self.gate.observe(Seen(x.unsqueeze(0), rows.target, rows.weights), self._state)
        weights = self.gate.weights[0] if attended else self._everything
        if self._team.size == 1:
            loss, grad = self.network.train(x, rows.target, rows.weights, weights)
        else:
            step = x, rows.target, rows.weights, weights
            loss, grad = distributed_train_step(self._team, self.network, step, total, self._most)
        self.loss += loss
        if attended:
            self.gate.update(grad.unsqueeze(0), self._state)

    def scores(self) -> Tensor:
        """What its gates say on all ranks, on the average (d,)."""
        judged = self.gate.scores().clone()
        self._team.add_up([judged])
        return judged.double().div_(self._team.size)[0]

    def held(self) -> Iterator[tuple[str, Stateful]]:
        """All that a later step depends on."""
        yield "loss", self.loss
        yield from state_of(self.network, self.gate)


def member_seed(seed: int, member: int) -> int:
    """The first has the trial's own."""
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0]) if member else seed
