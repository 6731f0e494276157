"""One member of an ensemble that trains over files: a network and its gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
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
from seqatt.streaming.snapshot import Stateful, named_state
from seqatt.training.backend.cuda_graphs import GraphRecorder
from seqatt.training.batch import Batch
from seqatt.training.gates.gate import Gate
from seqatt.training.selection_state import SelectionState

MakeGate = Callable[[FileData, EmbeddingMLP, Any, torch.Generator, RankMeans], Gate]


class StreamedMember:
    """A network and its gate; all members share one selection ``state``.

    A member uses the threads of ``first_member``, because members train one after another. ``max_rows`` is the
    largest number of rows per step on this rank.
    """

    def __init__(
        self,
        data: FileData,
        seed: int,
        options: StreamTrainingOptions,
        state: SelectionState,
        make_gate: MakeGate,
        group: ProcessGroup,
        max_rows: int,
        first_member: StreamedMember | None = None,
    ) -> None:
        self._state, self._group, self._max_rows = state, group, max_rows
        device = state.selected.device
        self.network: EmbeddingMLP = EmbeddingMLP(
            data,
            options.hidden,
            options.activation,
            options.learning_rate,
            options.embedding_dim,
            seed,
            device,
            share_threads_with=None if first_member is None else first_member.network,
        )
        self._means = RankMeans(group)
        generator = torch.Generator().manual_seed(seed + 1)
        self.gate = make_gate(data, self.network, options, generator, self._means)
        # With several ranks a step contains collectives, which no CUDA graph records.
        self._recorder = GraphRecorder(device, enabled=self.gate.graph_capturable and group.size == 1)
        self._all_features = torch.ones(data.features, device=device)
        self.loss = torch.zeros((), device=device)

    def start_phase(self) -> None:
        """Reset the gate and the summed loss."""
        self.gate.reset()
        self.gate.refresh(self._state)
        self.loss.zero_()

    def step(self, rows: DeviceBatch, total: int, attended: bool, replayed: bool) -> None:
        """One step on these of the ``total`` rows of all ranks; ``replayed`` steps are CUDA graphs on a GPU."""
        if replayed and self._recorder.replay(attended, len(rows.weights)):
            return
        with self._recorder.capture(attended, len(rows.weights)) if replayed else nullcontext():
            self._train(rows, total, attended)

    @torch.no_grad()
    def _train(self, rows: DeviceBatch, total: int, attended: bool) -> None:
        x = self.network.gather_inputs(rows.numbers, rows.codes)
        self._means.total = total
        if attended:
            self.gate.observe(Batch(x.unsqueeze(0), rows.target, rows.weights), self._state)
        weights = self.gate.weights[0] if attended else self._all_features
        if self._group.size == 1:
            loss, grad = self.network.train_step(x, rows.target, rows.weights, weights)
        else:
            batch = x, rows.target, rows.weights, weights
            loss, grad = distributed_train_step(self._group, self.network, batch, total, self._max_rows)
        self.loss += loss
        if attended:
            self.gate.update(grad.unsqueeze(0), self._state)

    def scores(self) -> Tensor:
        """The gate's scores (d,), averaged over ranks."""
        scores = self.gate.scores().clone()
        self._group.allreduce([scores])
        return scores.double().div_(self._group.size)[0]

    def named_state(self) -> Iterator[tuple[str, Stateful]]:
        """Everything that later steps depend on, by name."""
        yield "loss", self.loss
        yield from named_state(self.network, self.gate)


def member_seed(seed: int, member: int) -> int:
    """The seed of one member; the first member has that of the trial."""
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0]) if member else seed
