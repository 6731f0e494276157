"""Adam for a few tensors: one fused kernel per step, many steps without a gradient at once, and a reset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from seqatt.training.backend import torch_private

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
# A step moves each parameter by the learning rate times its moving average of gradients, over the root mean square of
# its gradients. Parameters have converged if the last gradients alone, and the moving averages, over these root mean
# squares are smaller than this on average.
CONVERGED_GRADIENT, CONVERGED_MOMENTUM = 2e-3, 0.1


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
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=0.0,
            eps=EPS,
            amsgrad=False,
            maximize=False,
        )

    def _next_step(self) -> Tensor:
        """The number of the step as a tensor on the device; on a CPU from a table, which is faster."""
        if not self._on_cpu:
            return self.step_count.add_(self._one)
        self.steps += 1
        return _step_numbers(self.steps // 1024)[self.steps % 1024]

    def has_converged(self, grads: Sequence[Tensor]) -> bool:
        """Whether, on a CPU, further steps would change hardly anything: not by these gradients, nor by momentum."""
        return (
            self._relative_size(grads) < CONVERGED_GRADIENT
            and self._relative_size(self.exp_avg) < CONVERGED_MOMENTUM
        )

    def _relative_size(self, tensors: Sequence[Tensor]) -> float:
        """The root mean square of values over the root mean squares of the gradients of their parameters."""
        tiny = torch.finfo(torch.float32).tiny
        ratios = [t.square().div_(v.clamp_min(tiny)) for t, v in zip(tensors, self.exp_avg_sq, strict=True)]
        # NumPy adds on one thread, so that the sum does not depend on the number of threads.
        total = sum(float(np.sum(ratio.numpy())) for ratio in ratios)
        return math.sqrt(total / sum(ratio.numel() for ratio in ratios) * (1 - BETA2**self.steps))

    def step_without_gradients(self, steps: int) -> None:
        """As many steps with gradients of zero, on a CPU, at the cost of one.

        Step j after step t moves a parameter by ``lr * BETA1**j * m / (1 - BETA1**(t + j))`` over the root of
        ``BETA2**j * v / (1 - BETA2**(t + j))``. So the sum over j is m over the root of v, times a number.
        """
        numbers = [(j, self.steps + j) for j in range(1, steps + 1)]
        factor = sum(BETA1**j / (1 - BETA1**t) * math.sqrt((1 - BETA2**t) / BETA2**j) for j, t in numbers)
        distance = float(self.lr) * factor
        eps = EPS * math.sqrt(1 - BETA2**self.steps)
        for param, m, v in zip(self.params, self.exp_avg, self.exp_avg_sq, strict=True):
            # One operation after the other: each is rounded in the same way on every thread.
            param.sub_(v.sqrt().add_(eps).reciprocal_().mul_(m).mul_(distance))
            m.mul_(BETA1**steps)
            v.mul_(BETA2**steps)
        self.steps += steps

    def reset(self) -> None:
        """Set moments and step count to zero, so that the bias correction starts anew too."""
        self.steps = 0
        for tensor in (*self.exp_avg, *self.exp_avg_sq, self.step_count):
            tensor.zero_()
