"""Gates where features have embeddings and rows come once."""

from __future__ import annotations

import torch
from torch import Tensor

from seqatt.neural.gates.batch_attention import BatchAttention
from seqatt.neural.gates.lasso import LATELY, SMALLEST, Lasso, Layered
from seqatt.neural.owner import Owner
from seqatt.neural.rows import Batch
from seqatt.neural.state import State


class EmbeddedLasso(Lasso):
    """``penalty * sum_f sqrt(size_f) ||W_f|| s_f`` over the features not chosen, size_f the columns of f.

    A network could make up for small weights by large embeddings, so what W_f multiplies counts: s_f is the
    root of the mean square of f's columns together, but at least 1, which is what numbers have. Features are
    compared by the length of W_f times that root itself.
    """

    def __init__(self, network: Layered, owner: Owner, penalty: float, rate: float) -> None:
        first = network.first_layer()
        columns = owner.narrow(torch.ones(1, owner.columns, device=first.device))[0]
        told = torch.tensor([penalty], device=first.device)
        super().__init__(network, owner, told, columns.sqrt(), rate)
        self._squares = torch.ones_like(self.weights)

    def look(self, batch: Batch, state: State) -> None:
        self._squares.lerp_(self._owner.narrow(batch.x.square().mean(1)), LATELY)

    def learn(self, grad: Tensor, state: State) -> None:
        size = self._squares.sqrt()
        lengths = self.lengths()
        bite = self._bite * size.clamp_min(1) * (1 - state.kept)
        left = (1 - bite / lengths.clamp_min(SMALLEST)).clamp_min_(0)
        self._body.shrink(self._owner.widen(left))
        self._lately.lerp_(lengths.mul_(left).mul_(size), LATELY)


class SteadyBatchAttention(BatchAttention):
    """Scores are the weights of late, so that no row has to be seen again."""

    judged_rows = 0

    def learn(self, grad: Tensor, state: State) -> None:
        super().learn(grad, state)
        self._seen.lerp_(self.weights, LATELY)

    def reset(self) -> None:
        super().reset()
        self._seen.zero_()
