"""Dropout of inputs, from one bank of random factors that is shared by all steps.

Drawing a factor for every input of every step would cost more than the step itself. Instead a long bank of
factors is drawn once, and each model reads it from a random offset at each step. The bank is the same on
every device.
"""

from __future__ import annotations

import torch
from torch import Tensor

MAX_OFFSET = 1 << 20  # offsets into the bank are drawn from 0 to this, exclusive


class InputDropout:
    """Sets each input to 0, its column's mean, with probability ``rate``.

    With ``rescale`` the other inputs are divided by ``1 - rate``, which is right for a model that only ever
    sees inputs with dropout. A model that will be used without dropout must see inputs at their own scale.
    """

    def __init__(self, rate: float, cells: int, device: torch.device, *, rescale: bool = True) -> None:
        """``cells`` is the number of inputs in one model's batch: rows times columns."""
        generator = torch.Generator().manual_seed(0)
        factors = torch.empty(cells + MAX_OFFSET).bernoulli_(1 - rate, generator=generator)
        self.bank = (factors.div_(1 - rate) if rescale else factors).to(device)
        self._cells = torch.arange(cells, device=device) if device.type != "cpu" else None

    def draw_offsets(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.randint(MAX_OFFSET, (count,), generator=generator, dtype=torch.int32)

    def apply(self, x: Tensor, offsets: Tensor) -> Tensor:
        """Drop inputs ``x`` (T, B, c) in place; model t reads the bank from ``offsets[t]`` on."""
        if self._cells is not None:
            cells = self._cells[: x[0].numel()]
            return x.mul_(self.bank[offsets[:, None] + cells].view(x.shape))
        for inputs, offset in zip(x, offsets.tolist(), strict=True):
            inputs.mul_(self.bank[offset : offset + inputs.numel()].view(inputs.shape))
        return x

    def apply_to_codes(self, codes: Tensor, offsets: Tensor) -> Tensor:
        """Replace dropped codes (T, B, m) by code 0, that of rare values, in place."""
        cells = torch.arange(codes[0].numel(), device=codes.device)
        # From the end of the bank on, so that a row's codes are not dropped together with its first columns.
        kept = self.bank[(len(self.bank) - 1 - offsets[:, None]) - cells] > 0
        return codes.mul_(kept.view(codes.shape))
