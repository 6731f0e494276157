"""Orthogonal Matching Pursuit, Algorithm 2: again and again the feature most correlated with the residual.

Every chosen column x gives the next vector q of an orthonormal basis of the chosen ones. What is kept is
``a = X'q`` and the correlations ``c = X'r``, from which the residual's next correlations are ``c - a (q'r)``.
Three ways lead to ``a``:

- a Gram matrix: its column of x, less what the earlier ``a`` explain (an incremental Cholesky factor);
- the same from rows, with the few columns of the Gram matrix that are needed, fetched several at a time;
- q itself, orthogonalised twice, and a pass over the rows for every choice. It loses no digits to squaring,
  and takes over where the others would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from seqatt.linear.design import Design
from seqatt.linear.gram import Gram
from seqatt.linear.inputs import Blocks, insist_on_finite, make_design, read_blocks, read_k
from seqatt.linear.path import (
    DEPENDENT,
    DEPENDENT_ROWS,
    NEGLIGIBLE,
    Path,
    negligible,
    pick,
    why_stopped,
)
from seqatt.linear.threads import Floats

TRUST_COLUMN = 1e-6  # share of a column's squared length that must be new: below it the rows decide
TRUST_LOSS = 1e-8  # share of the target's energy that must be left, likewise
WHOLE = 3  # fetching the columns of k features costs as much as the Gram matrix at a third of them
NONE = np.empty(0, dtype=np.intp)
SAMPLED = 16  # one row in so many tells which columns will be needed


def omp(
    X: Any,
    y: Any = None,
    k: int | None = None,
    *,
    centre: bool = False,
    scale: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
) -> Path:
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
        normal = X.normal(centre=centre, scale=scale)
        blocks = read_blocks(groups, X.features)
        pursuit = Pursuit(normal.cross, normal.energy, blocks, exact=np.diag(normal.square))
        return pursuit.run(read_k(k, blocks.count), lambda j: normal.square[j]).path(X.flat)
    design, targets, flat = make_design(X, y, sample_weight, centre=centre, scale=scale)
    blocks = read_blocks(groups, design.d)
    return pursue_rows(design, targets, read_k(k, blocks.count), blocks).path(flat)


class Pursuit:
    """The state of OMP on columns of a Gram matrix: ``c`` are X'r, ``basis`` the vectors a, row by row.

    ``exact``, the diagonal, says that the Gram matrix is all there is; else, where digits run out, the rows
    decide. ``seen`` gathers the scores of every choice.
    """

    def __init__(
        self,
        cross: Floats,
        energy: Floats,
        blocks: Blocks,
        exact: Floats | None = None,
        seen: list[Floats] | None = None,
    ) -> None:
        self.seen = seen
        self.c = cross.copy()
        self.norms = exact
        self.blocks = blocks
        self.null_loss = self.loss = float(energy.sum())
        self.open = np.ones(blocks.count, dtype=bool)
        self.basis = np.empty((16, len(cross)))
        self.shares: list[Floats] = []
        self.columns: list[int] = []
        self.order: list[int] = []
        self.scores: list[float] = []
        self.losses: list[float] = []
        self.stopped: str | None = None

    def run(self, k: int, column: Callable[[int], Floats]) -> Pursuit:
        """Choose until there are ``k``, nothing is left, or digits run out that the rows still have."""
        while len(self.order) < k:
            if self.norms is None and self.loss < TRUST_LOSS * self.null_loss:
                break
            scores = self.blocks.norms(self.c)
            scores[~self.open] = 0.0
            if self.norms is not None:
                scores[scores <= negligible(self.norms, self.null_loss, self.blocks)] = 0.0
            best = pick(scores)
            if scores[best] == 0:
                self._stop()
                break
            if self._enter(best, float(scores[best]), column):
                if self.seen is not None:
                    self.seen.append(scores)
                self.order.append(best)
                self.scores.append(float(scores[best]))
                self.losses.append(self.loss)
            elif self.norms is None:
                break
            self.open[best] = False
        return self

    def _enter(self, feature: int, score: float, column: Callable[[int], Floats]) -> bool:
        """Whether the feature's columns could be told from the chosen ones, and so went in."""
        began = len(self.columns)
        for j in self.blocks.columns(feature).tolist():
            t = len(self.columns)
            if t == len(self.basis):
                self.basis = np.concatenate([self.basis, np.empty_like(self.basis)])
            a, gram = self.basis[t], column(j)
            np.subtract(gram, self.basis[:t, j] @ self.basis[:t], out=a)
            if self.norms is None and (
                a[j] <= TRUST_COLUMN * gram[j] or score <= NEGLIGIBLE * np.sqrt(self.null_loss * gram[j])
            ):
                del self.columns[began:], self.shares[began:]
                return False
            if a[j] <= DEPENDENT * gram[j]:
                continue
            a /= np.sqrt(a[j])
            share = self.c[j] / a[j]
            if len(share) == 1:
                self.c[:, 0] -= a * share
            else:
                self.c -= np.multiply.outer(a, share)
            self.loss = max(0.0, self.loss - float(share @ share))
            self.shares.append(share)
            self.columns.append(j)
        return len(self.columns) > began

    def _stop(self) -> None:
        norms = np.ones(len(self.c)) if self.norms is None else self.norms
        left = norms - np.einsum("ij,ij->j", *2 * [self.basis[: len(self.columns)]])
        new = self.blocks.most(np.where(left > DEPENDENT * norms, 1.0, 0.0))
        self.stopped = why_stopped(self.loss, self.null_loss, not new[self.open].any(), NEGLIGIBLE)

    def path(self, flat: bool) -> Path:
        """The answer, with coefficients by back substitution."""
        coef = np.zeros(self.c.shape)
        if self.columns:
            factor = self.basis[: len(self.columns), self.columns]
            coef[self.columns] = solve_triangular(factor, np.array(self.shares), check_finite=False)
        return Path(
            self.order,
            np.array(self.scores),
            np.array(self.losses),
            self.null_loss,
            coef[:, 0] if flat else coef,
            self.stopped,
        )


