"""Deep Lasso (Cherepanova et al. 2023): how far the loss feels each input."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from seqatt.neural.body import Body
from seqatt.neural.gates.gate import Open
from seqatt.neural.owner import Owner
from seqatt.neural.rows import Batch
from seqatt.neural.state import State

SMOOTH = 1e-8  # under the root, which has no gradient at zero


class Sensitivity(Open):
    """``sqrt(mean over rows of ||gradient of the row's loss by x_f||^2)``: of each feature f its score.

    Their sum, ``penalty`` times, is added to the loss.
    """

    judged_rows = 2048
    captured = False  # autograd works on threads of its own

    def __init__(self, body: Body, owner: Owner, penalty: Tensor) -> None:
        """``penalty`` (T,) is each model's."""
        self._body = body
        self._owner = owner
        self._penalty = penalty
        self.weights = torch.ones(len(penalty), owner.features, device=penalty.device)
        self._still = torch.zeros(len(penalty), owner.columns, device=penalty.device)
        self._felt = torch.zeros_like(self.weights)

    def train(self, body: Body, batch: Batch, weights: Tensor) -> Tensor:
        body.train_with(batch, weights, self.penalise)
        return self._still

    def penalise(self, gradients: Tensor) -> Tensor:
        squares = self._owner.narrow(gradients.square().mean(1))
        return self._penalty * (squares + SMOOTH).sqrt().sum(1)

    def judge(self, batches: Iterable[Batch], state: State) -> None:
        total, rows = torch.zeros_like(self._still), 0
        open_all = torch.ones_like(self._still)
        for batch in batches:
            gradients = self._body.input_gradients(batch, open_all)
            total += gradients.square().sum(1)
            rows += gradients.shape[1]
        self._felt.copy_(self._owner.narrow(total / rows).sqrt())

    def scores(self) -> Tensor:
        return self._felt
