"""What the theory promises of a chosen set, on the user's own data.

Das and Kempe (2011): the submodularity ratio of R^2 is at least the smallest sparse eigenvalue of the
correlation matrix, and OMP's set of k features explains at least ``1 - exp(-ratio * lambda_min)`` of what the
best k could.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from seqatt.linear.gram import Gram, NormalEquations
from seqatt.linear.inputs import make_design, read_blocks
from seqatt.linear.path import DEPENDENT, LinearPath
from seqatt.linear.threads import Floats


@dataclass(frozen=True)
class Guarantees:
    """Of a chosen set S, on centred columns of one length.

    ``relative_error`` is the squared error on S over the full least squares fit's (equation 2's kappa),
    infinite where the full fit is exact and S is not. ``r2`` and ``full_r2`` are the shares of the target's
    variance explained. ``smallest`` and ``largest`` are the extreme eigenvalues of the chosen columns'
    correlations. ``ratio`` bounds the submodularity ratio from below, by the smallest eigenvalue of all
    columns' correlations (0, and no promise, where there are more columns than rows); among the chosen alone
    it is at least ``smallest``. ``share`` is the share of the best set's R^2 that OMP is sure to reach. Both
    are theorems for one target and features of one column each.
    """

    chosen: list[int]
    relative_error: float
    r2: float
    full_r2: float
    smallest: float
    largest: float
    ratio: float
    share: float

    def __str__(self) -> str:
        return (
            f"{len(self.chosen)} features explain {self.r2:.4f} of the variance, all of them "
            f"{self.full_r2:.4f} (squared error {self.relative_error:.4g} times the full fit's).\n"
            f"Eigenvalues of the chosen columns' correlations: {self.smallest:.4g} to {self.largest:.4g}.\n"
            f"Submodularity ratio at least {self.ratio:.4g}: "
            f"OMP reaches at least {self.share:.4g} of the best set's R^2."
        )


def guarantees(
    X: Any,
    y: Any = None,
    chosen: Any = None,
    *,
    centre: bool = True,
    sample_weight: Any = None,
    groups: Any = None,
) -> Guarantees:
    """What theory says of the ``chosen`` features (a list, or a Path) for least squares on these rows.

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
        cross = design.products(np.empty(0, dtype=np.intp), targets).T
        normal = NormalEquations(design.square(), cross, np.sum(targets**2, axis=0))
        columns = design.d
    blocks = read_blocks(groups, columns)
    features = _features(chosen, blocks.count)
    return _report(normal, features, blocks.columns(features))


def _features(chosen: Any, count: int) -> list[int]:
    features = list(chosen.order if isinstance(chosen, LinearPath) else chosen if chosen is not None else [])
    if not features or len(set(features)) < len(features):
        raise ValueError("chosen: must be features, at least one and none twice, or a Path")
    for feature in features:
        if isinstance(feature, bool) or not hasattr(feature, "__index__") or not 0 <= feature < count:
            raise ValueError(f"chosen: {feature!r} is not a feature; they are 0 to {count - 1}")
    return [int(feature) for feature in features]


def _report(normal: NormalEquations, features: list[int], columns: Any) -> Guarantees:
    norms = np.diag(normal.square)
    alive = np.flatnonzero(norms > 0)
    total = float(normal.energy.sum())
    if total <= 0 or not len(alive):
        raise ValueError("y: constant, or every column of X is; there is nothing to explain")
    unit = np.sqrt(np.where(norms > 0, norms, 1.0))
    correlations = normal.square / unit / unit[:, None]
    cross = normal.cross / unit[:, None]
    values, explained = _fit(correlations[np.ix_(alive, alive)], cross[alive])
    own, own_explained = _fit(correlations[np.ix_(columns, columns)], cross[columns])
    full = max(0.0, total - explained)
    loss = max(full, total - own_explained)
    floor = 1e-12 * total
    ratio = max(0.0, float(values[0]))
    return Guarantees(
        features,
        1.0 if loss <= floor else loss / full if full > floor else float("inf"),
        1 - loss / total,
        1 - full / total,
        max(0.0, float(own[0])),
        float(own[-1]),
        min(1.0, ratio),
        float(1 - np.exp(-(min(1.0, ratio) ** 2))),
    )


def _fit(correlations: Floats, cross: Floats) -> tuple[Floats, float]:
    """Eigenvalues, and the energy that least squares explains."""
    values, vectors = np.linalg.eigh(correlations)
    kept = values > DEPENDENT * len(values) * values[-1]
    return values, float(np.sum((vectors[:, kept].T @ cross) ** 2 / values[kept, None]))
