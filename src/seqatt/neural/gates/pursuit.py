"""Orthogonal Matching Pursuit for networks (paper, appendix B.2.2)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from seqatt.neural.body import Body
from seqatt.neural.gates.gate import Open
from seqatt.neural.owner import Owner
from seqatt.neural.rows import Batch
from seqatt.neural.state import State


class Pursuit(Open):
    """The model sees the chosen features alone; the next is the one whose weights it would change most.

    That is the length of the loss's gradient with respect to a feature's first-layer weights, at zero. For a
    linear model with squared loss it is the correlation with the residual, so this is OMP.
    """

    judged_rows = 4096

    def __init__(self, body: Body, owner: Owner, scale: Tensor) -> None:
        layer = body.first_layer()
        self._body = body
        self._owner = owner
        self._scale = scale
        self.weights = torch.ones(len(layer), owner.features, device=layer.device)
        self._lengths = torch.zeros_like(self.weights)

    def shares_nothing(self) -> bool:
        return True  # steps are the body's own, and what is summed here is summed on one thread

    def judge(self, batches: Iterable[Batch], state: State) -> None:
        kept = self._owner.widen(state.kept)
        gradient, rows = torch.zeros_like(self._body.first_layer()), 0
        for batch in batches:
            count = batch.y.shape[1]
            gradient += self._body.first_gradient(batch, kept) * count
            rows += count
        squares = self._owner.narrow((gradient / rows).square().sum(1))
        self._lengths.copy_(squares.sqrt() / self._scale)

    def scores(self) -> Tensor:
        return self._lengths
