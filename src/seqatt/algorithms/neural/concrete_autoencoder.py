"""The concrete autoencoder (Abid, Balin and Zou, ICML 2019).

The inputs of a network are k nodes, each a mixture of the features with the weights
``softmax((logits + Gumbel noise) / temperature)``. The network predicts the target (or, with ``reconstruct``, the table
itself). As the temperature falls exponentially, every mixture becomes a single feature. For features of several
columns, a node has one channel per column of the widest feature.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.algorithms.neural.custom_trainer import CustomTrainer, make_loader, register_custom
from seqatt.algorithms.neural.options import AutoencoderOptions
from seqatt.data.tables.table_data import TableData
from seqatt.losses.table import LOSSES
from seqatt.trace import PhaseRecord, Trace
from seqatt.training.backend.adam import Adam
from seqatt.training.backend.cuda_graphs import GraphRecorder
from seqatt.training.ensemble import NOISE, WEIGHTS, Member
from seqatt.training.loaders.batch import Batch, DeviceTable
from seqatt.training.loop import NonFiniteLoss
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.backpropagation import init_linear
from seqatt.training.models.layers import MLPLayers

NOISE_OFFSETS = 1 << 20  # positions in the bank of Gumbel noise at which the noise of a step may start
LOSS_INTERVAL = 8  # steps between batches whose loss is recorded
# Learning rate of the logits, as a multiple of the option: they move further than weights.
LOGIT_LR_FACTOR = 3.0


class ConcreteAutoencoder(CustomTrainer):
    """T networks, each with k nodes as inputs."""

    def __init__(
        self,
        data: TableData,
        table: DeviceTable,
        k: int,
        batch_size: int,
        steps: int,
        seeds: Sequence[int],
        options: AutoencoderOptions,
        device: torch.device,
    ) -> None:
        self._data, self._k, self._steps, self._options = data, k, steps, options
        nodes = min(k, int((~data.constant).sum()))  # constant features fill up the selection to k
        columns, features, trials = len(data.feature_of), data.features, len(seeds)
        self._feature_of = torch.from_numpy(data.feature_of).to(device)
        channels = _channels(data.feature_of, features)
        one_hot = np.eye(channels.max() + 1, dtype=np.float32)[channels].T  # (p, c)
        self._channels = torch.from_numpy(one_hot).to(device)
        width = nodes * len(self._channels)
        loss, outputs = data.target.loss, data.target.outputs
        if options.reconstruct:
            loss, outputs = LOSSES["regression"], columns
        shape = MLPShape(width, options.hidden, outputs, options.activation)
        members = [Member(seed, 0) for seed in seeds]
        generators = [member.generator(WEIGHTS) for member in members]
        first_layer, bias = init_linear(shape.sizes[0][0], width, generators)
        spread = np.sqrt(2 / (nodes + features))  # Glorot initialisation, as in the authors' code
        logits = [torch.randn(nodes, features, generator=generator) * spread for generator in generators]
        self.logits = torch.stack(logits).to(device)
        self._first_layer = first_layer.to(device)
        # The first matrix is that of the columns: the product of the first layer and the nodes' weights.
        column_shape = replace(shape, columns=columns)
        self.layers = MLPLayers(column_shape, loss, generators, device)
        self.layers.reset_parameters(bias)
        lr = torch.tensor(options.learning_rate, device=device)
        self._adam = Adam([self._first_layer, *self.layers.params], lr)
        self._logit_adam = Adam([self.logits], lr * LOGIT_LR_FACTOR)
        self._blocked = torch.from_numpy(np.where(data.constant, -np.inf, 0.0).astype(np.float32)).to(device)
        self._loader = make_loader(table, batch_size, seeds)
        capturable = self._loader.graph_capturable and not self.layers.loss_function.coupled
        self._recorder = GraphRecorder(device, enabled=capturable)
        first, last = options.temperatures
        temperatures = first * (last / first) ** (np.arange(steps) / max(steps - 1, 1))
        self._temperatures = torch.from_numpy(temperatures.astype(np.float32)).to(device)
        # A replayed CUDA graph draws no random numbers: a step's noise is a random slice of one bank.
        uniform = torch.rand(nodes * features + NOISE_OFFSETS, generator=torch.Generator().manual_seed(0))
        self._noise_bank = -torch.log(-torch.log(uniform.clamp(1e-7, 1 - 1e-7))).to(device)
        self._cells = torch.arange(nodes * features, device=device)
        self._generators = [member.generator(NOISE) for member in members]
        self._offsets = torch.zeros(self._loader.chunk_steps, trials, dtype=torch.int64, device=device)
        self._done = torch.zeros(1, dtype=torch.int64, device=device)
        self._losses = torch.zeros(trials, device=device)
        self._recorded_losses = 0
        self._started = time.perf_counter()

    def is_thread_invariant(self) -> bool:
        return self.layers.is_thread_invariant(self._loader.batch_size)

    def train(self) -> Iterator[int]:
        done = 0
        while done < self._steps:
            chunk = min(self._loader.chunk_steps, self._steps - done)
            self._loader.load(chunk)
            offsets = [torch.randint(NOISE_OFFSETS, (chunk,), generator=g) for g in self._generators]
            self._offsets[:chunk] = torch.stack(offsets, 1)
            if not self._recorder.replay("step", chunk):
                with self._recorder.capture("step", chunk):
                    self._train_chunk(chunk)
            done += chunk
            self._recorded_losses += -(-chunk // LOSS_INTERVAL)
            if not (self._losses.is_cuda and done < self._steps) and not bool(self._losses.isfinite().all()):
                raise NonFiniteLoss
            yield chunk

    def _train_chunk(self, steps: int) -> None:
        for i in range(steps):
            batch = self._loader.batch(i)
            if self._options.reconstruct:
                batch = Batch(batch.x, batch.x, batch.w)
            temperature = self._temperatures.index_select(0, self._done)
            noise = self._noise_bank[self._offsets[i].unsqueeze(1) + self._cells].view_as(self.logits)
            mixture = torch.softmax((self.logits + noise + self._blocked) / temperature, 2)
            node_inputs = self._to_columns(mixture)
            self.layers.gradients(self._first_layer @ node_inputs, batch)
            grad = self.layers.first_grad
            mixture_grad = self._to_features(self._first_layer.mT @ grad)
            mean_grad = (mixture * mixture_grad).sum(2, keepdim=True)
            self._logit_adam.step([mixture * (mixture_grad - mean_grad) / temperature])
            self._adam.step([grad @ node_inputs.mT, *self.layers.grads])
            self._done += 1
            if i % LOSS_INTERVAL == 0:
                self._losses += self.layers.last_loss(batch)

    def _to_columns(self, mixture: Tensor) -> Tensor:
        """From weights of features (T, k, d) to weights of columns (T, k * p, c), for p channels per node."""
        if len(self._channels) == 1:
            return mixture
        return (mixture.index_select(2, self._feature_of).unsqueeze(2) * self._channels).flatten(1, 2)

    def _to_features(self, grad: Tensor) -> Tensor:
        """The gradient (T, k, d) with respect to a mixture, from that with respect to ``_to_columns`` of it."""
        if len(self._channels) == 1:
            return grad
        by_node = grad.view(*self.logits.shape[:2], len(self._channels), -1)
        columns = (by_node * self._channels).sum(2)
        return torch.zeros_like(self.logits).index_add_(2, self._feature_of, columns)

    def traces(self) -> list[Trace]:
        seconds = time.perf_counter() - self._started
        log_probabilities = torch.log_softmax(self.logits.double() + self._blocked, 2).cpu().numpy()
        losses = (self._losses / max(self._recorded_losses, 1)).tolist()
        traces = []
        for node_probabilities, loss in zip(log_probabilities, losses, strict=True):
            order = assign_features(node_probabilities)
            best = node_probabilities.max(0)
            by_probability = np.lexsort((-best, self._data.constant))
            ranked = order + [int(f) for f in by_probability if int(f) not in set(order)]
            record = PhaseRecord(self._steps, "all", loss, seconds, ranked[: self._k], scores=np.exp(best))
            traces.append(Trace(ranked[: self._k], ranked[self._k :], [record]))
        return traces


def assign_features(log_probabilities: NDArray[np.float64]) -> list[int]:
    """One feature per node from log-probabilities (k, d), no feature twice; greedily, the most probable pair first.

    If several nodes prefer the same feature, the node of highest probability gets it, and the others the best of
    those that are left.
    """
    nodes, features = log_probabilities.shape
    free_nodes, taken = set(range(nodes)), set()
    order = []
    for cell in np.argsort(-log_probabilities, axis=None, kind="stable"):
        node, feature = divmod(int(cell), features)
        if node in free_nodes and feature not in taken:
            free_nodes.remove(node)
            taken.add(feature)
            order.append(feature)
            if not free_nodes:
                break
    return order


def _channels(feature_of: NDArray[np.int64], features: int) -> NDArray[np.int64]:
    """The position (c,) of each column among the columns of its feature."""
    counts = np.bincount(feature_of, minlength=features)
    return np.arange(len(feature_of)) - (counts.cumsum() - counts)[feature_of]


register_custom("concrete_autoencoder", ConcreteAutoencoder)
