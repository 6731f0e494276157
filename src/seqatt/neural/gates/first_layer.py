"""Contributions to the first layer's sums (Roy et al. 2015)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from seqatt.neural.body import Body
from seqatt.neural.gates.gate import Open
from seqatt.neural.owner import Owner
from seqatt.neural.rows import Batch
from seqatt.neural.state import State


class FirstLayer(Open):
    """A feature's share of what reaches a hidden unit, ``|x_f w_uf|`` on the average row; of all units."""

    judged_rows = 2048

    def __init__(self, body: Body, owner: Owner) -> None:
        layer = body.first_layer()
        self._body = body
        self._owner = owner
        self.weights = torch.ones(len(layer), owner.features, device=layer.device)
        self._shares = torch.zeros_like(self.weights)

    def judge(self, batches: Iterable[Batch], state: State) -> None:
        sums = [batch.x.abs().sum(1) for batch in batches]
        reach = self._body.first_layer().abs() * torch.stack(sums).sum(0).unsqueeze(1)
        shares = reach / reach.sum(2, keepdim=True).clamp_min(torch.finfo(reach.dtype).tiny)
        self._shares.copy_(self._owner.narrow(shares.sum(1)))

    def scores(self) -> Tensor:
        return self._shares
