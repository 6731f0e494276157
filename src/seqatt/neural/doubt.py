"""What speaks against each feature before attention speaks for it.

A feature that says nothing about the target by itself may say something with others, or repeat what others
say, or be noise. What has something to do with features already chosen is no noise; what has not is
doubted more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from seqatt.neural.evidence import false_findings
from seqatt.neural.sample import Sample
from seqatt.source import SparseColumns

Floats = NDArray[np.float64]

SURE = 2.0  # powers of ten of doubt after which a feature has surely to do with those chosen
STRANGE = 2.0  # times what speaks against a stranger is added to it


class Doubt:
    """``short`` is what each feature's own evidence falls short of a bound, 0 or less."""

    def __init__(self, sample: Sample, short: Floats) -> None:
        owner = sample.source.owner
        self._short = short
        self._sample = sample
        self._doubted = np.flatnonzero((short < 0) & ~sample.source.constant)
        self._columns = np.flatnonzero(np.isin(owner, self._doubted))
        self._place = np.searchsorted(self._doubted, owner[self._columns])
        self._starts = np.flatnonzero(np.diff(self._place, prepend=-1))
        sparse = isinstance(sample.source.columns, SparseColumns)
        self._units = None if sparse else self._unit(self._columns)
        self._known: dict[int, NDArray[np.float32]] = {}

    def given(self, chosen: Sequence[int]) -> Floats:
        """What speaks against each feature where these are chosen; of one of them, where the others are."""
        against = self._short.copy()
        if len(chosen):
            against[self._doubted] *= 1 + STRANGE * self._strangeness(chosen)
        return against

    def _strangeness(self, chosen: Sequence[int]) -> Floats:
        """0 for the doubted features that have surely to do with the chosen, 1 for those that may not."""
        related = np.stack([self._related(feature) for feature in chosen])
        doubted = np.isin(chosen, self._doubted)
        itself = np.searchsorted(self._doubted, np.asarray(chosen)[doubted])
        related[np.flatnonzero(doubted), itself] = 0.0
        width = np.bincount(self._sample.source.owner, minlength=len(self._short))
        tests = width[self._doubted] * width[list(chosen)].sum()
        share = np.minimum(related.max(0).astype(np.float64) ** 2, 1 - 1e-12)
        under = max(1.0, self._sample.weights.sum() - 2)
        p = fdtrc(1, under, share / (1 - share) * under)
        p = -np.expm1(tests * np.log1p(-np.minimum(p, 1 - 1e-16)))  # of the closest, by chance
        return np.asarray(1 - np.minimum(-np.log10(false_findings(p)), SURE) / SURE)

    def _related(self, feature: int) -> NDArray[np.float32]:
        """The largest correlation of each doubted feature with this one, regardless of sign."""
        if feature not in self._known:
            own = np.flatnonzero(self._sample.source.owner == feature)
            self._known[feature] = np.maximum.reduceat(self._correlations(own).max(1), self._starts)
        return self._known[feature]

    def _correlations(self, own: NDArray[np.int64]) -> NDArray[np.float32]:
        """Of the doubted features' columns with these, regardless of sign."""
        if self._units is not None:
            return np.asarray(np.abs(self._units.T @ self._unit(own)))
        found = self._sample.centred(own)
        products, squares = self._sample.products(found)
        lengths = np.sqrt(np.outer(squares[self._columns], squares[own]))
        return np.abs(products[self._columns] / np.where(lengths > 0, lengths, np.inf)).astype(np.float32)

    def _unit(self, columns: NDArray[np.int64]) -> NDArray[np.float32]:
        """Columns of length 1; what does not vary stays 0."""
        found = self._sample.centred(columns) * np.sqrt(self._sample.weights)[:, None]
        length = np.sqrt((found**2).sum(0))
        return (found / np.where(length > 1e-6, length, np.inf)).astype(np.float32)
