"""Information about a target, exact for codes: sums over the joint table of two variables and the target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.binning import Codes

Floats = NDArray[np.float64]


class InformationSource(Protocol):
    """Whatever can say how much variables tell about targets."""

    def information(self, variable: int, given: int | None = None) -> Floats:
        """``I(Y; X)`` or ``I(Y; X | Z)`` in nats, for every target Y."""


@dataclass(frozen=True)
class JointCounts:
    """``codes`` (variables, n), small whole numbers; ``outputs``, class numbers of each target."""

    codes: NDArray[Any]
    outputs: list[Codes]
    weights: NDArray[Any] | None = None

    @cached_property
    def widths(self) -> list[int]:
        return [int(row.max()) + 1 for row in self.codes]

    @cached_property
    def classes(self) -> list[int]:
        return [int(output.max()) + 1 for output in self.outputs]

    def information(self, variable: int, given: int | None = None) -> Floats:
        """``I(Y; X)`` or ``I(Y; X | Z)`` in nats, for every target Y."""
        found = np.empty(len(self.outputs))
        wide = self.widths[variable]
        groups = 1 if given is None else self.widths[given]
        for o, (output, classes) in enumerate(zip(self.outputs, self.classes, strict=True)):
            cell = output if given is None else self.codes[given].astype(np.intp) * classes + output
            cell = cell * wide
            cell += self.codes[variable]
            table = np.bincount(cell, self.weights, groups * classes * wide).astype(np.float64)
            found[o] = mutual_information_of(table.reshape(groups, classes, wide))
        return found


def mutual_information_of(table: Floats) -> float:
    """``H(Z, Y) + H(Z, X) - H(Z) - H(Z, Y, X)`` of a table (z, y, x)."""
    share = table / table.sum()
    pairs = _entropy(share.sum(2)) + _entropy(share.sum(1))
    return max(0.0, float(pairs - _entropy(share.sum((1, 2))) - _entropy(share)))


def _entropy(share: Floats) -> float:
    there = share[share > 0]
    return float(-(there @ np.log(there)))
