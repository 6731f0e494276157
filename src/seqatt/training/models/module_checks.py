"""Checks of what a user's own model, loss and optimizer return."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

NO_GRADIENT = (
    "loss: has no gradient with respect to the outputs; compute it by functions of torch, without detach(), item() or "
    "NumPy"
)


def type_remedy(module: nn.Module, x: Tensor) -> str:
    """The remedy for a module whose parameters are numbers of another type than its inputs; else empty."""
    other_types = {p.dtype for p in module.parameters() if p.is_floating_point()} - {x.dtype}
    return f"; its inputs are {x.dtype}, so call .float() on the model" if other_types else ""


def as_matrix(out: Any) -> Tensor:
    if not isinstance(out, Tensor):
        raise TypeError(f"model: must return a tensor of outputs, got {type(out).__name__}")
    return out.unsqueeze(-1) if out.ndim == 1 else out


def check_optimizer(optimizer: Any) -> torch.optim.Optimizer:
    """The optimizer that a user's function returned, checked; it must make steps without a closure."""
    if not (hasattr(optimizer, "step") and hasattr(optimizer, "param_groups")):
        raise TypeError(
            f"optimizer: must return an optimizer of torch, got {type(optimizer).__name__}; a schedule of learning "
            "rates is not used"
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "optimizer: LBFGS computes the loss several times in a step, and a batch is read once; use another one, "
            "such as torch.optim.AdamW"
        )
    return optimizer  # type: ignore[no-any-return]


def bad_loss(out: Any, y: Tensor, error: Exception) -> ValueError:
    shapes = f"outputs {tuple(getattr(out, 'shape', ()))} and targets {tuple(y.shape[1:])}"
    return ValueError(f"loss: does not accept {shapes} ({' '.join(str(error).split())})")
