"""LinearPath, the result of the linear methods, and the numerical tolerances the methods share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqatt.linear.inputs import FeatureBlocks
from seqatt.linear.threads import Floats

TIE = 1e-9  # relative difference below which two scores tie; the lowest feature index wins
NEGLIGIBLE = 1e-12  # correlations below this, relative to |column| * |target|, are rounding errors
DEPENDENT = 1e-12  # share of a column's squared length that counts as zero when computed from a Gram
DEPENDENT_ROWS = 1e-20  # the same when computed from an orthonormal basis of the rows' columns

ZERO_RESIDUAL = "the residual is zero: the selected features explain the target exactly"
UNCORRELATED = "no remaining feature is correlated with the residual: nothing more can be explained"
ALL_DEPENDENT = "the remaining columns are linear combinations of the selected ones"


@dataclass(frozen=True, eq=False)
class LinearPath:
    """Features in the order of their selection.

    Attributes
    ----------
    order : selected features.
    scores : (len(order),), the score that feature ``order[i]`` was selected by.
    losses : (len(order),), residual sum of squares after feature ``order[i]`` was added.
    null_loss : residual sum of squares without any feature.
    coef : (columns,) or (columns, targets), least squares coefficients; zero for columns not selected.
    stopped : why fewer than k features were selected; None if there are k.
    """

    order: list[int]
    scores: Floats
    losses: Floats
    null_loss: float
    coef: Floats
    stopped: str | None

    @property
    def support(self) -> NDArray[np.intp]:
        """The selected features, sorted."""
        return np.sort(np.array(self.order, dtype=np.intp))


def argmax_lowest(scores: Floats) -> int:
    """Index of the largest score; the lowest index among scores that tie within ``TIE``."""
    largest = scores.item(scores.argmax())
    return int((scores >= largest * (1 - TIE)).argmax())


def rounding_floor(squared_norms: Floats, target_square: float, blocks: FeatureBlocks) -> Floats:
    """The score per feature that rounding errors alone can produce.

    ``squared_norms`` are squared column lengths (d,), ``target_square`` the squared length of the target.
    """
    return NEGLIGIBLE * np.sqrt(target_square * blocks.block_max(squared_norms))


def stop_reason(loss: float, null_loss: float, dependent: bool, resolution: float) -> str:
    """Why a path ended early; losses below ``resolution * null_loss`` count as zero."""
    if loss <= resolution * null_loss:
        return ZERO_RESIDUAL
    return ALL_DEPENDENT if dependent else UNCORRELATED
