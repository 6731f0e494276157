"""The Triton kernel that sums the gradients of each row of an embedding table: one program per row."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def segment_sums(values, order, starts, sums, N, W: tl.constexpr, WP: tl.constexpr, BN: tl.constexpr):
    """Sum ``values[order[i]]`` (N, W) over the i of a segment, which ends where the next one starts.

    BN values are added at a time, always in the same order. WP is W padded to a power of two.
    """
    segment = tl.program_id(0)
    start = tl.load(starts + segment)
    end = tl.load(starts + segment + 1, mask=segment + 1 < tl.num_programs(0), other=N)
    column = tl.arange(0, WP)
    total = tl.zeros((WP,), dtype=tl.float32)
    for first in range(start, end, BN):
        i = first + tl.arange(0, BN)
        row = tl.load(order + i, mask=i < end, other=0)
        valid = (i < end)[:, None] & (column < W)[None, :]
        total += tl.sum(tl.load(values + row[:, None] * W + column[None, :], mask=valid, other=0.0), 0)
    tl.store(sums + segment * W + column, total, mask=column < W)
