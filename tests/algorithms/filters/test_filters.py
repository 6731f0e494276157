"""Methods that train no network, against the functions of their libraries."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import f_classif, f_regression, mutual_info_classif, mutual_info_regression
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.filters.ranking import available_threads

FILTERS = ["cmim", "mutual_information", "f_test", "forest", "boosting"]
QUICK = {"forest": {"n_estimators": 30}, "boosting": {"max_iter": 20}}
library = pytest.mark.parametrize(
    "library",
    [
        "scikit-learn",
        *(
            pytest.param(
                name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed")
            )
            for name in ("lightgbm", "xgboost")
        ),
    ],
)


def all_scores(X, y, method: str, **options) -> np.ndarray:
    """The scores of all features, in the order of the table."""
    selection = seqatt.select(X, y, 1.0, method=method, **QUICK.get(method, {}), **options)
    scores = np.empty(len(selection.indices))
    scores[selection.indices] = selection.scores
    return scores


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
def test_scores_are_those_of_the_library_averaged_over_the_targets(task):
    X, y = linear_problem(task)
    numeric = task in ("regression", "multi-output")
    targets = np.atleast_2d(y.T)
    f = f_regression if numeric else f_classif
    information = mutual_info_regression if numeric else mutual_info_classif
    expected = np.mean([f(X, target)[0] for target in targets], axis=0)
    np.testing.assert_allclose(all_scores(X, y, "f_test"), expected, rtol=1e-4)
    expected = np.mean([information(X, target, random_state=0) for target in targets], axis=0)
    np.testing.assert_allclose(all_scores(X, y, "mutual_information"), expected, atol=1e-6)
    expected = np.mean([information(X, target, n_neighbors=7, random_state=0) for target in targets], axis=0)
    np.testing.assert_allclose(all_scores(X, y, "mutual_information", n_neighbors=7), expected, atol=1e-6)


@pytest.mark.parametrize("task", ["binary", "multilabel", "regression", "multi-output"])
def test_forest_has_the_importances_of_scikit_learn(task):
    X, y = linear_problem(task)
    weights = np.random.default_rng(0).random(len(X)) + 0.1
    numeric = task in ("regression", "multi-output")
    forest_class = RandomForestRegressor if numeric else RandomForestClassifier
    if numeric:  # targets are standardised, so that each has the same influence
        mean = np.average(y, axis=0, weights=weights)
        y = (y - mean) / np.sqrt(np.average((y - mean) ** 2, axis=0, weights=weights))
    forest = forest_class(30, random_state=0).fit(X, y, sample_weight=weights)
    scores = all_scores(X, y, "forest", sample_weight=weights)
    np.testing.assert_allclose(scores, forest.feature_importances_, atol=1e-3)
    assert scores.sum() == pytest.approx(1)


def test_integers_of_few_distinct_values_are_discrete():
    rng = np.random.default_rng(0)
    counts = rng.poisson(3, size=(400, 3)).astype(float)
    y = (counts[:, 1] + rng.integers(0, 3, 400) > 4).astype(int)
    X = np.c_[counts, rng.normal(size=400), 1e-4 * counts[:, 0], 1000.5 + counts[:, 2]]
    expected = mutual_info_classif(X, y, discrete_features=[True] * 3 + [False] * 3, random_state=0)
    np.testing.assert_allclose(all_scores(X, y, "mutual_information"), expected, atol=1e-6)


def test_integers_of_many_distinct_values_are_continuous():
    X = np.random.default_rng(0).integers(0, 50, size=(120, 2)).astype(float)
    y = (X[:, 0] > 25).astype(int)
    standard = ((X - X.mean(0)) / X.std(0)).astype(np.float32)  # ties are broken by noise of this scale
    expected = mutual_info_classif(standard, y, discrete_features=False, random_state=0)
    np.testing.assert_allclose(all_scores(X, y, "mutual_information"), expected, atol=1e-6)


def test_the_information_of_a_category_is_that_of_all_its_levels():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 6, size=500)
    y = np.where(rng.random(500) < 0.8, codes % 2, 1 - codes % 2)
    frame = pd.DataFrame({"a": np.array(list("uvwxyz"))[codes], "b": rng.normal(size=500)})
    expected = mutual_info_classif(codes[:, None], y, discrete_features=True)
    np.testing.assert_allclose(all_scores(frame, y, "mutual_information")[0], expected[0], atol=1e-9)


@pytest.mark.parametrize("method", FILTERS)
def test_categories_missing_values_and_groups_are_supported(method):
    X, y = linear_problem("binary", rows=400)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    frame["b"] = np.where(X[:, 1] > 0.7, "high", np.where(X[:, 1] < -0.7, "low", None))
    frame.loc[::9, "c"] = np.nan
    groups = {"pair": ["e", "f"]}
    selection = seqatt.select(
        frame, y, 2, method=method, groups=groups, missing_indicator=True, **QUICK.get(method, {})
    )
    assert set(selection.features) == {"b", "pair"}


@pytest.mark.parametrize("method", ["mutual_information", "f_test"])
def test_a_group_has_the_score_of_its_best_column(method):
    X, y = linear_problem("regression")
    single = all_scores(X, y, method)
    grouped = all_scores(X, y, method, groups={"g": [1, 2]})
    assert grouped[1] == pytest.approx(max(single[1], single[2]), rel=1e-6)


@pytest.mark.parametrize("method", ["forest", "boosting"])
def test_a_group_has_the_sum_of_the_scores_of_its_columns(method):
    X, y = linear_problem("regression")
    single = all_scores(X, y, method)
    grouped = all_scores(X, y, method, groups={"g": [1, 2]})
    assert grouped[1] == pytest.approx(single[1] + single[2])
    assert grouped.sum() == pytest.approx(1)


@pytest.mark.parametrize("method", ["forest", "boosting", "cmim"])
def test_rows_of_large_weight_determine_the_selection(method):
    """The target depends on feature 0 in one half of the rows and on feature 1 in the other."""
    X, _ = linear_problem("binary", rows=600)
    y = np.where(np.arange(600) < 300, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    for feature, heavy in ((0, slice(0, 300)), (1, slice(300, 600))):
        weights = np.full(600, 0.02)
        weights[heavy] = 1
        selection = seqatt.select(X, y, 1, method=method, sample_weight=weights, **QUICK.get(method, {}))
        assert selection.indices.tolist() == [feature]


@pytest.mark.parametrize("method", ["mutual_information", "f_test"])
@pytest.mark.parametrize("weights", [{"sample_weight": np.arange(300)}, {"class_weight": "balanced"}])
def test_weights_are_an_error_for_methods_without_weights(method, weights, problem):
    with pytest.raises(ValueError, match=f"{method} cannot use row weights"):
        seqatt.select(*problem, 2, method=method, **weights)


def test_the_f_statistic_is_finite_if_the_residual_is_zero():
    X, y = linear_problem("binary")
    X[:, 6] = y
    selection = seqatt.select(X, y, 3, method="f_test")
    assert selection.indices[0] == 6
    assert np.isfinite(selection.scores).all()
    labels = np.stack([y, y], 1)
    assert np.isfinite(seqatt.select(X, labels, 3, method="f_test").scores).all()


@pytest.mark.parametrize("method", FILTERS)
def test_a_constant_label_changes_nothing(method):
    X, y = linear_problem("multilabel")
    with_constant = np.c_[y, np.zeros(len(y), dtype=int)]
    scores, expected = (all_scores(X, labels, method) for labels in (with_constant, y))
    np.testing.assert_array_equal(scores, expected)
    with pytest.raises(ValueError, match="y: no label varies"):
        seqatt.select(X, np.zeros((300, 2)), 2, method=method, task="multilabel")


def test_seeds_change_a_forest_and_do_not_change_an_f_test():
    X, y = linear_problem("regression")
    trials = seqatt.select_trials(X, y, 8, seeds=[0, 1], method="forest", n_estimators=30)
    assert trials[0].scores.tolist() != trials[1].scores.tolist()
    trials = seqatt.select_trials(X, y, 8, seeds=[0, 1], method="f_test")
    assert trials[0].scores.tolist() == trials[1].scores.tolist()


@library
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
def test_every_library_finds_the_relevant_features_and_repeats_its_result(library, task):
    X, y = linear_problem(task)
    selection = seqatt.select(X, y, 8, method="boosting", library=library, max_iter=30)
    assert set(selection.indices[:2]) == {1, 4}
    assert selection.scores.sum() == pytest.approx(1)
    again = seqatt.select(X, y, 8, method="boosting", library=library, max_iter=30)
    assert again.scores.tolist() == selection.scores.tolist()
    assert selection.settings["library"] == library


def test_the_gain_of_a_split_is_its_decrease_of_the_loss():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(400, 2)).astype(float)
    y = 3 * X[:, 0] + X[:, 1]
    gains = all_scores(X, y, "boosting", learning_rate=1.0, task="regression")
    # At a learning rate of 1 the first tree fits y; the features' squared errors are about 9 : 1.
    assert gains == pytest.approx([0.9, 0.1], abs=0.01)


def test_gains_are_zero_if_the_rows_are_too_few_for_a_split():
    X, y = linear_problem("binary", rows=30)
    selection = seqatt.select(X, y, 3, method="boosting")
    assert selection.scores.tolist() == [0, 0, 0]


@library
def test_a_sparse_table_that_is_never_made_dense_is_supported_or_an_error(library, monkeypatch):
    rng = np.random.default_rng(4)
    X = sp.random(300, 60, density=0.3, random_state=rng, format="csr")
    y = (np.asarray(X[:, 40].todense()).ravel() > 0).astype(int)
    monkeypatch.setattr("seqatt.data.tables.encoding.DENSE_CELLS", 10)
    if library == "scikit-learn":
        with pytest.raises(ValueError, match="booster cannot use a sparse table"):
            seqatt.select(X, y, 1, method="boosting")
        with pytest.raises(ValueError, match="mutual_information cannot use a sparse table"):
            seqatt.select(X, y, 1, method="mutual_information")
        for method in ("forest", "f_test"):
            assert seqatt.select(X, y, 1, method=method).indices.tolist() == [40]
    else:
        selection = seqatt.select(X, y, 1, method="boosting", library=library, max_iter=5)
        assert selection.indices.tolist() == [40]


def test_there_are_never_more_threads_than_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert available_threads(1) == 1
    assert available_threads(-1) == available_threads(10_000) == available_threads(None) >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert available_threads(None) == 1


@pytest.mark.parametrize(
    ("method", "options"),
    [("forest", {"n_estimators": 30}), ("boosting", {"max_iter": 2}), ("mutual_information", {})],
)
def test_the_number_of_threads_does_not_change_scores(method, options):
    X, y = linear_problem("multiclass")
    one, two = (seqatt.select(X, y, 8, method=method, n_jobs=jobs, **options) for jobs in (1, 2))
    assert one.scores.tolist() == two.scores.tolist()


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("forest", {"n_estimators": 0}, "n_estimators: must be a whole number of at least 1"),
        ("forest", {"n_jobs": 0}, "n_jobs: must be a whole number of at least 1"),
        ("mutual_information", {"n_neighbors": 0}, "n_neighbors: must be a whole number of at least 1"),
        ("mutual_information", {"n_neighbors": 300}, "300 neighbours need more than the 300 rows"),
        ("boosting", {"library": "catboost"}, "library: unknown 'catboost'"),
        ("boosting", {"max_iter": 1.5}, "max_iter: must be a whole number"),
        ("boosting", {"learning_rate": 0}, "learning_rate: must be a number above 0"),
        ("boosting", {"n_jobs": "all"}, "n_jobs: must be a whole number"),
    ],
)
def test_an_invalid_option_is_an_error(method, options, message, problem):
    with pytest.raises(ValueError, match=message):
        seqatt.select(*problem, 2, method=method, **options)


def test_a_library_that_is_not_installed_is_an_error_before_any_work(monkeypatch):
    monkeypatch.setattr("seqatt.algorithms.filters.options.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="lightgbm is not installed; pip install"):
        seqatt.select(object(), None, 2, method="boosting", library="lightgbm")


@pytest.mark.parametrize("method", FILTERS)
def test_a_selection_can_be_saved_and_loaded(method, problem, tmp_path):
    selection = seqatt.select(*problem, 3, method=method, **QUICK.get(method, {}))
    selection.save(tmp_path / "s.json")
    loaded = seqatt.Selection.load(tmp_path / "s.json")
    assert loaded.features == selection.features
    assert loaded.history[0]["loss"] is None
    assert list(loaded.history[0]["scores"]) != []


def test_mutual_information_of_a_category_without_repeated_values_is_zero():
    """scikit-learn's estimate needs two rows of some value."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=14)
    frame = pd.DataFrame({"number": numbers, "identifier": [f"id{i}" for i in range(14)]})
    selection = seqatt.select(frame, numbers, 2, method="mutual_information")
    assert selection.features[0] == "number"
    assert selection.scores[1] == 0
