"""Mutual information of discrete variables, from counts in their joint table with the target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.filters.variables import Codes

Floats = NDArray[np.float64]


class InformationSource(Protocol):
    """Computes the information of variables about the targets."""

    def information(self, variable: int, given: int | None = None) -> Floats:
        """``I(Y; X)`` or ``I(Y; X | Z)`` in nats, one value per target Y."""


@dataclass(frozen=True)
class JointCounts:
    """``codes`` (variables, n) are small integers; ``outputs`` has the class numbers (n,) of each target."""

    codes: NDArray[Any]
    outputs: list[Codes]
    weights: NDArray[Any] | None = None

    @cached_property
    def widths(self) -> list[int]:
        """The number of codes of each variable."""
        return [int(row.max()) + 1 for row in self.codes]

    @cached_property
    def classes(self) -> list[int]:
        """The number of classes of each target."""
        return [int(output.max()) + 1 for output in self.outputs]

    def information(self, variable: int, given: int | None = None) -> Floats:
        """``I(Y; X)`` or ``I(Y; X | Z)`` in nats, one value per target Y."""
        information = np.empty(len(self.outputs))
        width = self.widths[variable]
        given_width = 1 if given is None else self.widths[given]
        for o, (output, classes) in enumerate(zip(self.outputs, self.classes, strict=True)):
            cell = output if given is None else self.codes[given].astype(np.intp) * classes + output
            cell = cell * width
            cell += self.codes[variable]
            table = np.bincount(cell, self.weights, given_width * classes * width).astype(np.float64)
            information[o] = mutual_information_of(table.reshape(given_width, classes, width))
        return information


def mutual_information_of(table: Floats) -> float:
    """``I(Y; X | Z) = H(Z, Y) + H(Z, X) - H(Z) - H(Z, Y, X)`` in nats, from counts (z, y, x)."""
    share = table / table.sum()
    pairs = _entropy(share.sum(2)) + _entropy(share.sum(1))
    return max(0.0, float(pairs - _entropy(share.sum((1, 2))) - _entropy(share)))


def _entropy(share: Floats) -> float:
    positive = share[share > 0]
    return float(-(positive @ np.log(positive)))
