"""Methods that train no network: what their libraries say, feature by feature."""

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
from seqatt.algorithms.filters.options import cores

CLASSIC = ["cmim", "mutual_information", "f_test", "forest", "boosting"]
SMALL = {"forest": {"trees": 30}, "boosting": {"iterations": 20}}
library = pytest.mark.parametrize(
    "library",
    [
        "scikit-learn",
        *(
            pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is absent"))
            for name in ("lightgbm", "xgboost")
        ),
    ],
)


def every_score(selection: seqatt.Selection) -> np.ndarray:
    """In the order of the table, from a selection of all its features."""
    scores = np.empty(len(selection.indices))
    scores[selection.indices] = selection.scores
    return scores


def choose_all(X, y, method: str, **options) -> np.ndarray:
    return every_score(seqatt.select(X, y, 1.0, method=method, **SMALL.get(method, {}), **options))


def outputs(y: np.ndarray) -> np.ndarray:
    return np.atleast_2d(y.T)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
def test_scores_of_single_features_are_the_library_s_and_their_mean_over_targets(task):
    X, y = linear_problem(task)
    numeric = task in ("regression", "multi-output")
    f = f_regression if numeric else f_classif
    information = mutual_info_regression if numeric else mutual_info_classif
    expected = np.mean([f(X, o)[0] for o in outputs(y)], axis=0)
    np.testing.assert_allclose(choose_all(X, y, "f_test"), expected, rtol=1e-4)
    expected = np.mean([information(X, o, random_state=0) for o in outputs(y)], axis=0)
    np.testing.assert_allclose(choose_all(X, y, "mutual_information"), expected, atol=1e-6)
    expected = np.mean([information(X, o, n_neighbors=7, random_state=0) for o in outputs(y)], axis=0)
    np.testing.assert_allclose(choose_all(X, y, "mutual_information", neighbors=7), expected, atol=1e-6)


@pytest.mark.parametrize("task", ["binary", "multilabel", "regression", "multi-output"])
def test_forest_is_the_library_s(task):
    X, y = linear_problem(task)
    weights = np.random.default_rng(0).random(len(X)) + 0.1
    kind = RandomForestRegressor if task in ("regression", "multi-output") else RandomForestClassifier
    if kind is RandomForestRegressor:  # targets count alike, whatever their units
        mean = np.average(y, axis=0, weights=weights)
        y = (y - mean) / np.sqrt(np.average((y - mean) ** 2, axis=0, weights=weights))
    trees = kind(30, random_state=0).fit(X, y, sample_weight=weights)
    found = choose_all(X, y, "forest", sample_weight=weights)
    np.testing.assert_allclose(found, trees.feature_importances_, atol=1e-3)
    assert found.sum() == pytest.approx(1)


def test_whole_numbers_of_few_values_are_discrete():
    rng = np.random.default_rng(0)
    counts = rng.poisson(3, size=(400, 3)).astype(float)
    y = (counts[:, 1] + rng.integers(0, 3, 400) > 4).astype(int)
    X = np.c_[counts, rng.normal(size=400), 1e-4 * counts[:, 0], 1000.5 + counts[:, 2]]
    expected = mutual_info_classif(X, y, discrete_features=[True] * 3 + [False] * 3, random_state=0)
    np.testing.assert_allclose(choose_all(X, y, "mutual_information"), expected, atol=1e-6)


def test_many_whole_numbers_are_numbers():
    X = np.random.default_rng(0).integers(0, 50, size=(120, 2)).astype(float)
    y = (X[:, 0] > 25).astype(int)
    standard = ((X - X.mean(0)) / X.std(0)).astype(np.float32)  # equals are parted by noise of this scale
    expected = mutual_info_classif(standard, y, discrete_features=False, random_state=0)
    np.testing.assert_allclose(choose_all(X, y, "mutual_information"), expected, atol=1e-6)


def test_a_category_is_judged_whole_by_information():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 6, size=500)
    y = np.where(rng.random(500) < 0.8, codes % 2, 1 - codes % 2)
    frame = pd.DataFrame({"a": np.array(list("uvwxyz"))[codes], "b": rng.normal(size=500)})
    expected = mutual_info_classif(codes[:, None], y, discrete_features=True)
    np.testing.assert_allclose(choose_all(frame, y, "mutual_information")[0], expected[0], atol=1e-9)


