"""A model of the user that learns nothing is named in a warning and in the notes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from tests.support.problems import linear_problem
from torch import nn

import seqatt
from seqatt.api.confidence.loss_notes import _loss_of_constant
from seqatt.data.tables.table_data import read_table_data

OUTPUTS = {
    "binary": 1,
    "multiclass": 3,
    "multilabel": 2,
    "regression": 1,
    "poisson": 1,
    "quantile": 1,
    "ordinal": 2,
}


def make_model(outputs: int, bias: float = 0.0) -> nn.Module:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, outputs))
    nn.init.constant_(model[0].bias, bias)
    return model


def problem(task: str) -> tuple[np.ndarray, np.ndarray]:
    if task in ("poisson", "quantile", "ordinal"):
        X, y = linear_problem("regression")
        y = y - y.min()
        return X, y if task == "quantile" else np.round(2 * y / y.max()) if task == "ordinal" else np.round(y)
    return linear_problem(task)


@pytest.mark.parametrize("task", OUTPUTS)
def test_a_model_of_dead_units_is_noticed_and_one_that_learns_is_not(task):
    X, y = problem(task)
    options = {"task": task} if task in ("poisson", "quantile", "ordinal") else {}
    with pytest.warns(UserWarning, match="^model: is hardly better than one prediction for all rows"):
        dead = seqatt.select(X, y, 2, model=make_model(OUTPUTS[task], bias=-100.0), epochs=100, **options)
    assert [note[:26] for note in dead.notes] == ["The model is hardly better"]
    assert "notes: 1" in repr(dead)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alive = seqatt.select(X, y, 2, model=make_model(OUTPUTS[task]), epochs=100, **options)
    assert not alive.notes


def test_the_loss_of_a_constant_counts_row_weights_and_smoothed_labels():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [30, 10]))
    data = read_table_data(rng.normal(size=(40, 2)), y, sample_weight=np.where(y, 3.0, 1.0))
    assert _loss_of_constant(data, 0.0) == pytest.approx((np.log(2), 0), abs=1e-6)  # 30 rows of each class
    plain = read_table_data(rng.normal(size=(40, 2)), y)
    shares = 0.2 * 0.5 + 0.8 * np.array([0.75, 0.25])
    assert _loss_of_constant(plain, 0.2)[0] == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-6)


def test_models_with_a_loss_of_their_own_and_few_steps_are_not_judged():
    X, y = linear_problem("regression")
    dead = make_model(1, bias=-100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seqatt.select(X, y, 2, model=dead, loss=nn.functional.mse_loss, epochs=100)
    with pytest.warns(UserWarning, match="too few to tell features apart") as caught:
        seqatt.select(X, y, 2, model=dead, epochs=2)
    assert len(caught) == 1


def test_features_that_raise_the_held_out_loss_are_named():
    """Categories of noise that have to be selected, as there are too few other features."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=2_000)})
    for name in ("a", "b"):
        X[name] = pd.Series(rng.integers(0, 300, 2_000)).map("v{}".format)
    y = (X["x"] + rng.normal(size=2_000) > 0).astype(int)
    all_three = seqatt.select(X, y, 3)
    named = [note for note in all_three.notes if "raise the loss on held-out rows" in note]
    assert len(named) == 1
    assert named[0].startswith(("a and b raise", "b and a raise"))
    assert not seqatt.select(X, y, 1).notes


def test_selections_that_are_worse_than_one_prediction_say_so():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: pd.Series(rng.integers(0, 300, 2_000)).map("v{}".format) for name in "abcd"})
    selection = seqatt.select(X, rng.integers(0, 2, 2_000), 3)
    assert any(
        note.startswith("On held-out rows networks on the selected features") for note in selection.notes
    )
