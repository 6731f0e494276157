"""What each feature says about the target by itself, measured against what chance would say.

A network with many columns and few rows finds a use for noise. Before anything is trained, the gradient of
the loss of a model that knows no feature is the correlation of each feature with the target: the first step
of OMP, and a test whose distribution under chance is known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from seqatt.source import Source, SparseColumns

Floats = NDArray[np.float64]

BLOCK = 1 << 10  # columns looked at in one go
CELLS, FEWEST = 1 << 22, 1 << 11  # rows are drawn by lot, not fewer than these, where there are more cells


def evidence(source: Source) -> Floats:
    """-log10 of the share of false findings among features that stand out as much: 0 is what chance gives."""
    rows, share = _some_rows(source)
    weights = np.ones(len(rows)) if source.weights is None else source.weights[rows].astype(np.float64)
    weights *= share * source.worth / weights.sum()
    rest = _rest(source, rows, weights)
    found = np.zeros(source.features)
    varying = np.flatnonzero(~source.constant)
    if rest.shape[1]:
        found[varying] = -np.log10(_false_findings(_by_chance(source, rows, weights, rest)[varying]))
    return found


def _some_rows(source: Source) -> tuple[NDArray[np.int64], float]:
    """All, but of a large table some that have weight, the same every time; and which share they are."""
    everyone = np.arange(source.rows)
    enough = max(FEWEST, CELLS // len(source.owner))
    if source.rows <= enough or isinstance(source.columns, SparseColumns):
        return everyone, 1.0
    counting = everyone if source.weights is None else np.flatnonzero(source.weights)
    some = np.sort(np.random.default_rng(0).permutation(counting)[:enough])
    return some, len(some) / len(counting)


def _rest(source: Source, rows: NDArray[np.int64], weights: Floats) -> Floats:
    """What a constant leaves of the target, as orthonormal columns (weighted)."""
    values = source.target.values[rows]
    if source.target.task == "multiclass":
        values = np.eye(source.target.outputs)[values]
    rest = np.asarray(values, dtype=np.float64).reshape(len(rows), -1)
    rest = rest - weights @ rest / weights.sum()
    lengths, turn = np.linalg.eigh(rest.T @ (weights[:, None] * rest))
    some = lengths > 1e-10 * max(lengths[-1], np.finfo(np.float64).tiny)
    return np.asarray(rest @ turn[:, some] / np.sqrt(lengths[some]))


def _by_chance(source: Source, rows: NDArray[np.int64], weights: Floats, rest: Floats) -> Floats:
    """How likely chance explains as much of the rest (Pillai's trace and its F, exact for one column)."""
    with_rest, squares = _products(source, rows, weights, rest)
    share = np.zeros(source.features)
    width = np.bincount(source.owner, minlength=source.features)
    alone = width[source.owner] == 1
    varies = squares > 0
    single = alone & varies
    share[source.owner[single]] = (with_rest[single] ** 2).sum(1) / squares[single]
    for feature in np.flatnonzero(width > 1):
        columns = np.flatnonzero((source.owner == feature) & varies)
        share[feature], width[feature] = _block(_open(source, rows, columns), weights, with_rest[columns])
    count, outputs = weights.sum(), rest.shape[1]
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


def _products(
    source: Source, rows: NDArray[np.int64], weights: Floats, rest: Floats
) -> tuple[Floats, Floats]:
    """Every column's products with the rest (which sums to nothing), and its own squared length."""
    weighted = weights[:, None] * rest
    columns = source.columns
    if isinstance(columns, SparseColumns):
        data = columns.data.astype(np.float64)
        lengths = data.multiply(data).T @ weights
        squares = lengths - (data.T @ weights) ** 2 / weights.sum()
        squares[squares < 1e-9 * lengths] = 0
        return data.T @ weighted / columns.scale[:, None], squares / columns.scale**2
    products = np.empty((columns.shape[1], rest.shape[1]))
    squares = np.empty(columns.shape[1])
    for start in range(0, columns.shape[1], BLOCK):
        some = columns[rows, start : start + BLOCK].astype(np.float64)
        some -= weights @ some / weights.sum()
        products[start : start + BLOCK] = some.T @ weighted
        squares[start : start + BLOCK] = weights @ some**2
    squares[squares < 1e-9] = 0
    return products, squares


def _open(source: Source, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
    if isinstance(source.columns, SparseColumns):
        opened = source.columns.data[:, columns].toarray()
        return np.asarray((opened - source.columns.shift[columns]) / source.columns.scale[columns])
    return source.columns[np.ix_(rows, columns)].astype(np.float64)


def _block(columns: Floats, weights: Floats, with_rest: Floats) -> tuple[float, int]:
    """The share of the rest that several columns explain together, and how many of them count."""
    columns = columns - weights @ columns / weights.sum()
    lengths, turn = np.linalg.eigh(columns.T @ (weights[:, None] * columns))
    some = lengths > 1e-8 * max(lengths[-1], 1e-8) if len(lengths) else lengths > 0
    turned = (turn[:, some].T @ with_rest) / np.sqrt(lengths[some])[:, None]
    return float((turned**2).sum()), int(some.sum())


def _false_findings(p: Floats) -> Floats:
    """Benjamini and Hochberg's: the share of false findings if all with a p as small were called findings."""
    order = np.argsort(p, kind="stable")
    share = p[order] * len(p) / np.arange(1, len(p) + 1)
    found = np.empty_like(p)
    found[order] = np.minimum.accumulate(share[::-1])[::-1]
    return np.clip(found, np.finfo(np.float64).tiny, 1.0)
