"""Gaussian knockoffs: several copies of normal scores that have their correlations but know nothing of the target.

Copies 1 to m of column j are exchangeable with the column itself: every copy has the covariance ``C`` of the columns
within itself, and ``C - S`` with the columns and with every other copy (Gimenez and Zou, 2019; m = 1 is Candès et al.,
2018). S is diagonal, or block diagonal if columns are grouped. The larger it is, the less a copy looks like its
column. Here it minimises the variance of what is left of each column and copy given all others (Spector and Janson,
2022), which keeps power where columns are strongly correlated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

MAX_ITERATIONS = 30  # of the search for S
TOLERANCE = 1e-3  # relative decrease of its objective at which it ends
SHRINKAGE_SHARE = 0.5  # of the shrinkage that estimates the correlations best
SWEEPS = 20  # of the sampler of scores with ties
TIED_SHARE = 0.5  # of different values among the rows, below which ties matter
MIN_EIGENVALUE = 1e-6  # of the correlation matrix, after shrinkage; below, columns are copies of each other


def normal_scores(keys: Floats, rng: np.random.Generator) -> Floats:
    """Keys (n, p) as normal quantiles of their ranks per column; equal keys are ranked at random."""
    rows = len(keys)
    quantiles = ndtri((np.arange(rows) + 0.5) / rows)
    quantiles /= quantiles.std()
    scores = np.empty(keys.shape)
    for column in range(keys.shape[1]):
        shuffled = rng.permutation(rows)
        order = shuffled[np.argsort(keys[shuffled, column], kind="stable")]
        scores[order, column] = quantiles
    return scores


def draw_ties(keys: Floats, scores: Floats, rng: np.random.Generator) -> Floats:
    """Scores (n, p) in which the ranks of equal keys depend on the other columns as the ranks of the keys do.

    Random ranks would make the scores, and the knockoffs made of them, less correlated than the columns. So the scores
    of a column with ties are drawn given those of the others, each between the quantiles of its key, and the
    correlations estimated again, in turns (a Gibbs sampler of the Gaussian copula: Hoff, 2007).
    """
    rows = len(keys)
    bounds = {}
    for column in range(keys.shape[1]):
        _, group, counts = np.unique(keys[:, column], return_inverse=True, return_counts=True)
        if len(counts) < TIED_SHARE * rows:
            bounds[column] = ndtri(np.r_[0.0, np.cumsum(counts) / rows].clip(0, 1)), group
    scores = scores.copy()
    for _ in range(SWEEPS if bounds else 0):
        inverse = np.linalg.inv(shrunk_correlations(scores))
        for column, (cuts, group) in bounds.items():
            spread = 1 / np.sqrt(inverse[column, column])
            mean = scores[:, column] - scores @ inverse[:, column] * spread**2
            low, high = (ndtr((cut - mean) / spread) for cut in (cuts[group], cuts[group + 1]))
            drawn = mean + spread * ndtri(low + (high - low) * rng.uniform(1e-9, 1 - 1e-9, rows))
            scores[:, column] = np.clip(drawn, cuts[group].clip(-9), cuts[group + 1].clip(max=9))
        scores = (scores - scores.mean(0)) / scores.std(0)
    return scores


def shrunk_correlations(scores: Floats) -> Floats:
    """The correlations (p, p) of standardised columns (n, p), shrunk towards the identity.

    They are shrunk half as far as by Ledoit and Wolf (2004): knockoffs with less correlation than the columns break the
    rate, those with more only cost power.
    """
    rows, count = scores.shape
    sample = scores.T @ scores / rows
    distance = float(((sample - np.eye(count)) ** 2).sum())
    noise = float(((scores**2).sum(1) ** 2).sum() / rows - (sample**2).sum()) / rows
    shrinkage = SHRINKAGE_SHARE * min(1.0, max(0.0, noise) / distance) if distance > 0 else 1.0
    lowest = float(np.linalg.eigvalsh(sample)[0])
    if lowest < MIN_EIGENVALUE:  # exact copies of columns, or fewer rows than columns
        shrinkage = max(shrinkage, (MIN_EIGENVALUE - lowest) / (1 - lowest))
    matrix = (1 - shrinkage) * sample
    np.fill_diagonal(matrix, 1.0)
    return np.asarray(matrix)


def choose_s(matrix: Floats, copies: int) -> Floats:
    """The diagonal (p,) of S: it minimises the trace of the inverse covariance of the columns and their copies.

    With A = (m + 1) C - m S that is trace(A^-1) + m sum(1 / s). All coordinates move at once, each in the direction of
    its own minimum and as far as the objective decreases.
    """
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    s = np.full(len(matrix), min(1.0, 0.9 * (copies + 1) / copies * lowest))
    value, inverse = _objective(matrix, s, copies)
    for _ in range(MAX_ITERATIONS):
        assert inverse is not None  # the first S is feasible
        norm = np.sqrt((inverse**2).sum(0))
        move = (1 - norm * s) / (norm + copies * np.diag(inverse))
        step, before = 1.0, value
        while step > 1e-3:
            changed, its_inverse = _objective(matrix, s + step * move, copies)
            if changed < value:
                s, value, inverse = s + step * move, changed, its_inverse
                break
            step /= 2
        if before - value <= TOLERANCE * before:
            break
    return s


def _objective(matrix: Floats, s: Floats, copies: int) -> tuple[float, Floats | None]:
    """The objective, infinite where S is not allowed, and the inverse of A."""
    if s.min() <= 0:
        return np.inf, None
    a = (copies + 1) * matrix
    a[np.diag_indices_from(a)] -= copies * s
    try:
        inverse = cho_solve(cho_factor(a, lower=True), np.eye(len(a)))
    except LinAlgError:
        return np.inf, None
    return float(np.trace(inverse) + copies * (1 / s).sum()), inverse


def sample_knockoffs(
    scores: Floats, matrix: Floats, s: Floats, copies: int, rng: np.random.Generator
) -> Floats:
    """Copies (m, n, p) of the scores (n, p), whose correlation matrix is ``matrix``.

    Given the columns, a copy has mean X - X C^-1 S; its covariance with itself is 2 S - S C^-1 S, that with
    another copy S less.
    """
    rows, count = scores.shape
    weights = cho_solve(cho_factor(matrix, lower=True), np.diag(s))  # C^-1 S
    noise = rng.standard_normal((copies, rows, count)) * np.sqrt(s)
    mean_covariance = (np.diag(s) * (copies + 1) - copies * s[:, None] * weights) / copies
    mean_covariance[np.diag_indices(count)] += 1e-9
    shared = rng.standard_normal((rows, count)) @ cholesky(mean_covariance, lower=False)
    return np.asarray(scores - scores @ weights + shared + (noise - noise.mean(0)))
