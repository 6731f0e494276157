"""Which optimizers train the logits of a layer, from a hook that runs after each step of any optimizer."""

from __future__ import annotations

import warnings
import weakref
from typing import Any, Protocol

from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

_optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()  # that have made a step


class AdvancingLayer(Protocol):
    """A layer whose ``advance`` is to be called once per step of the optimizer that trains its logits."""

    logits: nn.Parameter
    _step: int  # calls of advance


# Layers whose advance was not called yet -> steps of their optimizer, step at which the first selection is due.
_waiting: weakref.WeakKeyDictionary[AdvancingLayer, tuple[int, int]] = weakref.WeakKeyDictionary()


def optimizers_of(parameter: nn.Parameter) -> list[Optimizer]:
    """The optimizers that hold ``parameter`` and have made a step."""
    return [optimizer for optimizer in list(_optimizers) if _holds(optimizer, parameter)]


def watch_steps(layer: AdvancingLayer, due: int) -> None:
    """Warn when the optimizer has made ``due`` steps, at which the first selection is due, without ``advance``."""
    _waiting[layer] = (0, due)


def _after_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    _optimizers.add(optimizer)
    for layer, (steps, due) in list(_waiting.items()):
        if layer._step:
            del _waiting[layer]
        elif _holds(optimizer, layer.logits):
            _waiting[layer] = (steps + 1, due)
            if steps + 1 == due:
                warnings.warn(
                    f"the optimizer has made {due} steps and advance() was never called, so no feature is selected; "
                    "call attention.advance() once after each optimizer.step()",
                    UserWarning,
                    stacklevel=3,
                )


def _holds(optimizer: Optimizer, parameter: nn.Parameter) -> bool:
    return any(p is parameter for group in optimizer.param_groups for p in group["params"])


register_optimizer_step_post_hook(_after_step)


def reset_state(parameter: nn.Parameter) -> None:
    """Remove what optimizers hold about a parameter."""
    for optimizer in optimizers_of(parameter):
        optimizer.state.pop(parameter, None)
