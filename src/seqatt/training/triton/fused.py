"""A training step in four Triton kernels, for the built-in MLP with one hidden layer on a GPU.

On a GPU a step of this size costs what its kernel launches cost. ``MLP`` and ``AttentionGate`` say the
same in plain tensor operations and are the reference: ``FusedMLP.train`` has ``MLP.train`` as its
twin, ``FusedAttention.update`` has ``AttentionGate.update``. Whatever a kernel here cannot do, the twin does.

A trial is a program axis of its own, so its numbers are the same alone and in company.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
from torch import Tensor

from seqatt.training.batch import Batch, IndexedBatch
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.masks import Mask, SoftmaxMask
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp import MLP
from seqatt.training.models.model import GradientPenalty
from seqatt.training.selection_state import SelectionState
from seqatt.training.triton.attention import attend
from seqatt.training.triton.mlp import first_product, top_and_back, update

WIDEST_HIDDEN, WIDEST_OUTPUT = 256, 64  # a program holds all of a row's hidden units and outputs
WIDEST_TABLE = 4096  # columns; beyond it the library's matrix products use the chip better
WIDEST_GATE = 16384  # features; a trial's logits are one program's work
# Sizes of tiles, found by measuring. They never depend on the number of trials, nor do the answers.
PARTS = 5  # of the first product's columns
PRODUCT = {"BM": 64, "BK": 32, "num_warps": 4, "num_stages": 3}
TOP = {"BM": 16, "num_warps": 4}
UPDATE = {"BD": 32, "BK": 32, "BP": 256, "BT": 16, "num_warps": 2, "num_stages": 3}
PRECISION = "tf32x3"  # tensor cores with float32's accuracy
LOSS_OF = {"multiclass": 0, "binary": 1, "multilabel": 1, "regression": 2}
ACTIVATION_OF = {"relu": 0, "tanh": 1, "gelu": 2, "silu": 3}


def supports_mlp(shape: MLPShape) -> bool:
    return (
        len(shape.hidden) == 1
        and not shape.dropout
        and shape.hidden[0] <= WIDEST_HIDDEN
        and shape.outputs <= WIDEST_OUTPUT
        and shape.columns <= WIDEST_TABLE
    )


def supports_gate(mask: Mask, features: int) -> bool:
    return isinstance(mask, SoftmaxMask) and features <= WIDEST_GATE


@lru_cache(maxsize=64)
def mlp_works(shape: MLPShape, task: str, device: torch.device) -> bool:
    """Whether the kernels compile and run here: a step of a throw-away network tells."""

    def step() -> None:
        model = FusedMLP(shape, task, [torch.Generator().manual_seed(0)], 1e-3, device)
        index = torch.zeros(1, 256, dtype=torch.int64, device=device)
        y = index if task == "multiclass" else torch.zeros(1, 256, shape.outputs, device=device)
        table = KernelTable(torch.zeros(1, shape.columns, device=device))
        model.train(
            IndexedBatch(table, index, y, None),  # type: ignore[arg-type]
            torch.ones(1, shape.columns, device=device),
        )

    return _works(step, device)


@lru_cache(maxsize=64)
def gate_works(device: torch.device) -> bool:
    def step() -> None:
        gate = FusedAttention(1, 8, SoftmaxMask(), 1e-3, device)
        gate.update(torch.zeros_like(gate.logits), SelectionState(1, np.zeros(8, dtype=bool), device))

    return _works(step, device)


def _works(step: Callable[[], None], device: torch.device) -> bool:
    """No compiler, no place for its cache, a GPU too small: plain operations ask for none of that."""
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
    """As much of a table as the kernels need."""

    x: Tensor


class FusedMLP(MLP):
    """``MLP`` with its training step in three kernels; its batches are ``IndexedBatch`` from a table."""

    def __init__(
        self,
        shape: MLPShape,
        task: str,
        generators: Sequence[torch.Generator],
        rate: float,
        device: torch.device,
    ) -> None:
        self._powers = torch.ones(2, dtype=torch.float64, device=device)  # of Adam's two decay rates
        super().__init__(shape, task, generators, rate, device)
        width = self.weights[0].shape[1]
        block = max(16, 1 << (width.bit_length() - 1))
        self._hidden: dict[str, Any] = {
            "H": width,
            "HA": block,
            "HB": _at_least_16(width - block),
            "PRECISION": PRECISION,
        }
        self._codes = {
            "OP": _at_least_16(shape.outputs),
            **{name: self._hidden[name] for name in ("H", "HA", "HB")},
            "LOSS": LOSS_OF[task],
            "SMOOTHING": shape.smoothing,
            "ACTIVATION": ACTIVATION_OF[shape.activation],
        }
        self._grad = torch.empty(len(generators), shape.columns, device=device)
        self._spaces: dict[int, dict[str, Tensor]] = {}

    def restart(self) -> None:
        super().restart()
        self._powers.fill_(1)

    def train(self, batch: Batch, weights: Tensor) -> Tensor:
        assert isinstance(batch, IndexedBatch)
        trials, size = batch.index.shape
        columns, outputs = self._shape.columns, self._shape.outputs
        space = self._space(trials, size)
        (w1, w2, b1, b2), first, second = self._adam.params, self._adam.first, self._adam.second
        tiles = space["losses"].shape[1]
        # Where there is no noise the kernels read none, but want to be given something.
        noise = (batch.noise.bank, batch.places) if batch.noise else (weights, batch.index)
        noisy = batch.noise is not None
        first_product[(triton.cdiv(size, PRODUCT["BM"]), trials, PARTS)](
            batch.rows.x, batch.index, *noise, weights, w1, space["sums"], self._powers, size, columns,
            NOISY=noisy, PARTS=PARTS, **PRODUCT, **self._hidden,
        )  # fmt: skip
        top_and_back[(tiles, trials)](
            space["sums"], batch.y, batch.y if batch.w is None else batch.w, b1, w2, b2,
            space["back"], space["w2"], space["b1"], space["b2"], space["losses"], size, outputs,
            WEIGHTED=batch.w is not None, SHARED=batch.y.stride(0) == 0, PARTS=PARTS,
            **TOP, **self._codes,
        )  # fmt: skip
        tail = [triton.cdiv(count, UPDATE["BP"]) for count in (w2[0].numel(), b1[0].numel(), b2[0].numel())]
        update[(triton.cdiv(columns, UPDATE["BD"]) + sum(tail), trials)](
            batch.rows.x, batch.index, *noise, weights, space["back"], space["w2"], space["b1"], space["b2"],
            self._grad, self._powers, self._rate,
            w1, first[0], second[0], w2, first[1], second[1],
            b1, first[2], second[2], b2, first[3], second[3],
            size, columns, outputs, tiles, NOISY=noisy, **UPDATE, **self._hidden,
        )  # fmt: skip
        return self._grad

    def train_step_with_penalty(self, batch: Batch, weights: Tensor, penalty: GradientPenalty) -> None:
        assert isinstance(batch, IndexedBatch)
        super().train_step_with_penalty(batch, weights, penalty)
        losses = self._space(*batch.index.shape)["losses"].zero_()  # where ``last_loss`` looks
        losses[:, 0] = super().last_loss(batch)

    def last_loss(self, batch: Batch) -> Tensor:
        assert isinstance(batch, IndexedBatch)
        return self._space(*batch.index.shape)["losses"].sum(1)

    def _space(self, trials: int, size: int) -> dict[str, Tensor]:
        """What one kernel leaves for the next; gradients of the upper layer by tiles of rows."""
        if size not in self._spaces:
            new, width, outputs = self.weights[0].new_empty, self._hidden["H"], self._shape.outputs
            tiles = triton.cdiv(size, TOP["BM"])
            self._spaces[size] = {
                "sums": new(trials, PARTS, size, width),
                "back": new(trials, width, size),
                "w2": new(trials, tiles, outputs, width),
                "b1": new(trials, tiles, width),
                "b2": new(trials, tiles, outputs),
                "losses": new(trials, tiles),
            }
        return self._spaces[size]


class FusedAttention(AttentionGate):
    """``AttentionGate`` with a softmax mask, its step in one kernel."""

    def __init__(self, trials: int, features: int, mask: Mask, rate: float, device: torch.device) -> None:
        super().__init__(trials, features, mask, rate, device)
        assert isinstance(mask, SoftmaxMask)
        self._heat = 1 / mask.temperature
        self._powers = torch.ones(trials, 2, dtype=torch.float64, device=device)

    def refresh(self, state: SelectionState) -> None:
        self._launch(self.logits, state, learns=False)

    def update(self, grad: Tensor, state: SelectionState) -> None:
        self._launch(grad, state, learns=True)

    def reset(self) -> None:
        super().reset()
        self._powers.fill_(1)

    def _launch(self, grad: Tensor, state: SelectionState, *, learns: bool) -> None:
        trials, features = self.logits.shape
        block = triton.next_power_of_2(features)
        attend[(trials,)](
            self.logits, self._adam.first[0], self._adam.second[0], grad, state.selected, state.blocked,
            self.weights, self._adam.rate, self._powers, features, self._heat,
            DP=block, LEARNS=learns, num_warps=min(16, max(1, block // 256)),
        )  # fmt: skip


def _at_least_16(count: int) -> int:
    """A power of two that holds ``count``, and that a tensor core can work on."""
    return max(16, int(triton.next_power_of_2(max(1, count))))
