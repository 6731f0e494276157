"""Score penalty per feature, from the univariate test and the relatedness to the selected features.

A feature without a significant relation to the target by itself can still be useful together with others, or
repeat what others hold, or be noise. A feature related to a selected one is unlikely to be noise; one that is
not related to any selected feature gets a larger penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaincc

from seqatt.data.tables.table_data import SparseColumns
from seqatt.training.backend.matmul import matmul
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.screening.row_sample import BLOCK_COLUMNS, RowSample
from seqatt.training.screening.univariate_test import benjamini_hochberg

Floats = NDArray[np.float64]

CERTAIN = 2.0  # -log10 of the FDR q-value from which two features count as related for certain
UNRELATED_FACTOR = 2.0  # a feature unrelated to all selected ones gets this many times its penalty on top


class ScorePenalty:
    """``shortfall`` (d,) is 0 or less: by how much each feature's univariate test misses its threshold.

    ``share`` is how much of a penalty is added to the pooled logits when features are selected. Features that matter
    only together are not significant alone; where rows are many, their logits must outweigh those of a copy that is.
    """

    def __init__(self, sample: RowSample, shortfall: Floats, share: float = 1.0) -> None:
        self.share = share
        feature_of = sample.data.feature_of
        self._shortfall = shortfall
        self._sample = sample
        self._width = np.bincount(feature_of, minlength=len(shortfall))  # columns per feature
        self._penalised = np.flatnonzero((shortfall < 0) & ~sample.data.constant)
        self._columns = np.flatnonzero(np.isin(feature_of, self._penalised))
        self._first_columns = np.flatnonzero(np.diff(feature_of[self._columns], prepend=-1))
        sparse = isinstance(sample.data.columns, SparseColumns)
        self._unit_columns = None if sparse else self._normalise(self._columns)
        # Smallest p-values per feature that was selected at some time; their rows, by feature.
        self._p_values = np.empty((0, len(self._penalised)), dtype=np.float32)
        self._row_of: dict[int, int] = {}

    def penalties(self, selected: Sequence[int]) -> Floats:
        """The penalty (d,) added to each feature's score, 0 or less, when these features are selected.

        Features unrelated to every selected feature get up to three times their shortfall. A selected
        feature is compared with the other selected ones.
        """
        penalties = self._shortfall.copy()
        if len(selected):
            penalties[self._penalised] *= 1 + UNRELATED_FACTOR * self._unrelatedness(selected)
        return penalties

    def selected_penalties(self, selected: Sequence[int]) -> Floats:
        """The penalties of the selected features themselves, in this order."""
        shortfall = self._shortfall[list(selected)]
        return self.penalties(selected)[list(selected)] if shortfall.any() else shortfall

    def _unrelatedness(self, selected: Sequence[int]) -> Floats:
        """Per penalised feature: 0 if certainly related to a selected feature, 1 if related to none."""
        for feature in selected:
            self._find_p_values(feature)
        smallest = self._p_values[[self._row_of[feature] for feature in selected]].min(0)
        own_width = self._width[self._penalised]
        other_width = self._width[list(selected)].sum() - np.isin(self._penalised, selected) * own_width
        tests = own_width * np.maximum(other_width, 1)
        # Sidak's correction for the smallest of several p-values.
        p = -np.expm1(tests * np.log1p(-np.minimum(smallest.astype(np.float64), 1 - 1e-16)))
        return np.asarray(1 - np.minimum(-np.log10(benjamini_hochberg(p)), CERTAIN) / CERTAIN)

    def _find_p_values(self, feature: int) -> None:
        """Per penalised feature, the smallest p-value of a correlation of its columns with this feature's."""
        if feature in self._row_of:
            return
        columns = np.flatnonzero(self._sample.data.feature_of == feature)
        skewness = self._sample.moments[1]
        skew = np.outer(skewness[self._columns], skewness[columns])
        correlations = self._correlations(columns)
        by_column = correlation_p_value(correlations, skew, self._sample.effective_rows).min(1)
        p = np.minimum.reduceat(by_column, self._first_columns).astype(np.float32)
        p[self._penalised == feature] = 1.0  # a feature is not compared with itself
        row = self._row_of[feature] = len(self._row_of)
        if row == len(self._p_values):
            more = np.empty((max(8, row), len(p)), dtype=np.float32)
            self._p_values = np.concatenate([self._p_values, more])
        self._p_values[row] = p

    def _correlations(self, columns: NDArray[np.int64]) -> Floats:
        """Correlations of the penalised features' columns with these columns."""
        if self._unit_columns is not None:
            out = torch.empty(1, len(self._columns), len(columns))
            matmul(self._unit_columns, self._normalise(columns).mT, out)
            return out[0].double().numpy()
        squares = self._sample.moments[0]
        norms = np.sqrt(np.outer(squares[self._columns], squares[columns]))
        products = self._sample.inner_products(self._sample.centred_columns(columns))[self._columns]
        return np.asarray(products / np.where(norms > 0, norms, np.inf))

    def _normalise(self, columns: NDArray[np.int64]) -> torch.Tensor:
        """These columns as (1, columns, rows), weighted, centred and of norm 1; constant columns are 0."""
        norms = np.sqrt(self._sample.moments[0])
        out = torch.empty(1, len(columns), len(self._sample.rows))
        for start in range(0, len(columns), BLOCK_COLUMNS):
            block = columns[start : start + BLOCK_COLUMNS]
            values = self._sample.centred_columns(block) * np.sqrt(self._sample.weights)[:, None]
            values /= np.where(norms[block] > 0, norms[block], np.inf)
            out[0, start : start + BLOCK_COLUMNS] = torch.from_numpy(values.T)
        return out


