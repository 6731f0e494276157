"""Estimators that select and predict: scikit-learn's own checks, calibrated probabilities, any data frame."""

from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.support.problems import linear_problem, mixed_frame

from seqatt import (
    Callback,
    SequentialAttentionClassifier,
    SequentialAttentionRegressor,
    SequentialAttentionSelector,
)
from seqatt.data.tables.table_data import read_table_data
from seqatt.data.tables.target import Target
from seqatt.prediction import train
from seqatt.prediction.train import calibrate
from seqatt.training import defaults

NUMERIC = ("regression", "multi-output")
STEPS = 100  # of the networks that predict, where no test is about how well they do


@pytest.fixture
def short(monkeypatch):
    """Train the networks that predict for a moment."""
    monkeypatch.setattr(defaults, "EVALUATION_MIN_STEPS", STEPS)


def expected_failures(estimator):
    reason = "rows are held out and dropped at random, so that a weight of 2 is not a row twice"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@pytest.mark.slow
@parametrize_with_checks(
    # All features: a check asks for an accuracy that half of its two features do not give.
    [SequentialAttentionClassifier(1.0, epochs=5), SequentialAttentionRegressor(epochs=5)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check, monkeypatch, short):
    monkeypatch.setattr(train, "SHARES", (0.3,))
    if check.func.__name__ == "check_array_api_input":
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


def quick(task: str = "binary", **options):
    estimator = SequentialAttentionRegressor if task in NUMERIC else SequentialAttentionClassifier
    return estimator(**({"n_features_to_select": 2, "epochs": 30} | options))


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
def test_features_are_those_of_the_selector_and_networks_on_them_predict(task, short):
    X, y = linear_problem(task)
    fitted = quick(task).fit(X[:200], y[:200])
    selector = SequentialAttentionSelector(2, epochs=30).fit(X[:200], y[:200])
    assert fitted.get_support(indices=True).tolist() == selector.get_support(indices=True).tolist() == [1, 4]
    assert fitted.predict(X[200:]).shape == y[200:].shape
    assert fitted.score(X[200:], y[200:]) > 0.85
    assert (is_classifier(fitted), is_regressor(fitted)) == (task not in NUMERIC, task in NUMERIC)


def test_probabilities_decisions_and_labels_agree(short):
    for task, classes in (("binary", 2), ("multiclass", 3), ("multilabel", 2)):
        X, y = linear_problem(task)
        fitted = quick(task).fit(X, y)
        probabilities, decisions = fitted.predict_proba(X), fitted.decision_function(X)
        assert probabilities.shape == (300, classes)
        np.testing.assert_array_equal(fitted.predict_log_proba(X), np.log(probabilities))
        if task == "binary":
            np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-decisions)))
            np.testing.assert_array_equal(fitted.predict(X), decisions > 0)
        elif task == "multiclass":
            np.testing.assert_allclose(probabilities.sum(1), 1)
            np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[decisions.argmax(1)])
        else:
            np.testing.assert_array_equal(fitted.predict(X), probabilities > 0.5)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [7, 3], [1.0, 2.0]])
def test_labels_of_any_type_come_back(problem, labels, short):
    X, y = problem
    labels = np.array(labels)
    fitted = quick().fit(X, labels[y])
    assert fitted.classes_.tolist() == sorted(labels.tolist())
    assert fitted.predict(X).dtype == labels.dtype
    assert fitted.score(X, labels[y]) > 0.9
    series = pd.Series(labels[y]).astype("category")
    assert quick().fit(X, series).score(X, series) > 0.9


def test_a_classifier_and_a_regressor_take_the_target_as_what_they_are_for(short):
    X = np.random.default_rng(0).normal(size=(150, 3))
    grades = np.digitize(X[:, 0], np.linspace(-1.5, 1.5, 30))  # many whole numbers
    assert len(quick(n_features_to_select=1).fit(X, grades).classes_) == len(np.unique(grades))
    fitted = quick("regression", n_features_to_select=1).fit(X, (X[:, 0] > 0).astype(int))
    assert len(np.unique(fitted.predict(X))) > 2
    with pytest.raises(
        ValueError, match=r"^task: a regressor has no binary; use SequentialAttentionClassifier"
    ):
        SequentialAttentionRegressor(task="binary").fit(X, grades)
    with pytest.raises(
        ValueError, match=r"^task: a classifier has no regression; use SequentialAttentionReg"
    ):
        SequentialAttentionClassifier(task="regression").fit(X, grades)
    with pytest.raises(ValueError, match=r"^Unknown label type: continuous"):
        quick().fit(X, X[:, 0])
    survival = np.array([(True, 1.5)] * len(X), dtype=[("event", bool), ("time", float)])
    for estimator in (quick(), quick("regression")):
        with pytest.raises(ValueError, match=r"^y: is a structured array, of events and times; only classes"):
            estimator.fit(X, survival)


