"""The loss of each task, per row, with its gradient written out.

Outputs are (T, B, o), targets (T, B) or (T, B, o).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Loss(NamedTuple):
    """``per_row`` is the loss of each row (T, B), ``grad`` its gradient (T, B, o) for the outputs."""

    per_row: Callable[[Tensor, Tensor], Tensor]
    grad: Callable[[Tensor, Tensor], Tensor]


# Outputs are usually a view of a (T, o, B) tensor; a softmax over o is much faster in that layout.


def _cross_entropy(out: Tensor, y: Tensor) -> Tensor:
    logits = out.mT
    return -torch.log_softmax(logits, 1).gather(1, y.unsqueeze(1)).squeeze(1)


def _cross_entropy_grad(out: Tensor, y: Tensor) -> Tensor:
    grad = torch.softmax(out.mT, 1)
    label = y.unsqueeze(1)
    grad.scatter_add_(1, label, _minus_ones(label.shape, grad.dtype, grad.device))
    return grad.mT


@lru_cache(maxsize=16)
def _minus_ones(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.full(shape, -1.0, dtype=dtype, device=device)


def _logistic(out: Tensor, y: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(out, y, reduction="none").mean(-1)


def _logistic_grad(out: Tensor, y: Tensor) -> Tensor:
    grad = torch.sigmoid(out).sub_(y)
    return grad if out.shape[-1] == 1 else grad.div_(out.shape[-1])


def _squared(out: Tensor, y: Tensor) -> Tensor:
    return (out - y).square().mean(-1)


def _squared_grad(out: Tensor, y: Tensor) -> Tensor:
    return (out - y).mul_(2 / out.shape[-1])


LOSSES = {
    "binary": Loss(_logistic, _logistic_grad),
    "multiclass": Loss(_cross_entropy, _cross_entropy_grad),
    "multilabel": Loss(_logistic, _logistic_grad),
    "regression": Loss(_squared, _squared_grad),
}


def make_loss(task: str, label_smoothing: float = 0.0) -> Loss:
    """The task's loss. Label smoothing changes its gradient only: ``per_row`` uses the labels as they are."""
    loss = LOSSES[task]
    if not label_smoothing:
        return loss

    def multiclass_grad(out: Tensor, y: Tensor) -> Tensor:
        grad = loss.grad(out, y)
        label = y.unsqueeze(2)
        grad.scatter_add_(2, label, _minus_ones(label.shape, grad.dtype, grad.device) * -label_smoothing)
        return grad.sub_(label_smoothing / out.shape[-1])

    def binary_grad(out: Tensor, y: Tensor) -> Tensor:
        return loss.grad(out, y).add_(y - 0.5, alpha=label_smoothing / out.shape[-1])

    return Loss(loss.per_row, multiclass_grad if task == "multiclass" else binary_grad)


def autograd_loss(task: str, out: Tensor, y: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """The same losses by functions of torch, for autograd: outputs (B, o), one loss per row."""
    if task == "multiclass" or (task == "binary" and out.shape[-1] == 2):
        label = y if task == "multiclass" else y[:, 0].long()
        return F.cross_entropy(out, label, reduction="none", label_smoothing=label_smoothing)
    if task in ("binary", "multilabel"):
        y = torch.lerp(y, torch.full_like(y, 0.5), label_smoothing)
        return F.binary_cross_entropy_with_logits(out, y, reduction="none").mean(-1)
    return F.mse_loss(out, y, reduction="none").mean(-1)
