"""The scikit-learn selectors: scikit-learn's own checks, and the same results as ``select``."""

from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.support.problems import linear_problem

import seqatt
from seqatt import (
    FeatureSelector,
    LinearAttentionSelector,
    OMPSelector,
    SequentialAttentionRegressor,
    SequentialAttentionSelector,
    SequentialLassoSelector,
)
from seqatt.api.constraints.name_checks import refuse_names


@pytest.mark.slow
@parametrize_with_checks(
    [
        SequentialAttentionSelector(epochs=5),
        OMPSelector(),
        SequentialLassoSelector(),
        LinearAttentionSelector(),
        FeatureSelector(method="cmim"),
        FeatureSelector(method="linear_omp", options={"max_categories": 8}),
    ]
)
def test_scikit_learns_own_checks(estimator, check, monkeypatch):
    if check.func.__name__ == "check_array_api_input":
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


def quick(**options) -> SequentialAttentionSelector:
    return SequentialAttentionSelector(**({"n_features_to_select": 2, "epochs": 30} | options))


def test_the_selector_selects_what_select_selects(problem):
    X, y = problem
    fitted = quick(random_state=4).fit(X, y)
    direct = seqatt.select(X, y, 2, seed=4, epochs=30)
    assert fitted.selection_.indices.tolist() == direct.indices.tolist()
    assert fitted.ranking_.tolist() == direct.ranking.tolist()
    assert fitted.get_support(indices=True).tolist() == sorted(direct.indices)
    np.testing.assert_array_equal(fitted.transform(X), X[:, fitted.support_])


def test_clone_and_set_params_keep_and_apply_every_parameter(problem):
    estimator = quick(mask="l1_normalised", hidden=(9,), groups={"g": [0, 1]})
    copied = clone(estimator)
    assert copied.get_params() == estimator.get_params()
    copied.set_params(n_features_to_select=3, groups=None, mask="softmax")
    assert copied.fit(*problem).support_.sum() == 3
    assert copied.selection_.settings["hidden"] == [9]


@pytest.mark.parametrize(("amount", "expected"), [(0.25, 2), (None, 4), (1.0, 8), (8, 8)])
def test_n_features_to_select_is_a_number_a_fraction_or_half_of_all(problem, amount, expected):
    assert quick(n_features_to_select=amount, epochs=1).fit(*problem).support_.sum() == expected


@pytest.mark.parametrize("amount", [0, 0.0, -1, 9])
def test_an_impossible_number_of_features_is_an_error(problem, amount):
    with pytest.raises(ValueError, match=r"^n_features_to_select: "):
        quick(n_features_to_select=amount).fit(*problem)
    with pytest.raises(
        TypeError, match=r"^n_features_to_select: must be a whole number, a fraction or 'auto'"
    ):
        quick(n_features_to_select="2").fit(*problem)


def test_groups_reduce_the_number_of_features_that_can_be_selected(problem):
    with pytest.raises(ValueError, match=r"^n_features_to_select: 8 .* has 7"):
        OMPSelector(8, groups={"g": [0, 1]}).fit(*problem)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_as_random_state_draws_a_seed_per_fit(make, problem):
    one, same = (FeatureSelector(2, method="random", random_state=make(3)) for _ in range(2))
    seeds = [one.fit(*problem).selection_.seed for _ in range(2)]
    assert seeds[0] != seeds[1]
    assert same.fit(*problem).selection_.seed == seeds[0]


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_an_invalid_random_state_is_named_in_the_error(problem, seed):
    with pytest.raises(ValueError, match=r"^random_state: must be a whole number of at least 0"):
        quick(random_state=seed).fit(*problem)


def test_a_dataframe_is_returned_with_names_and_types():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    frame["kind"] = pd.Categorical(np.where(y == 0, "a", "b"))
    frame["count"] = np.arange(150, dtype=np.int16)
    fitted = quick(n_features_to_select=5).fit(frame, y)
    out = fitted.transform(frame)
    assert list(out.columns) == fitted.get_feature_names_out().tolist()
    assert all(out[name].dtype == frame[name].dtype for name in out.columns)
    native = pl.from_pandas(frame)
    assert fitted.fit(native, y).transform(native).schema == native.select(out.columns).schema


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output(problem, kind):
    X, y = problem
    out = quick().set_output(transform=kind).fit(X, y).transform(X)
    assert type(out).__module__.startswith(kind)
    assert list(out.columns) == ["x1", "x4"]


