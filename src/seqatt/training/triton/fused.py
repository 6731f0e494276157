"""A training step in four Triton kernels, for the built-in MLP with one hidden layer on a GPU.

On a GPU the cost of a step of this size is that of its kernel launches. ``MLP`` and ``AttentionGate`` do the
same in plain tensor operations and are the reference implementation, of ``FusedMLP.train_step`` and
``FusedAttention.update`` in particular. They are also used for everything that the kernels do not support: a network
with embeddings is an ``MLP``, of which only the sum of their gradients is a kernel (``FusedEmbeddings``).

The models are an axis of the program grid, so that a model's numbers do not depend on the other models.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
from torch import Tensor

from seqatt.losses.loss import Loss
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.gates.masks import Mask, SoftmaxMask
from seqatt.training.loaders.batch import Batch, IndexedBatch
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.embeddings import Embeddings
from seqatt.training.models.mlp import MLP
from seqatt.training.models.model import GradientPenalty
from seqatt.training.selection_state import FeatureState, SelectionState
from seqatt.training.state import Stateful
from seqatt.training.triton.attention import attend
from seqatt.training.triton.mlp import adam_update, first_layer_sums, loss_and_backward
from seqatt.training.triton.segments import segment_sums

MAX_HIDDEN, MAX_OUTPUTS = 256, 64  # a program holds all hidden units and outputs of a row
MAX_COLUMNS = 4096  # for more columns, cuBLAS matrix products use the GPU better
MAX_FEATURES = 16384  # of the attention kernel, which processes all logits of a model in one program
# Tile sizes, found by measurement. They do not depend on the number of models, and so neither do the results.
SPLITS = 5  # parts of the columns that separate programs of the first layer sum over
FIRST_LAYER = {"BM": 64, "BK": 32, "num_warps": 4, "num_stages": 3}
BACKWARD = {"BM": 16, "num_warps": 4}
SEGMENTS = {"BN": 128, "num_warps": 1}
ADAM = {"BD": 32, "BK": 32, "BP": 256, "BT": 16, "num_warps": 2, "num_stages": 3}
PRECISION = "tf32x3"  # tensor cores with float32's accuracy
LOSS_CODES = {"multiclass": 0, "binary": 1, "multilabel": 1, "ordinal": 1, "regression": 2}
ACTIVATION_CODES = {"relu": 0, "tanh": 1, "gelu": 2, "silu": 3}


def supports_mlp(shape: MLPShape, task: str) -> bool:
    """Whether there is a kernel for a network of this shape; other losses run as plain operations."""
    return (
        task in LOSS_CODES
        and len(shape.hidden) == 1
        and not shape.dropout
        and shape.hidden[0] <= MAX_HIDDEN
        and shape.outputs <= MAX_OUTPUTS
        and shape.columns <= MAX_COLUMNS
    )


def supports_gate(mask: Mask, features: int) -> bool:
    return isinstance(mask, SoftmaxMask) and features <= MAX_FEATURES


@lru_cache(maxsize=64)
def mlp_works(shape: MLPShape, task: str, device: torch.device) -> bool:
    """Whether the kernels compile and run on this device, found out by one step of a small network."""

    def step() -> None:
        model = FusedMLP(shape, task, [torch.Generator().manual_seed(0)], 1e-3, device)
        index = torch.zeros(1, 256, dtype=torch.int64, device=device)
        y = index if task == "multiclass" else torch.zeros(1, 256, shape.outputs, device=device)
        table = KernelTable(torch.zeros(1, shape.columns, device=device))
        model.train_step(
            IndexedBatch(table, index, y, None),  # type: ignore[arg-type]
            torch.ones(1, shape.columns, device=device),
        )

    return _works(step, device)


@lru_cache(maxsize=64)
def gate_works(device: torch.device) -> bool:
    """Whether the attention kernel compiles and runs on this device."""

    def step() -> None:
        gate = FusedAttention(1, 8, SoftmaxMask(), 1e-3, device)
        gate.update(
            torch.zeros_like(gate.logits),
            SelectionState(1, np.zeros(8, dtype=bool), device).of_models(slice(1)),
        )

    return _works(step, device)


@lru_cache(maxsize=64)
def embeddings_work(width: int, device: torch.device) -> bool:
    """Whether the kernel that sums gradients of embeddings compiles and runs on this device."""

    def step() -> None:
        embeddings = FusedEmbeddings([2], width, 1, device)
        embeddings.lookup(torch.zeros(1, 2, 1, dtype=torch.int32, device=device))
        embeddings.collect(torch.zeros(1, 2, width, device=device))

    return _works(step, device)


def _works(step: Callable[[], None], device: torch.device) -> bool:
    """Whether ``step`` runs. It may not: no compiler, no directory for its cache, or too small a GPU."""
    try:
        step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        warnings.warn(f"seqatt: plain operations instead of GPU kernels ({reason})", stacklevel=2)
        return False
    return True


class KernelTable(NamedTuple):
    """The part of a ``DeviceTable`` that the kernels use."""

    x: Tensor


class FusedMLP(MLP):
    """``MLP`` with a training step of three kernels; its batches must be ``IndexedBatch``."""

    def __init__(
        self,
        shape: MLPShape,
        task: str | Loss,
        generators: Sequence[torch.Generator],
        lr: float,
        device: torch.device,
        **others: Any,
    ) -> None:
        self._beta_powers = torch.ones(2, dtype=torch.float64, device=device)  # Adam's beta1^t and beta2^t
        super().__init__(shape, task, generators, lr, device, **others)
        width = self.weights[0].shape[1]
        block = max(16, 1 << (width.bit_length() - 1))
        self._hidden_sizes: dict[str, Any] = {
            "H": width,
            "HA": block,
            "HB": _at_least_16(width - block),
            "PRECISION": PRECISION,
        }
        self._loss_constants = {
            "OP": _at_least_16(shape.outputs),
            **{name: self._hidden_sizes[name] for name in ("H", "HA", "HB")},
            "LOSS": LOSS_CODES[task if isinstance(task, str) else task.name],
            "SMOOTHING": shape.label_smoothing,
            "ACTIVATION": ACTIVATION_CODES[shape.activation],
        }
        self._buffers_by_size: dict[int, dict[str, Tensor]] = {}

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self._beta_powers.fill_(1)

    def _named_state(self) -> Iterator[tuple[str, Stateful]]:
        yield from super()._named_state()
        yield "beta_powers", self._beta_powers

    def train_step(
        self, batch: Batch, weights: Tensor, *, gated: bool = True, all_ones: bool = False
    ) -> Tensor:
        """The kernels have one form, whatever the weights."""
        assert isinstance(batch, IndexedBatch)
        models, size = batch.index.shape
        columns, outputs = self._shape.columns, self._shape.outputs
        buffers = self._buffers(models, size)
        (w1, w2, b1, b2), m, v = self._adam.params, self._adam.exp_avg, self._adam.exp_avg_sq
        tiles = buffers["losses"].shape[1]
        # Without dropout the kernels do not read these two, but need some pointers for them; so with the decay.
        dropout = (batch.dropout.bank, batch.offsets) if batch.dropout else (weights, batch.index)
        has_dropout = batch.dropout is not None
        decay, gradients = self.first_layer_decay, self.first_layer_gradients
        first_layer_sums[(triton.cdiv(size, FIRST_LAYER["BM"]), models, SPLITS)](
            batch.table.x, batch.index, *dropout, weights, w1, buffers["sums"], self._beta_powers,
            size, columns, DROPOUT=has_dropout, SPLITS=SPLITS, **FIRST_LAYER, **self._hidden_sizes,
        )  # fmt: skip
        loss_and_backward[(tiles, models)](
            buffers["sums"], batch.y, batch.y if batch.w is None else batch.w, b1, w2, b2,
            buffers["g_sums"], buffers["g_w2"], buffers["g_b1"], buffers["g_b2"], buffers["losses"],
            size, outputs, WEIGHTED=batch.w is not None, SHARED=batch.y.stride(0) == 0, SPLITS=SPLITS,
            **BACKWARD, **self._loss_constants,
        )  # fmt: skip
        blocks = [triton.cdiv(count, ADAM["BP"]) for count in (w2[0].numel(), b1[0].numel(), b2[0].numel())]
        adam_update[(triton.cdiv(columns, ADAM["BD"]) + sum(blocks), models)](
            batch.table.x, batch.index, *dropout, weights,
            buffers["g_sums"], buffers["g_w2"], buffers["g_b1"], buffers["g_b2"],
            self._gate_grad, weights if decay is None else decay,
            weights if gradients is None else gradients, self._beta_powers, self._lr,
            w1, m[0], v[0], w2, m[1], v[1], b1, m[2], v[2], b2, m[3], v[3],
            size, columns, outputs, tiles, DROPOUT=has_dropout, DECAY=decay is not None,
            SUM_GRADIENTS=gradients is not None,
            **ADAM, **self._hidden_sizes,
        )  # fmt: skip
        return self._gate_grad

    def train_step_with_penalty(self, batch: Batch, weights: Tensor, penalty: GradientPenalty) -> None:
        assert isinstance(batch, IndexedBatch)
        super().train_step_with_penalty(batch, weights, penalty)
        losses = self._buffers(*batch.index.shape)["losses"].zero_()  # for ``last_loss``
        losses[:, 0] = super().last_loss(batch)

    def last_loss(self, batch: Batch) -> Tensor:
        assert isinstance(batch, IndexedBatch)
        return self._buffers(*batch.index.shape)["losses"].sum(1)

    def _buffers(self, models: int, size: int) -> dict[str, Tensor]:
        """Buffers between the kernels, for one batch size; most gradients are per tile of rows."""
        if size not in self._buffers_by_size:
            new, width, outputs = self.weights[0].new_empty, self._hidden_sizes["H"], self._shape.outputs
            tiles = triton.cdiv(size, BACKWARD["BM"])
            self._buffers_by_size[size] = {
                "sums": new(models, SPLITS, size, width),
                "g_sums": new(models, width, size),
                "g_w2": new(models, tiles, outputs, width),
                "g_b1": new(models, tiles, width),
                "g_b2": new(models, tiles, outputs),
                "losses": new(models, tiles),
            }
        return self._buffers_by_size[size]


class FusedAttention(AttentionGate):
    """``AttentionGate`` with a softmax mask and a step of one kernel."""

    def __init__(self, models: int, features: int, mask: Mask, lr: float, device: torch.device) -> None:
        super().__init__(models, features, mask, lr, device)
        assert isinstance(mask, SoftmaxMask)
        self._inv_temperature = 1 / mask.temperature
        self._beta_powers = torch.ones(models, 2, dtype=torch.float64, device=device)

    def refresh(self, state: FeatureState) -> None:
        self._launch(self.logits, state, update=False)

    def update(self, grad: Tensor, state: FeatureState) -> None:
        self._launch(grad, state, update=True)

    def reset(self) -> None:
        super().reset()
        if not self.keeps_logits:
            self._beta_powers.fill_(1)

    def _launch(self, grad: Tensor, state: FeatureState, *, update: bool) -> None:
        models, features = self.logits.shape
        block = triton.next_power_of_2(features)
        attend[(models,)](
            self.logits, self._adam.exp_avg[0], self._adam.exp_avg_sq[0], grad, state.selected, state.blocked,
            self.weights, self._adam.lr, self._beta_powers, features, self._inv_temperature,
            DP=block, UPDATE=update, num_warps=min(16, max(1, block // 256)),
        )  # fmt: skip


class FusedEmbeddings(Embeddings):
    """``Embeddings`` whose gradients are summed by one kernel.

    A value that is in every row of a batch makes a segment as long as the batch, which ``embedding_bag`` adds up one
    by one.
    """

    def _sum_segments(self, grads: Tensor, order: Tensor, starts: Tensor) -> Tensor:
        sums = grads.new_empty(len(starts), self.width)
        segment_sums[(len(starts),)](
            grads, order, starts, sums, len(order),
            W=self.width, WP=triton.next_power_of_2(self.width), **SEGMENTS,
        )  # fmt: skip
        return sums


def _at_least_16(count: int) -> int:
    """The smallest power of two from ``count`` on, but at least 16, as tensor cores require."""
    return max(16, int(triton.next_power_of_2(max(1, count))))
