"""Matrix products whose answer does not depend on the number of threads.

A CPU's library divides a long sum among its threads, and then the last digits depend on how many there
are. Sums of some hundred terms it leaves whole, so longer ones are cut here, always at the same places.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

PARALLEL_SIZE = 32_768  # numbers from which threads divide a sum or an elementwise operation
MAX_TERMS = 320  # terms; from 400 on some shapes were divided, on 8 threads


def matmul(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """``a @ b`` of (T, m, n) and (T, n, p), into ``out``."""
    if a.shape[2] <= MAX_TERMS:
        return torch.bmm(a, b, out=out)
    return chunked_matmul(split_terms(a, 2), split_terms(b, 1), out)


def split_terms(matrix: Tensor, dim: int) -> Sequence[Tensor]:
    """Even pieces along the side that a product sums over; an accelerator's products stay whole."""
    length = matrix.shape[dim]
    pieces = -(-length // MAX_TERMS) if matrix.device.type == "cpu" else 1
    return torch.split(matrix, -(-length // pieces), dim)


def chunked_matmul(a: Sequence[Tensor], b: Sequence[Tensor], out: Tensor) -> Tensor:
    """The same for factors that were cut before, for the sake of those used again and again."""
    torch.bmm(a[0], b[0], out=out)
    for left, right in zip(a[1:], b[1:], strict=True):
        out.baddbmm_(left, right)
    return out
