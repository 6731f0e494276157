"""Adam for a few tensors: one fused kernel per step, and a reset."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from seqatt.training.backend import torch_private


@lru_cache(maxsize=64)
def _step_numbers(block: int) -> tuple[Tensor, ...]:
    """Step numbers as the scalar tensors that the kernel expects, 1024 per block. Threads share them."""
    return torch.arange(1024 * block, 1024 * (block + 1), dtype=torch.float32).unbind()


class Adam:
    """Adam (Kingma and Ba 2015) for a few tensors, updated in place.

    torch.optim.Adam runs the same kernel, but costs about five times as much in Python; a step here is one
    call. ``lr`` is a scalar tensor on the device of the parameters. ``steps`` counts the steps on a CPU,
    ``step_count`` those on an accelerator.
    """

    def __init__(self, params: Sequence[Tensor], lr: Tensor) -> None:
        self.params = list(params)
        self.lr = lr
        self.exp_avg = [torch.zeros_like(p) for p in self.params]
        self.exp_avg_sq = [torch.zeros_like(p) for p in self.params]
        self.step_count = torch.zeros((), device=lr.device)
        self.steps = 0
        self._one = torch.ones((), device=lr.device)
        self._on_cpu = lr.device.type == "cpu"

    def step(self, grads: list[Tensor]) -> None:
        torch_private.fused_adam_(
            self.params,
            grads,
            self.exp_avg,
            self.exp_avg_sq,
            [],
            [self._next_step()] * len(self.params),
            lr=self.lr,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def _next_step(self) -> Tensor:
        """The number of the step as a tensor on the device; on a CPU from a table, which is faster."""
        if not self._on_cpu:
            return self.step_count.add_(self._one)
        self.steps += 1
        return _step_numbers(self.steps // 1024)[self.steps % 1024]

    def reset(self) -> None:
        """Set moments and step count to zero, so that the bias correction starts anew too."""
        self.steps = 0
        for tensor in (*self.exp_avg, *self.exp_avg_sq, self.step_count):
            tensor.zero_()
