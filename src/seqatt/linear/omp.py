"""Orthogonal Matching Pursuit, Algorithm 2: repeatedly select the feature most correlated with the residual.

Every selected column x yields the next vector q of an orthonormal basis of the selected columns. With
``a = X'q`` and the correlations ``c = X'r``, the next correlations are ``c - a (q'r)``. ``a`` is computed

- from a Gram matrix, as its column for x minus the part explained by the earlier ``a`` (an incremental
  Cholesky factor; ``GramPursuit``);
- from rows, computing only the columns of the Gram matrix that are needed (``GramColumns``);
- from q itself, orthogonalised twice, with one pass over the rows per step (``OrthonormalPursuit``). It loses
  no digits to squaring, and continues where the Gram matrix is too imprecise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seqatt.linear.design_matrix import NO_COLUMNS, DesignMatrix
from seqatt.linear.gram import Gram
from seqatt.linear.gram_columns import GramColumns
from seqatt.linear.gram_pursuit import GramPursuit
from seqatt.linear.inputs import FeatureBlocks, check_finite, make_design, read_blocks, read_k
from seqatt.linear.orthonormal_pursuit import OrthonormalPursuit
from seqatt.linear.path import LinearPath
from seqatt.linear.threads import Floats, single_blas_thread

FULL_GRAM_RATIO = 3  # from k = d / 3 on, the full Gram matrix costs no more than the columns needed
SAMPLE_RATIO = 16  # one row in 16 is used to predict which columns will be needed
MAX_SAMPLE_ROWS = 1 << 15


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
        normal, column = X.columns(centre=centre, scale=scale)
        blocks = read_blocks(groups, X.features)
        pursuit = GramPursuit(normal.cross, normal.target_squares, blocks, diagonal=normal.square)
        with single_blas_thread():
            return pursuit.run(read_k(k, blocks.count), lambda j: (column(j), 0)).path(X.flat)
    design, targets, flat = make_design(X, y, sample_weight, centre=centre, scale=scale)
    blocks = read_blocks(groups, design.d)
    with single_blas_thread():
        return pursue_rows(design, targets, read_k(k, blocks.count), blocks).path(flat)


def pursue_rows(
    design: DesignMatrix,
    targets: Floats,
    k: int,
    blocks: FeatureBlocks,
    step_scores: list[Floats] | None = None,
) -> GramPursuit | OrthonormalPursuit:
    """OMP from rows: on columns of the Gram matrix while they are precise enough, then on a basis.

    ``step_scores`` collects the scores of all features at every step.
    """
    n_columns = k * len(blocks.feature_of) // blocks.count
    if FULL_GRAM_RATIO * n_columns >= design.d and design.d <= design.n:
        cross = design.products(NO_COLUMNS, targets).T
        check_finite(cross)
        square = design.square()
        pursuit = GramPursuit(cross, _target_squares(targets), blocks, step_scores=step_scores)
        pursuit.run(k, lambda j: (square[j], 0))
        del square
    else:
        pursuit = _pursue_few_columns(design, targets, k, blocks, step_scores)
    if len(pursuit.order) == k:
        return pursuit
    return OrthonormalPursuit(design, targets, blocks, step_scores).resume(pursuit).run(k)


def _pursue_few_columns(
    design: DesignMatrix,
    targets: Floats,
    k: int,
    blocks: FeatureBlocks,
    step_scores: list[Floats] | None = None,
) -> GramPursuit:
    """OMP with few columns of the Gram matrix; with many rows, a sample predicts which are needed."""
    predicted = NO_COLUMNS
    rows = min(design.n // SAMPLE_RATIO, MAX_SAMPLE_ROWS)
    if rows >= 2 * design.d and len(design.spans) == 1:
        sample = design.sample(rows)
        sample_targets = np.concatenate([targets[start:stop] for start, stop in sample.spans])
        likely = _pursue_few_columns(sample, sample_targets, k, blocks).order
        predicted = blocks.columns(likely) if likely else NO_COLUMNS
    products = design.products(predicted, targets)
    cross = products[len(predicted) :].T
    check_finite(cross)
    gram_columns = GramColumns(design, blocks, k, predicted)
    gram_columns.store(predicted, products[: len(predicted)])
    pursuit = GramPursuit(cross, _target_squares(targets), blocks, step_scores=step_scores)
    return pursuit.run(k, lambda j: gram_columns.column(j, pursuit))


def _target_squares(targets: Floats) -> Floats:
    """Squared length of each target, (o,)."""
    return np.asarray(np.einsum("ij,ij->j", targets, targets))
