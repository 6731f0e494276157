"""Gram: the sufficient statistics of least squares, gathered in one pass over the rows.

It stores the means and the products of the centred columns, and merges them batch by batch. Products of raw
numbers, centred only at the end, would lose every digit on data far from zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from seqatt.linear.inputs import check_finite, read_rows, read_targets, read_weights
from seqatt.linear.threads import Floats, add_square, fill_lower_triangle, parallel_map

GramColumn = Callable[[int], Floats]  # maps j to column j of the Gram matrix (d,)
BLOCK_ROWS = 1 << 16  # rows of a batch per block, at most
COPY_ROWS = 1 << 13  # rows per centred copy, at most
MAX_CANCELLATION = 16.0  # raw over centred sum of squares; at 16 subtraction costs one digit of sixteen


@dataclass(frozen=True)
class NormalEquations:
    """The normal equations: ``square`` is X'X (d, d), ``cross`` X'Y (d, o), ``target_squares`` diag(Y'Y) (o,)."""

    square: Floats
    cross: Floats
    target_squares: Floats


class Gram:
    """X'X, X'Y, Y'Y, column sums and the number of rows. Two Grams of the same columns can be added.

    Examples
    --------
    >>> import numpy as np
    >>> from seqatt.linear import Gram, omp
    >>> rng = np.random.default_rng(0)
    >>> gram = Gram()
    >>> for batch in range(10):
    ...     X = rng.normal(size=(100, 5))
    ...     gram = gram.update(X, X[:, 3] - X[:, 1])
    >>> gram.rows, sorted(omp(gram, k=2).order)
    (1000, [1, 3])
    """

    def __init__(self) -> None:
        self.rows = 0
        self.weight = 0.0  # sum of the sample weights
        self._targets = 0
        self.flat = True  # whether y had one dimension
        self._centre_first = False  # whether products are computed from centred copies of the rows
        # Of the columns of X, then of y.
        self._mean = np.zeros(0)
        self._mean_error = np.zeros(0)  # exact mean minus ``_mean``: the digits that rounding cut off
        self._scatter = np.zeros((0, 0))  # weighted products of the centred columns, upper triangle

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Build a Gram from arrays or a sparse matrix."""
        return cls().update(X, y, sample_weight)

    @classmethod
    def from_batches(cls, batches: Iterable[tuple[Any, ...]]) -> Self:
        """Build a Gram from an iterable of ``(X, y)`` or ``(X, y, sample_weight)``, read once."""
        gram = cls()
        for batch in batches:
            gram.update(*batch)
        if not gram.rows:
            raise ValueError("batches: must not be empty; at least one row is needed")
        return gram

    def update(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows. If they are invalid, an error is raised and the Gram is unchanged."""
        rows = read_rows(X)
        targets, flat = read_targets(y, rows.shape[0])
        weights = read_weights(sample_weight, rows.shape[0])
        self._check_shape(rows.shape[1], targets.shape[1], flat)
        several = rows.shape[0] > BLOCK_ROWS
        gram = Gram() if several else self  # a separate Gram, because a later block may be invalid
        gram._check_shape(self.features, self._targets, self.flat)
        for start in range(0, rows.shape[0], BLOCK_ROWS):
            stop = start + BLOCK_ROWS
            block = rows[start:stop]
            dense = block.toarray() if sp.issparse(block) else block
            block_weights = None if weights is None else weights[start:stop]
            gram._add_block(np.asarray(dense, dtype=np.float64), targets[start:stop], block_weights)
        if several and gram.weight:
            self._merge(gram.rows, gram.weight, gram._mean, gram._mean_error, gram._scatter)
        return self

    def join(self, rows: int, weight: float, mean: Floats, scatter: Floats, targets: int) -> Self:
        """Add rows that are known by their statistics, for the columns of X followed by those of y.

        ``mean`` are the weighted means and ``scatter`` the weighted products of the centred columns; only its upper
        triangle is read. ``targets`` is the number of columns of y.
        """
        self._check_shape(len(mean) - targets, targets, flat=False)
        check_finite(mean)
        check_finite(np.diag(scatter))
        if weight:
            self._merge(rows, weight, mean, np.zeros(len(mean)), scatter)
        return self

    def arrays(self) -> dict[str, Any]:
        """The complete state as arrays for ``numpy.savez``; ``from_arrays`` restores it."""
        header = [self.rows, self._targets, self.flat, self._centre_first]
        sums = {"mean": self._mean, "mean_error": self._mean_error, "scatter": self._scatter}
        return {"header": np.array(header), "weight": np.array(self.weight)} | {
            name: array.copy() for name, array in sums.items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Restore a Gram from the result of ``arrays``, or from the file it was saved to."""
        gram = cls()
        rows, targets, flat, centre_first = (int(value) for value in arrays["header"])
        gram.rows, gram._targets = rows, targets
        gram.flat, gram._centre_first = bool(flat), bool(centre_first)
        gram.weight = float(arrays["weight"])
        names = "mean", "mean_error", "scatter"
        mean, error, scatter = (np.array(arrays[name], dtype=np.float64) for name in names)
        if not mean.shape == error.shape == scatter.shape[:1] == scatter.shape[1:] or targets > len(mean):
            raise ValueError("arrays: not the arrays of a Gram; pass what Gram.arrays() returned")
        gram._mean, gram._mean_error, gram._scatter = mean, error, scatter
        return gram

    def __add__(self, other: Gram) -> Gram:
        if not isinstance(other, Gram):
            return NotImplemented
        if not self.rows or not other.rows:
            return (other if other.rows else self)._copy()
        total = self._copy()
        total._check_shape(other.features, other._targets, other.flat)
        total._merge(other.rows, other.weight, other._mean, other._mean_error, other._scatter)
        return total

    @property
    def features(self) -> int:
        """Number of columns of X."""
        return len(self._mean) - self._targets

    @property
    def targets(self) -> int:
        """Number of columns of y."""
        return self._targets

    @property
    def means(self) -> tuple[Floats, Floats]:
        """Weighted means of the columns of X and of y."""
        return self._mean[: self.features].copy(), self._mean[self.features :].copy()

    @property
    def sums(self) -> tuple[Floats, Floats]:
        """Weighted sums of the columns of X and of y."""
        x, y = self.means
        return self.weight * x, self.weight * y

    @property
    def scales(self) -> Floats:
        """Standard deviations of the columns of X; 1 for constant columns."""
        return _scales(np.diag(self._scatter)[: self.features], self.weight, self._mean[: self.features])

    def normal(self, *, centre: bool = False, scale: bool = False) -> NormalEquations:
        """The normal equations; ``centre`` subtracts means, ``scale`` divides X by standard deviations."""
        d = self.features
        square = np.triu(self._scatter[:d, :d])
        cross = self._scatter[:d, d:].copy()
        target_squares = np.diag(self._scatter)[d:].copy()
        if not centre:
            x, y = self.means
            square += self.weight * np.triu(np.outer(x, x))
            cross += self.weight * np.outer(x, y)
            target_squares += self.weight * y * y
        if scale:
            unit = self.scales
            square /= unit
            square /= unit[:, None]
            cross /= unit[:, None]
        return NormalEquations(fill_lower_triangle(square), cross, target_squares)

    def columns(self, *, centre: bool = False, scale: bool = False) -> tuple[NormalEquations, GramColumn]:
        """The normal equations with diag(X'X) as ``square``, and a function that returns column j of X'X."""
        d = self.features
        x, y = (np.zeros_like(mean) for mean in self.means) if centre else self.means
        unit = self.scales if scale else np.ones(d)
        squared_norms = (np.diag(self._scatter)[:d] + self.weight * x * x) / unit**2
        cross = (self._scatter[:d, d:] + self.weight * np.outer(x, y)) / unit[:, None]
        target_squares = np.diag(self._scatter)[d:] + self.weight * y * y

        def column(j: int) -> Floats:
            out = np.concatenate([self._scatter[:j, j], self._scatter[j, j:d]])
            if not centre:
                out += self.weight * x[j] * x
            if scale:
                out /= unit * unit[j]
            return out

        return NormalEquations(squared_norms, cross, target_squares), column

    def _check_shape(self, features: int, targets: int, flat: bool) -> None:
        """Raise if rows of this shape do not fit; an empty Gram adopts it."""
        if not len(self._mean):
            self._targets, self.flat = targets, flat
            self._mean = np.zeros(features + targets)
            self._mean_error = np.zeros(features + targets)
            self._scatter = np.zeros((features + targets, features + targets))
        if (features, targets) != (self.features, self._targets):
            raise ValueError(
                f"X: this Gram has {self.features} columns and {self._targets} target(s), "
                f"got {features} and {targets}"
            )

    def _add_block(self, rows: Floats, targets: Floats, weights: Floats | None) -> None:
        weight = float(len(rows)) if weights is None else float(weights.sum())
        if weight == 0:
            return
        row_weights = np.ones(len(rows)) if weights is None else weights
        mean = np.concatenate([row_weights @ rows, row_weights @ targets]) / weight
        check_finite(mean)
        try_raw = weights is None and not self._centre_first
        scatter = _scatter_from_raw(rows, targets, mean) if try_raw else None
        error = np.zeros(len(mean))
        if scatter is None:
            self._centre_first = weights is None  # the next rows are likely to be as far from zero
            scatter, error = _scatter_from_centred(rows, targets, mean, weights)
            error /= weight
            scatter -= weight * np.outer(error, error)
        check_finite(np.diag(scatter))
        self._merge(len(rows), weight, mean, error, scatter)

    def _merge(self, rows: int, weight: float, mean: Floats, error: Floats, scatter: Floats) -> None:
        """The pairwise update of Chan, Golub and LeVeque for means and centred products."""
        if not self.weight:
            self._mean, self._mean_error, self._scatter = mean, error, scatter.copy()
            self.rows, self.weight = rows, weight
            return
        total = self.weight + weight
        difference = (mean - self._mean) + (error - self._mean_error)
        self._scatter += scatter
        scaled = difference * np.sqrt(self.weight * weight / total)
        self._scatter += np.outer(scaled, scaled)
        step = self._mean_error + difference * (weight / total)
        before = self._mean
        self._mean = before + step
        self._mean_error = step - (self._mean - before)
        self.rows += rows
        self.weight = total

    def _copy(self) -> Gram:
        copy = Gram()
        vars(copy).update(vars(self), _mean=self._mean.copy(), _scatter=self._scatter.copy())
        return copy


def _scatter_from_raw(rows: Floats, targets: Floats, mean: Floats) -> Floats | None:
    """Centred products from raw ones, without a copy of the rows; None if that would lose digits."""
    d = rows.shape[1]
    scatter = np.zeros((len(mean), len(mean)))
    add_square(scatter[:d, :d], rows)
    raw = np.diag(scatter)[:d].copy()
    centred = targets - mean[d:]
    scatter[:d, d:] = rows.T @ centred
    scatter[d:, d:] = centred.T @ centred
    scatter[:d, :d] -= len(rows) * np.outer(mean[:d], mean[:d])
    return scatter if (np.diag(scatter)[:d] >= raw / MAX_CANCELLATION).all() else None


def _scatter_from_centred(
    rows: Floats, targets: Floats, mean: Floats, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Products of centred copies of the rows, and the sums of the centred columns (0 but for rounding)."""
    d = rows.shape[1]
    scatter, sums = np.zeros((len(mean), len(mean))), np.zeros(len(mean))
    buffer = np.empty((min(len(rows), COPY_ROWS), len(mean)))
    for start in range(0, len(rows), COPY_ROWS):
        block = buffer[: len(rows[start : start + COPY_ROWS])]

        def fill(first: int, start: int = start, block: Floats = block) -> Floats:
            out = block[first : first + 512]
            span = slice(start + first, start + first + len(out))
            np.subtract(rows[span], mean[:d], out=out[:, :d])
            np.subtract(targets[span], mean[d:], out=out[:, d:])
            if weights is None:
                return np.asarray(np.ones(len(out)) @ out)
            total = weights[span] @ out
            out *= np.sqrt(weights[span])[:, None]
            return np.asarray(total)

        sums += sum(parallel_map(fill, range(0, len(block), 512), 16.0 * block.size))
        add_square(scatter, block)
    return scatter, sums


def _scales(squares: Floats, weight: float, mean: Floats) -> Floats:
    deviation = np.sqrt(np.maximum(squares, 0.0) / weight)
    return np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)
