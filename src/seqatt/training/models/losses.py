"""Losses by task, a row at a time, with their gradients written out.

Shapes are (T, B, o) for outputs and (T, B) or (T, B, o) for targets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Loss(NamedTuple):
    """``rows``: the loss of every row. ``grad``: its gradient with respect to the outputs."""

    rows: Callable[[Tensor, Tensor], Tensor]
    grad: Callable[[Tensor, Tensor], Tensor]


# Outputs usually come as a view of (T, o, B), and there a softmax over o is far faster.


def _cross_entropy(out: Tensor, y: Tensor) -> Tensor:
    tall = out.mT
    return -torch.log_softmax(tall, 1).gather(1, y.unsqueeze(1)).squeeze(1)


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


def make_loss(task: str, smoothing: float = 0.0) -> Loss:
    """The task's loss. ``smoothing`` of the labels is for learning alone: rows are judged by the labels."""
    loss = LOSSES[task]
    if not smoothing:
        return loss

    def classes(out: Tensor, y: Tensor) -> Tensor:
        grad = loss.grad(out, y)
        label = y.unsqueeze(2)
        grad.scatter_add_(2, label, _minus_ones(label.shape, grad.dtype, grad.device) * -smoothing)
        return grad.sub_(smoothing / out.shape[-1])

    def labels(out: Tensor, y: Tensor) -> Tensor:
        return loss.grad(out, y).add_(y - 0.5, alpha=smoothing / out.shape[-1])

    return Loss(loss.rows, classes if task == "multiclass" else labels)


def autograd_loss(task: str, out: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
    """The same losses in torch's own words, for autograd; (B, o) outputs, one loss a row."""
    if task == "multiclass" or (task == "binary" and out.shape[-1] == 2):
        label = y if task == "multiclass" else y[:, 0].long()
        return F.cross_entropy(out, label, reduction="none", label_smoothing=smoothing)
    if task in ("binary", "multilabel"):
        y = torch.lerp(y, torch.full_like(y, 0.5), smoothing)
        return F.binary_cross_entropy_with_logits(out, y, reduction="none").mean(-1)
    return F.mse_loss(out, y, reduction="none").mean(-1)
