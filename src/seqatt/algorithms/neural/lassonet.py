"""LassoNet (Lemhadri, Ruan, Abraham and Tibshirani, JMLR 2021).

A network with a skip connection from the inputs to the outputs. The first-layer weights of feature j are bounded by
its skip weights, ``|W_j|_inf <= M |skip_j|_2``, and the sum of the norms ``|skip_j|_2`` is penalised: a feature whose
skip weights are zero is removed from the network. Training starts without a penalty, which then grows until few
features are left. The features that stay longest are selected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.algorithms.neural.custom_trainer import CustomTrainer, make_loader, register_custom
from seqatt.algorithms.neural.hier_prox import hier_prox
from seqatt.algorithms.neural.options import LassoNetOptions
from seqatt.data.tables.table_data import TableData
from seqatt.trace import PhaseRecord, Trace
from seqatt.training.backend import torch_private
from seqatt.training.backend.adam import Adam
from seqatt.training.backend.cuda_graphs import GraphRecorder
from seqatt.training.ensemble import WEIGHTS, Member
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.loaders.batch import Batch, DeviceTable
from seqatt.training.loop import NonFiniteLoss
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.backpropagation import init_linear
from seqatt.training.models.layers import MLPLayers

DENSE_SHARE = 0.1  # share of the steps without a penalty; in the others, the path, it grows
K_SHARE = 0.9  # of the path, after which at most k features should be left
INTERVAL = 8  # steps between two changes of the penalty, and between batches whose loss is recorded
START_PENALTY = 1e-4  # first penalty, as a share of the smallest one at which every feature stays at zero
MAX_GROWTH = 1.1, 1.02  # factors by which the penalty grows at most: while all features are active, and later
MOMENTUM = 0.98  # on the path: batches are small, and the constraint adds up the noise of all hidden units
LR_FACTOR = 3  # learning rate on the path, as a multiple of the option
MAX_LR = 2  # learning rate on the path times the largest eigenvalue of the covariance: larger steps overshoot
# A gradient is clipped to this many times the moving average of its norm: a single outlier row can make it huge.
MAX_GRADIENT, NORM_DECAY = 5, 0.99


class LassoNetPath(CustomTrainer):
    """T networks, trained along the path of a growing penalty."""

    def __init__(
        self,
        data: TableData,
        table: DeviceTable,
        k: int,
        batch_size: int,
        steps: int,
        seeds: Sequence[int],
        options: LassoNetOptions,
        device: torch.device,
    ) -> None:
        target, columns = data.target, len(data.feature_of)
        shape = MLPShape(columns, options.hidden, target.outputs, options.activation)
        generators = [Member(seed, 0).generator(WEIGHTS) for seed in seeds]
        hidden = options.hidden[0]
        layer, bias = init_linear(hidden, columns, generators)
        skip, _ = init_linear(target.outputs, columns, generators)
        self.first = torch.cat([layer, skip], 1).to(device)  # (T, h + o, c): first layer and skip connection
        self.layers = MLPLayers(shape, target.loss, generators, device, skip=True)
        self.layers.reset_parameters(bias)
        self._layer, self._skip = self.first[:, :hidden], self.first[:, hidden:]
        self._lr = min(LR_FACTOR * options.learning_rate, MAX_LR / _largest_eigenvalue(table))
        self._params = [self.first, *self.layers.params]
        self._adam = Adam(self._params, torch.tensor(options.learning_rate, device=device))
        self._momentum = [torch.zeros_like(param) for param in self._params]
        self._loader = make_loader(table, batch_size, seeds)
        capturable = self._loader.graph_capturable and not self.layers.loss_function.coupled
        self._recorder = GraphRecorder(device, enabled=capturable)
        self._data = data
        self._k = k
        self._dense_steps = min(steps - 1, round(DENSE_SHARE * steps)) if steps > 1 else 0
        self._path_steps = steps - self._dense_steps
        self._columns = FeatureColumns(torch.from_numpy(data.feature_of).to(device), data.features)
        self._bound = options.hierarchy
        trials, features = len(seeds), data.features
        self._penalty = torch.zeros(trials, 1, device=device)
        self._done = torch.zeros(1, dtype=torch.int64, device=device)  # steps of the path
        self._skip_norms = torch.zeros(trials, features, device=device)
        self._last_step = torch.zeros_like(self._skip_norms)  # the last step at which a feature was active
        self._last_penalty = torch.zeros_like(self._skip_norms)  # the penalty at that step
        self._losses = torch.zeros(trials, device=device)
        self._gradient_norm = torch.zeros(trials, device=device)  # a moving average
        self._varying = int((~data.constant).sum())
        target_counts = _target_counts(self._varying, k, self._path_steps)
        self._target_counts = torch.from_numpy(target_counts).to(device)
        self._records: list[list[PhaseRecord]] = [[] for _ in seeds]

    def is_thread_invariant(self) -> bool:
        return self.layers.is_thread_invariant(self._loader.batch_size)

    def train(self) -> Iterator[int]:
        yield from self._train_stage("dense", self._dense_steps, self._train_dense)
        self._start_path()
        yield from self._train_stage("path", self._path_steps, self._train_path)

    def _train_stage(self, name: str, steps: int, train_chunk: Callable[[int], None]) -> Iterator[int]:
        started, done, recorded_losses = time.perf_counter(), 0, 0
        self._losses.zero_()
        while done < steps:
            chunk = min(self._loader.chunk_steps, steps - done)
            self._loader.load(chunk)
            if not self._recorder.replay(name, chunk):
                with self._recorder.capture(name, chunk):
                    train_chunk(chunk)
            done += chunk
            recorded_losses += -(-chunk // INTERVAL)
            if not (self._losses.is_cuda and done < steps) and not bool(torch.isfinite(self._losses).all()):
                raise NonFiniteLoss
            yield chunk
        seconds = time.perf_counter() - started
        losses = (self._losses / max(recorded_losses, 1)).tolist()
        for records, loss in zip(self._records, losses, strict=True):
            records.append(PhaseRecord(steps, "all", loss, seconds))

    def _train_dense(self, steps: int) -> None:
        for i in range(steps):
            batch = self._loader.batch(i)
            self._adam.step(self._gradients(self.first, batch))
            if i % INTERVAL == 0:
                self._losses += self.layers.last_loss(batch)

    def _start_path(self) -> None:
        """Set the first penalty, and the norms of the gradient and of the skip weights, before the path."""
        self._loader.load(1)
        self._gradient_norm.copy_(_norms(self._gradients(self.first, self._loader.batch(0))))
        grad, *_ = self._gradients(torch.zeros_like(self.first), self._loader.batch(0))
        hidden = self._layer.shape[1]
        entry_penalty = self._columns.to_features(grad[:, hidden:].square().sum(1)).sqrt()
        entry_penalty += self._bound * self._columns.to_features(grad[:, :hidden].abs().sum(1))
        self._penalty.copy_(START_PENALTY * entry_penalty.amax(1, keepdim=True))
        self._skip_norms.copy_(self._columns.to_features(self._skip.square().sum(1)).sqrt())

    def _train_path(self, steps: int) -> None:
        for i in range(steps):
            batch = self._loader.batch(i)
            torch_private.foreach_mul_(self._momentum, MOMENTUM)
            torch_private.foreach_add_(self._momentum, self._clip(self._gradients(self.first, batch)))
            torch_private.foreach_add_(self._params, self._momentum, alpha=-self._lr)
            penalty = (self._penalty * (self._lr / (1 - MOMENTUM))).expand_as(self._skip_norms)
            self._skip_norms.copy_(
                hier_prox(self._skip, self._layer, penalty, self._bound, self._columns, self._skip_norms)
            )
            self._done += 1
            if i % INTERVAL == 0:
                self._update_penalty()
                self._losses += self.layers.last_loss(batch)

    def _gradients(self, first: Tensor, batch: Batch) -> list[Tensor]:
        """The gradients of the first matrix and of the other parameters."""
        self.layers.gradients(first, batch)
        return [self.layers.first_grad, *self.layers.grads]

    def _clip(self, grads: list[Tensor]) -> list[Tensor]:
        """Clip the gradient of each trial to ``MAX_GRADIENT`` times the moving average of its norm."""
        norms = _norms(grads)
        factor = (MAX_GRADIENT * self._gradient_norm / norms.clamp_min(1e-30)).clamp_max(1)
        self._gradient_norm.lerp_(norms * factor, 1 - NORM_DECAY)
        return [grad * factor.view(-1, *[1] * (grad.dim() - 1)) for grad in grads]

    def _update_penalty(self) -> None:
        """Record which features are active, and let the penalty grow by the ratio of their number to its target."""
        active = self._skip_norms > 0
        self._last_step.copy_(torch.where(active, self._done.float(), self._last_step))
        self._last_penalty.copy_(torch.where(active, self._penalty, self._last_penalty))
        count = active.sum(1, keepdim=True)
        target = self._target_counts.index_select(0, self._done - 1)
        max_growth = MAX_GROWTH[1] + (MAX_GROWTH[0] - MAX_GROWTH[1]) * (count >= self._varying)
        self._penalty.mul_((count / target).clamp_min(1).minimum(max_growth))

    def traces(self) -> list[Trace]:
        traces = []
        for trial, records in enumerate(self._records):
            last_step, last_penalty, norms = (
                tensor[trial].double().cpu().numpy()
                for tensor in (self._last_step, self._last_penalty, self._skip_norms)
            )
            ranked = [int(f) for f in np.lexsort((-norms, -last_step, self._data.constant))]
            if records:
                records[-1].taken, records[-1].scores = ranked[: self._k], last_penalty
            traces.append(Trace(ranked[: self._k], ranked[self._k :], records))
        return traces


def _norms(grads: list[Tensor]) -> Tensor:
    """The norm (T,) of each trial's gradient."""
    return torch.stack([grad.square().flatten(1).sum(1) for grad in grads]).sum(0).sqrt()


def _largest_eigenvalue(table: DeviceTable) -> float:
    """The largest eigenvalue of the columns' covariance on some rows, by a few rounds of power iteration."""
    rows = torch.linspace(0, table.count - 1, min(table.count, 256)).long()
    x = table.gather(rows.to(table.device))
    direction = torch.ones(x.shape[1], device=x.device) + x.sum(0)
    for _ in range(20):
        direction = x.T @ (x @ (direction / direction.norm().clamp_min(1e-30))) / len(x)
    return max(float(direction.norm()), 1e-6)


def _target_counts(features: int, k: int, steps: int) -> NDArray[np.float32]:
    """How many features should be active after each step of the path (steps,).

    The number falls from all features to k, then to k / 4, which ranks the selected ones.
    """
    share = np.arange(1, steps + 1) / steps
    counts = np.log([features, min(k, features), max(1, min(k, features) / 4)])
    return np.exp(np.interp(share, [0, K_SHARE, 1], counts)).astype(np.float32)


register_custom("lassonet", LassoNetPath)
