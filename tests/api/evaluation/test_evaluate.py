"""``evaluate``: metrics, seeds, ways to name features, and nothing fitted on test rows."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from tests.support.problems import linear_problem, mixed_frame

import seqatt
from seqatt.data.tables.target import Target


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "metrics"),
    [
        ("binary", ["accuracy", "auc", "log_loss"]),
        ("multiclass", ["accuracy"]),
        ("multilabel", ["accuracy"]),
        ("regression", ["r2", "rmse"]),
        ("multi-output", ["r2", "rmse"]),
    ],
)
def test_the_metrics_of_a_task_are_better_for_informative_features(task, metrics):
    X, y = linear_problem(task, rows=400)
    informative, noise = (
        seqatt.evaluate(X[:300], y[:300], X[300:], y[300:], indices, seeds=[0, 1])
        for indices in ([1, 4], [0, 2])
    )
    assert list(informative) == metrics
    assert informative[metrics[0]].shape == (2,)
    assert informative.mean[metrics[0]] > 0.85
    assert informative.mean[metrics[0]] > noise.mean[metrics[0]] + 0.2
    assert informative.std[metrics[0]] < 0.1


def test_a_seed_alone_and_among_others_gives_the_same_result():
    X, y = linear_problem("binary")
    several = seqatt.evaluate(X, y, X, y, [1, 2], seeds=[3, 8], epochs=5)
    single = seqatt.evaluate(X, y, X, y, [1, 2], seeds=[8], epochs=5)
    assert several["auc"][1] == single["auc"][0]


def test_the_order_of_the_features_does_not_change_the_result():
    X, y = linear_problem("multiclass")
    options = {"seeds": [0], "epochs": 3}
    results = [seqatt.evaluate(X[:80], y[:80], X[80:], y[80:], c, **options) for c in ([5, 1, 3], [1, 3, 5])]
    assert results[0]["accuracy"] == results[1]["accuracy"]


@pytest.mark.parametrize("options", [{}, {"missing_indicator": True}, {"batch_norm": True}])
@pytest.mark.parametrize("indices", [None, ["colour", "size", "city"]])
def test_the_order_of_the_columns_of_a_frame_does_not_change_the_result(indices, options, monkeypatch):
    monkeypatch.setattr("seqatt.api.evaluation.evaluate.evaluation_steps", lambda *_: 30)
    frame, y = mixed_frame()
    other = frame[["noise", "city", "size", "flag", "age", "colour"]]
    one, two = (
        seqatt.evaluate(each[:300], y[:300], each[300:], y[300:], indices, seeds=[0], **options)
        for each in (frame, other)
    )
    assert one["log_loss"].tolist() == two["log_loss"].tolist()


def test_a_network_of_ones_own_gets_the_columns_in_their_order():
    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            return self.scale * x[:, :1]

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"b": rng.normal(size=200), "a": rng.normal(size=200)})
    y = frame["b"] > 0
    result = seqatt.evaluate(
        frame[:150], y[:150], frame[150:], y[150:], None, seeds=[0], model=First(), epochs=1
    )
    assert result["auc"] == [1.0]


def test_names_selections_and_all_features():
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    selection = seqatt.select(frame, y, 2)
    assert set(selection.features) == {"b", "e"}
    options = {"seeds": [0], "epochs": 20}
    by_name = seqatt.evaluate(frame, y, frame, y, selection.features, **options)
    by_selection = seqatt.evaluate(frame, y, frame, y, selection, **options)
    by_position = seqatt.evaluate(X, y, X, y, selection.indices, **options)
    assert by_name["accuracy"] == by_selection["accuracy"] == by_position["accuracy"]
    assert seqatt.evaluate(frame, y, frame, y, None, **options)["accuracy"][0] > 0.9


def test_a_selection_is_matched_by_name_and_a_mask_by_position():
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    selection = seqatt.select(frame, y, 2)
    reversed_columns = frame[list("hgfedcba")]
    result = seqatt.evaluate(reversed_columns, y, reversed_columns, y, selection, seeds=[0], epochs=20)
    assert result["accuracy"][0] > 0.9
    by_mask = seqatt.evaluate(frame, y, frame, y, selection.support, seeds=[0], epochs=20)
    assert by_mask["accuracy"][0] > 0.9


@pytest.mark.parametrize("columns", ["hgfedcba", "zabcdefghy", "eb"])
@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas])
def test_columns_of_test_rows_are_found_by_name(columns, convert):
    X, y = linear_problem("binary")
    train = pd.DataFrame(X, columns=list("abcdefgh"))
    test = train.assign(y=y, z=[["a list"]] * len(y))[list(columns)]  # z cannot be read as a feature
    options = {"seeds": [0], "epochs": 3, "column_types": {"a": "numeric"}}
    expected = seqatt.evaluate(train, y, train, y, ["b", "e"], **options)
    assert seqatt.evaluate(train, y, convert(test), y, ["b", "e"], **options) == expected


def test_columns_of_test_rows_that_are_needed_are_named_where_they_are_missing():
    X, y = linear_problem("binary")
    train = pd.DataFrame(X, columns=list("abcdefgh"))
    with pytest.raises(ValueError, match=r"^X_test: column 'c' is missing; the training rows have it$"):
        seqatt.evaluate(train, y, train.drop(columns="c"), y)
    with pytest.raises(ValueError, match=r"^X_test: column 'c' is missing; the training rows have it$"):
        seqatt.evaluate(train, y, train, "c")
    with pytest.raises(ValueError, match="X_test: must have the same columns as X_train, in the same order"):
        seqatt.evaluate(train, y, X, y)


def test_regression_is_reported_in_the_targets_own_units():
    X, y = linear_problem("regression", rows=400)
    small = seqatt.evaluate(X[:300], y[:300], X[300:], y[300:], [1, 4], seeds=[0])
    large = seqatt.evaluate(X[:300], 1e3 * y[:300] + 7, X[300:], 1e3 * y[300:] + 7, [1, 4], seeds=[0])
    np.testing.assert_allclose(large["rmse"], 1e3 * small["rmse"], rtol=0.05)
    np.testing.assert_allclose(large["r2"], small["r2"], rtol=0.01)


def test_nothing_is_fitted_on_test_rows():
    X, y = linear_problem("binary", rows=400)
    X_test = X[300:].copy()
    X_test[1] = 1e6  # would change the standardisation of every row, if test rows took part in it

    def log_loss(rows: slice) -> float:
        result = seqatt.evaluate(X[:300], y[:300], X_test[rows], y[300:][rows], [1, 4], seeds=[0])
        assert np.isnan(result["auc"]).all() == (len(set(y[300:][rows])) == 1)  # one class has no AUC
        return result["log_loss"][0]

    alone, extreme, together = log_loss(slice(0, 1)), log_loss(slice(1, 2)), log_loss(slice(0, 2))
    assert np.isfinite(extreme)
    np.testing.assert_allclose(together, (alone + extreme) / 2, rtol=1e-5)  # outputs are float32


def test_repr_shows_the_metrics():
    X, y = linear_problem("binary")
    one, two = (repr(seqatt.evaluate(X, y, X, y, [1], seeds=seeds, epochs=1)) for seeds in (1, 2))
    assert one.startswith("Evaluation(accuracy 0.")
    assert one.endswith("; 1 seed)")
    assert "±" not in one  # one value says nothing about its spread
    assert re.search(r"accuracy 0\.\d+ ± 0\.\d+, .*; 2 seeds\)$", two)


@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_r2_does_not_depend_on_the_unit_of_the_target(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0]
    usual, other = (
        seqatt.evaluate(X, y * s, X, y * s, seeds=[0], epochs=5, task="regression") for s in (1.0, size)
    )
    assert other["r2"][0] == pytest.approx(usual["r2"][0], abs=1e-3)
    assert other["rmse"][0] == pytest.approx(usual["rmse"][0] * size, rel=1e-2)


def test_auc_and_log_loss_are_those_of_scikit_learn():
    from sklearn.metrics import log_loss, roc_auc_score

    rng = np.random.default_rng(0)
    label = rng.integers(2, size=(200, 1)).astype(np.float64)
    logit = np.round(rng.normal(size=(200, 1)) + label, 1)  # with ties
    target = Target("binary", label, 1)
    metrics = target.loss.measure(target, logit, label)
    assert metrics["auc"] == pytest.approx(roc_auc_score(label, logit), abs=1e-12)
    assert metrics["log_loss"] == pytest.approx(log_loss(label, 1 / (1 + np.exp(-logit))), abs=1e-12)
    assert np.isnan(target.loss.measure(target, logit, np.zeros_like(label))["auc"])
