"""Path: what the linear methods found, and the rules they share on when two numbers are one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqatt.linear.inputs import FeatureBlocks
from seqatt.linear.threads import Floats

TIE = 1e-9  # scores this close, relatively, are one; the lowest feature is taken
NEGLIGIBLE = 1e-12  # a correlation this small beside the lengths of column and target is rounding
DEPENDENT = 1e-12  # of a squared length: what a Gram can still tell from zero
DEPENDENT_ROWS = 1e-20  # the same for an orthonormal basis, made from the rows themselves

NOTHING_LEFT = "the residual is zero: the chosen features explain the target exactly"
ORTHOGONAL = "no remaining feature is correlated with the residual: nothing more can be explained"
ALL_DEPENDENT = "the remaining columns are linear combinations of the chosen ones"


@dataclass(frozen=True, eq=False)
class LinearPath:
    """Features in the order chosen.

    ``scores[i]`` is what feature ``order[i]`` was chosen by and ``losses[i]`` the residual sum of squares
    once it is in; ``null_loss`` is the one before. ``coef`` are the least squares coefficients of the
    chosen columns, zero elsewhere, shaped like ``(columns,)`` or ``(columns, targets)``. ``stopped`` says
    why there are fewer than asked for, or is None.
    """

    order: list[int]
    scores: Floats
    losses: Floats
    null_loss: float
    coef: Floats
    stopped: str | None

    @property
    def support(self) -> NDArray[np.intp]:
        """The chosen features, sorted."""
        return np.sort(np.array(self.order, dtype=np.intp))


def pick(scores: Floats) -> int:
    """The largest score; of several that tie, the lowest index."""
    top = scores.item(scores.argmax())
    return int((scores >= top * (1 - TIE)).argmax())


def negligible(norms: Floats, energy: float, blocks: FeatureBlocks) -> Floats:
    """For each feature the score that rounding alone could give it."""
    return NEGLIGIBLE * np.sqrt(energy * blocks.most(norms))


def why_stopped(loss: float, null_loss: float, dependent: bool, resolution: float) -> str:
    if loss <= resolution * null_loss:
        return NOTHING_LEFT
    return ALL_DEPENDENT if dependent else ORTHOGONAL
