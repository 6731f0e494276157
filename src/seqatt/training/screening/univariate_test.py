"""What each feature says about the target by itself, measured against what chance would say.

A network with many columns and few rows finds a use for noise. Before anything is trained, the gradient of
the loss of a model that knows no feature is the correlation of each feature with the target: the first step
of OMP, and a test whose distribution under chance is known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from seqatt.training.screening.row_sample import RowSample, weighted_products

Floats = NDArray[np.float64]


def univariate_test(sample: RowSample) -> Floats:
    """-log10 of the share of false findings among features that stand out as much: 0 is what chance gives."""
    source = sample.source
    rest = _rest(sample)
    found = np.zeros(source.features)
    varying = np.flatnonzero(~source.constant)
    if rest.shape[1]:
        found[varying] = -np.log10(benjamini_hochberg(_by_chance(sample, rest)[varying]))
    return found


def _rest(sample: RowSample) -> Floats:
    """What a constant leaves of the target, as orthonormal columns (weighted)."""
    target, weights = sample.source.target, sample.weights
    values = target.values[sample.rows]
    if target.task == "multiclass":
        values = np.eye(target.outputs)[values]
    rest = np.asarray(values, dtype=np.float64).reshape(len(weights), -1)
    rest = sample.less_mean(rest)
    lengths, turn = np.linalg.eigh(weighted_products(rest, weights[:, None] * rest))
    some = lengths > 1e-10 * max(lengths[-1], np.finfo(np.float64).tiny)
    return np.asarray(rest @ turn[:, some] / np.sqrt(lengths[some]))


def _by_chance(sample: RowSample, rest: Floats) -> Floats:
    """How likely chance explains as much of the rest (Pillai's trace and its F, exact for one column)."""
    source = sample.source
    with_rest, squares = sample.products(rest), sample.moments[0]
    share = np.zeros(source.features)
    width = np.bincount(source.feature_of, minlength=source.features)
    alone = width[source.feature_of] == 1
    varies = squares > 0
    single = alone & varies
    share[source.feature_of[single]] = (with_rest[single] ** 2).sum(1) / squares[single]
    for feature in np.flatnonzero(width > 1):
        columns = np.flatnonzero((source.feature_of == feature) & varies)
        share[feature], width[feature] = _block(sample, columns, with_rest[columns])
    count, outputs = sample.count, rest.shape[1]
    fewer = np.minimum(width, outputs)
    share = np.clip(share, 0, fewer)
    over = width * outputs
    under = fewer * (count - 1 - width - outputs + fewer)
    told = (under > 0) & (width > 0)
    p = np.ones(source.features)
    with np.errstate(divide="ignore"):
        ratio = share / (fewer - share) * under / np.maximum(over, 1)
    p[told] = fdtrc(over[told], under[told], ratio[told])
    return p


def _block(sample: RowSample, columns: NDArray[np.int64], with_rest: Floats) -> tuple[float, int]:
    """The share of the rest that several columns explain together, and how many of them count."""
    opened = sample.centred(columns)
    lengths, turn = np.linalg.eigh(weighted_products(opened, sample.weights[:, None] * opened))
    some = lengths > 1e-8 * max(lengths[-1], 1e-8) if len(lengths) else lengths > 0
    turned = (turn[:, some].T @ with_rest) / np.sqrt(lengths[some])[:, None]
    return float((turned**2).sum()), int(some.sum())


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's: the share of false findings if all with a p as small were called findings."""
    order = np.argsort(p, kind="stable")
    share = p[order] * len(p) / np.arange(1, len(p) + 1)
    found = np.empty_like(p)
    found[order] = np.minimum.accumulate(share[::-1])[::-1]
    return np.clip(found, np.finfo(np.float64).tiny, 1.0)
