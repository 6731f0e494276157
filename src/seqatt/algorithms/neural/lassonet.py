"""LassoNet (Lemhadri, Ruan, Abraham and Tibshirani, JMLR 2021) as a method.

A network with a skip connection from the inputs to the outputs. A feature may enter the hidden layer only as
far as it enters the skip, ``|W_j|_inf <= M |skip_j|``, and the lengths of the skip weights are penalised: a
feature whose skip weights are zero is out. Training starts dense and without a penalty, which then grows
until few features are left. The features that last longest are chosen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.algorithms.neural.custom_trainer import CustomTrainer, make_loader, register_custom
from seqatt.algorithms.neural.hier_prox import hier_prox
from seqatt.data.tables.table_data import TableData
from seqatt.options import option
from seqatt.selection import PhaseRecord, Trace
from seqatt.training.backend import torch_private
from seqatt.training.backend.cuda_graphs import GraphRecorder
from seqatt.training.batch import DeviceTable
from seqatt.training.ensemble import WEIGHTS, Member
from seqatt.training.loop import NonFiniteLoss
from seqatt.training.models.adam import Adam
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp_tail import MLPTail, init_linear
from seqatt.training.options import NetworkOptions
from seqatt.validation import number

DENSE = 0.1  # share of the steps without a penalty
TO_K = 0.9  # share of the path by which no more than k features should be left
EACH = 8  # steps between changes of the penalty
START = 1e-4  # of the penalty at which nothing enters an empty network
FASTEST = 1.1, 1.02  # growth of the penalty: while every feature is in, and later
# Batches are small, and the constraint adds up the noise of all hidden units: it must be averaged away.
MOMENTUM = 0.98
PATH_RATE = 3  # times the dense start's learning rate, but
STEEPEST = 2  # over the largest eigenvalue of the columns' covariance at most: beyond, steps overshoot
STEEP, MEMORY = 5, 0.99  # a gradient so many times the usual length is shortened: one row can be far out


@dataclass(frozen=True)
class LassoNetOptions(NetworkOptions):
    """Options of LassoNet."""

    hierarchy: float = option(
        10.0,
        number(above=0),
        "M of the constraint |W_j| <= M |skip_j|: how far a feature may enter the hidden layer.",
    )

    def check_together(self) -> None:
        super().check_together()
        if not self.hidden:
            raise ValueError("hidden: lassonet needs a hidden layer beside its skip connection; give a width")


class LassoNetPath(CustomTrainer):
    """T networks on their way from dense to sparse."""

    def __init__(
        self,
        data: TableData,
        table: DeviceTable,
        k: int,
        steps: int,
        seeds: Sequence[int],
        options: LassoNetOptions,
        device: torch.device,
    ) -> None:
        target, columns = data.target, len(data.feature_of)
        shape = MLPShape(columns, options.hidden, target.outputs, options.activation)
        generators = [Member(seed, 0).generator(WEIGHTS) for seed in seeds]
        layer, bias = init_linear(options.hidden[0], columns, generators)
        skip, _ = init_linear(target.outputs, columns, generators)
        self.first = torch.cat([layer, skip], 1).to(device)
        self.layers = MLPTail(shape, target.task, bias, generators, device, skip=True)
        self._layer, self._skip = self.first[:, : options.hidden[0]], self.first[:, options.hidden[0] :]
        self._rate = min(PATH_RATE * options.learning_rate, STEEPEST / _largest_eigenvalue(table))
        rate = torch.tensor(options.learning_rate, device=device)
        self._params = [self.first, *self.layers.params]
        self._adam = Adam(self._params, rate)
        self._moments = [torch.zeros_like(param) for param in self._params]
        self._loader = make_loader(data, table, seeds, options)
        self._recorder = GraphRecorder(device, enabled=self._loader.graph_capturable)
        self._data = data
        self._k = k
        self._dense = min(steps - 1, round(DENSE * steps)) if steps > 1 else 0
        self._steps = steps
        plain = np.array_equal(data.feature_of, np.arange(columns))
        self._feature_of = None if plain else torch.from_numpy(data.feature_of).to(device)
        self._bound = options.hierarchy
        trials, features = len(seeds), data.features
        self._lambda = torch.zeros(trials, 1, device=device)
        self._count = torch.zeros(1, dtype=torch.int64, device=device)
        self._lengths = torch.zeros(trials, features, device=device)
        self._alive_at = torch.zeros_like(self._lengths)  # the last step of the path that saw a feature
        self._last_lambda = torch.zeros_like(self._lengths)
        self._losses = torch.zeros(trials, device=device)
        self._usual = torch.zeros(trials, device=device)  # the length of a gradient of late
        self._everyone = int((~data.constant).sum())
        self._goals = torch.from_numpy(_goals(self._everyone, k, steps - self._dense)).to(device)
        self._records: list[list[PhaseRecord]] = [[] for _ in seeds]

    def is_thread_invariant(self) -> bool:
        return self.layers.is_thread_invariant(self._loader.batch_size)

    def train(self) -> Iterator[int]:
        yield from self._stage("dense", self._dense, self._train_dense)
        self._start_path()
        yield from self._stage("path", self._steps - self._dense, self._train_sparse)

    def _stage(self, name: str, steps: int, train: Callable[[int], None]) -> Iterator[int]:
        started, done, looks = time.perf_counter(), 0, 0
        self._losses.zero_()
        while done < steps:
            some = min(self._loader.chunk_steps, steps - done)
            self._loader.load(some)
            if not self._recorder.replay(name, some):
                with self._recorder.capture(name, some):
                    train(some)
            done += some
            looks += -(-some // EACH)
            if not (self._losses.is_cuda and done < steps) and not bool(torch.isfinite(self._losses).all()):
                raise NonFiniteLoss
            yield some
        seconds = time.perf_counter() - started
        for record, loss in zip(self._records, (self._losses / max(looks, 1)).tolist(), strict=True):
            record.append(PhaseRecord(steps, "all", loss, seconds))

    def _train_dense(self, steps: int) -> None:
        for i in range(steps):
            batch = self._loader.batch(i)
            grad, others, out = self.layers.gradients(self.first, batch)
            self._adam.step([grad, *others])
            if i % EACH == 0:
                self._losses += self.layers.loss(out, batch)

    def _start_path(self) -> None:
        """The penalty from which the path grows, and how long a gradient is there."""
        self._loader.load(1)
        grad, others, _ = self.layers.gradients(self.first, self._loader.batch(0))
        self._usual.copy_(_lengths([grad, *others]))
        empty = torch.zeros_like(self.first)
        grad, _, _ = self.layers.gradients(empty, self._loader.batch(0))
        hidden = self._layer.shape[1]
        pull = self._narrow(grad[:, hidden:].square().sum(1)).sqrt()
        pull += self._bound * self._narrow(grad[:, :hidden].abs().sum(1))
        self._lambda.copy_(START * pull.amax(1, keepdim=True))
        self._lengths.copy_(self._narrow(self._skip.square().sum(1)).sqrt())

    def _train_sparse(self, steps: int) -> None:
        for i in range(steps):
            batch = self._loader.batch(i)
            grad, others, out = self.layers.gradients(self.first, batch)
            torch_private.foreach_mul_(self._moments, MOMENTUM)
            torch_private.foreach_add_(self._moments, self._shorten([grad, *others]))
            torch_private.foreach_add_(self._params, self._moments, alpha=-self._rate)
            penalty = (self._lambda * (self._rate / (1 - MOMENTUM))).expand_as(self._lengths)
            found = hier_prox(self._skip, self._layer, penalty, self._bound, self._feature_of, self._lengths)
            self._lengths.copy_(found)
            self._count += 1
            if i % EACH == 0:
                self._look()
                self._losses += self.layers.loss(out, batch)

    def _shorten(self, grads: list[Tensor]) -> list[Tensor]:
        """A gradient beyond all measure, as of a batch with a row far out, is cut to what is bearable."""
        lengths = _lengths(grads)
        factor = (STEEP * self._usual / lengths.clamp_min(1e-30)).clamp_max(1)
        self._usual.lerp_(lengths * factor, 1 - MEMORY)
        return [grad * factor.view(-1, *[1] * (grad.dim() - 1)) for grad in grads]

    def _look(self) -> None:
        """Who is in, and how the penalty goes on: as fast as there are more in than there should be."""
        alive = self._lengths > 0
        self._alive_at.copy_(torch.where(alive, self._count.float(), self._alive_at))
        self._last_lambda.copy_(torch.where(alive, self._lambda, self._last_lambda))
        left = alive.sum(1, keepdim=True)
        goal = self._goals.index_select(0, self._count - 1)
        fastest = FASTEST[1] + (FASTEST[0] - FASTEST[1]) * (left >= self._everyone)
        self._lambda.mul_((left / goal).clamp_min(1).minimum(fastest))

    def traces(self) -> list[Trace]:
        constant = self._data.constant
        found = []
        for trial, record in enumerate(self._records):
            lasted, last, lengths = (
                tensor[trial].double().cpu().numpy()
                for tensor in (self._alive_at, self._last_lambda, self._lengths)
            )
            ranked = [int(f) for f in np.lexsort((-lengths, -lasted, constant))]
            if record:
                record[-1].taken, record[-1].scores = ranked[: self._k], last
            found.append(Trace(ranked[: self._k], ranked[self._k :], record))
        return found

    def _narrow(self, columns: Tensor) -> Tensor:
        """Sums over the columns of each feature."""
        if self._feature_of is None:
            return columns
        return columns.new_zeros(len(columns), len(self._data.names)).index_add_(1, self._feature_of, columns)


def _lengths(grads: list[Tensor]) -> Tensor:
    """The length (T,) of each trial's gradient."""
    return torch.stack([grad.square().flatten(1).sum(1) for grad in grads]).sum(0).sqrt()


def _largest_eigenvalue(rows: DeviceTable) -> float:
    """Of the columns' covariance on some rows, by power iteration: a few rounds are near enough."""
    some = torch.linspace(0, rows.count - 1, min(rows.count, 256)).long()
    x = rows.gather(some.to(rows.device))
    direction = torch.ones(x.shape[1], device=x.device) + x.sum(0)
    for _ in range(20):
        direction = x.T @ (x @ (direction / direction.norm().clamp_min(1e-30))) / len(x)
    return max(float(direction.norm()), 1e-6)


def _goals(features: int, k: int, steps: int) -> NDArray[np.float32]:
    """How many features may be in after each step: down to k, then to a fourth of it for their order."""
    share = np.arange(1, steps + 1) / steps
    corner = np.log([features, min(k, features), max(1, min(k, features) / 4)])
    return np.exp(np.interp(share, [0, TO_K, 1], corner)).astype(np.float32)


register_custom(
    "lassonet",
    LassoNetPath,
    title="LassoNet",
    summary="a network with a skip connection, losing features as a penalty grows",
    options=LassoNetOptions,
)
