"""Counts, quantiles and levels: planted features are found, also where squared error of the same numbers fails."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

import seqatt
from seqatt.losses.table import LOSSES

SEEDS = pytest.mark.parametrize("seeds", [[0], pytest.param([0, 1], marks=pytest.mark.exhaustive)])


def found(seed, y, planted, **options):
    """How many of the planted features are selected by as many."""
    X = features(seed)
    selection = seqatt.select(X, y(X, np.random.default_rng(seed)), len(planted), seed=seed, **options)
    return len(set(selection.indices.tolist()) & set(planted))


def features(seed):
    return np.random.default_rng([seed, 1]).normal(size=(600, 30))


def counts(X, rng):
    """The largest counts are a hundred times the mean: squared error sees little else."""
    return rng.poisson(np.exp(1 + 1.2 * np.abs(X[:, 0]) + 1.2 * X[:, 4] - 0.4 * X[:, 1] + 0.4 * X[:, 2]))


def spread(X, rng):
    """Features 1 and 2 change the spread and not the mean."""
    return 0.5 * X[:, 0] + np.exp(0.8 * X[:, 1] - 0.8 * X[:, 2]) * rng.normal(size=len(X))


def levels(X, rng):
    score = X[:, 0] + 0.7 * X[:, 1] - 0.7 * X[:, 2] + 0.5 * rng.normal(size=len(X))
    return np.array([1, 2, 3, 4, 100])[np.digitize(score, [-1, 0, 1, 3])]


@SEEDS
@pytest.mark.filterwarnings("ignore:y holds extreme values .* or task='poisson' for counts")
def test_features_of_counts_are_found_by_poisson_regression(seeds):
    own = [found(seed, counts, [0, 1, 2, 4], task="poisson") for seed in seeds]
    squared = [found(seed, counts, [0, 1, 2, 4], task="regression") for seed in seeds]
    assert sum(own) == 4 * len(seeds) >= sum(squared)


@SEEDS
def test_features_of_the_spread_are_found_by_a_high_quantile(seeds):
    own = [found(seed, spread, [0, 1, 2], task="quantile", quantile=0.9) for seed in seeds]
    squared = [found(seed, spread, [0, 1, 2], task="regression") for seed in seeds]
    assert sum(own) == 3 * len(seeds) > sum(squared)


@pytest.mark.parametrize("method", ["sequential_attention", "cmim", "greedy"])
def test_features_of_levels_are_found_whatever_their_numbers(method):
    assert found(0, levels, [0, 1, 2], task="ordinal", method=method) == 3


def test_a_table_of_patients_as_levels_counts_and_quantiles():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    targets = {"ordinal": pd.qcut(y, 4, labels=False), "poisson": y.round(), "quantile": y}
    for task, target in targets.items():
        assert {"bmi", "s5"} <= set(seqatt.select(X, target, 4, task=task).features), task
        scores = seqatt.evaluate(
            X[::2], target[::2], X[1::2], target[1::2], ["bmi", "s5"], task=task, seeds=[0]
        )
        assert list(scores) == list(LOSSES[task].metrics)
        assert scores["mae"][0] < 0.9 if task == "ordinal" else scores["d2"][0] > 0.1


def test_k_and_repeats_work_for_numbers_of_any_kind():
    X = features(0)
    y = counts(X, np.random.default_rng(0))
    auto = seqatt.select(X, y, k="auto", max_k=8, task="poisson", epochs=10)
    assert auto.curve["metric"] == "d2"
    assert {0, 4} <= set(auto.indices.tolist())
    repeated = seqatt.select(X, y, 2, repeats=4, task="poisson", epochs=10)
    assert sorted(repeated.indices) == [0, 4]


def test_files_read_batch_by_batch_give_counts_and_quantiles(tmp_path):
    X = features(1)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(30)]).assign(
        y=counts(X, np.random.default_rng(1))
    )
    frame[:450].to_csv(tmp_path / "train.csv", index=False)
    frame[450:].to_csv(tmp_path / "test.csv", index=False)
    paths = str(tmp_path / "train.csv"), str(tmp_path / "test.csv")
    for task in ("poisson", "quantile"):
        selection = seqatt.select(paths[0], target="y", k=2, task=task, memory=1)
        assert selection.settings["reading"] == "batches"
        assert set(selection.features) <= {"x0", "x1", "x2", "x4"}
        options = {"target": "y", "indices": selection, "task": task, "seeds": [0]}
        streamed = seqatt.evaluate(paths[0], X_test=paths[1], memory=1, **options)
        table = seqatt.evaluate(frame[:450], X_test=frame[450:], **options)
        assert streamed.mean["d2"] == pytest.approx(table.mean["d2"], abs=0.15)
    for task, message in {"ordinal": "needs a table; raise memory", "poisson": "time: needs a table"}.items():
        with pytest.raises(ValueError, match=message):
            seqatt.select(
                paths[0],
                target="y",
                k=2,
                task=task,
                memory=1,
                **({"time": "x3"} if task == "poisson" else {}),
            )
