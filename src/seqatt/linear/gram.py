"""Gram: all that least squares needs to know of the rows, gathered in one pass.

Kept are the means and the products of what is left once they are taken away, joined batch by batch. Products
of raw numbers, from which means are taken away at the end, lose every digit on data far from zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from seqatt.linear.inputs import insist_on_finite, read_rows, read_targets, read_weights
from seqatt.linear.threads import Floats, add_square, mirror, share

Column = Callable[[int], Floats]
ROWS = 1 << 16  # of a batch that are worked on at a time
COPIED = 1 << 13  # of them that are copied at a time, where they have to be
NEAR = 16.0  # a raw sum of squares this many times the centred one costs one digit of sixteen


@dataclass(frozen=True)
class NormalEquations:
    """The normal equations: ``square`` X'X, ``cross`` X'Y and ``energy`` Y'Y's diagonal."""

    square: Floats
    cross: Floats
    energy: Floats


class Gram:
    """Sums over rows: X'X, X'Y, Y'Y, n and column sums. Two Grams of the same columns add.

    Example
    -------
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
        self.weight = 0.0
        self._targets = 0
        self.flat = True
        self._far = False
        self._mean = np.zeros(0)
        self._rest = np.zeros(0)
        self._spread = np.zeros((0, 0))

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """From arrays or a sparse matrix."""
        return cls().update(X, y, sample_weight)

    @classmethod
    def from_batches(cls, batches: Iterable[tuple[Any, ...]]) -> Self:
        """From ``(X, y)`` or ``(X, y, sample_weight)``, read once."""
        gram = cls()
        for batch in batches:
            gram.update(*batch)
        if not gram.rows:
            raise ValueError("batches: there were none; at least one row is needed")
        return gram

    def update(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take in more rows, whole or not at all where they are refused."""
        rows = read_rows(X)
        targets, flat = read_targets(y, rows.shape[0])
        weights = read_weights(sample_weight, rows.shape[0])
        self._fit(rows.shape[1], targets.shape[1], flat)
        apart = rows.shape[0] > ROWS  # a later part may yet be refused
        gram = Gram()._like(self) if apart else self
        for start in range(0, rows.shape[0], ROWS):
            stop = start + ROWS
            part = rows[start:stop]
            dense = part.toarray() if sp.issparse(part) else part
            some = None if weights is None else weights[start:stop]
            gram._join(np.asarray(dense, dtype=np.float64), targets[start:stop], some)
        if apart and gram.weight:
            self._merge(gram.rows, gram.weight, gram._mean, gram._rest, gram._spread)
        return self

    def join(self, rows: int, weight: float, mean: Floats, spread: Floats, targets: int) -> Self:
        """Take in rows of which weighted means and products around them are known: X's columns, then y's.

        Of the products the upper triangle is read.
        """
        self._fit(len(mean) - targets, targets, flat=False)
        insist_on_finite(mean)
        insist_on_finite(np.diag(spread))
        if weight:
            self._merge(rows, weight, mean, np.zeros(len(mean)), spread)
        return self

    def arrays(self) -> dict[str, Any]:
        """All of it, as arrays that ``numpy.savez`` takes and ``from_arrays`` reads."""
        told = [self.rows, self._targets, self.flat, self._far]
        sums = {"mean": self._mean, "rest": self._rest, "spread": self._spread}
        return {"told": np.array(told), "weight": np.array(self.weight)} | {
            name: array.copy() for name, array in sums.items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """What ``arrays`` gave, or what was read back from a file."""
        gram = cls()
        rows, targets, flat, far = (int(value) for value in arrays["told"])
        gram.rows, gram._targets, gram.flat, gram._far = rows, targets, bool(flat), bool(far)
        gram.weight = float(arrays["weight"])
        mean, rest, spread = (np.array(arrays[name], dtype=np.float64) for name in ("mean", "rest", "spread"))
        if not mean.shape == rest.shape == spread.shape[:1] == spread.shape[1:] or targets > len(mean):
            raise ValueError("arrays: these are not of a Gram")
        gram._mean, gram._rest, gram._spread = mean, rest, spread
        return gram

    def __add__(self, other: Gram) -> Gram:
        if not isinstance(other, Gram):
            return NotImplemented
        if not self.rows or not other.rows:
            return (other if other.rows else self)._copy()
        total = self._copy()
        total._fit(other.features, other._targets, other.flat)
        total._merge(other.rows, other.weight, other._mean, other._rest, other._spread)
        return total

    @property
    def features(self) -> int:
        """Columns of X."""
        return len(self._mean) - self._targets

    @property
    def targets(self) -> int:
        """Columns of y."""
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
        """Standard deviations of the columns of X; 1 where one is constant."""
        return _scales(np.diag(self._spread)[: self.features], self.weight, self._mean[: self.features])

    def normal(self, *, centre: bool = False, scale: bool = False) -> NormalEquations:
        """The normal equations of the rows, or of the rows less their means, over standard deviations."""
        d = self.features
        square = np.triu(self._spread[:d, :d])
        cross = self._spread[:d, d:].copy()
        energy = np.diag(self._spread)[d:].copy()
        if not centre:
            x, y = self.means
            square += self.weight * np.triu(np.outer(x, x))
            cross += self.weight * np.outer(x, y)
            energy += self.weight * y * y
        if scale:
            unit = self.scales
            square /= unit
            square /= unit[:, None]
            cross /= unit[:, None]
        return NormalEquations(mirror(square), cross, energy)

    def columns(self, *, centre: bool = False, scale: bool = False) -> tuple[NormalEquations, Column]:
        """The normal equations with X'X as a function of its column's number; ``square`` is the diagonal."""
        d = self.features
        x, y = (np.zeros_like(mean) for mean in self.means) if centre else self.means
        unit = self.scales if scale else np.ones(d)
        norms = (np.diag(self._spread)[:d] + self.weight * x * x) / unit**2
        cross = (self._spread[:d, d:] + self.weight * np.outer(x, y)) / unit[:, None]
        energy = np.diag(self._spread)[d:] + self.weight * y * y

        def column(j: int) -> Floats:
            out = np.concatenate([self._spread[:j, j], self._spread[j, j:d]])
            if not centre:
                out += self.weight * x[j] * x
            if scale:
                out /= unit * unit[j]
            return out

        return NormalEquations(norms, cross, energy), column

    def _like(self, other: Gram) -> Gram:
        self._fit(other.features, other._targets, other.flat)
        return self

    def _fit(self, features: int, targets: int, flat: bool) -> None:
        if not len(self._mean):
            self._targets, self.flat = targets, flat
            self._mean = np.zeros(features + targets)
            self._rest = np.zeros(features + targets)
            self._spread = np.zeros((features + targets, features + targets))
        if (features, targets) != (self.features, self._targets):
            raise ValueError(
                f"X: this Gram has {self.features} columns and {self._targets} target(s), "
                f"got {features} and {targets}"
            )

    def _join(self, rows: Floats, targets: Floats, weights: Floats | None) -> None:
        weight = float(len(rows)) if weights is None else float(weights.sum())
        if weight == 0:
            return
        even = np.ones(len(rows)) if weights is None else weights
        mean = np.concatenate([even @ rows, even @ targets]) / weight
        insist_on_finite(mean)
        spread = None if weights is not None or self._far else _near(rows, targets, mean)
        rest = np.zeros(len(mean))
        if spread is None:
            self._far = weights is None  # the next rows are likely to be as far from zero
            spread, rest = _around(rows, targets, mean, weights)
            rest /= weight
            spread -= weight * np.outer(rest, rest)
        insist_on_finite(np.diag(spread))
        self._merge(len(rows), weight, mean, rest, spread)

    def _merge(self, rows: int, weight: float, mean: Floats, rest: Floats, spread: Floats) -> None:
        """Chan, Golub and LeVeque's update: two sums of products around two means become one."""
        if not self.weight:
            self._mean, self._rest, self._spread = mean, rest, spread.copy()
            self.rows, self.weight = rows, weight
            return
        total = self.weight + weight
        step = (mean - self._mean) + (rest - self._rest)
        self._spread += spread
        lean = step * np.sqrt(self.weight * weight / total)
        self._spread += np.outer(lean, lean)
        step = self._rest + step * (weight / total)
        before = self._mean
        self._mean = before + step
        self._rest = step - (self._mean - before)  # what the mean's last digit could not hold
        self.rows += rows
        self.weight = total

    def _copy(self) -> Gram:
        other = Gram()
        vars(other).update(vars(self), _mean=self._mean.copy(), _spread=self._spread.copy())
        return other


def _near(rows: Floats, targets: Floats, mean: Floats) -> Floats | None:
    """Products around the means from raw ones: no copy of the rows, but None where digits would go."""
    d = rows.shape[1]
    spread = np.zeros((len(mean), len(mean)))
    add_square(spread[:d, :d], rows)
    raw = np.diag(spread)[:d].copy()
    around = targets - mean[d:]
    spread[:d, d:] = rows.T @ around
    spread[d:, d:] = around.T @ around
    spread[:d, :d] -= len(rows) * np.outer(mean[:d], mean[:d])
    return spread if (np.diag(spread)[:d] >= raw / NEAR).all() else None


def _around(rows: Floats, targets: Floats, mean: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Products around the means, of rows that are centred first, and what the means missed, summed."""
    d = rows.shape[1]
    spread, rest = np.zeros((len(mean), len(mean))), np.zeros(len(mean))
    both = np.empty((min(len(rows), COPIED), len(mean)))
    for start in range(0, len(rows), COPIED):
        part = both[: len(rows[start : start + COPIED])]

        def fill(first: int, start: int = start, part: Floats = part) -> Floats:
            some = part[first : first + 512]
            here = slice(start + first, start + first + len(some))
            np.subtract(rows[here], mean[:d], out=some[:, :d])
            np.subtract(targets[here], mean[d:], out=some[:, d:])
            if weights is None:
                return np.asarray(np.ones(len(some)) @ some)
            total = weights[here] @ some
            some *= np.sqrt(weights[here])[:, None]
            return np.asarray(total)

        rest += sum(share(fill, range(0, len(part), 512), 16.0 * part.size))
        add_square(spread, part)
    return spread, rest


def _scales(squares: Floats, weight: float, mean: Floats) -> Floats:
    deviation = np.sqrt(np.maximum(squares, 0.0) / weight)
    return np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)
