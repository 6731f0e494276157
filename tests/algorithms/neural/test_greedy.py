"""Greedy selection and marginal gains against an explicit loop of trainings."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.data.tables.table_data import read_table_data
from seqatt.training import candidates
from seqatt.training.candidates import VALIDATIONS, CandidateModels, resolve_candidates
from seqatt.training.ensemble import WEIGHTS, Member
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.models.architecture import MLPShape, build_mlp
from seqatt.training.models.mlp import MLP
from seqatt.training.options import CandidateOptions

CPU = torch.device("cpu")


def make_models(data, **options) -> CandidateModels:
    options = CandidateOptions(**options)
    plan = resolve_candidates(data, options)
    return CandidateModels(data, DeviceTable.of_data(data, CPU), 0, options, plan, CPU)


def train_one(data, train_rows, validation_rows, columns, steps: int, learning_rate: float) -> float:
    """The lowest held-out loss of one model, trained in plain torch."""
    x = torch.from_numpy(data.columns)[:, columns]
    y = torch.from_numpy(data.target.values)
    model = build_mlp(MLPShape(len(columns), (8,), data.target.outputs))
    generator = Member(0, 0).generator(WEIGHTS)
    for layer in (model[0], model[2]):
        bound = 1 / math.sqrt(layer.in_features)
        for param in (layer.weight, layer.bias):
            param.data.uniform_(-bound, bound, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    best = math.inf
    for phase in range(20):
        optimizer.param_groups[0]["lr"] = learning_rate * (1 + math.cos(math.pi * phase / 20)) / 2
        for _ in range(steps // 20):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[train_rows]), y[train_rows]).backward()
            optimizer.step()
        if (phase + 1) % (20 // VALIDATIONS) == 0:
            with torch.no_grad():
                out = model(x[validation_rows])
                best = min(best, float(torch.nn.functional.cross_entropy(out, y[validation_rows])))
    return best


def test_every_round_selects_the_feature_that_an_explicit_loop_of_trainings_selects():
    X, y = linear_problem("multiclass", rows=120, features=6)
    options = {"epochs": 100, "hidden": (8,), "folds": 1}  # all rows in one batch: one step per epoch
    selection = seqatt.select(X, y, 3, method="greedy", device="cpu", **options)
    data = read_table_data(X, y)
    models = make_models(data, **options)
    train_rows, validation_rows = models._train_rows[0], models._validation_rows[0]
    assert models.plan.steps == 100
    selected: list[int] = []
    for _ in range(3):
        unselected = [f for f in range(6) if f not in selected]
        expected = [
            train_one(data, train_rows, validation_rows, [*selected, f], 100, 1e-2) for f in unselected
        ]
        with torch.no_grad():
            _, losses = models.losses(selected, unselected, lambda count: None)
        np.testing.assert_allclose(losses, expected, rtol=2e-3, atol=1e-4)
        selected.append(unselected[int(np.argmin(expected))])
    assert selection.indices.tolist() == selected


@pytest.mark.parametrize(
    ("rows", "requested", "batch_size"), [(100, None, 80), (100, 32, 32), (4, None, 4), (300, None, 240)]
)
def test_settings_record_the_batch_size_and_steps_of_training(rows, requested, batch_size):
    X, y = linear_problem("regression", rows=rows)
    options = {"epochs": 2, "hidden": (4,), "batch_size": requested}
    data = read_table_data(X, y)
    models = make_models(data, **options)
    settings = seqatt.select(X, y, 1, method="greedy", device="cpu", **options).settings
    assert settings["batch_size"] == models.plan.batch_size == batch_size
    assert settings["steps"] == models.plan.steps


@pytest.mark.parametrize("rows", [4, 100, 300, 1_100, 4_500])
def test_every_model_trains_the_requested_number_of_epochs_on_the_rows_that_are_not_held_out(
    monkeypatch, rows
):
    trained, epochs = [], 4
    train_step = MLP.train_step

    def count_rows(model, batch, weights):
        trained.append(batch.y.shape[1])
        return train_step(model, batch, weights)

    monkeypatch.setattr(MLP, "train_step", count_rows)
    X, y = linear_problem("regression", rows=rows, features=5)
    options = {"hidden": (4,), "folds": 1, "device": "cpu"}
    selection = seqatt.select(X, y, 1, method="greedy", epochs=epochs, **options)
    one_pass = rows - rows // 5
    assert sum(trained) == pytest.approx(epochs * one_pass, abs=max(trained))  # whole batches
    assert selection.settings["epochs"] == sum(trained) / one_pass
    trained.clear()
    seqatt.marginal_gains(X, y, epochs=epochs, **options)
    assert sum(trained) == pytest.approx(epochs * one_pass, abs=max(trained))


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_gains_do_not_depend_on_how_many_candidates_train_at_once(monkeypatch, at_once):
    X, y = linear_problem("regression", rows=80)
    expected = seqatt.marginal_gains(X, y, [1], epochs=30, device="cpu")
    monkeypatch.setattr(candidates.CandidateModels, "_models_at_once", lambda self, columns: at_once)
    gains = seqatt.marginal_gains(X, y, [1], epochs=30, device="cpu")
    np.testing.assert_allclose(gains, expected, rtol=1e-4, atol=1e-6)


def test_gains_are_in_the_users_order_of_features_and_nan_for_features_that_are_no_candidates():
    X, y = linear_problem("regression")
    X[:, 6] = 1.0
    frame = pd.DataFrame(X, columns=list("hgfedcba"))
    gains = seqatt.marginal_gains(frame, y, ["g"], epochs=60)
    assert np.isnan(gains[[1, 6]]).all()  # selected already, and constant
    assert int(np.nanargmax(gains)) == 4
    some = seqatt.marginal_gains(frame, y, [1], ["d", 0], epochs=60)
    assert np.flatnonzero(~np.isnan(some)).tolist() == [0, 4]
    np.testing.assert_allclose(some[[0, 4]], gains[[0, 4]], rtol=1e-4, atol=1e-6)


def test_the_gain_of_a_copy_of_a_selected_feature_is_small():
    X, y = linear_problem("regression")
    X[:, 0] = X[:, 1]
    gains = seqatt.marginal_gains(X, y, [1])
    assert gains[0] < 0.1 * gains[4]


def test_the_gain_of_a_category_is_that_of_all_its_columns():
    rng = np.random.default_rng(0)
    kind = rng.choice(list("abcd"), 300)
    frame = pd.DataFrame({"noise": rng.normal(size=300), "kind": kind, "other": rng.normal(size=300)})
    gains = seqatt.marginal_gains(frame, np.isin(kind, ["a", "d"]).astype(int))
    assert gains[1] > 0.5
    assert abs(gains[[0, 2]]).max() < 0.1


def test_if_trials_diverge_the_error_has_one_selection_per_seed():
    X, y = linear_problem("regression", rows=40)
    X[:, 3] = 1.0
    options = {"method": "greedy", "learning_rate": 1e20, "epochs": 20, "hidden": (4,)}
    with pytest.raises(seqatt.TrainingDiverged) as caught:
        seqatt.select_trials(X, y, 2, seeds=[3, 5], **options)
    assert [selection.seed for selection in caught.value.selections] == [3, 5]
    assert [len(selection.indices) for selection in caught.value.selections] == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"selected": ["no"]}, "selected: 'no' is not a feature of X, which has 8"),
        ({"selected": [-1]}, "selected: -1 is not a feature"),
        ({"selected": [1, 1]}, "selected: 1 appears twice"),
        ({"selected": [False, True]}, "selected: the mask has 2 values, X has 8 features"),
        ({"selected": [1], "candidates": [1]}, "candidates: .* is already selected"),
        ({"folds": 6}, "folds: .* at most 5"),
    ],
)
def test_an_error_names_the_invalid_argument(problem, arguments, message):
    with pytest.raises(ValueError, match=message):
        seqatt.marginal_gains(*problem, **arguments)


@pytest.mark.parametrize("value", [[1.7], [None], [True, 2], 3, b"x1", np.array(3), [[1], [2]]])
@pytest.mark.parametrize("argument", ["selected", "candidates"])
def test_an_argument_that_is_not_a_list_of_features_is_an_error(problem, argument, value):
    with pytest.raises(TypeError, match=f"{argument}: (.* is not a feature; use|must be positions or names)"):
        seqatt.marginal_gains(*problem, **{argument: value})


def test_features_can_be_given_as_a_mask_or_a_selection():
    X, y = linear_problem("regression", rows=40)
    options = {"epochs": 3, "hidden": (4,), "device": "cpu"}
    frame = pd.DataFrame(X, columns=list("hgfedcba"))
    selection = seqatt.select(frame, y, 2, method="f_test")
    expected = seqatt.marginal_gains(frame, y, selection.indices, **options)
    for value in (selection, selection.features):
        np.testing.assert_array_equal(seqatt.marginal_gains(frame, y, value, **options), expected)
    mask = selection.support
    in_table_order = seqatt.marginal_gains(frame, y, sorted(selection.indices), **options)
    for value in (mask, mask.tolist(), torch.from_numpy(mask)):
        np.testing.assert_array_equal(seqatt.marginal_gains(frame, y, value, **options), in_table_order)
    reversed_columns = seqatt.marginal_gains(frame[list("abcdefgh")], y, selection, **options)
    np.testing.assert_array_equal(reversed_columns, expected[::-1])
    np.testing.assert_array_equal(np.isnan(seqatt.marginal_gains(X, y, selection, **options)), mask)
    groups = {"pair": ["h", "a"]}
    grouped = seqatt.select(frame, y, 1, method="f_test", groups=groups)
    gains = seqatt.marginal_gains(frame, y, grouped, groups=groups, **options)
    assert np.isnan(gains).tolist() == grouped.support.tolist()


def test_an_unknown_option_of_marginal_gains_is_an_error(problem):
    with pytest.raises(TypeError, match="marginal_gains has no option 'epoch'"):
        seqatt.marginal_gains(*problem, epoch=3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_selects_the_features_that_a_cpu_selects():
    X, y = linear_problem("multiclass", rows=600, features=20)
    trials = seqatt.select_trials(X, y, 2, seeds=range(3), method="greedy", device="cuda")
    for seed, trial in enumerate(trials):
        assert set(trial.indices) == {1, 4}
        on_cpu = seqatt.select(X, y, 2, seed=seed, method="greedy", device="cpu")
        assert set(trial.indices) == set(on_cpu.indices)
