from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.support.problems import linear_problem

import seqatt


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
def test_metrics_by_task_tell_good_features_from_bad(task, metrics):
    X, y = linear_problem(task, rows=400)
    good, bad = (
        seqatt.evaluate(X[:300], y[:300], X[300:], y[300:], indices, seeds=[0, 1])
        for indices in ([1, 4], [0, 2])
    )
    assert list(good) == metrics
    assert good[metrics[0]].shape == (2,)
    assert good.mean[metrics[0]] > 0.85
    assert good.mean[metrics[0]] > bad.mean[metrics[0]] + 0.2
    assert good.std[metrics[0]] < 0.1


def test_a_seed_alone_and_in_company_are_the_same():
    X, y = linear_problem("binary")
    both = seqatt.evaluate(X, y, X, y, [1, 2], seeds=[3, 8], epochs=5)
    one = seqatt.evaluate(X, y, X, y, [1, 2], seeds=[8], epochs=5)
    assert both["auc"][1] == one["auc"][0]


def test_the_same_features_in_another_order_are_judged_alike():
    X, y = linear_problem("multiclass")
    told = {"seeds": [0], "epochs": 3}
    results = [seqatt.evaluate(X[:80], y[:80], X[80:], y[80:], c, **told) for c in ([5, 1, 3], [1, 3, 5])]
    assert results[0]["accuracy"] == results[1]["accuracy"]


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


def test_a_selection_goes_by_name_and_a_mask_by_position():
    X, y = linear_problem("binary")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    selection = seqatt.select(frame, y, 2)
    turned = frame[list("hgfedcba")]
    result = seqatt.evaluate(turned, y, turned, y, selection, seeds=[0], epochs=20)
    assert result["accuracy"][0] > 0.9
    by_mask = seqatt.evaluate(frame, y, frame, y, selection.support, seeds=[0], epochs=20)
    assert by_mask["accuracy"][0] > 0.9


def test_regression_is_reported_in_the_targets_own_units():
    X, y = linear_problem("regression", rows=400)
    small = seqatt.evaluate(X[:300], y[:300], X[300:], y[300:], [1, 4], seeds=[0])
    large = seqatt.evaluate(X[:300], 1e3 * y[:300] + 7, X[300:], 1e3 * y[300:] + 7, [1, 4], seeds=[0])
    np.testing.assert_allclose(large["rmse"], 1e3 * small["rmse"], rtol=0.05)
    np.testing.assert_allclose(large["r2"], small["r2"], rtol=0.01)


def test_test_rows_leave_no_trace_in_what_is_fitted():
    X, y = linear_problem("binary", rows=400)
    X_test = X[300:].copy()
    X_test[1:] = 1e6
    plain = seqatt.evaluate(X[:300], y[:300], X[300:301], y[300:301], [1, 4], seeds=[0])
    odd = seqatt.evaluate(X[:300], y[:300], X_test, y[300:], [1, 4], seeds=[0])
    assert np.isfinite(odd["log_loss"]).all()
    assert np.isnan(plain["auc"]).all()  # one row has one class


def test_it_shows_itself():
    X, y = linear_problem("binary")
    shown = repr(seqatt.evaluate(X, y, X, y, [1], seeds=[0], epochs=1))
    assert shown.startswith("Evaluation(accuracy 0.")
