"""Score penalty per feature, from the univariate test and the relatedness to the selected features.

A feature without a significant relation to the target by itself can still be useful together with others, or
repeat what others hold, or be noise. A feature related to a selected one is unlikely to be noise; one that is
not related to any selected feature gets a larger penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqatt.training.screening.relatedness import Relatedness
from seqatt.training.screening.row_sample import RowSample
from seqatt.training.screening.univariate_test import benjamini_hochberg

Floats = NDArray[np.float64]

CERTAIN = 2.0  # -log10 of the FDR q-value from which two features count as related for certain
UNRELATED_FACTOR = 2.0  # a feature unrelated to all selected ones gets this many times its penalty on top


@dataclass(frozen=True, eq=False)
class ScorePenalty:
    """The penalty of trials that see the rows of ``sample``.

    ``shortfall`` (d,) is 0 or less: by how much each feature's univariate test misses its threshold. ``share`` is how
    much of a penalty is added to the pooled logits when features are selected. Features that matter only together are
    not significant alone; where rows are many, their logits must outweigh those of a copy that is.
    """

    sample: RowSample
    shortfall: Floats
    share: float = 1.0

    @cached_property
    def penalised(self) -> NDArray[np.bool_]:
        """Which features (d,) have a penalty that depends on the selected ones."""
        return (self.shortfall < 0) & ~self.sample.data.constant


class TrialPenalties:
    """The score penalties of the trials of a group, None for a trial without one.

    All trials are computed together: on a GPU there may be twenty, each with rows of its own.
    """

    def __init__(self, penalties: Sequence[ScorePenalty | None]) -> None:
        self._trials = [trial for trial, penalty in enumerate(penalties) if penalty is not None]
        present = [penalty for penalty in penalties if penalty is not None]
        if not present:
            return
        self._share = present[0].share
        self._shortfall = np.stack([penalty.shortfall for penalty in present])
        penalised = np.stack([penalty.penalised for penalty in present])
        compared = np.asarray(penalised.any(0))  # features that some trial penalises
        self._compared, self._penalised = np.flatnonzero(compared), penalised[:, compared]
        distinct = list(dict.fromkeys(present))  # trials on the same rows share one
        self._sample_of = np.array([distinct.index(penalty) for penalty in present])
        samples = [penalty.sample for penalty in distinct]
        self._relatedness = Relatedness(samples, compared)
        self._width = samples[0].columns_per_feature

    def __bool__(self) -> bool:
        return bool(self._trials)

    def add_to_scores(
        self, scores: Floats, orders: Sequence[list[int]], features: slice | NDArray[np.int64] = slice(None)
    ) -> None:
        """Add the penalties, times their share, to the scores (trials, m) of these ``features``.

        ``orders`` are the features that each trial has selected.
        """
        if self._trials:
            penalties = self._penalties(np.arange(len(self._trials)), orders)
            scores[self._trials] += self._share * penalties[:, features]

    def add_to_usefulness(self, usefulness: Floats, orders: Sequence[list[int]]) -> None:
        """Add the penalties of the selected features to their usefulness (trials, m)."""
        if not self._trials:
            return
        selected = np.array([orders[trial] for trial in self._trials])
        penalties = np.take_along_axis(self._shortfall, selected, 1)
        differ = np.flatnonzero(penalties.any(1))  # selected features that all reach the threshold have none
        if len(differ):
            penalties[differ] = np.take_along_axis(self._penalties(differ, orders), selected[differ], 1)
        usefulness[self._trials] += penalties

    def _penalties(self, numbers: NDArray[np.int64], orders: Sequence[list[int]]) -> Floats:
        """The penalties (m, d), 0 or less, of the trials with these ``numbers`` among those that have one.

        Features unrelated to every selected feature get up to three times their shortfall. A selected feature is
        compared with the other selected ones.
        """
        penalties, penalised = self._shortfall[numbers], self._penalised[numbers]
        selected = np.array([orders[self._trials[number]] for number in numbers], dtype=np.int64)
        if not selected.shape[1]:
            return penalties
        p = self._relatedness.smallest_p_values(self._sample_of[numbers], selected)
        is_selected = np.zeros(penalties.shape, dtype=bool)
        np.put_along_axis(is_selected, selected, values=True, axis=1)
        width = self._width[self._compared]
        others = self._width[selected].sum(1, keepdims=True) - is_selected[:, self._compared] * width
        tests = width * np.maximum(others, 1)
        # Sidak's correction for the smallest of several p-values.
        p = -np.expm1(tests * np.log1p(-np.minimum(p, 1 - 1e-16)))
        log_q = -np.log10(benjamini_hochberg(np.where(penalised, p, np.inf)))
        unrelated = 1 - np.minimum(log_q, CERTAIN) / CERTAIN  # 0 if certainly related, 1 if related to none
        penalties[:, self._compared] *= 1 + UNRELATED_FACTOR * unrelated * penalised
        return penalties
