"""Dropout of inputs, from one bank of draws that every step reads from another place on.

Drawing a number for every input of every step would cost more than the step. A long row of draws, the same
for all, and a starting place drawn for each model and step is as good, and the same on every device.
"""

from __future__ import annotations

import torch
from torch import Tensor

OFFSETS = 1 << 20  # to start from


class InputDropout:
    """Inputs are dropped, that is become their column's mean, with probability ``rate``.

    Those that stay are scaled up in return where ``scaled``: right for a model that is only ever shown
    such inputs. A model that is to be used on whole ones must have seen them at their own scale.
    """

    def __init__(self, rate: float, cells: int, device: torch.device, *, scaled: bool = True) -> None:
        """``cells`` is the number of inputs in a batch of one model."""
        generator = torch.Generator().manual_seed(0)
        draws = torch.empty(cells + OFFSETS).bernoulli_(1 - rate, generator=generator)
        self.bank = (draws.div_(1 - rate) if scaled else draws).to(device)
        self._cells = torch.arange(cells, device=device) if device.type != "cpu" else None

    def draw_offsets(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.randint(OFFSETS, (count,), generator=generator, dtype=torch.int32)

    def apply(self, x: Tensor, places: Tensor) -> Tensor:
        """Drop some of the inputs (T, B, c) in place; each of the T models starts at its own place (T,)."""
        if self._cells is not None:
            cells = self._cells[: x[0].numel()]
            return x.mul_(self.bank[places[:, None] + cells].view(x.shape))
        for model, place in zip(x, places.tolist(), strict=True):
            model.mul_(self.bank[place : place + model.numel()].view(model.shape))
        return x
