"""Adam over a few flat tensors: one fused kernel a step, and a way to forget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor


@lru_cache(maxsize=64)
def _numbers(block: int) -> tuple[Tensor, ...]:
    """Whole numbers as the optimizer's kernel wants them, 1024 to a block. Threads share them."""
    return torch.arange(1024 * block, 1024 * (block + 1), dtype=torch.float32).unbind()


class Adam:
    """Adam (Kingma and Ba 2015) for a few tensors, updated in place.

    torch.optim.Adam runs the same kernel behind five times its cost in Python; a step here is one call.
    """

    def __init__(self, params: Sequence[Tensor], rate: Tensor) -> None:
        self.params = list(params)
        self.rate = rate
        self.first = [torch.zeros_like(p) for p in self.params]
        self.second = [torch.zeros_like(p) for p in self.params]
        self.count = torch.zeros((), device=rate.device)
        self._one = torch.ones((), device=rate.device)
        self._on_cpu = rate.device.type == "cpu"
        self._steps = 0

    def step(self, grads: list[Tensor]) -> None:
        torch._fused_adam_(  # type: ignore[attr-defined]
            self.params,
            grads,
            self.first,
            self.second,
            [],
            [self._next_count()] * len(self.params),
            lr=self.rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def _next_count(self) -> Tensor:
        """The step's number, in the device's memory; a CPU's are made once for all."""
        if not self._on_cpu:
            return self.count.add_(self._one)
        self._steps += 1
        return _numbers(self._steps // 1024)[self._steps % 1024]

    @property
    def steps(self) -> int:
        """Taken so far on a CPU; an accelerator counts them in ``count``."""
        return self._steps

    @steps.setter
    def steps(self, steps: int) -> None:
        self._steps = steps

    def forget(self) -> None:
        """Start afresh: moments and count to zero, so that the bias correction starts afresh too."""
        self._steps = 0
        for tensor in (*self.first, *self.second, self.count):
            tensor.zero_()
