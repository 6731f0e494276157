"""What speaks against each feature before attention speaks for it.

A feature that says nothing about the target by itself may say something with others, or repeat what others
say, or be noise. What has something to do with features already chosen is no noise; what has not is
doubted more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaincc

from seqatt.data.tables.table_data import SparseColumns
from seqatt.training.backend.matmul import matmul
from seqatt.training.screening.row_sample import BLOCK, RowSample
from seqatt.training.screening.univariate_test import benjamini_hochberg

Floats = NDArray[np.float64]

CERTAIN = 2.0  # powers of ten of doubt after which a feature has surely to do with those chosen
UNRELATED_FACTOR = 2.0  # times what speaks against a stranger is added to it


class ScorePenalty:
    """``short`` is what each feature's own evidence falls short of a bound, 0 or less."""

    def __init__(self, sample: RowSample, short: Floats) -> None:
        feature_of = sample.source.feature_of
        self._short = short
        self._sample = sample
        self._width = np.bincount(feature_of, minlength=len(short))
        self._doubted = np.flatnonzero((short < 0) & ~sample.source.constant)
        self._columns = np.flatnonzero(np.isin(feature_of, self._doubted))
        self._starts = np.flatnonzero(np.diff(feature_of[self._columns], prepend=-1))
        sparse = isinstance(sample.source.columns, SparseColumns)
        self._units = None if sparse else self._unit(self._columns)
        self._known: dict[int, NDArray[np.float32]] = {}

    def given(self, chosen: Sequence[int]) -> Floats:
        """What speaks against each feature where these are chosen; of one of them, where the others are."""
        against = self._short.copy()
        if len(chosen):
            against[self._doubted] *= 1 + UNRELATED_FACTOR * self._strangeness(chosen)
        return against

    def _strangeness(self, chosen: Sequence[int]) -> Floats:
        """0 for the doubted features that have surely to do with the chosen, 1 for those that may not."""
        closest = self._unlikely(chosen[0]).copy()
        for feature in chosen[1:]:
            np.minimum(closest, self._unlikely(feature), out=closest)
        others = self._width[list(chosen)].sum() - np.isin(self._doubted, chosen) * self._width[self._doubted]
        tests = self._width[self._doubted] * np.maximum(others, 1)
        p = -np.expm1(tests * np.log1p(-np.minimum(closest.astype(np.float64), 1 - 1e-16)))
        return np.asarray(1 - np.minimum(-np.log10(benjamini_hochberg(p)), CERTAIN) / CERTAIN)

    def _unlikely(self, feature: int) -> NDArray[np.float32]:
        """How likely chance brings a column of each doubted feature as close to a column of this one."""
        if feature not in self._known:
            own = np.flatnonzero(self._sample.source.feature_of == feature)
            skewness = self._sample.moments[1]
            skew = np.outer(skewness[self._columns], skewness[own])
            p = chance_correlation_p_value(self._correlations(own), skew, self._sample.count).min(1)
            found = np.minimum.reduceat(p, self._starts).astype(np.float32)
            found[self._doubted == feature] = 1.0  # it is no relation of itself
            self._known[feature] = found
        return self._known[feature]

    def _correlations(self, own: NDArray[np.int64]) -> Floats:
        """Of the doubted features' columns with these."""
        if self._units is not None:
            out = torch.empty(1, len(self._columns), len(own))
            matmul(self._units, self._unit(own).mT, out)
            return out[0].double().numpy()
        squares = self._sample.moments[0]
        lengths = np.sqrt(np.outer(squares[self._columns], squares[own]))
        products = self._sample.products(self._sample.centred(own))[self._columns]
        return np.asarray(products / np.where(lengths > 0, lengths, np.inf))

    def _unit(self, columns: NDArray[np.int64]) -> torch.Tensor:
        """Columns (1, columns, rows) of length 1; what does not vary stays 0."""
        lengths = np.sqrt(self._sample.moments[0])
        out = torch.empty(1, len(columns), len(self._sample.rows))
        for at in range(0, len(columns), BLOCK):
            some = columns[at : at + BLOCK]
            found = self._sample.centred(some) * np.sqrt(self._sample.weights)[:, None]
            found /= np.where(lengths[some] > 0, lengths[some], np.inf)
            out[0, at : at + BLOCK] = torch.from_numpy(found.T)
        return out


def chance_correlation_p_value(correlation: Floats, skew: Floats, rows: float) -> Floats:
    """How likely shuffled rows give as large a correlation, of either sign.

    ``skew`` is the product of the two columns' skewness. Pearson's type III curve has the mean, the variance
    and the skewness of what shuffling gives: two columns that are mostly zero may meet by chance. Away from
    its long tail the normal curve is kept to, as the safer one.
    """
    far = np.abs(correlation) * np.sqrt(max(1.0, rows - 1))
    lean = np.sign(correlation) * skew * np.sqrt(max(1.0, rows - 1)) / max(1.0, rows - 2)
    shape = 4 / np.maximum(lean, 1e-2) ** 2
    return np.asarray(np.minimum(1.0, 2 * gammaincc(shape, shape + far * np.sqrt(shape))))
