"""Rows: some examples as a model takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Rows:
    """``numbers`` (n, p), ``places`` of categories (n, m), ``target`` and ``weights`` (n,)."""

    numbers: NDArray[np.float32]
    places: NDArray[np.int32]
    target: NDArray[Any]
    weights: NDArray[np.float32]

    @property
    def count(self) -> int:
        return len(self.weights)

    def take(self, which: slice | NDArray[np.int64]) -> Rows:
        """A slice of them is a look at the same memory, a list of numbers a copy."""
        every = self.numbers, self.places, self.target, self.weights
        if isinstance(which, slice):
            return Rows(*(values[which] for values in every))
        # Without a check of each number NumPy copies three times as fast; they come from a permutation.
        return Rows(*(values.take(which, axis=0, mode="clip") for values in every))


def join(some: Sequence[Rows]) -> Rows:
    if len(some) == 1:
        return some[0]
    return Rows(
        np.concatenate([rows.numbers for rows in some]),
        np.concatenate([rows.places for rows in some]),
        np.concatenate([rows.target for rows in some]),
        np.concatenate([rows.weights for rows in some]),
    )