def test_the_same_seed_gives_the_same_predictions_and_another_does_not(problem, short):
    X, y = problem
    first, again, other = (quick(random_state=seed).fit(X, y).predict_proba(X) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_clone_keeps_parameters_and_parameters_are_those_of_the_selector():
    estimator = quick(mask="l1_normalised", hidden=(9,), groups={"g": [0, 1]})
    assert clone(estimator).get_params() == estimator.get_params()
    assert estimator.get_params().keys() == SequentialAttentionSelector().get_params().keys()


def test_options_of_the_network_are_those_of_the_networks_that_predict(problem, short):
    module = quick(hidden=(9, 5), activation="tanh").fit(*problem).model_.module
    assert [tuple(weights.shape) for weights in module.weights] == [(5, 2, 9), (5, 9, 5), (5, 5, 1)]
    assert module.activation == "tanh"


def test_pipelines_searches_and_scores(problem, short):
    X, y = problem
    name = "sequentialattentionclassifier__n_features_to_select"
    search = GridSearchCV(make_pipeline(StandardScaler(), quick(epochs=10)), {name: [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_ == {name: 2}
    assert cross_val_score(quick(), X, y, scoring="neg_log_loss", cv=2).mean() > -0.3
    assert quick().fit_transform(X, y).shape == (300, 2)


def test_pickles_and_joblib(problem, short):
    X, y = problem
    fitted = quick().fit(X, y)
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    for other in (pickle.loads(pickle.dumps(fitted)), joblib.load(file)):
        np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


def test_numbers_are_encoded_as_the_networks_were_trained(short):
    """The module has the arithmetic of the encoder once more; what it makes of a table must be the same."""
    frame, y = mixed_frame()
    fitted = quick(n_features_to_select=6, missing_indicator=True, log1p=("size",)).fit(frame, y)
    model = fitted.model_
    data = read_table_data(frame, y, categories="mixed", missing_indicator=True, log1p=("size",))
    encoded = model.module.encode(*map(torch.from_numpy, model.inputs.read(frame))).numpy()
    columns, codes = data.columns, data.codes
    # By name: an age with its indicator, the colours, the flag, noise, the size; the module has the numbers first.
    order = [0, 6, 7, 8, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(encoded, columns[:, order], atol=1e-6)
    np.testing.assert_array_equal(model.inputs.read(frame)[1][:, 0], codes[:, 0])


@pytest.mark.parametrize("columns", ["numbers", "mixed"])
def test_the_order_of_the_columns_of_a_frame_does_not_change_the_predictions(columns, short):
    frame, y = mixed_frame()
    frame = frame[["size", "age", "noise"]] if columns == "numbers" else frame
    other = frame[list(frame)[::-1]]
    one, two = (
        quick(n_features_to_select=3).fit(each[:300], y[:300]).predict_proba(each[300:])
        for each in (frame, other)
    )
    np.testing.assert_array_equal(one, two)


def test_categories_missing_values_and_unknown_categories(short):
    frame, y = mixed_frame()
    fitted = quick(n_features_to_select=5, epochs=60).fit(frame[:300], y[:300])
    assert "city" in fitted.feature_names_in_
    assert fitted.score(frame[300:], y[300:]) > 0.8
    unseen = frame[300:].assign(colour="mauve", city="Atlantis", age=np.nan)
    assert np.isfinite(fitted.predict_proba(unseen)).all()
    native = pl.from_pandas(frame)
    np.testing.assert_array_equal(fitted.predict_proba(native), fitted.predict_proba(frame))
    with pytest.raises(ValueError, match=r"X: column 'city' holds numbers, but text in the rows of fit"):
        fitted.predict(frame.assign(city=1.0))
    with pytest.raises(ValueError, match=r"X: column 'age' contains infinity"):
        fitted.predict(frame.assign(age=np.inf))


def test_a_number_beyond_those_of_training_is_read_as_the_nearest_of_them(short):
    X, y = linear_problem("regression")
    fitted = quick("regression").fit(X, y)
    lowest, highest = X.min(0), X.max(0)
    clipped = fitted.predict(np.clip(X + 1e3, lowest, highest))
    np.testing.assert_allclose(fitted.predict(X + 1e3), clipped, rtol=1e-5)


def test_sparse_matrices_and_row_weights(problem, short):
    X, y = problem
    X = np.where(np.abs(X) < 0.5, 0, X)
    dense, sparse = quick().fit(X, y), quick().fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(sp.csr_matrix(X)), atol=1e-3)
    weights = np.where(np.arange(300) < 200, 1.0, 0.0)
    weighted, fewer = quick().fit(X, y, sample_weight=weights), quick().fit(X[:200], y[:200])
    np.testing.assert_allclose(weighted.predict_proba(X), fewer.predict_proba(X), rtol=1e-9)
    rare = quick(class_weight={0: 50.0, 1: 1.0}).fit(X, y)
    assert rare.predict(X).mean() < dense.predict(X).mean()


def test_groups_are_inputs_as_a_whole(problem, short):
    X, y = problem
    fitted = quick(n_features_to_select=1, groups={"pair": [1, 4]}).fit(X, y)
    assert fitted.model_.inputs.columns == (1, 4)
    assert fitted.score(X, y) > 0.9


def test_without_a_feature_the_prediction_is_the_share_of_each_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 4)), np.repeat(["a", "b", "c"], [60, 40, 20])
    rng.shuffle(y)
    with pytest.warns(UserWarning, match="no features were selected .* every row gets the same prediction"):
        fitted = quick(n_features_to_select="auto").fit(X, y)
    np.testing.assert_allclose(fitted.predict_proba(X[:2]), [[1 / 2, 1 / 3, 1 / 6]] * 2)
    assert set(fitted.predict(X)) == {"a"}
    with pytest.raises(ValueError, match=r"^export: no feature was selected"):
        fitted.export("model.onnx")


def test_without_a_feature_because_a_callback_stopped_the_warning_says_so(problem, short):
    class Stop(Callback):
        def on_batch(self, state):
            state.stop()

    with pytest.warns(
        UserWarning, match=r"no features were selected \(a callback stopped before the first\)"
    ):
        quick(callbacks=[Stop()]).fit(*problem)


def test_your_own_code_is_refused_with_another_way(problem):
    with pytest.raises(
        ValueError, match=r"^loss: the networks that predict are seqatt's own; use Sequential"
    ):
        quick(loss=lambda outputs, targets: outputs).fit(*problem)


def test_calibration_finds_the_temperature_of_overconfident_logits():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4000, 3))
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    values = (shares.cumsum(1) > rng.random((4000, 1))).argmax(1)
    target = Target("multiclass", values, 3)
    factor, loss = calibrate(target, 5 * logits, None)
    np.testing.assert_allclose(factor, 0.2, rtol=0.1)
    assert loss < log_loss(values, shares) + 0.01
    # Right about everything: confident, but not certain.
    factor, _ = calibrate(target, np.eye(3)[values], None)
    assert 1 < factor[0] < 30