@pytest.mark.parametrize("method", CLASSIC)
def test_categories_gaps_and_groups_are_welcome(method):
    X, y = linear_problem("binary", rows=400)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    frame["b"] = np.where(X[:, 1] > 0.7, "high", np.where(X[:, 1] < -0.7, "low", None))
    frame.loc[::9, "c"] = np.nan
    groups = {"pair": ["e", "f"]}
    found = seqatt.select(
        frame, y, 2, method=method, groups=groups, missing_indicator=True, **SMALL.get(method, {})
    )
    assert set(found.features) == {"b", "pair"}


@pytest.mark.parametrize("method", ["mutual_information", "f_test"])
def test_a_group_is_worth_its_best_column(method):
    X, y = linear_problem("regression")
    alone = choose_all(X, y, method)
    grouped = choose_all(X, y, method, groups={"g": [1, 2]})
    assert grouped[1] == pytest.approx(max(alone[1], alone[2]), rel=1e-6)


@pytest.mark.parametrize("method", ["forest", "boosting"])
def test_a_group_is_worth_the_sum_of_its_columns(method):
    X, y = linear_problem("regression")
    alone = choose_all(X, y, method)
    grouped = choose_all(X, y, method, groups={"g": [1, 2]})
    assert grouped[1] == pytest.approx(alone[1] + alone[2])
    assert grouped.sum() == pytest.approx(1)


@pytest.mark.parametrize("method", ["forest", "boosting", "cmim"])
def test_rows_of_great_weight_decide(method):
    """Half of the rows tell of feature 0 and half of feature 1."""
    X, _ = linear_problem("binary", rows=600)
    y = np.where(np.arange(600) < 300, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    for feature, heavy in ((0, slice(0, 300)), (1, slice(300, 600))):
        weights = np.full(600, 0.02)
        weights[heavy] = 1
        found = seqatt.select(X, y, 1, method=method, sample_weight=weights, **SMALL.get(method, {}))
        assert found.indices.tolist() == [feature]


@pytest.mark.parametrize("method", ["mutual_information", "f_test"])
@pytest.mark.parametrize("told", [{"sample_weight": np.arange(300)}, {"class_weight": "balanced"}])
def test_who_cannot_weigh_rows_says_so(method, told, problem):
    with pytest.raises(ValueError, match=f"{method} cannot weigh rows"):
        seqatt.select(*problem, 2, method=method, **told)


def test_a_feature_that_leaves_nothing_over_has_a_finite_f():
    X, y = linear_problem("binary")
    X[:, 6] = y
    found = seqatt.select(X, y, 3, method="f_test")
    assert found.indices[0] == 6
    assert np.isfinite(found.scores).all()
    labels = np.stack([y, y], 1)
    assert np.isfinite(seqatt.select(X, labels, 3, method="f_test").scores).all()


@pytest.mark.parametrize("method", CLASSIC)
def test_a_label_that_never_varies_changes_nothing(method):
    X, y = linear_problem("multilabel")
    more = np.c_[y, np.zeros(len(y), dtype=int)]
    with_it, without = (choose_all(X, labels, method) for labels in (more, y))
    np.testing.assert_array_equal(with_it, without)
    with pytest.raises(ValueError, match="y: no label varies"):
        seqatt.select(X, np.zeros((300, 2)), 2, method=method, task="multilabel")


def test_a_forest_s_seeds_differ_and_an_f_test_needs_none():
    X, y = linear_problem("regression")
    trials = seqatt.select_trials(X, y, 8, seeds=[0, 1], method="forest", trees=30)
    assert trials[0].scores.tolist() != trials[1].scores.tolist()
    trials = seqatt.select_trials(X, y, 8, seeds=[0, 1], method="f_test")
    assert trials[0].scores.tolist() == trials[1].scores.tolist()


@library
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
def test_every_booster_finds_the_planted_support(library, task):
    X, y = linear_problem(task)
    found = seqatt.select(X, y, 8, method="boosting", library=library, iterations=30)
    assert set(found.indices[:2]) == {1, 4}
    assert found.scores.sum() == pytest.approx(1)
    again = seqatt.select(X, y, 8, method="boosting", library=library, iterations=30)
    assert again.scores.tolist() == found.scores.tolist()
    assert found.settings["library"] == library


def test_gain_is_the_loss_that_one_split_takes_away():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(400, 2)).astype(float)
    y = 3 * X[:, 0] + X[:, 1]
    gains = choose_all(X, y, "boosting", learning_rate=1.0, task="regression")
    # With a step of 1 the first tree fits both; squares fall by 9 : 1, but for the draw's counts.
    assert gains == pytest.approx([0.9, 0.1], abs=0.01)


