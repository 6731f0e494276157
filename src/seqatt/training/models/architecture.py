"""The architecture of the built-in network: its shape, its activation functions, and the same network as a module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqatt.training.backend import torch_private


@dataclass(frozen=True)
class MLPShape:
    """An MLP with ``columns`` inputs, hidden layers of widths ``hidden`` and ``outputs`` outputs."""

    columns: int
    hidden: tuple[int, ...]
    outputs: int
    activation: str = "relu"
    dropout: float = 0.0
    label_smoothing: float = 0.0  # in the training loss only

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(outputs, inputs) of each layer."""
        widths = (self.columns, *self.hidden, self.outputs)
        return list(zip(widths[1:], widths[:-1], strict=True))


class Activation(NamedTuple):
    """An activation function and its gradient.

    ``forward(z, out)`` writes the activations of the pre-activations ``z`` into ``out``, which is ``z`` if the function
    is computed ``in_place``. ``backward(grad, z, a)`` turns ``grad``, the gradient with respect to the activations
    ``a``, into the gradient with respect to ``z``, in place; it may overwrite ``z`` and ``a`` too. ``function`` and
    ``module`` are the same activation for autograd.
    """

    forward: Callable[[Tensor, Tensor], Tensor]
    backward: Callable[[Tensor, Tensor, Tensor], Tensor]
    function: Callable[[Tensor], Tensor]
    module: type[nn.Module]
    in_place: bool = False


# Gradients are written out for the models that do without autograd.
ACTIVATIONS = {
    # ReLU works in place: its gradient depends only on the sign of the activations.
    "relu": Activation(
        lambda z, out: torch.relu_(z),
        lambda grad, z, a: grad.mul_(torch.sign(a, out=a)),
        torch.relu,
        nn.ReLU,
        in_place=True,
    ),
    "tanh": Activation(
        lambda z, out: torch.tanh(z, out=out),
        lambda grad, z, a: torch_private.tanh_backward(grad, a, grad_input=grad),
        torch.tanh,
        nn.Tanh,
    ),
    "gelu": Activation(
        lambda z, out: torch_private.gelu(z, out=out),
        lambda grad, z, a: torch_private.gelu_backward(grad, z, grad_input=grad),
        F.gelu,
        nn.GELU,
    ),
    "silu": Activation(
        lambda z, out: torch_private.silu(z, out=out),
        lambda grad, z, a: torch_private.silu_backward(grad, z, grad_input=grad),
        F.silu,
        nn.SiLU,
    ),
}


def build_mlp(shape: MLPShape, *, batch_norm: bool = False) -> nn.Sequential:
    """The network as torch modules, for options that the written-out network does not have."""
    layers: list[nn.Module] = []
    for outs, ins in shape.sizes[:-1]:
        layers.append(nn.Linear(ins, outs))
        if batch_norm:
            layers.append(nn.BatchNorm1d(outs))
        layers.append(ACTIVATIONS[shape.activation].module())
        if shape.dropout:
            layers.append(nn.Dropout(shape.dropout))
    outs, ins = shape.sizes[-1]
    return nn.Sequential(*layers, nn.Linear(ins, outs))
