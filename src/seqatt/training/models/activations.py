"""The table of activation functions, with gradients written out for the models that do without autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from seqatt.training.backend import torch_private


class Activation(NamedTuple):
    """An activation function and its gradient.

    ``forward(z, out)`` writes the activations of the pre-activations ``z`` into ``out``, which is ``z`` if the function
    is computed ``in_place``. ``backward(grad, z, a)`` turns ``grad``, the gradient with respect to the activations
    ``a``, into the gradient with respect to ``z``, in place; it may overwrite ``z`` and ``a`` too. ``function`` is the
    same activation for autograd.
    """

    forward: Callable[[Tensor, Tensor], Tensor]
    backward: Callable[[Tensor, Tensor, Tensor], Tensor]
    function: Callable[[Tensor], Tensor]
    in_place: bool = False


ACTIVATIONS = {
    # ReLU works in place: its gradient depends only on the sign of the activations.
    "relu": Activation(
        lambda z, out: torch.relu_(z),
        lambda grad, z, a: grad.mul_(torch.sign(a, out=a)),
        torch.relu,
        in_place=True,
    ),
    "tanh": Activation(
        lambda z, out: torch.tanh(z, out=out),
        lambda grad, z, a: torch_private.tanh_backward(grad, a, grad_input=grad),
        torch.tanh,
    ),
    "gelu": Activation(
        lambda z, out: torch_private.gelu(z, out=out),
        lambda grad, z, a: torch_private.gelu_backward(grad, z, grad_input=grad),
        F.gelu,
    ),
    "silu": Activation(
        lambda z, out: torch_private.silu(z, out=out),
        lambda grad, z, a: torch_private.silu_backward(grad, z, grad_input=grad),
        F.silu,
    ),
}