def test_rows_too_few_for_a_split_give_zeros():
    X, y = linear_problem("binary", rows=30)
    found = seqatt.select(X, y, 3, method="boosting")
    assert found.scores.tolist() == [0, 0, 0]


@library
def test_large_sparse_tables(library, monkeypatch):
    rng = np.random.default_rng(4)
    X = sp.random(300, 60, density=0.3, random_state=rng, format="csr")
    y = (np.asarray(X[:, 40].todense()).ravel() > 0).astype(int)
    monkeypatch.setattr("seqatt.data.tables.encoding.DENSE_CELLS", 10)
    if library == "scikit-learn":
        with pytest.raises(ValueError, match="booster cannot open a sparse table"):
            seqatt.select(X, y, 1, method="boosting")
        with pytest.raises(ValueError, match="mutual_information cannot open a sparse table"):
            seqatt.select(X, y, 1, method="mutual_information")
        for method in ("forest", "f_test"):
            assert seqatt.select(X, y, 1, method=method).indices.tolist() == [40]
    else:
        found = seqatt.select(X, y, 1, method="boosting", library=library, iterations=5)
        assert found.indices.tolist() == [40]


def test_threads_are_never_more_than_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert cores(1) == 1
    assert cores(-1) == cores(10_000) == cores(None) >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert cores(None) == 1


def test_threads_change_nothing():
    X, y = linear_problem("multiclass")
    for method, short in {
        "forest": {"trees": 30},
        "boosting": {"iterations": 2},
        "mutual_information": {},
    }.items():
        one, two = (seqatt.select(X, y, 8, method=method, n_jobs=jobs, **short) for jobs in (1, 2))
        assert one.scores.tolist() == two.scores.tolist()


@pytest.mark.parametrize(
    ("method", "told", "says"),
    [
        ("forest", {"trees": 0}, "trees: must be a whole number of at least 1"),
        ("forest", {"n_jobs": 0}, "n_jobs: must be a whole number of at least 1"),
        ("mutual_information", {"neighbors": 0}, "neighbors: must be a whole number of at least 1"),
        ("mutual_information", {"neighbors": 300}, "300 neighbours need more than the 300 rows"),
        ("boosting", {"library": "catboost"}, "library: unknown 'catboost'"),
        ("boosting", {"iterations": 1.5}, "iterations: must be a whole number"),
        ("boosting", {"learning_rate": 0}, "learning_rate: must be a number above 0"),
        ("boosting", {"n_jobs": "all"}, "n_jobs: must be a whole number"),
    ],
)
def test_wrong_options_are_told(method, told, says, problem):
    with pytest.raises(ValueError, match=says):
        seqatt.select(*problem, 2, method=method, **told)


def test_an_absent_library_is_told_before_any_work(monkeypatch):
    monkeypatch.setattr("seqatt.algorithms.filters.options.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="lightgbm is not installed; pip install"):
        seqatt.select(object(), None, 2, method="boosting", library="lightgbm")


@pytest.mark.parametrize("method", CLASSIC)
def test_what_was_chosen_is_saved_and_read(method, problem, tmp_path):
    found = seqatt.select(*problem, 3, method=method, **SMALL.get(method, {}))
    found.save(tmp_path / "s.json")
    read = seqatt.Selection.load(tmp_path / "s.json")
    assert read.features == found.features
    assert read.history[0]["loss"] is None
    assert list(read.history[0]["scores"]) != []
