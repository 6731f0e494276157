"""Cross-validation: features are selected and networks trained on the rows outside of a fold, and scored on the fold.

The rows of a fold are used neither to select features nor to train networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.api.evaluation.held_out_rows import RowBlock
from seqatt.api.evaluation.networks import evaluate_networks
from seqatt.api.evaluation.reading import EvaluationData, resolve_options
from seqatt.api.evaluation.result import raise_errors
from seqatt.data.tables.row_units import keep_neighbours_together
from seqatt.data.tables.table_data import TableData, take_rows
from seqatt.data.tables.weights import BALANCED_SHARE, balanced_share, with_class_weights
from seqatt.losses.loss import Score

FOLDS = 3
MIN_ROWS = 30  # in a fold; the estimate from fewer rows would be too noisy
NETWORK_SHARE = 0.5  # steps of a network, as a share of those in ``evaluate``: sets are only compared


class Fold(NamedTuple):
    """``reading`` has the rows to select and train on, and those of the fold to score on."""

    reading: EvaluationData
    rows: NDArray[np.int64]

    @property
    def train(self) -> TableData:
        """The rows of the other folds."""
        assert isinstance(self.reading.data, TableData)
        return self.reading.data


def divide_rows(data: TableData, seed: int, folds: int = FOLDS) -> list[NDArray[np.int64]]:
    """The rows of each fold: blocks of neighbours, unless groups of rows or time order decide.

    Rows of a rare class are dealt one by one, so that as many folds as possible have some.
    """
    rng = np.random.default_rng([seed, folds])
    if data.units is not None:
        return data.units.folds(folds, rng)
    order = keep_neighbours_together(data.target.strata, folds, rng, deal_rare=data.target.codes is not None)
    return [np.sort(part) for part in np.array_split(order, folds)]


def make_fold(data: TableData, rows: NDArray[np.int64]) -> Fold:
    """The fold of these rows."""
    assert isinstance(data.columns, np.ndarray)
    block = RowBlock(data.columns[rows], data.codes[rows], data.target.values[rows])
    train = np.setdiff1d(np.arange(data.rows), rows) if data.units is None else data.units.outside(rows)
    return Fold(EvaluationData(take_rows(data, train), lambda: iter([block])), rows)


def balance_classes(data: TableData) -> TableData:
    """The table with weights that balance two very unequal classes, unless its rows have weights.

    Without weights, networks that train on many features of such a table fit the few rows of the rarer class: which
    features can be spared is then a matter of chance. Only the order of rows counts for the score of a fold.
    """
    target = data.target
    if target.task != "binary" or data.weights is not None or balanced_share(target) > BALANCED_SHARE:
        return data
    weights = with_class_weights(None, "balanced", 1.0, target)
    assert weights is not None
    return replace(data, weights=weights.astype(np.float32))


def fold_correction(folds: int) -> float:
    """How much larger the standard error of a mean over folds is, because they share most of their training rows.

    Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003: the variance of a mean over
    J folds is multiplied by 1 + J n_test / n_train.
    """
    return float(np.sqrt(1 + folds / (folds - 1)))


def target_varies(data: TableData) -> bool:
    """Whether the target has two different values; else all other rows are in a fold, and no method can select."""
    values = data.target.values
    return bool((values != values[:1]).any())


def score_sets(
    folds: Sequence[Fold], sets: Sequence[Sequence[Sequence[int]]], seed: int, share: float = NETWORK_SHARE
) -> list[Score]:
    """The mean score over the folds of sets of features, which are listed per fold."""
    return [pool_folds(scores) for scores in score_per_fold(folds, sets, seed, share)]


def score_per_fold(
    folds: Sequence[Fold], sets: Sequence[Sequence[Sequence[int]]], seed: int, share: float = NETWORK_SHARE
) -> list[list[Score]]:
    """For each set of features its score on every fold; the networks of a fold train together.

    ``share`` is that of the steps of a network of ``evaluate``.
    """
    scores = []
    for fold, sets_of_fold in zip(folds, sets, strict=True):
        data = fold.train
        networks = [(np.array(features), seed) for features in sets_of_fold]
        options, measure = resolve_options(data, {}), data.target.loss.score
        results = evaluate_networks(fold.reading, options, networks, lambda percent: None, measure, share)
        scores.append(raise_errors(results))
    return [list(of_set) for of_set in zip(*scores, strict=True)]


def pool_folds(scores: Sequence[Score]) -> Score:
    """The mean of scores on different rows, with its standard error."""
    means, errors = np.array(scores).T
    return Score(float(means.mean()), float(np.sqrt((errors**2).sum()) / len(scores)))


def noise_errors(folds: Sequence[Fold]) -> list[float]:
    """For each fold the standard error of the score of noise, where it is known; else 0."""
    return [fold.train.target.loss.noise_error(next(fold.reading.test()).targets) for fold in folds]


def score_nothing(folds: Sequence[Fold]) -> float:
    """The mean score over the folds of networks without any features."""
    scores = []
    for fold in folds:
        (block,) = fold.reading.test()
        target = fold.train.target
        scores.append(target.loss.score_without_features(target.values, block.targets))
    return float(np.mean(scores))
