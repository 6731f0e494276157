"""Theoretical guarantees for a selected set of features, computed on the given data.

Das and Kempe (2011): the submodularity ratio of R^2 is at least the smallest sparse eigenvalue of the
correlation matrix, and the k features that OMP selects reach at least ``1 - exp(-ratio * lambda_min)`` times
the R^2 of the best k features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from seqatt.linear.design_matrix import NO_COLUMNS
from seqatt.linear.gram import Gram, NormalEquations
from seqatt.linear.inputs import make_design, read_blocks
from seqatt.linear.path import DEPENDENT, LinearPath
from seqatt.linear.threads import Floats
from seqatt.validation import show


@dataclass(frozen=True)
class Guarantees:
    """Guarantees for a selected set S; columns are centred and scaled to equal length.

    Attributes
    ----------
    selected : the features in S.
    relative_error : squared error of the fit on S over that of the full least squares fit (kappa of
        equation 2); infinite if the full fit is exact and the fit on S is not.
    r2, full_r2 : shares of the target's variance explained by S and by all columns.
    smallest, largest : extreme eigenvalues of the correlation matrix of the columns in S.
    ratio : lower bound of the submodularity ratio, the smallest eigenvalue of the correlation matrix of all
        columns. It is 0, and guarantees nothing, if there are more columns than rows. Within S alone the
        submodularity ratio is at least ``smallest``.
    share : lower bound of OMP's R^2 over that of the best set of the same size.

    ``ratio`` and ``share`` are theorems for one target and features of one column each.
    """

    selected: list[int]
    relative_error: float
    r2: float
    full_r2: float
    smallest: float
    largest: float
    ratio: float
    share: float

    def __str__(self) -> str:
        return (
            f"{len(self.selected)} features explain {self.r2:.4f} of the variance, all of them "
            f"{self.full_r2:.4f} (squared error {self.relative_error:.4g} times the full fit's).\n"
            f"Eigenvalues of the selected columns' correlations: {self.smallest:.4g} to {self.largest:.4g}.\n"
            f"Submodularity ratio at least {self.ratio:.4g}: "
            f"OMP reaches at least {self.share:.4g} of the best set's R^2."
        )


def guarantees(
    X: Any,
    y: Any = None,
    selected: Any = None,
    *,
    centre: bool = True,
    sample_weight: Any = None,
    groups: Any = None,
) -> Guarantees:
    """Theoretical guarantees for the features ``selected`` in least squares on these rows.

    Parameters
    ----------
    X, y, sample_weight, groups : as in ``omp``.
    selected : list of features, or a LinearPath.
    centre : bool, default True. Subtract means.

    Returns
    -------
    Guarantees

    Examples
    --------
    >>> import numpy as np
    >>> from seqatt.linear import guarantees, omp
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> y = X[:, 0] + X[:, 3]
    >>> round(guarantees(X, y, omp(X, y, k=2)).r2, 6)
    1.0

    References
    ----------
    Das, Kempe: Submodular meets Spectral, ICML 2011.
    """
    if isinstance(X, Gram):
        normal, columns = X.normal(centre=centre), X.features
    else:
        design, targets, _ = make_design(X, y, sample_weight, centre=centre, scale=False)
        cross = design.products(NO_COLUMNS, targets).T
        normal = NormalEquations(design.square(), cross, np.sum(targets**2, axis=0))
        columns = design.d
    blocks = read_blocks(groups, columns)
    features = _read_features(selected, blocks.count)
    return _compute(normal, features, blocks.columns(features))


def _read_features(selected: Any, count: int) -> list[int]:
    features = list(
        selected.order if isinstance(selected, LinearPath) else selected if selected is not None else []
    )
    if not features or len(set(features)) < len(features):
        raise ValueError("selected: must be a LinearPath or a list of distinct features, not empty")
    for feature in features:
        if isinstance(feature, bool) or not hasattr(feature, "__index__") or not 0 <= feature < count:
            raise ValueError(
                f"selected: {show(feature)} is not a feature; use whole numbers from 0 to {count - 1}"
            )
    return [int(feature) for feature in features]


def _compute(normal: NormalEquations, features: list[int], columns: Any) -> Guarantees:
    squared_norms = np.diag(normal.square)
    varying = np.flatnonzero(squared_norms > 0)
    total = float(normal.target_squares.sum())
    if total <= 0 or not len(varying):
        raise ValueError("y: y or every column of X is constant; there is no variance to explain")
    unit = np.sqrt(np.where(squared_norms > 0, squared_norms, 1.0))
    correlations = normal.square / unit / unit[:, None]
    cross = normal.cross / unit[:, None]
    values, explained = _fit(correlations[np.ix_(varying, varying)], cross[varying])
    selected_values, selected_explained = _fit(correlations[np.ix_(columns, columns)], cross[columns])
    full = max(0.0, total - explained)
    loss = max(full, total - selected_explained)
    floor = 1e-12 * total
    ratio = max(0.0, float(values[0]))
    return Guarantees(
        features,
        1.0 if loss <= floor else loss / full if full > floor else float("inf"),
        1 - loss / total,
        1 - full / total,
        max(0.0, float(selected_values[0])),
        float(selected_values[-1]),
        min(1.0, ratio),
        float(1 - np.exp(-(min(1.0, ratio) ** 2))),
    )


def _fit(correlations: Floats, cross: Floats) -> tuple[Floats, float]:
    """Eigenvalues of ``correlations`` (ascending), and the sum of squares that least squares explains."""
    values, vectors = np.linalg.eigh(correlations)
    nonzero = values > DEPENDENT * len(values) * values[-1]
    return values, float(np.sum((vectors[:, nonzero].T @ cross) ** 2 / values[nonzero, None]))
