"""Orthogonal Matching Pursuit, Algorithm 2: again and again the feature most correlated with the residual.

Every chosen column x gives the next vector q of an orthonormal basis of the chosen ones. What is kept is
``a = X'q`` and the correlations ``c = X'r``, from which the residual's next correlations are ``c - a (q'r)``.
Three ways lead to ``a``:

- a Gram matrix: its column of x, less what the earlier ``a`` explain (an incremental Cholesky factor);
- the same from rows, with the few columns of the Gram matrix that are needed (``fetched``);
- q itself, orthogonalised twice, and a pass over the rows for every choice. It loses no digits to squaring,
  and takes over where the others would.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.gram import Gram
from seqatt.linear.gram_columns import GramColumns
from seqatt.linear.gram_pursuit import GramPursuit
from seqatt.linear.inputs import FeatureBlocks, insist_on_finite, make_design, read_blocks, read_k
from seqatt.linear.orthonormal_pursuit import NONE, OrthonormalPursuit
from seqatt.linear.path import LinearPath
from seqatt.linear.threads import Floats, calm

WHOLE = 3  # fetching the columns of k features costs as much as the Gram matrix at a third of them
SAMPLED = 16  # one row in so many tells which columns will be needed
SAMPLE = 1 << 15  # of them at most


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
    """Choose ``k`` features by Orthogonal Matching Pursuit.

    Step by step the feature i with the largest ``||X_i' (y - X_S b)||`` joins S, where b fits y on S.

    Parameters
    ----------
    X : array or sparse matrix (n, d), or a Gram, which has its own target.
    y : (n,) or several targets (n, o), for which features are chosen together.
    k : how many.
    centre, scale : take away means; divide by standard deviations. As it is, X should have columns of
        one length, or long ones are preferred.
    sample_weight : (n,), not negative. A Gram has its own.
    groups : (d,) whole numbers: the feature of each column. A feature is judged by the length of all its
        columns' correlations and enters with all of them.

    Returns
    -------
    Path, shorter than k where the residual vanishes or nothing independent is left; ``stopped`` says so.

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
        pursuit = GramPursuit(normal.cross, normal.energy, blocks, exact=normal.square)
        with calm():
            return pursuit.run(read_k(k, blocks.count), lambda j: (column(j), 0)).path(X.flat)
    design, targets, flat = make_design(X, y, sample_weight, centre=centre, scale=scale)
    blocks = read_blocks(groups, design.d)
    with calm():
        return pursue_rows(design, targets, read_k(k, blocks.count), blocks).path(flat)


def pursue_rows(
    design: DesignMatrix, targets: Floats, k: int, blocks: FeatureBlocks, seen: list[Floats] | None = None
) -> GramPursuit | OrthonormalPursuit:
    """OMP from rows: on columns of the Gram matrix while they can be trusted, then on a basis."""
    width = k * len(blocks.feature_of) // blocks.count
    if WHOLE * width >= design.d and design.d <= design.n:
        cross = design.products(NONE, targets).T
        insist_on_finite(cross)
        square = design.square()
        pursuit = GramPursuit(cross, _energy(targets), blocks, seen=seen).run(k, lambda j: (square[j], 0))
        del square
    else:
        pursuit = _pursue_some(design, targets, k, blocks, seen)
    if len(pursuit.order) == k:
        return pursuit
    return OrthonormalPursuit(design, targets, blocks, seen).resume(pursuit).run(k)


def _pursue_some(
    design: DesignMatrix, targets: Floats, k: int, blocks: FeatureBlocks, seen: list[Floats] | None = None
) -> GramPursuit:
    """With as few columns of the Gram matrix as a good guess allows."""
    guess = NONE
    rows = min(design.n // SAMPLED, SAMPLE)
    if rows >= 2 * design.d and len(design.spans) == 1:
        few = design.sample(rows)
        theirs = np.concatenate([targets[start:stop] for start, stop in few.spans])
        likely = _pursue_some(few, theirs, k, blocks).order
        guess = blocks.columns(likely) if likely else NONE
    products = design.products(guess, targets)
    cross = products[len(guess) :].T
    insist_on_finite(cross)
    fetched = GramColumns(design, blocks, k, guess)
    fetched.keep(guess, products[: len(guess)])
    pursuit = GramPursuit(cross, _energy(targets), blocks, seen=seen)
    return pursuit.run(k, lambda j: fetched.column(j, pursuit))


def _energy(targets: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", targets, targets))
