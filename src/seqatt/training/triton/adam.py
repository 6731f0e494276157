"""Adam on one tile, for kernels that end with an optimizer step."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def bias_corrections(beta_powers, lr):
    """Adam's bias corrections: the step size, and the factor 1 / sqrt(1 - beta2^t) of the root of exp_avg_sq.

    ``beta_powers`` points to beta1^t and beta2^t in float64, because 1 - beta^t is a small difference.
    """
    step_size = tl.load(lr) / (1.0 - tl.load(beta_powers)).to(tl.float32)
    return step_size, 1.0 / tl.sqrt((1.0 - tl.load(beta_powers + 1)).to(tl.float32))


@triton.jit
def adam_step(value, grad, exp_avg, exp_avg_sq, address, valid, step_size, v_scale):
    """Adam on one tile: updates the moments in place and returns the new values."""
    m = tl.load(exp_avg + address, mask=valid, other=0.0)
    v = tl.load(exp_avg_sq + address, mask=valid, other=0.0)
    m += (grad - m) * 0.1
    v = v * 0.999 + grad * grad * 0.001
    tl.store(exp_avg + address, m, mask=valid)
    tl.store(exp_avg_sq + address, v, mask=valid)
    return value - step_size * m / (tl.sqrt(v) * v_scale + 1e-8)