def test_inverse_transform_restores_selected_columns_and_fills_others_with_zeros(problem):
    X, y = problem
    fitted = quick().fit(X, y)
    back = fitted.inverse_transform(fitted.transform(X))
    np.testing.assert_array_equal(back[:, fitted.support_], X[:, fitted.support_])
    assert (back[:, ~fitted.support_] == 0).all()


def test_pickles_and_joblib(problem):
    X, y = problem
    fitted = quick().fit(X, y)
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    for other in (pickle.loads(pickle.dumps(fitted)), joblib.load(file)):
        assert other.selection_.features == fitted.selection_.features
        np.testing.assert_array_equal(other.transform(X), fitted.transform(X))


NAMED = {
    "keep": ["x5"],
    "forbid": "x5",
    "candidates": np.array(["x5", "x6"]),
    "quotas": {"lab": {"features": ["x5"], "most": 1}},
    "costs": {"x5": 1.0},
    "groups": [["x5", "x6"]],
    "log1p": ("x5",),
    "column_types": {"x5": "numeric"},
}


@pytest.mark.parametrize("argument", NAMED)
def test_names_of_columns_are_refused_where_a_pipeline_hands_over_an_array(problem, argument):
    X, y = problem
    frame = pd.DataFrame(np.abs(X), columns=[f"x{i + 1}" for i in range(X.shape[1])])  # x5 would be x6
    options = {argument: NAMED[argument]} | ({"budget": 1} if argument == "costs" else {})
    selector = FeatureSelector(2, method="f_test", options=options)
    message = (
        rf"^{argument}: 'x5' is a name, but X has no column names; .*\.set_output\(transform=\"pandas\"\) on"
    )
    for given in (X, sp.csr_matrix(X), X.tolist()):
        with pytest.raises(ValueError, match=message):
            selector.fit(given, y)
    with pytest.raises(ValueError, match=message):
        make_pipeline(MinMaxScaler(), selector).fit(frame, y)
    if argument != "costs":  # which needs more rows
        make_pipeline(MinMaxScaler().set_output(transform="pandas"), selector).fit(frame, y)


@pytest.mark.parametrize(
    "estimator",
    [SequentialAttentionSelector, seqatt.SequentialAttentionClassifier, SequentialAttentionRegressor],
)
def test_every_estimator_takes_positions_but_no_names_for_an_array(problem, estimator):
    X, y = problem
    with pytest.raises(
        ValueError, match="forbid: 'x5' is a name, but X has no column names; give its position"
    ):
        estimator(2, forbid=["x5"], epochs=1).fit(X, y)
    assert not estimator(2, forbid=[5], epochs=1).fit(X, y).support_[5]


def test_names_of_groups_and_of_costs_are_no_columns(problem):
    X, y = problem
    options = {"groups": {"pair": [0, 1]}, "keep": ["pair"]}
    assert FeatureSelector(2, method="f_test", options=options).fit(X, y).support_[:2].all()
    costs = {"costs": {"test": {"cost": 1, "features": [0]}, 2: 1}, "cost_rate": 0.1}
    refuse_names(X, costs)


def test_an_iterator_of_positions_is_read_once():
    X = np.random.default_rng(0).normal(size=(100, 6))
    selector = SequentialAttentionSelector(2, epochs=40, keep=(i for i in [5]))
    assert 5 in selector.fit(X, X[:, 0] + X[:, 1]).selection_.indices


