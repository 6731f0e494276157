"""The group LASSO on the first layer: all weights of a feature shrink together, and the longest stay."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from seqatt.neural.gates.gate import Open
from seqatt.neural.owner import Owner
from seqatt.neural.product import product
from seqatt.neural.state import State

SMALLEST = 1e-30  # length that a group is divided by: an empty one stays empty
LATELY = 1 / 32  # weight of a step in the lengths that are compared: near zero they come and go


class Layered(Protocol):
    """What a LASSO asks of a model: its first layer, as ``Body`` has it."""

    def first_layer(self) -> Tensor: ...

    def shrink(self, factors: Tensor) -> None: ...


class Lasso(Open):
    """``penalty * sum_f sqrt(size_f) * ||W_f||`` over the features not chosen, W_f f's first-layer weights.

    Each step of the optimizer is followed by the penalty's proximal step of the same size, which takes
    ``rate * penalty * sqrt(size_f)`` off the length of every W_f and leaves it at zero if that is all there
    is. A step of Adam moves a weight by the rate at most, so a penalty of 1 undoes a whole one.
    """

    def __init__(self, body: Layered, owner: Owner, penalty: Tensor, scale: Tensor, rate: float) -> None:
        """``penalty`` (T,) is each model's, ``scale`` (d,) the root of a feature's table columns."""
        layer = body.first_layer()
        self._body = body
        self._owner = owner
        self._bite = rate * math.sqrt(layer.shape[1]) * penalty[:, None] * scale
        self.weights = torch.ones(len(layer), owner.features, device=layer.device)
        self._lately = torch.zeros_like(self.weights)
        self._ones = torch.ones(len(layer), 1, layer.shape[1], device=layer.device)
        self._sums = torch.empty(len(layer), 1, layer.shape[2], device=layer.device)

    def shares_nothing(self) -> bool:
        return True  # squares, and sums by products that no number of threads changes

    def learn(self, grad: Tensor, state: State) -> None:
        bite = self._bite * (1 - state.kept)
        lengths = self.lengths()
        left = (1 - bite / lengths.clamp_min(SMALLEST)).clamp_min_(0)
        self._body.shrink(self._owner.widen(left))
        self._lately.lerp_(lengths.mul_(left), LATELY)

    def scores(self) -> Tensor:
        return self._lately

    def lengths(self) -> Tensor:
        """The length of each feature's weights (T, d)."""
        product(self._ones, self._body.first_layer().square(), out=self._sums)
        return self._owner.narrow(self._sums[:, 0].clone()).sqrt_()
