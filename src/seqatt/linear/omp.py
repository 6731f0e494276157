"""Orthogonal Matching Pursuit, Algorithm 2: repeatedly select the feature most correlated with the residual.

With a Gram matrix, an incremental Cholesky factor updates the correlations (``ResidualFromGram``). From rows, only
the columns of the Gram matrix that are needed are computed (``GramColumns``). Where the Gram matrix is too imprecise,
an orthonormal basis of the selected columns continues, with one pass over the rows per step (``ResidualFromRows``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seqatt.linear.design_matrix import NO_COLUMNS, DesignMatrix
from seqatt.linear.gram import Gram
from seqatt.linear.gram_columns import GramColumns
from seqatt.linear.inputs import FeatureBlocks, check_finite, make_design, read_blocks, read_k
from seqatt.linear.path import LinearPath
from seqatt.linear.residual_problem import ResidualFromGram, ResidualFromRows
from seqatt.linear.stepwise import read_problem, select_stepwise
from seqatt.linear.threads import Floats, single_blas_thread

FULL_GRAM_RATIO = 4  # from k = d / 4 on, the full Gram matrix costs no more than the columns needed


def omp(
    X: Any,
    y: Any = None,
    k: int | None = None,
    *,
    centre: bool = False,
    scale: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
) -> LinearPath:
    """Select ``k`` features by Orthogonal Matching Pursuit.

    In every step the feature i with the largest ``||X_i' (y - X_S b)||`` is added to the selected set S,
    where b is the least squares fit of y on S.

    Parameters
    ----------
    X : array or sparse matrix (n, d), or a Gram, which includes the target.
    y : (n,), or (n, o) for several targets with one common selection.
    k : int, number of features to select.
    centre, scale : bool, default False. Subtract means; divide by standard deviations. Without ``scale``,
        longer columns have larger scores; the columns should then have equal lengths.
    sample_weight : (n,), not negative. Not used with a Gram, which includes the weights.
    groups : (d,) whole numbers, the feature of each column. The score of a feature is the length of the
        vector of all its columns' correlations; it enters with all its columns. By default every column is
        a feature.

    Returns
    -------
    LinearPath, with fewer than k features if the residual vanishes or no independent column is left;
    ``stopped`` gives the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from seqatt.linear import omp
    >>> X = np.random.default_rng(0).normal(size=(50, 6))
    >>> omp(X, 3 * X[:, 4] - X[:, 2], k=2).order
    [4, 2]

    References
    ----------
    Pati, Rezaiifar, Krishnaprasad: Orthogonal Matching Pursuit, Asilomar 1993.
    """
    if isinstance(X, Gram):
        problem, blocks, flat = read_problem(X, None, None, groups, centre=centre, scale=scale)
        with single_blas_thread():
            return select_stepwise(problem, blocks, read_k(k, blocks.count), None, flat)
    design, targets, flat = make_design(X, y, sample_weight, centre=centre, scale=scale)
    blocks = read_blocks(groups, design.d)
    with single_blas_thread():
        return pursue_rows(design, targets, read_k(k, blocks.count), blocks, flat)


def pursue_rows(
    design: DesignMatrix,
    targets: Floats,
    k: int,
    blocks: FeatureBlocks,
    flat: bool,
    step_scores: list[Floats] | None = None,
) -> LinearPath:
    """OMP from rows: on columns of the Gram matrix while they are precise enough, then on an orthonormal basis.

    ``flat`` and ``step_scores`` are those of ``select_stepwise``.
    """
    cross = design.products(NO_COLUMNS, targets).T
    check_finite(cross)
    n_columns = k * len(blocks.feature_of) // blocks.count
    if FULL_GRAM_RATIO * n_columns >= design.d and design.d <= design.n:
        square = design.square()
        problem = ResidualFromGram(cross, np.sum(targets**2, axis=0), lambda j: (square[j], 0))
    else:
        gram_columns = GramColumns(design, blocks, k)
        problem = ResidualFromGram(
            cross, np.sum(targets**2, axis=0), lambda j: gram_columns.column(j, problem)
        )
    path = select_stepwise(problem, blocks, k, None, flat, step_scores)
    if len(path.order) == k:
        return path
    exact = ResidualFromRows(design, targets)
    return select_stepwise(exact, blocks, k, None, flat, step_scores, start=path)
