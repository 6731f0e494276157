"""The linear methods, and the guarantees of their selections."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.support.problems import linear_problem

import seqatt
from seqatt.data.tables import encoding
from seqatt.linear import guarantees, omp

METHODS = ["linear_omp", "linear_sequential_lasso", "linear_attention"]


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
def test_the_three_methods_select_the_same_features(task):
    X, y = linear_problem(task)
    by_omp, by_lasso, by_attention = (seqatt.select(X, y, 6, method=method) for method in METHODS)
    assert by_omp.indices.tolist() == by_lasso.indices.tolist() == by_attention.indices.tolist()
    np.testing.assert_allclose(by_omp.scores, by_lasso.scores, rtol=1e-6)


def test_the_method_is_the_function_on_standardised_columns():
    X, y = linear_problem("regression")
    X = X * np.geomspace(1, 100, 8) + 3
    selection = seqatt.select(X, y, 5, method="linear_omp")
    path = omp(X, y, 5, centre=True, scale=True)
    assert selection.indices.tolist() == path.order
    np.testing.assert_allclose(selection.scores, path.scores / np.sqrt(path.null_loss * 300), rtol=1e-5)
    assert selection.settings["explained"] == pytest.approx(1 - path.losses[-1] / path.null_loss, rel=1e-5)
    assert selection.settings["stopped"] is None


def test_classes_are_one_hot_targets():
    X, y = linear_problem("multiclass")
    one_hot = (y[:, None] == np.unique(y)).astype(float)
    path = omp(X, one_hot, 5, centre=True, scale=True)
    assert seqatt.select(X, y, 5, method="linear_omp").indices.tolist() == path.order


@pytest.mark.parametrize("method", METHODS)
def test_a_category_is_one_feature_and_gains_nothing_from_many_levels(method):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 4)), columns=list("abcd"))
    frame["many"] = rng.integers(0, 40, size=400).astype(str)
    frame["kind"] = rng.choice(["x", "y", "z"], size=400)
    y = frame["b"] + 2.0 * frame["kind"].map({"x": 0, "y": 1, "z": 5}) + 0.1 * rng.normal(size=400)
    selection = seqatt.select(frame, y, 2, method=method)
    assert selection.features == ["kind", "b"]


@pytest.mark.parametrize("method", METHODS)
def test_groups_missing_values_and_row_weights_are_supported(method):
    X, y = linear_problem("regression")
    X[::7, 1] = np.nan
    groups = {"pair": [1, 4], "noise": [0, 2, 3]}
    selection = seqatt.select(X, y, 1, method=method, groups=groups, missing_indicator=True)
    assert selection.features == ["pair"]
    assert sorted(selection.columns.tolist()) == [1, 4]
    weights = np.where(np.arange(300) < 150, 1.0, 0.0)
    y[150:] = 5 * X[150:, 6]
    weighted = seqatt.select(X, y, 2, method=method, sample_weight=weights)
    assert set(weighted.indices) == {1, 4}


def test_a_sparse_table_that_is_never_made_dense_gives_the_same_selection(monkeypatch):
    X, y = linear_problem("regression")
    X = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0))
    made_dense = seqatt.select(X, y, 4, method="linear_omp")
    monkeypatch.setattr(encoding, "DENSE_CELLS", 10)
    kept_sparse = seqatt.select(X, y, 4, method="linear_omp")
    assert made_dense.indices.tolist() == kept_sparse.indices.tolist()
    np.testing.assert_allclose(made_dense.scores, kept_sparse.scores, rtol=1e-6)


def test_an_early_stop_is_recorded_and_k_features_are_selected_all_the_same():
    X, y = linear_problem("regression")
    X[:, [2, 3]] = X[:, [1, 1]]
    selection = seqatt.select(X, y, 8, method="linear_omp")
    assert "linear combinations" in selection.settings["stopped"]
    assert set(selection.indices[-2:]) == {2, 3}


def test_only_linear_attention_has_a_parameterisation():
    X, y = linear_problem("regression")
    selection = seqatt.select(X, y, 2, method="linear_attention", parameterisation="softmax")
    assert set(selection.indices) == {1, 4}
    with pytest.raises(TypeError, match="no option 'parameterisation'"):
        seqatt.select(X, y, 2, method="linear_omp", parameterisation="softmax")
    with pytest.raises(ValueError, match="parameterisation: unknown"):
        seqatt.select(X, y, 2, method="linear_attention", parameterisation="hard")


class TestGuarantees:
    def test_each_quantity_agrees_with_its_definition(self):
        X, y = linear_problem("regression")
        report = guarantees(X, y, omp(X, y, 3, centre=True, scale=True))
        centred = X - X.mean(0)
        of_all = np.linalg.lstsq(centred, y - y.mean(), rcond=None)
        of_selected = np.linalg.lstsq(centred[:, report.selected], y - y.mean(), rcond=None)
        assert report.relative_error == pytest.approx(of_selected[1][0] / of_all[1][0], rel=1e-9)
        correlations = np.corrcoef(X.T)
        values = np.linalg.eigvalsh(correlations[np.ix_(report.selected, report.selected)])
        assert (report.smallest, report.largest) == pytest.approx((values[0], values[-1]))
        assert report.ratio == pytest.approx(np.linalg.eigvalsh(correlations)[0])
        assert report.share == pytest.approx(1 - np.exp(-(report.ratio**2)))
        assert "explain" in str(report)

    def test_the_bound_holds_for_every_set_of_two_features(self):
        from itertools import combinations

        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(30, 6)) + rng.normal(size=(30, 1))
            y = X @ rng.normal(size=6) + rng.normal(size=30)
            path = omp(X, y, 2, centre=True, scale=True)
            report = guarantees(X, y, path)
            best = max(guarantees(X, y, pair).r2 for pair in combinations(range(6), 2))
            assert best * report.share <= report.r2 <= best + 1e-12

    def test_an_exact_fit_a_failed_fit_and_invalid_features(self):
        X = np.random.default_rng(0).normal(size=(5, 9))
        y = X[:, 2].copy()
        assert guarantees(X, y, [2]).relative_error == 1.0
        assert guarantees(X, y, [3]).relative_error == np.inf
        assert guarantees(X, y, [2]).ratio == pytest.approx(0, abs=1e-9)
        for invalid in ([], [1, 1], [9], None):
            with pytest.raises(ValueError, match="selected: "):
                guarantees(X, y, invalid)
