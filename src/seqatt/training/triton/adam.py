"""Adam on a tile, for the kernels that end with an optimizer step."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def corrections(powers, rate):
    """Adam's pace and scale at this step: its bias corrections, in float64 as they are small differences."""
    pace = tl.load(rate) / (1.0 - tl.load(powers)).to(tl.float32)
    return pace, 1.0 / tl.sqrt((1.0 - tl.load(powers + 1)).to(tl.float32))


@triton.jit
def step(value, grad, first, second, place, live, pace, fix):
    """Adam on one tile: moments in place, the new values returned."""
    m = tl.load(first + place, mask=live, other=0.0)
    v = tl.load(second + place, mask=live, other=0.0)
    m += (grad - m) * 0.1
    v = v * 0.999 + grad * grad * 0.001
    tl.store(first + place, m, mask=live)
    tl.store(second + place, v, mask=live)
    return value - pace * m / (tl.sqrt(v) * fix + 1e-8)
