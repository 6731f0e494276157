"""Matrix products whose result does not depend on the number of threads.

A BLAS library on a CPU may divide a long sum among its threads, and then the last bits depend on their
number. It does not divide sums of a few hundred terms, so longer sums are split here, always at the same
places.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

PARALLEL_SIZE = 32_768  # elements from which torch divides a sum or an elementwise operation among threads
MAX_TERMS = 320  # terms per sum; with 400 and 8 threads, sums of some shapes were divided


def matmul(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """``a @ b`` for (T, m, n) and (T, n, p), written into ``out``."""
    if a.shape[2] <= MAX_TERMS:
        return torch.bmm(a, b, out=out)
    return chunked_matmul(split_terms(a, 2), split_terms(b, 1), out)


def split_terms(matrix: Tensor, dim: int) -> Sequence[Tensor]:
    """Chunks of equal length along ``dim``, the one that a product sums over; one chunk on an accelerator."""
    length = matrix.shape[dim]
    chunks = -(-length // MAX_TERMS) if matrix.device.type == "cpu" else 1
    return torch.split(matrix, -(-length // chunks), dim)


def chunked_matmul(a: Sequence[Tensor], b: Sequence[Tensor], out: Tensor) -> Tensor:
    """``matmul`` for factors already split by ``split_terms``, so that reused factors are split once."""
    torch.bmm(a[0], b[0], out=out)
    for left, right in zip(a[1:], b[1:], strict=True):
        out.baddbmm_(left, right)
    return out
