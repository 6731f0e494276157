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
    pick,
    why_stopped,
)
from seqatt.linear.threads import Floats

TRUST_COLUMN = 1e-6  # share of a column's squared length that must be new: below it the rows decide
TRUST_LOSS = 1e-8  # share of the target's energy that must be left, likewise
WHOLE = 3  # fetching the columns of k features costs as much as the Gram matrix at a third of them
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
        pursuit = Pursuit(normal.cross, np.diag(normal.square), normal.energy, blocks)
        pursuit.run(read_k(k, blocks.count), lambda j: normal.square[j])
        return pursuit.path(X.flat)
    design, targets, flat = make_design(X, y, sample_weight, centre=centre, scale=scale)
    blocks = read_blocks(groups, design.d)
    return pursue_rows(design, targets, read_k(k, blocks.count), blocks).path(flat)


class Pursuit:
    """The state of OMP on columns of a Gram matrix: ``c`` are X'r, ``basis`` the vectors a, row by row."""

    def __init__(self, cross: Floats, norms: Floats, energy: Floats, blocks: Blocks) -> None:
        self.c = cross.copy()
        self.norms = norms
        self.blocks = blocks
        self.null_loss = self.loss = float(energy.sum())
        self.floor = NEGLIGIBLE * np.sqrt(self.null_loss * norms.max(initial=0.0))
        self.open = np.ones(blocks.count, dtype=bool)
        self.basis = np.empty((16, len(norms)))
        self.shares: list[Floats] = []
        self.columns: list[int] = []
        self.order: list[int] = []
        self.scores: list[float] = []
        self.losses: list[float] = []
        self.stopped: str | None = None

    def run(self, k: int, column: Callable[[int], Floats], trust: tuple[float, float] = (0.0, 0.0)) -> bool:
        """Choose until there are ``k``; False where digits run out that the rows still have."""
        while len(self.order) < k:
            if self.loss < trust[1] * self.null_loss:
                return False
            scores = self.blocks.norms(self.c)
            scores[~self.open] = 0.0
            best = pick(scores)
            if scores[best] <= self.floor:
                if trust[1]:
                    return False
                self.stopped = why_stopped(self.loss, self.null_loss, not self.open.any(), NEGLIGIBLE)
                break
            if not self._enter(best, column, trust[0]):
                if trust[0]:
                    return False
                self.open[best] = False
                if not self.open.any():
                    self.stopped = why_stopped(self.loss, self.null_loss, True, NEGLIGIBLE)
                    break
                continue
            self.open[best] = False
            self.order.append(best)
            self.scores.append(float(scores[best]))
            self.losses.append(self.loss)
        return True

    def _enter(self, feature: int, column: Callable[[int], Floats], trust: float) -> bool:
        """Whether the feature's columns could be told from the chosen ones, and so went in."""
        entered = False
        for j in self.blocks.columns(feature).tolist():
            t = len(self.columns)
            if t == len(self.basis):
                self.basis = np.concatenate([self.basis, np.empty_like(self.basis)])
            a = self.basis[t]
            np.subtract(column(j), self.basis[:t, j] @ self.basis[:t], out=a)
            if a[j] <= trust * self.norms[j]:
                return False  # nothing is spoilt: the pursuit goes on from the rows, without this state
            if a[j] <= DEPENDENT * self.norms[j]:
                continue
            a /= np.sqrt(a[j])
            share = self.c[j] / a[j]
            self.c -= np.multiply.outer(a, share)
            self.c[j] = 0.0
            self.loss = max(0.0, self.loss - float(share @ share))
            self.shares.append(share)
            self.columns.append(j)
            entered = True
        return entered

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


def pursue_rows(design: Design, targets: Floats, k: int, blocks: Blocks) -> Pursuit | BasisPursuit:
    """OMP from rows: on columns of the Gram matrix while they can be trusted, then on a basis."""
    width = k * len(blocks.owner) // blocks.count
    if WHOLE * width >= design.d and design.d <= design.n:
        square = design.square()
        cross = design.products(np.empty(0, dtype=np.intp), targets).T
        insist_on_finite(cross)
        pursuit = Pursuit(cross, np.diag(square).copy(), _energy(targets), blocks)
        done = pursuit.run(k, lambda j: square[j], (TRUST_COLUMN, TRUST_LOSS))
    else:
        pursuit = _pursue_some(design, targets, k, blocks)
        done = len(pursuit.order) == k
    if done:
        return pursuit
    return BasisPursuit(design, targets, pursuit).run(k)


def _pursue_some(design: Design, targets: Floats, k: int, blocks: Blocks) -> Pursuit:
    """With as few columns of the Gram matrix as a good guess allows."""
    fetched = Fetched(design, blocks, max(8, min(64, k // 4)))
    guess = np.empty(0, dtype=np.intp)
    rows = min(design.n // SAMPLED, max(4096, 4 * design.d))
    if rows >= 2 * design.d and design.n > 4 * rows // 4 and len(design.spans) == 1:
        few = design.sample(rows)
        seen = np.concatenate([targets[start:stop] for start, stop in few.spans])
        likely = _pursue_some(few, seen, k, blocks)
        guess = blocks.columns(likely.order) if likely.order else guess
    products = design.products(guess, targets)
    cross = products[len(guess) :].T
    insist_on_finite(cross)
    fetched.keep(guess, products[: len(guess)])
    pursuit = Pursuit(cross, design.norms(), _energy(targets), blocks)
    pursuit.run(k, lambda j: fetched.column(j, pursuit), (TRUST_COLUMN, TRUST_LOSS))
    return pursuit


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
    """OMP on an orthonormal basis of the chosen columns, from where a ``Pursuit`` lost its footing."""

    def __init__(self, design: Design, targets: Floats, so_far: Pursuit) -> None:
        self.design, self.targets, self.blocks = design, targets, so_far.blocks
        self.norms, self.null_loss, self.floor = so_far.norms, so_far.null_loss, so_far.floor
        self.residual = targets.copy()
        self.basis: list[Floats] = []
        self.columns: list[int] = []
        self.order: list[int] = []
        self.scores = so_far.scores[: len(so_far.order)]
        self.losses: list[float] = []
        self.stopped: str | None = None
        self.open = np.ones(self.blocks.count, dtype=bool)
        for feature in so_far.order:
            self._enter(feature)

    def run(self, k: int) -> BasisPursuit:
        none = np.empty(0, dtype=np.intp)
        while len(self.order) < k:
            loss = float(np.sum(self.residual**2))
            scores = self.blocks.norms(self.design.products(none, self.residual).T)
            scores[~self.open] = 0.0
            best = pick(scores)
            if scores[best] <= self.floor or not self.open.any():
                self.stopped = why_stopped(loss, self.null_loss, not self.open.any(), NEGLIGIBLE**2)
                break
            if self._enter(best):
                self.scores.append(float(scores[best]))
        return self

    def _enter(self, feature: int) -> bool:
        entered = False
        for j in self.blocks.columns(feature).tolist():
            q = self.design.columns(np.array([j]))[:, 0]
            for _ in range(2):
                for other in self.basis:
                    q -= other * (other @ q)
            length = float(q @ q)
            if length <= DEPENDENT_ROWS * self.norms[j] or length == 0:
                continue
            q /= np.sqrt(length)
            for _ in range(2):
                self.residual -= np.multiply.outer(q, q @ self.residual)
            self.basis.append(q)
            self.columns.append(j)
            entered = True
        self.open[feature] = False
        if entered:
            self.order.append(feature)
            self.losses.append(float(np.sum(self.residual**2)))
        return entered

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
