"""Every loss by the name of its task, with label smoothing, and through autograd."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from seqatt.losses.classes import LogisticLoss, MultilabelLoss, SoftmaxLoss, minus_ones
from seqatt.losses.loss import Loss
from seqatt.losses.ordinal import OrdinalLoss
from seqatt.losses.poisson import PoissonLoss
from seqatt.losses.quantile import QuantileLoss
from seqatt.losses.ranking import PairwiseLoss
from seqatt.losses.reconstruction import ReconstructionLoss
from seqatt.losses.squared import SquaredError
from seqatt.losses.survival import CoxLoss

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        LogisticLoss(),
        SoftmaxLoss(),
        MultilabelLoss(),
        SquaredError(),
        PoissonLoss(),
        QuantileLoss(),
        OrdinalLoss(),
        CoxLoss(),
        PairwiseLoss(),
        ReconstructionLoss(),
    )
}


def find_loss(task: str, quantile: float | None = None) -> Loss:
    """The loss of a task; ``quantile`` is the level of the task "quantile"."""
    return QuantileLoss(quantile) if task == "quantile" and quantile is not None else LOSSES[task]


@dataclass(frozen=True)
class _Smoothed:
    """A loss whose gradient is that of smoothed labels: ``per_row`` uses the labels as they are."""

    loss: Loss
    smoothing: float
    coupled = False

    def per_row(self, out: Tensor, y: Tensor) -> Tensor:
        return self.loss.per_row(out, y)

    def grad(self, out: Tensor, y: Tensor) -> Tensor:
        grad = self.loss.grad(out, y)
        if self.loss.name != "multiclass":
            return grad.add_(y - 0.5, alpha=self.smoothing / out.shape[-1])
        label = y.unsqueeze(2)
        grad.scatter_add_(2, label, minus_ones(label.shape, grad.dtype, grad.device) * -self.smoothing)
        return grad.sub_(self.smoothing / out.shape[-1])


def make_loss(task: str | Loss, label_smoothing: float = 0.0) -> Loss | _Smoothed:
    """A loss, or that of a task by name, with label smoothing in its gradient."""
    loss = LOSSES[task] if isinstance(task, str) else task
    return _Smoothed(loss, label_smoothing) if label_smoothing else loss


def autograd_loss(task: str | Loss, out: Tensor, y: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """A loss, or that of a task by name, by functions of torch, for autograd: outputs (B, o), one loss per row."""
    loss = LOSSES[task] if isinstance(task, str) else task
    name = loss.name
    if name == "multiclass" or (name == "binary" and out.shape[-1] == 2):
        label = y if name == "multiclass" else y[:, 0].long()
        return F.cross_entropy(out, label, reduction="none", label_smoothing=label_smoothing)
    if name in ("binary", "multilabel"):
        y = torch.lerp(y, torch.full_like(y, 0.5), label_smoothing)
        return F.binary_cross_entropy_with_logits(out, y, reduction="none").mean(-1)
    if name == "regression":
        return F.mse_loss(out, y, reduction="none").mean(-1)
    return loss.per_row(out.unsqueeze(0), y.unsqueeze(0)).squeeze(0)