def test_a_selection_from_names_is_no_selection_of_an_array(problem):
    X, y = problem
    frame = pd.DataFrame(X, columns=[f"x{i + 1}" for i in range(X.shape[1])])
    selected = {
        name: seqatt.select(table, y, 1, method="f_test") for name, table in (("array", X), ("frame", frame))
    }
    with pytest.raises(
        ValueError, match="keep: the Selection has names, but X has no column names; give its indices"
    ):
        FeatureSelector(2, method="f_test", options={"keep": selected["frame"]}).fit(X, y)
    kept = FeatureSelector(2, method="f_test", options={"keep": selected["array"]}).fit(X, y)
    assert kept.support_[selected["array"].indices].all()


def test_in_a_pipeline_and_a_search(problem):
    X, y = problem
    pipeline = make_pipeline(quick(epochs=10), LogisticRegression())
    name = "sequentialattentionselector__n_features_to_select"
    search = GridSearchCV(pipeline, {name: [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_ == {name: 2}
    assert search.score(X, y) > 0.9


def test_the_columns_of_a_group_share_a_rank():
    X, y = linear_problem("regression")
    fitted = quick(n_features_to_select=1, groups={"pair": [1, 4]}).fit(X, y)
    assert fitted.get_support(indices=True).tolist() == [1, 4]
    assert fitted.ranking_[[1, 4]].tolist() == [1, 1]


def test_sparse_and_missing(problem):
    X, y = problem
    X = np.where(np.abs(X) < 0.5, 0, X)
    out = quick().fit(sp.csr_matrix(X), y).transform(sp.csr_matrix(X))
    assert sp.issparse(out)
    X[0, 1] = np.nan
    assert quick().fit(X, y).support_.sum() == 2


def test_row_weights_are_an_argument_of_fit(problem):
    X, y = problem
    weights = np.where(np.arange(300) < 200, 1.0, 0.0)
    a = quick().fit(X, y, sample_weight=weights).selection_
    b = quick().fit(X[:200], y[:200]).selection_
    assert a.indices.tolist() == b.indices.tolist()


def test_string_labels(problem):
    X, y = problem
    assert quick().fit(X, np.array(["no", "yes"])[y]).get_support(indices=True).tolist() == [1, 4]


@pytest.mark.parametrize(
    ("method", "options"),
    [("f_test", None), ("forest", {"n_estimators": 10}), ("group_lasso", {"epochs": 3, "penalty": 0.1})],
)
def test_a_selector_of_any_method_selects_what_select_selects(problem, method, options):
    X, y = problem
    fitted = FeatureSelector(3, method=method, options=options, random_state=4).fit(X, y)
    direct = seqatt.select(X, y, 3, method=method, seed=4, **(options or {}))
    assert fitted.selection_.method == method
    assert fitted.selection_.indices.tolist() == direct.indices.tolist()
    assert fitted.ranking_.tolist() == direct.ranking.tolist()
    np.testing.assert_array_equal(fitted.transform(X), X[:, fitted.support_])


def test_the_method_can_be_a_parameter_of_a_grid_search(problem):
    X, y = problem
    pipeline = make_pipeline(FeatureSelector(2), LogisticRegression())
    search = GridSearchCV(pipeline, {"featureselector__method": ["random", "f_test"]}, cv=2).fit(X, y)
    assert search.best_params_ == {"featureselector__method": "f_test"}


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"method": "tarot"}, ValueError, "method: unknown 'tarot'"),
        (
            {"options": {"n_estimator": 3}},
            TypeError,
            "forest has no option 'n_estimator'; did you mean 'n_est",
        ),
        ({"options": {"seed": 3}}, ValueError, "options: 'seed' is the parameter random_state"),
        ({"options": {"sample_weight": [1]}}, ValueError, "options: 'sample_weight' is an argument of fit"),
        ({"options": ["n_estimators"]}, TypeError, "options: must be a dict"),
    ],
)
def test_an_error_names_the_invalid_parameter(problem, parameters, error, message):
    with pytest.raises(error, match=message):
        FeatureSelector(2, **({"method": "forest"} | parameters)).fit(*problem)


def test_a_repeated_column_name_is_named(problem):
    X, y = problem
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="X: column names must be unique, 'a' appears twice; rename one"):
        seqatt.FeatureSelector(1, method="random").fit(frame, y)