def pursue_rows(
    design: Design, targets: Floats, k: int, blocks: Blocks, seen: list[Floats] | None = None
) -> Pursuit | BasisPursuit:
    """OMP from rows: on columns of the Gram matrix while they can be trusted, then on a basis."""
    width = k * len(blocks.owner) // blocks.count
    if WHOLE * width >= design.d and design.d <= design.n:
        cross = design.products(NONE, targets).T
        insist_on_finite(cross)
        square = design.square()
        pursuit = Pursuit(cross, _energy(targets), blocks, seen=seen).run(k, lambda j: square[j])
        del square
    else:
        pursuit = _pursue_some(design, targets, k, blocks, seen)
    if len(pursuit.order) == k:
        return pursuit
    return BasisPursuit(design, targets, blocks, seen).resume(pursuit).run(k)


def _pursue_some(
    design: Design, targets: Floats, k: int, blocks: Blocks, seen: list[Floats] | None = None
) -> Pursuit:
    """With as few columns of the Gram matrix as a good guess allows."""
    fetched = Fetched(design, blocks, max(8, min(64, k // 4)))
    guess = NONE
    rows = min(design.n // SAMPLED, max(4096, 4 * design.d))
    if rows >= 2 * design.d and len(design.spans) == 1:
        few = design.sample(rows)
        theirs = np.concatenate([targets[start:stop] for start, stop in few.spans])
        likely = _pursue_some(few, theirs, k, blocks).order
        guess = blocks.columns(likely) if likely else NONE
    products = design.products(guess, targets)
    cross = products[len(guess) :].T
    insist_on_finite(cross)
    fetched.keep(guess, products[: len(guess)])
    pursuit = Pursuit(cross, _energy(targets), blocks, seen=seen)
    return pursuit.run(k, lambda j: fetched.column(j, pursuit))


class Fetched:
    """Columns of the Gram matrix that have been needed, or are likely to be."""

    def __init__(self, design: Design, blocks: Blocks, several: int) -> None:
        self.design, self.blocks, self.several = design, blocks, several
        self.place = np.full(design.d, -1)
        self.rows: list[Floats] = []

    def keep(self, columns: NDArray[np.intp], rows: Floats) -> None:
        self.place[columns] = len(self.rows) + np.arange(len(columns))
        self.rows.extend(rows)

    def column(self, j: int, pursuit: Pursuit) -> Floats:
        """One column; with it come those of the features most correlated with the residual now."""
        if self.place[j] < 0:
            scores = self.blocks.norms(pursuit.c)
            scores[~pursuit.open] = -1.0
            several = min(self.several, len(scores))
            best = np.argpartition(-scores, several - 1)[:several]
            wanted = np.append(self.blocks.columns(best), j)
            wanted = np.unique(wanted[self.place[wanted] < 0])
            self.keep(wanted, self.design.products(wanted))
        return self.rows[self.place[j]]


class BasisPursuit:
    """OMP on an orthonormal basis of the chosen columns."""

    def __init__(
        self, design: Design, targets: Floats, blocks: Blocks, seen: list[Floats] | None = None
    ) -> None:
        self.seen = seen
        self.design, self.targets, self.blocks = design, targets, blocks
        self.norms = design.norms()
        self.null_loss = float(_energy(targets).sum())
        self.residual = targets.copy()
        self.basis: list[Floats] = []
        self.columns: list[int] = []
        self.order: list[int] = []
        self.scores: list[float] = []
        self.losses: list[float] = []
        self.stopped: str | None = None
        self.open = np.ones(blocks.count, dtype=bool)

    def resume(self, pursuit: Pursuit) -> BasisPursuit:
        """Start from what was chosen while the columns of the Gram matrix could be trusted."""
        for feature, score in zip(pursuit.order, pursuit.scores, strict=True):
            self._enter(feature, score)
        return self

    def run(self, k: int) -> BasisPursuit:
        while len(self.order) < k:
            scores = self.blocks.norms(self.design.products(NONE, self.residual).T)
            scores[~self.open] = 0.0
            scores[scores <= negligible(self.norms, self.null_loss, self.blocks)] = 0.0
            best = pick(scores)
            if scores[best] == 0:
                self._stop()
                break
            if self._enter(best, float(scores[best])) and self.seen is not None:
                self.seen.append(scores)
        return self

    def _enter(self, feature: int, score: float) -> bool:
        began = len(self.columns)
        for j in self.blocks.columns(feature).tolist():
            q = self.design.columns(np.array([j]))[:, 0]
            for _ in range(2):
                for other in self.basis:
                    q -= other * (other @ q)
            length = float(q @ q)
            if length <= DEPENDENT_ROWS * self.norms[j]:
                continue
            q /= np.sqrt(length)
            for _ in range(2):
                self.residual -= np.multiply.outer(q, q @ self.residual)
            self.basis.append(q)
            self.columns.append(j)
        self.open[feature] = False
        if len(self.columns) == began:
            return False
        self.order.append(feature)
        self.scores.append(score)
        self.losses.append(float(_energy(self.residual).sum()))
        return True

    def _stop(self) -> None:
        known = np.zeros(self.design.d)
        if self.basis:
            known = np.sum(self.design.products(NONE, np.array(self.basis).T) ** 2, axis=0)
        new = self.blocks.most(np.where(self.norms - known > DEPENDENT * self.norms, 1.0, 0.0))
        loss = float(_energy(self.residual).sum())
        self.stopped = why_stopped(loss, self.null_loss, not new[self.open].any(), NEGLIGIBLE**2)

    def path(self, flat: bool) -> Path:
        coef = np.zeros((self.design.d, self.targets.shape[1]))
        if self.columns:
            basis = np.array(self.basis)
            factor = np.triu(basis @ self.design.columns(np.array(self.columns)))
            coef[self.columns] = solve_triangular(factor, basis @ self.targets, check_finite=False)
        return Path(
            self.order,
            np.array(self.scores),
            np.array(self.losses),
            self.null_loss,
            coef[:, 0] if flat else coef,
            self.stopped,
        )


def _energy(targets: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", targets, targets))