class TrialPenalties:
    """The score penalties of the trials of a group, None for a trial without one."""

    def __init__(self, penalties: Sequence[ScorePenalty | None]) -> None:
        self._penalties = list(penalties)
        self._pool = WorkerPool(1)

    def __bool__(self) -> bool:
        return any(penalty is not None for penalty in self._penalties)

    def __getitem__(self, trial: int) -> ScorePenalty | None:
        return self._penalties[trial]

    @property
    def distinct_count(self) -> int:
        """Number of different penalties; trials on the same rows share one."""
        return len(set(map(id, self._penalties)))

    def use_pool(self, pool: WorkerPool) -> None:
        """Compute the penalties of different trials on the threads of this pool."""
        self._pool = pool

    def add_to_scores(
        self, scores: Floats, orders: Sequence[list[int]], features: slice | NDArray[np.int64]
    ) -> None:
        """Add the penalties, times their share, to the scores (trials, m) of these ``features``.

        ``orders`` are the features that each trial has selected.
        """
        for trial, penalties in self._compute(ScorePenalty.penalties, orders):
            penalty = self._penalties[trial]
            assert penalty is not None
            scores[trial] += penalty.share * penalties[features]

    def add_to_usefulness(self, usefulness: Floats, orders: Sequence[list[int]]) -> None:
        """Add the penalties of the selected features to their usefulness (trials, m)."""
        for trial, penalties in self._compute(ScorePenalty.selected_penalties, orders):
            usefulness[trial] += penalties

    def _compute(
        self, function: Callable[[ScorePenalty, list[int]], Floats], orders: Sequence[list[int]]
    ) -> list[tuple[int, Floats]]:
        """The numbers of the trials with a penalty, and the value of the function for each."""
        trials = [trial for trial, penalty in enumerate(self._penalties) if penalty is not None]
        calls = [partial(function, self._penalties[trial], orders[trial]) for trial in trials]  # type: ignore[arg-type]
        return list(zip(trials, self._pool.run(calls), strict=True))


def correlation_p_value(correlation: Floats, skew: Floats, rows: float) -> Floats:
    """Two-sided p-value of a correlation under random permutations of the rows.

    The permutation distribution is approximated by a Pearson type III distribution of the same mean, variance
    and skewness; ``skew`` is the product of the two columns' skewness. This matters for columns that are
    mostly zero, whose few other values may coincide by chance. On the side of the short tail the normal
    distribution is used instead, because it is more conservative.
    """
    deviation = np.abs(correlation) * np.sqrt(max(1.0, rows - 1))
    skewness = np.sign(correlation) * skew * np.sqrt(max(1.0, rows - 1)) / max(1.0, rows - 2)
    shape = 4 / np.maximum(skewness, 1e-2) ** 2
    return np.asarray(np.minimum(1.0, 2 * gammaincc(shape, shape + deviation * np.sqrt(shape))))
