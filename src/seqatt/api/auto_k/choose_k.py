"""``k="auto"``: how many features to select, from the scores of networks on rows that selected none of them.

The rows are divided into folds. For each fold, the method orders up to ``max_k`` features on the other rows, networks
train there on the first 1, 2, 3, 4, 6, ... of them, and their outputs are scored on the fold: the rows of a score
chose neither the features nor the weights. The number k is chosen from the mean scores, and k features are then
selected on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.algorithms.registry import DEFAULT, Method
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.auto_k.curve import choose_size, score_outputs, score_without_features
from seqatt.api.evaluation_data import EvaluationData, resolve_options
from seqatt.api.evaluation_networks import evaluate_networks
from seqatt.api.evaluation_rows import RowBlock
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.progress import Advance
from seqatt.training.defaults import evaluation_steps, resolve_batch_size
from seqatt.training.loop import TrainingHook

FOLDS = 3
FOLD_BUDGET = 0.3  # steps of a fold's selection, as a share of the default
NETWORK_SHARE = 0.5  # steps of a network, as a share of those in ``evaluate``: sizes are only compared
TAKE_PHASES = 10  # phases, at most, in which a fold's selection takes max_k features
MAX_SIZE = 50  # default of max_k: more are no short list, and a training has about 50 phases
ROWS_PER_FEATURE = 5  # default of max_k: at most one feature per so many rows
SIZE_RATIO = 1.5  # of one size that is tried first to the next
MAX_BETWEEN = 6  # sizes tried between the chosen one and the next smaller
MIN_ROWS = 30  # in a fold; fewer would say nothing


def resolve_max_k(data: Any, requested: int | None) -> int:
    """The most features that may be chosen; refuses data that cannot be divided into folds."""
    if not isinstance(data, TableData):
        raise ValueError(
            "k: 'auto' needs a table; raise memory so that the files are read into one, or use a number"
        )
    if data.rows < FOLDS * MIN_ROWS:
        raise ValueError(f"k: 'auto' needs at least {FOLDS * MIN_ROWS} rows, got {data.rows}; use a number")
    if isinstance(data.columns, SparseColumns):
        raise ValueError("k: 'auto' needs a table that fits in memory as a dense one; use a number")
    varying = int((~data.constant).sum())
    if requested is not None and requested > data.features:
        raise ValueError(
            f"max_k: {requested} features requested, but the table has {data.features}; use at most {data.features}"
        )
    return requested or min(varying, MAX_SIZE, max(1, data.rows // ROWS_PER_FEATURE))


class Score(NamedTuple):
    """A mean over folds and its standard error over their rows."""

    mean: float
    standard_error: float


class _Fold(NamedTuple):
    """Rows to select and train on, rows to score on, and the order of features found on the former."""

    reading: EvaluationData
    order: list[int]
    random: list[int]


def choose_k(
    method: Method, request: SelectionRequest, rule: str | float, advance: Advance
) -> dict[str, Any]:
    """The curve from which the number of features up to ``request.k`` is chosen; "chosen" is that number."""
    data, max_k, seed = request.table, request.k, request.seeds[0]
    advance(0, "Choosing k", FOLDS + 2)
    folds = []
    for rows in _divide(data, seed):
        folds.append(_select_on_others(method, request, rows))
        advance(1)
    sizes = first_sizes(max_k)
    everything = np.flatnonzero(~data.constant).tolist()
    *means, of_all = _score(
        folds, [[fold.order[:size] for size in sizes] + [everything] for fold in folds], seed
    )
    advance(1)
    curve: dict[str, Any] = {
        "metric": METRICS[data.target.task],
        "folds": FOLDS,
        "no_features": float(np.mean([_score_without_features(fold.reading) for fold in folds])),
        "all_features": of_all.mean,
    } | _points(sizes, means)
    chosen = choose_size(curve, rule)
    between, some = _between(sizes, chosen), chosen or max_k
    sets = [[fold.order[:size] for size in between] + [fold.random[:some]] for fold in folds]
    *more, of_random = _score(folds, sets, seed)
    curve |= {"random_features": of_random.mean, "random_size": min(some, len(everything))}
    curve |= _points(sizes + between, means + more)
    advance(1)
    return curve | {"chosen": choose_size(curve, rule)}


def _points(sizes: list[int], scores: list[Score]) -> dict[str, list[Any]]:
    """Sizes in rising order, with their scores."""
    order = np.argsort(sizes)
    return {
        "sizes": [sizes[i] for i in order],
        "means": [scores[i].mean for i in order],
        "standard_errors": [scores[i].standard_error for i in order],
    }


METRICS = {"binary": "auc", "multiclass": "accuracy", "multilabel": "accuracy", "regression": "r2"}


def first_sizes(max_k: int) -> list[int]:
    """From 1 to ``max_k``, each about 1.5 times the one before: 1, 2, 3, 4, 6, 9, 14, 21, 32, 48."""
    sizes = [1]
    while (size := max(sizes[-1] + 1, round(SIZE_RATIO * sizes[-1]))) * SIZE_RATIO**0.5 < max_k or size < 4:
        if size >= max_k:
            break
        sizes.append(size)
    return sizes if max_k == 1 else [*sizes, max_k]


def _between(sizes: list[int], chosen: int) -> list[int]:
    """Sizes between the chosen one and the next smaller, evenly spaced; none if nothing was chosen."""
    if chosen <= 1:
        return []
    below = sizes[sizes.index(chosen) - 1]
    return sorted(
        {round(size) for size in np.linspace(below, chosen, MAX_BETWEEN + 2)[1:-1]} - {below, chosen}
    )


def _divide(data: TableData, seed: int) -> list[NDArray[np.int64]]:
    """The rows of each fold; every class is divided evenly."""
    rng = np.random.default_rng([seed, FOLDS])
    shuffled = rng.permutation(data.rows)
    if data.target.task in ("binary", "multiclass"):
        shuffled = shuffled[np.argsort(data.target.values.reshape(data.rows, -1)[shuffled, 0], kind="stable")]
    return [np.sort(shuffled[start::FOLDS]) for start in range(FOLDS)]


def _select_on_others(method: Method, request: SelectionRequest, rows: NDArray[np.int64]) -> _Fold:
    """Order the features on all rows but these."""
    data, options = request.table, request.options
    others = np.setdiff1d(np.arange(data.rows), rows)
    train = take_rows(data, others)
    own = replace(request, data=train, hook=TrainingHook())
    epochs = method.plan(own).settings.get("epochs")
    if epochs:
        own = replace(own, options=replace(options, epochs=FOLD_BUDGET * epochs))
    if method.name == DEFAULT and options.recipe == "default" and options.one_pass:
        # Select max_k features, then drop all but one: the networks train on those that are left between two drops.
        per_phase = -(-request.k // TAKE_PHASES)
        down_to_one = {"surplus": float(request.k), "replacement": 0, "features_per_phase": per_phase}
        own = replace(own, k=1, options=replace(own.options, **down_to_one))
    trace = method.select(own, method.plan(own), own.hook.advance)[0]
    order = (trace.order + trace.rest)[: request.k]
    varying = np.flatnonzero(~data.constant)
    random = np.random.default_rng([request.seeds[0], int(rows[0])]).permutation(varying).tolist()
    assert isinstance(data.columns, np.ndarray)
    block = RowBlock(data.columns[rows], data.codes[rows], data.target.values[rows])
    return _Fold(EvaluationData(train, lambda: iter([block])), order, random)


def take_rows(data: TableData, rows: NDArray[np.int64]) -> TableData:
    """Some rows of a table, encoded as all are; features that are constant there are marked."""
    assert isinstance(data.columns, np.ndarray)
    columns, codes = data.columns[rows], data.codes[rows]
    varies = np.zeros(data.features, dtype=bool)
    np.logical_or.at(varies, data.feature_of, columns.min(0) < columns.max(0))
    if codes.shape[1]:
        np.logical_or.at(varies, data.coded_features, codes.min(0) < codes.max(0))
    return replace(
        data,
        columns=columns,
        codes=codes,
        constant=data.constant | ~varies,
        target=replace(data.target, values=data.target.values[rows]),
        weights=None if data.weights is None else data.weights[rows],
        effective_rows=data.effective_rows * len(rows) / data.rows,
    )


def network_epochs(rows: int) -> float:
    """The passes over the rows that take half of the steps of a network of ``evaluate``."""
    batch_size = resolve_batch_size(rows, None)
    return NETWORK_SHARE * evaluation_steps(rows, batch_size, None) * batch_size / rows


def _score(folds: Sequence[_Fold], sets: Sequence[Sequence[Sequence[int]]], seed: int) -> list[Score]:
    """The mean score over the folds of sets of features, which are listed per fold; those of a fold train together."""
    scores = []
    for fold, own in zip(folds, sets, strict=True):
        data = fold.reading.data
        options = replace(resolve_options(data, {}), epochs=network_epochs(data.rows))
        networks = [(np.array(features), seed) for features in own]
        measure = partial(score_outputs, data.target.task)
        for result in evaluate_networks(fold.reading, options, networks, lambda percent: None, measure):
            if isinstance(result, Exception):
                raise result
            scores.append(list(result.values()))
    means, errors = np.array(scores).reshape(len(folds), -1, 2).transpose(2, 0, 1)
    pooled = np.sqrt((errors**2).sum(0)) / len(folds)
    return [Score(mean, error) for mean, error in zip(means.mean(0).tolist(), pooled.tolist(), strict=True)]


def _score_without_features(reading: EvaluationData) -> float:
    (block,) = reading.test()
    return score_without_features(reading.data.target.task, reading.data.target.values, block.targets)
