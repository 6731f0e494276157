"""Checks of what a user's own model, loss and optimizer return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

MAX_GROUPS = 16  # of a group norm that is recognised
UNCHANGED = 5e-3  # change of an output, in standard deviations, that is none
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


def check_optimizer(optimizer: Any, parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer that a user's function returned for these parameters; it must make steps without a closure."""
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
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if not any(id(parameter) in held for parameter in parameters):
        raise ValueError(
            "optimizer: has none of the parameters that it is to train; a model is copied for every trial, so use the "
            "argument of the function: lambda parameters: torch.optim.AdamW(parameters)"
        )
    return optimizer  # type: ignore[no-any-return]


def bad_loss(out: Any, y: Tensor, error: Exception) -> ValueError:
    shapes = f"outputs {tuple(getattr(out, 'shape', ()))} and targets {tuple(y.shape[1:])}"
    return ValueError(f"loss: does not accept {shapes} ({' '.join(str(error).split())})")


def check_loss(mean_loss: Callable[[Tensor, Tensor], Tensor], out: Tensor, y: Tensor) -> None:
    """Refuse a user's loss that no output changes, or that mixes up the rows.

    ``out`` (B, ...) are outputs of the model; others are drawn, as an untrained model may return the same for all rows.
    """
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(out.shape, generator=generator).to(out)
    shuffles = [torch.randperm(len(y), generator=generator).to(y.device) for _ in range(3)]
    has_gradient, depends_on_rows, compared = [], False, False
    for outputs in (out, out + drawn, drawn):
        leaf = outputs.detach().requires_grad_()
        try:
            loss = mean_loss(leaf, y)
            (gradient,) = torch.autograd.grad(loss, leaf)
            others = [mean_loss(leaf, y[rows]) for rows in shuffles]
        except Exception:  # a loss of probabilities, say, which these outputs are not
            continue
        has_gradient.append(not torch.equal(gradient, torch.zeros_like(gradient)))
        compared |= bool((outputs != outputs[:1]).any() and (y != y[:1]).any())
        depends_on_rows |= not all(torch.isclose(loss, other, rtol=1e-5, atol=0.0) for other in others)
    shapes = f"the outputs have shape {tuple(out.shape)} and the targets {tuple(y.shape)}"
    if has_gradient and not any(has_gradient):
        raise ValueError(
            "loss: its gradient with respect to the outputs is 0 in every row, so that nothing can be learned; "
            f"{shapes}. The cross entropy of two classes needs two outputs"
        )
    if compared and not depends_on_rows:
        raise ValueError(
            "loss: is the same when the targets are shuffled among the rows, as where every output is compared with "
            f"every target; {shapes}"
        )


def normalises_inputs(predict: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """Whether outputs (B, o) of inputs (B, c) ignore the scale of single columns, or of a group of some of them.

    So it is after a batch norm, a norm of each feature's embedding, and a group norm. A norm of all columns of a row
    leaves their proportions, so that scaling a column still reduces its influence.
    """
    columns = x.shape[1]
    scales = [torch.linspace(0.3, 1.0, columns)]
    for groups in range(2, MAX_GROUPS + 1):
        if columns % groups == 0 and columns > groups:
            scales.append(torch.where(torch.arange(columns) < columns // groups, 0.5, 1.0))
    x = x[(x != 0).any(1)]
    try:
        before, *after = (predict(x * scale.to(x)).float() for scale in (torch.ones(columns), *scales))
    except (RuntimeError, ValueError):
        return False
    spread = before.std(0)
    if len(x) < 2 or not (spread > 0).any():
        return False
    changes = ((out - before).abs()[:, spread > 0] / spread[spread > 0] for out in after)
    return any(bool((change.quantile(0.75, dim=0) <= UNCHANGED).all()) for change in changes)
