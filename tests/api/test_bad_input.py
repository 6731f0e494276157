"""Bad input raises an error before any work; the message names the argument and the remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from tests.support.problems import linear_problem

import seqatt


def frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [2.0, 1, 4, 3]} | columns)


Y = [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (0, "k: must be at least 1, got 0"),
        (-2, "k: must be at least 1, got -2"),
        (1.5, "k: a float is a fraction"),
        (0.0, "k: a float is a fraction"),
        (9, "k: 9 features requested, but the table has 8"),
        ("3", "k: must be a whole number"),
        (True, "k: must be a whole number"),
    ],
)
def test_k(k, message, problem):
    with pytest.raises((ValueError, TypeError), match=message):
        seqatt.select(*problem, k)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (frame(), [0, 1, 0], "X has 4 rows and y has 3"),
        (frame(), [1, 1, 1, 1], "y: only one class"),
        (frame(), [0, 1, np.nan, 1], "y: .*NaN"),
        (frame(), [0, 1, np.inf, 1], "y: .*infinity"),
        (frame(), ["a", None, "b", "a"], "y: .*NaN"),
        (frame(), None, "y: a target is needed"),
        (frame(), [2.5, 2.5, 2.5, 2.5], "y: every value is the same"),
        (pd.DataFrame({"a": [1, 1, 1, 1]}), Y, "X: every feature is constant"),
        (frame(c=[1.0, np.inf, 0, 1]), Y, "X: column 'c' contains infinity"),
        (np.array([[1.0], [-np.inf], [2], [3]]), Y, "X: column 'x0' contains infinity"),
        (pd.DataFrame(np.eye(4), columns=["a", "b", "a", "c"]), Y, "'a' appears twice"),
        (np.zeros((0, 3)), [], "X: the table has no rows"),
        (np.zeros((4, 2, 2)), [0, 1] * 2, r"got 3 dimension\(s\); reshape it with .reshape\(len\(X\), -1\)"),
        (np.zeros(4, dtype=[("a", float)]), [0, 1] * 2, r"pass pandas.DataFrame\(X\)"),
        (np.eye(4), np.array([["a", "b"]] * 4), "y: column 1 holds text, such as 'a'; several columns must"),
        (np.zeros((4, 0)), Y, "X: the table has no columns"),
        (np.zeros(4), Y, "X: must be a table"),
        (np.array([["a", "b"]] * 4), Y, "X: an array must hold numbers"),
        (frame(c=[[1], [2], [3], [4]]), Y, "X: column 'c'"),
        (sp.csr_matrix(np.array([[1.0], [np.nan], [2], [3]])), Y, "X: a sparse matrix must not"),
        (np.ones((1, 2)), [1], "X: at least 2 rows"),
    ],
)
def test_tables_and_targets(X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        seqatt.select(X, y, 1)


def test_text_for_regression():
    with pytest.raises(ValueError, match=r"y: holds text where numbers are needed; .* task='classification'"):
        seqatt.select(frame(), list("abab"), 1, task="regression")


@pytest.mark.parametrize("task", [None, "regression"])
@pytest.mark.parametrize("convert", [pd.Series, np.asarray, list, lambda days: pd.Series(days - days[0])])
def test_dates_as_target_are_refused_as_dates(convert, task):
    days = pd.date_range("2026-01-01", periods=4)
    with pytest.raises(
        ValueError, match="y: holds dates or durations where numbers are needed; convert them"
    ):
        seqatt.select(frame(), convert(days), 1, task=task)


def test_other_objects_as_target_are_named_by_type():
    y = np.array([{1}, {2}, {1}, {2}], dtype=object)
    with pytest.raises(ValueError, match="y: holds values of type set where numbers are needed"):
        seqatt.select(frame(), y, 1, task="regression")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("optimizer", "optimizer: must be a function of the model's parameters .* got 'adam'"),
        ("model", "model: must be an nn.Module, or a function"),
        ("loss", "loss: must be a function of outputs and targets"),
    ],
)
def test_a_name_in_place_of_a_function_is_told_what_the_option_takes(option, message):
    with pytest.raises(TypeError, match=message):
        seqatt.select(frame(), [0, 1, 0, 1], 1, **{option: "adam"})


def test_a_file_in_a_folder_that_does_not_exist_is_refused_by_the_name_of_the_folder(tmp_path):
    selection = seqatt.select(frame(), [0, 1, 0, 1], 1, method="f_test")
    path = tmp_path / "nothing" / "here.html"
    for write in (selection.save, selection.report):
        with pytest.raises(
            FileNotFoundError, match=r"the folder .*nothing' does not exist; make it first"
        ) as caught:
            write(path)
        assert caught.value.filename == str(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method: unknown 'magic'"),
        ({"mask": "l3"}, "mask: unknown 'l3'"),
        ({"device": "abacus"}, "device: 'abacus' is not supported"),
        ({"task": "guessing"}, "task: unknown task"),
        ({"activation": "step"}, "activation: unknown"),
        ({"epochs": 0}, "epochs: must be a number above 0"),
        ({"epochs": "many"}, "epochs: must be a number"),
        ({"batch_size": 0}, "batch_size: must be a whole number"),
        ({"learning_rate": -1}, "learning_rate: must be a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"hidden": (0,)}, "hidden: must be widths"),
        ({"temperature": 0}, "temperature: must be a number above 0"),
        ({"temperature": 2, "mask": "l1"}, "temperature: only the softmax"),
        ({"features_per_phase": 0}, "features_per_phase: must be a whole number"),
        ({"features_per_phase": 5}, "features_per_phase: 5 is more than the 4 features"),
        ({"warmup": 1}, "warmup: must be a number at least 0 and below 1"),
        ({"replacement": -1}, "replacement: must be a whole number"),
        ({"one_pass": "no"}, "one_pass: must be True or False"),
        ({"model": 3}, "model: must be an nn.Module"),
        ({"seed": -1}, "seed: must be a whole number"),
        ({"groups": {"g": ["x0", "zzz"]}}, "groups: 'g' names 'zzz', which is not a column"),
        ({"groups": {"g": [0, 1], "h": [1]}}, "groups: column 'x1' is in both 'g' and 'h'"),
        ({"groups": {"g": []}}, "groups: 'g' has no columns"),
        ({"groups": {"x5": [0, 1]}}, "groups: the name 'x5' is also a column"),
        ({"groups": "x0"}, "groups: must be a dict"),
        ({"groups": ["x0", "x1"]}, "groups: 'x0' must be a list of columns"),
        ({"groups": {"g": 3}}, "groups: 'g' must be a list of columns"),
        ({"groups": [["x0", "x1"], ["x0", "x1"]]}, "groups: column 'x0' is in both"),
        ({"max_categories": 0}, "max_categories: must be a whole number"),
        ({"hidden": "abc"}, "hidden: must be widths"),
        ({"hidden": None}, "hidden: must be widths"),
        ({"batch_norm": True, "batch_size": 1}, "batch_size: batch_norm needs"),
        ({"sample_weight": ["a"] * 300}, "sample_weight: must hold numbers"),
        ({"sample_weight": [1.0]}, "sample_weight: must have one value for each"),
        ({"sample_weight": np.full(300, -1.0)}, "sample_weight: must be finite and not negative"),
        ({"sample_weight": np.zeros(300)}, "sample_weight: every weight is zero"),
        ({"class_weight": "fair"}, "class_weight: use 'balanced' or a dict"),
        ({"class_weight": {7: 1.0}}, "class_weight: 7 is not a label"),
        ({"weight_decay": 1.0}, "weight_decay: must be a number"),
    ],
)
def test_options(options, message, problem):
    with pytest.raises((ValueError, TypeError), match=message):
        seqatt.select(*problem, 2, **options)


def test_a_misspelt_option_gets_a_hint(problem):
    with pytest.raises(TypeError, match="did you mean 'learning_rate'"):
        seqatt.select(*problem, 2, learning_rat=1)


def test_class_weight_needs_classes():
    with pytest.raises(ValueError, match="class_weight: needs a target of classes"):
        seqatt.select(*linear_problem("regression"), 2, class_weight="balanced")


def test_a_model_that_does_not_fit(problem):
    with pytest.raises(ValueError, match="model: does not accept a batch of 8 columns"):
        seqatt.select(*problem, 2, model=torch.nn.Linear(5, 1))
    with pytest.raises(ValueError, match="model: returns shape"):
        seqatt.select(*problem, 2, model=torch.nn.Linear(8, 5))
    with pytest.raises(TypeError, match=r"model: must return an nn\.Module"):
        seqatt.select(*problem, 2, model=lambda columns, outputs: "model")


def test_a_loss_that_becomes_nan_stops_the_run_and_keeps_the_features_selected_so_far(problem):
    calls = []

    def loss(out, y):
        calls.append(1)
        rows = torch.nn.functional.binary_cross_entropy_with_logits(out, y)
        return rows * torch.nan if len(calls) > 1000 else rows

    with pytest.raises(seqatt.TrainingDiverged, match="learning_rate") as caught:
        seqatt.select(*problem, 4, loss=loss, epochs=2000, warmup=0, replacement=0, batch_size=300)
    assert len(calls) <= 1000 + 4 * 64  # four members, one chunk of steps each
    (selection,) = caught.value.selections
    assert 1 <= len(selection.indices) <= 4  # never more than k
    assert len(selection.features) == len(selection.indices)


def test_a_loss_that_does_not_fit(problem):
    with pytest.raises(ValueError, match="loss: does not accept outputs"):
        seqatt.select(*problem, 2, loss=lambda out, y: out @ y)
    with pytest.raises(ValueError, match="loss: row or class weights"):
        seqatt.select(*problem, 2, loss=torch.nn.BCEWithLogitsLoss(), class_weight="balanced")


def test_evaluate(problem):
    X, y = problem
    with pytest.raises(TypeError, match="indices: must be positions or names of columns"):
        seqatt.evaluate(X, y, X, y, 3)
    with pytest.raises(TypeError, match=r"indices: 1.7 is not a column; use its position"):
        seqatt.evaluate(X, y, X, y, [1.7])
    with pytest.raises(ValueError, match="indices: the mask has 2 values, X_train has 8 columns"):
        seqatt.evaluate(X, y, X, y, [False, True])
    with pytest.raises(ValueError, match="seed: must be a whole number"):
        seqatt.evaluate(X, y, X, y, [1], seeds=[-1])
    with pytest.raises(ValueError, match=r"y_test: has 2 column\(s\)"):
        seqatt.evaluate(X, X[:, 0], X, X[:, :2], [1])
    with pytest.raises(ValueError, match="indices: the selection is of 8 columns"):
        seqatt.evaluate(X[:, :3], y, X[:, :3], y, seqatt.select(X, y, 2, epochs=1))
    with pytest.raises(ValueError, match="indices: 99 is not a column"):
        seqatt.evaluate(X, y, X, y, [99])
    with pytest.raises(ValueError, match="indices: at least one"):
        seqatt.evaluate(X, y, X, y, [])
    with pytest.raises(ValueError, match="indices: 1 appears twice"):
        seqatt.evaluate(X, y, X, y, [1, 1])
    with pytest.raises(ValueError, match="X_test: must have the same columns"):
        seqatt.evaluate(X, y, X[:, :3], y, [1])
    with pytest.raises(ValueError, match="y_test: label 7 does not occur"):
        seqatt.evaluate(X, y, X, np.full(300, 7), [1])
    with pytest.raises(
        ValueError, match="X_test has 300 rows and y_test has 3: they must have the same length"
    ):
        seqatt.evaluate(X, y, X, y[:3], [1])
    with pytest.raises(TypeError, match="evaluate has no option 'mask'"):
        seqatt.evaluate(X, y, X, y, [1], mask="l1")
