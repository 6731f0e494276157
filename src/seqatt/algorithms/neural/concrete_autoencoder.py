"""The concrete autoencoder (Abid, Balin and Zou, ICML 2019) as a method.

k nodes each pass on a mixture of the features, ``softmax((logits + Gumbel noise) / temperature)``, to a
network that predicts the target (or, ``reconstruct``, the table itself). The temperature falls exponentially,
and with it every mixture becomes a single feature. A feature of several columns passes all of them: a node
has as many channels as the widest feature has columns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.algorithms.neural.custom_trainer import CustomTrainer, make_loader, register_custom
from seqatt.data.tables.table_data import TableData
from seqatt.options import option
from seqatt.selection import PhaseRecord, Trace
from seqatt.training.backend.cuda_graphs import GraphRecorder
from seqatt.training.batch import Batch, DeviceTable
from seqatt.training.ensemble import NOISE, WEIGHTS, Member
from seqatt.training.loop import NonFiniteLoss
from seqatt.training.models.adam import Adam
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp_tail import MLPTail, init_linear
from seqatt.training.options import NetworkOptions
from seqatt.validation import boolean

PLACES = 1 << 20  # in the bank of draws, where a step's noise may start
EACH = 8  # steps between batches whose loss is recorded
SELECTOR_RATE = 3.0  # times the learning rate: logits have further to go than weights


def falling_temperatures(name: str, value: Any) -> tuple[float, float]:
    """Check: two positive numbers, the second at most the first."""
    try:
        first, last = (float(temperature) for temperature in value)
    except (TypeError, ValueError):
        first = last = float("nan")
    if not 0 < last <= first < float("inf"):
        raise ValueError(f"{name}: must be two numbers above 0, falling, such as (10, 0.01), got {value!r}")
    return first, last


@dataclass(frozen=True)
class AutoencoderOptions(NetworkOptions):
    """Options of the concrete autoencoder."""

    reconstruct: bool = option(False, boolean(), "Learn to reconstruct the table instead of the target.")
    temperatures: tuple[float, float] = option(
        (10.0, 0.01), falling_temperatures, "First and last temperature of the nodes."
    )


class ConcreteAutoencoder(CustomTrainer):
    """T networks behind k nodes each."""

    def __init__(
        self,
        data: TableData,
        table: DeviceTable,
        k: int,
        steps: int,
        seeds: Sequence[int],
        options: AutoencoderOptions,
        device: torch.device,
    ) -> None:
        self._data, self._k, self._steps, self._options = data, k, steps, options
        nodes = min(k, int((~data.constant).sum()))  # constant features make up the number afterwards
        columns, features, trials = len(data.feature_of), data.features, len(seeds)
        self._feature_of = torch.from_numpy(data.feature_of).to(device)
        slots = _slots(data.feature_of, features)
        self._channels = torch.from_numpy(np.eye(slots.max() + 1, dtype=np.float32)[slots].T).to(device)
        width = nodes * len(self._channels)
        task, outputs = data.target.task, data.target.outputs
        if options.reconstruct:
            task, outputs = "regression", columns
        shape = MLPShape(width, options.hidden, outputs, options.activation)
        members = [Member(seed, 0) for seed in seeds]
        generators = [member.generator(WEIGHTS) for member in members]
        matrix, bias = init_linear(shape.sizes[0][0], width, generators)
        spread = np.sqrt(2 / (nodes + features))  # Glorot's, as in the authors' code
        drawn = [torch.randn(nodes, features, generator=generator) * spread for generator in generators]
        self.logits = torch.stack(drawn).to(device)
        self._matrix = matrix.to(device)
        self.layers = MLPTail(shape, task, bias, generators, device)
        rate = torch.tensor(options.learning_rate, device=device)
        self._adam = Adam([self._matrix, *self.layers.params], rate)
        self._logit_adam = Adam([self.logits], rate * SELECTOR_RATE)
        self._barred = torch.from_numpy(np.where(data.constant, -np.inf, 0.0).astype(np.float32)).to(device)
        self._loader = make_loader(data, table, seeds, options)
        self._recorder = GraphRecorder(device, enabled=self._loader.graph_capturable)
        first, last = options.temperatures
        falling = first * (last / first) ** (np.arange(steps) / max(steps - 1, 1))
        self._temperatures = torch.from_numpy(falling.astype(np.float32)).to(device)
        uniform = torch.rand(nodes * features + PLACES, generator=torch.Generator().manual_seed(0))
        self._bank = -torch.log(-torch.log(uniform.clamp(1e-7, 1 - 1e-7))).to(device)
        self._cells = torch.arange(nodes * features, device=device)
        self._draws = [member.generator(NOISE) for member in members]
        self._places = torch.zeros(self._loader.chunk_steps, trials, dtype=torch.int64, device=device)
        self._done = torch.zeros(1, dtype=torch.int64, device=device)
        self._losses = torch.zeros(trials, device=device)
        self._looks = 0
        self._started = time.perf_counter()

    def is_thread_invariant(self) -> bool:
        return self.layers.is_thread_invariant(self._loader.batch_size)

    def train(self) -> Iterator[int]:
        done = 0
        while done < self._steps:
            some = min(self._loader.chunk_steps, self._steps - done)
            self._loader.load(some)
            places = [torch.randint(PLACES, (some,), generator=draws) for draws in self._draws]
            self._places[:some] = torch.stack(places, 1)
            if not self._recorder.replay("step", some):
                with self._recorder.capture("step", some):
                    self._train(some)
            done += some
            self._looks += -(-some // EACH)
            if not (self._losses.is_cuda and done < self._steps) and not bool(self._losses.isfinite().all()):
                raise NonFiniteLoss
            yield some

    def _train(self, steps: int) -> None:
        for i in range(steps):
            batch = self._loader.batch(i)
            if self._options.reconstruct:
                batch = Batch(batch.x, batch.x, batch.w)
            temperature = self._temperatures.index_select(0, self._done)
            noise = self._bank[self._places[i].unsqueeze(1) + self._cells].view_as(self.logits)
            mixture = torch.softmax((self.logits + noise + self._barred) / temperature, 2)
            passed = self._by_channel(mixture)
            outer, others, out = self.layers.gradients(self._matrix @ passed, batch)
            towards = self._by_feature(self._matrix.mT @ outer)
            inner = (mixture * towards).sum(2, keepdim=True)
            self._logit_adam.step([mixture * (towards - inner) / temperature])
            self._adam.step([outer @ passed.mT, *others])
            self._done += 1
            if i % EACH == 0:
                self._losses += self.layers.loss(out, batch)

    def _by_channel(self, mixture: Tensor) -> Tensor:
        """From features (T, k, d) to the columns each channel of a node passes on (T, k * p, c)."""
        if len(self._channels) == 1:
            return mixture
        return (mixture.index_select(2, self._feature_of).unsqueeze(2) * self._channels).flatten(1, 2)

    def _by_feature(self, grad: Tensor) -> Tensor:
        if len(self._channels) == 1:
            return grad
        by_node = grad.view(*self.logits.shape[:2], len(self._channels), -1)
        columns = (by_node * self._channels).sum(2)
        return torch.zeros_like(self.logits).index_add_(2, self._feature_of, columns)

    def traces(self) -> list[Trace]:
        seconds = time.perf_counter() - self._started
        sure = torch.log_softmax(self.logits.double() + self._barred, 2).cpu().numpy()
        losses = (self._losses / max(self._looks, 1)).tolist()
        found = []
        for chances, loss in zip(sure, losses, strict=True):
            order = assign(chances)
            best = chances.max(0)
            others = np.lexsort((-best, self._data.constant))
            ranked = order + [int(f) for f in others if int(f) not in set(order)]
            step = PhaseRecord(self._steps, "all", loss, seconds, ranked[: self._k], scores=np.exp(best))
            found.append(Trace(ranked[: self._k], ranked[self._k :], [step]))
        return found


def assign(chances: NDArray[np.float64]) -> list[int]:
    """A feature for each node (k, d), no feature twice: the surest pair of all first, then the next.

    Two nodes may settle on one feature. It goes to the node that is surer, and the other one takes the
    best of those that are left.
    """
    nodes, features = chances.shape
    free_nodes, taken = set(range(nodes)), set()
    order = []
    for cell in np.argsort(-chances, axis=None, kind="stable"):
        node, feature = divmod(int(cell), features)
        if node in free_nodes and feature not in taken:
            free_nodes.remove(node)
            taken.add(feature)
            order.append(feature)
            if not free_nodes:
                break
    return order


def _slots(feature_of: NDArray[np.int64], features: int) -> NDArray[np.int64]:
    """Which of its feature's columns each column is."""
    counts = np.bincount(feature_of, minlength=features)
    return np.arange(len(feature_of)) - (counts.cumsum() - counts)[feature_of]


register_custom(
    "concrete_autoencoder",
    ConcreteAutoencoder,
    title="Concrete autoencoder",
    summary="k nodes that each learn to pass one feature on to a network",
    options=AutoencoderOptions,
)