@pytest.mark.slow
def test_probabilities_are_calibrated_on_a_real_table():
    """Networks as they are in ``evaluate`` have a log loss of 0.15 on these rows: their labels are smoothed."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    losses = []
    for split in range(3):
        train, test, y_train, y_test = train_test_split(X, y, random_state=split, stratify=y)
        fitted = SequentialAttentionClassifier(5, random_state=split).fit(train, y_train)
        losses.append(log_loss(y_test, fitted.predict_proba(test)))
    assert np.mean(losses) < 0.12


def test_too_few_groups_of_rows_are_refused_before_anything_is_selected():
    X, y = linear_problem("binary", rows=60)
    classifier = SequentialAttentionClassifier(2)
    with pytest.raises(ValueError, match="groups_of_rows: has 3 groups, and each of 5 networks"):
        classifier.fit(X, y, groups_of_rows=np.arange(60) % 3)
    assert not hasattr(classifier, "selection_")


@pytest.mark.parametrize("convert", [lambda X: X, pl.from_pandas])
def test_a_frame_of_the_selected_columns_is_enough_to_predict_from(convert, short):
    X, y = mixed_frame()
    fitted = SequentialAttentionClassifier(3, epochs=20).fit(convert(X), y)
    names = list(fitted.get_feature_names_out())
    expected = fitted.predict_proba(convert(X))
    for frame in (X[names], X[names[::-1]], X[names].assign(another=1)):
        np.testing.assert_array_equal(fitted.predict_proba(convert(frame)), expected)
    np.testing.assert_array_equal(fitted.predict(convert(X[names])), fitted.predict(convert(X)))
    for frame in (X[names[1:]], X.drop(columns=names[0])):
        with pytest.raises(ValueError, match=f"^X: column '{names[0]}' is missing, which the model needs$"):
            fitted.predict(convert(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(convert(X[X.columns[::-1]]))  # all of them, in another order than in fit
    text = next((name for name in names if X[name].dtype.kind in "if"), names[0])
    with pytest.raises(ValueError, match=text):
        fitted.predict(convert(X[names].assign(**{text: "text"})))
