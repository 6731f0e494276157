"""Gates where features have embeddings and rows come once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqatt.neural.gates.attention import Attention
from seqatt.neural.gates.batch_attention import BatchAttention
from seqatt.neural.gates.lasso import LATELY, SMALLEST, Lasso, Layered
from seqatt.neural.masks import Mask
from seqatt.neural.owner import Owner
from seqatt.neural.rows import Batch
from seqatt.neural.state import State
from seqatt.stream.exchange import Means

CARRIED = 0.5  # of the logits, from one choice to the next
FADING = (0.9, 0.999)  # Adam's
TINY = 1e-12


class EvenAttention(Attention):
    """Sequential Attention whose logits share one scale.

    Adam divides each gradient by its own size, so that all features with a steady gradient rise alike, and
    those that matter most are not told from those that are learnt first. Here all are divided by their common
    root mean square. A phase has few steps, so half of what it found is carried to the next.
    """

    def __init__(self, features: int, mask: Mask, rate: float, device: torch.device) -> None:
        super().__init__(1, features, mask, rate, device)
        self._mean = torch.zeros_like(self.logits)
        self._square = torch.zeros(1, 1, device=device)
        self._fading = torch.tensor(FADING, device=device)
        self._faded = torch.ones_like(self._fading)

    def learn(self, grad: Tensor, state: State) -> None:
        pulled = self.mask.pull(grad, self._shares, self.logits)
        self._mean.lerp_(pulled, 1 - FADING[0])
        self._square.lerp_(pulled.square().mean(1, keepdim=True), 1 - FADING[1])
        first, second = (1 - self._faded.mul_(self._fading)).unbind()
        pace = self._rate / (self._square / second).sqrt_().add_(TINY)
        self.logits.sub_(self._mean / first * pace)
        self.refresh(state)

    def reset(self) -> None:
        self.logits.mul_(CARRIED)
        self._mean.zero_()
        self._square.zero_()
        self._faded.fill_(1)


class EmbeddedLasso(Lasso):
    """``penalty * sum_f sqrt(size_f) ||W_f|| s_f`` over the features not chosen, size_f the columns of f.

    A network could make up for small weights by large embeddings, so what W_f multiplies counts: s_f is the
    root of the mean square of f's columns together, but at least 1, which is what numbers have. Features are
    compared by the length of W_f times that root itself.
    """

    def __init__(self, network: Layered, owner: Owner, penalty: float, rate: float, means: Means) -> None:
        first = network.first_layer()
        columns = owner.narrow(torch.ones(1, owner.columns, device=first.device))[0]
        told = torch.tensor([penalty], device=first.device)
        super().__init__(network, owner, told, columns.sqrt(), rate)
        self._squares = torch.ones_like(self.weights)
        self._means = means

    def look(self, batch: Batch, state: State) -> None:
        squares = self._owner.narrow(batch.x.square().mean(1))
        self._means.share([squares], batch.x.shape[1])
        self._squares.lerp_(squares, LATELY)

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

    def __init__(self, means: Means, *about: Any) -> None:
        self._means = means
        super().__init__(*about)

    def _share(self, means: list[Tensor], rows: int) -> None:
        self._means.share(means, rows)

    def learn(self, grad: Tensor, state: State) -> None:
        super().learn(grad, state)
        self._seen.lerp_(self.weights, LATELY)

    def reset(self) -> None:
        super().reset()
        self._seen.zero_()
