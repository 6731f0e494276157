"""Screening before training: row sample, univariate test and score penalty of each trial.

The penalty comes from the univariate test and from the relatedness to the selected features.

A feature without a significant relation to the target by itself can still be useful together with others, or
repeat what others hold, or be noise. A feature related to a selected one is unlikely to be noise; one that is
not related to any selected feature gets a larger penalty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.table_data import TableData
from seqatt.training.defaults import penalty_share
from seqatt.training.screening.relatedness import Relatedness
from seqatt.training.screening.row_sample import RowSample, draw_sample
from seqatt.training.screening.univariate_test import benjamini_hochberg, univariate_test

Floats = NDArray[np.float64]

CERTAIN = 2.0  # -log10 of the FDR q-value from which two features count as related for certain
UNRELATED_FACTOR = 2.0  # a feature unrelated to all selected ones gets this many times its penalty on top


@dataclass(frozen=True, eq=False)
class ScorePenalty:
    """The penalty of trials that see the rows of ``sample``.

    ``shortfall`` (d,) is 0 or less: by how much each feature's univariate test misses its threshold. ``share`` (d,) is
    how much of a penalty is added to the pooled logits when features are selected. Features that matter only together
    are not significant alone; where rows are many, their logits must outweigh those of a copy that is.
    """

    sample: RowSample
    shortfall: Floats
    share: Floats | float = 1.0

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

    def has_none(self, trial: int, features: int) -> NDArray[np.bool_]:
        """Which of the features (d,) of a trial have no penalty, as they are related to the target by themselves."""
        if trial not in self._trials:
            return np.zeros(features, dtype=bool)
        return np.asarray(self._shortfall[self._trials.index(trial)] == 0)

    def add_to_scores(
        self, scores: Floats, orders: Sequence[list[int]], features: slice | NDArray[np.int64] = slice(None)
    ) -> None:
        """Add the penalties, times their share, to the scores (trials, m) of these ``features``.

        ``orders`` are the features that each trial has selected.
        """
        if self._trials:
            penalties = self._penalties(np.arange(len(self._trials)), orders)
            scores[self._trials] += (self._share * penalties)[:, features]

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


class Screening(NamedTuple):
    """A sample of the rows, the score penalty of the trial if it has one, and facts for ``Selection.settings``.

    ``explained`` is the share of the target that each feature (d,) explains by itself, None if they were not tested.
    """

    sample: RowSample | None = None
    score_penalty: ScorePenalty | None = None
    explained: NDArray[np.float64] | None = None
    facts: Mapping[str, Any] = MappingProxyType({})


def screen(
    data: TableData,
    threshold: float,
    rows: int,
    device: torch.device,
    table: Tensor | None = None,
    subset: NDArray[np.int64] | None = None,
) -> Screening:
    """The penalty of features that fall short of ``threshold`` in the univariate test; 0 disables the test.

    Features beyond the threshold have a penalty of zero, so that their scores come from attention alone. The penalty
    is None where it is the same for all features, unless there are categories with an embedding. The data may be a
    sample of files of ``rows`` rows; ``table`` are its columns on the device, where they are there already, and
    ``subset`` the rows that the trial sees, if not all.
    """
    sample = draw_sample(data, subset, table=table, device=device)
    if not threshold:
        return Screening(sample)
    log_q, explained = univariate_test(sample)
    shortfall = np.minimum(log_q, threshold) - threshold
    of_varying = shortfall[~sample.data.constant]
    all_reach_it = len(data.coded_features) > 0 and not of_varying.any()  # which ``has_none`` has to know
    share = np.full(data.features, penalty_share(rows, data.encoded_columns))
    for feature, values in zip(data.coded_features, data.code_counts, strict=True):
        share[feature] = max(share[feature], penalty_share(rows, data.encoded_columns, values))
    penalty = (
        ScorePenalty(sample, shortfall, share) if all_reach_it or len(np.unique(of_varying)) > 1 else None
    )
    return Screening(sample, penalty, explained, {"min_q_value": float(f"{10.0 ** -log_q.max():.3g}")})
