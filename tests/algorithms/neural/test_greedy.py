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
from seqatt.training.batch import DeviceTable
from seqatt.training.build import WEIGHTS, Member
from seqatt.training.candidates import LOOKS, CandidateModels
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.torch_module import build_mlp
from seqatt.training.candidates import CandidateOptions

CPU = torch.device("cpu")


def train_one(source, learns, judged, columns, steps: int, rate: float) -> float:
    """One model, in torch's own words; the lowest held-out loss of those looked at."""
    x = torch.from_numpy(source.columns)[:, columns]
    truth = torch.from_numpy(source.target.values)
    model = build_mlp(MLPShape(len(columns), (8,), source.target.outputs))
    generator = Member(0, 0).generator(WEIGHTS)
    for layer in (model[0], model[2]):
        bound = 1 / math.sqrt(layer.in_features)
        for param in (layer.weight, layer.bias):
            param.data.uniform_(-bound, bound, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    best, each = math.inf, steps // 20
    for part in range(20):
        optimizer.param_groups[0]["lr"] = rate * (1 + math.cos(math.pi * part / 20)) / 2
        for _ in range(each):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[learns]), truth[learns]).backward()
            optimizer.step()
        if (part + 1) % (20 // LOOKS) == 0:
            with torch.no_grad():
                best = min(best, float(torch.nn.functional.cross_entropy(model(x[judged]), truth[judged])))
    return best


def test_every_round_chooses_what_an_explicit_loop_of_trainings_chooses():
    X, y = linear_problem("multiclass", rows=120, features=6)
    options = {"epochs": 100, "hidden": (8,), "folds": 1}  # all rows in a batch: a step each pass
    selection = seqatt.select(X, y, 3, method="greedy", device="cpu", **options)
    source = read_table_data(X, y)
    made = CandidateModels(source, DeviceTable(source, CPU), 0, CandidateOptions(**options), CPU)
    learns, judged = made._learns[0], made._judged[0]
    assert made.steps == 100
    chosen: list[int] = []
    for _ in range(3):
        free = [f for f in range(6) if f not in chosen]
        alone = [train_one(source, learns, judged, [*chosen, f], 100, 1e-2) for f in free]
        with torch.no_grad():
            _, together = made.losses(chosen, free, lambda models: None)
        np.testing.assert_allclose(together, alone, rtol=2e-3, atol=1e-4)
        chosen.append(free[int(np.argmin(alone))])
    assert selection.indices.tolist() == chosen


@pytest.mark.parametrize(
    ("rows", "asked", "batch"), [(100, None, 80), (100, 32, 32), (4, None, 4), (300, None, 240)]
)
def test_settings_have_the_batch_that_models_were_trained_on(rows, asked, batch):
    X, y = linear_problem("regression", rows=rows)
    told = {"epochs": 2, "hidden": (4,), "batch_size": asked}
    source = read_table_data(X, y)
    made = CandidateModels(source, DeviceTable(source, CPU), 0, CandidateOptions(**told), CPU)
    settings = seqatt.select(X, y, 1, method="greedy", device="cpu", **told).settings
    assert settings["batch_size"] == made._batch_size == batch
    assert settings["steps"] == made.steps


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_blocks_of_candidates_change_nothing(monkeypatch, at_once):
    X, y = linear_problem("regression", rows=80)
    whole = seqatt.marginal_gains(X, y, [1], epochs=30, device="cpu")
    monkeypatch.setattr(candidates.CandidateModels, "_at_once", lambda self, columns: at_once)
    parts = seqatt.marginal_gains(X, y, [1], epochs=30, device="cpu")
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-6)


def test_gains_are_of_features_in_the_users_order_and_only_of_candidates():
    X, y = linear_problem("regression")
    X[:, 6] = 1.0
    frame = pd.DataFrame(X, columns=list("hgfedcba"))
    gains = seqatt.marginal_gains(frame, y, ["g"], epochs=60)
    assert np.isnan(gains[[1, 6]]).all()  # chosen, and constant
    assert int(np.nanargmax(gains)) == 4
    some = seqatt.marginal_gains(frame, y, [1], ["d", 0], epochs=60)
    assert np.flatnonzero(~np.isnan(some)).tolist() == [0, 4]
    np.testing.assert_allclose(some[[0, 4]], gains[[0, 4]], rtol=1e-4, atol=1e-6)


def test_a_copy_of_a_chosen_feature_adds_next_to_nothing():
    X, y = linear_problem("regression")
    X[:, 0] = X[:, 1]
    gains = seqatt.marginal_gains(X, y, [1])
    assert gains[0] < 0.1 * gains[4]


def test_gains_of_a_category_come_with_all_its_columns():
    rng = np.random.default_rng(0)
    kind = rng.choice(list("abcd"), 300)
    frame = pd.DataFrame({"noise": rng.normal(size=300), "kind": kind, "other": rng.normal(size=300)})
    gains = seqatt.marginal_gains(frame, np.isin(kind, ["a", "d"]).astype(int))
    assert gains[1] > 0.5
    assert abs(gains[[0, 2]]).max() < 0.1


def test_trials_that_diverge_are_reported_with_a_selection_a_seed():
    X, y = linear_problem("regression", rows=40)
    X[:, 3] = 1.0
    told = {"method": "greedy", "learning_rate": 1e20, "epochs": 20, "hidden": (4,)}
    with pytest.raises(seqatt.TrainingDiverged) as caught:
        seqatt.select_trials(X, y, 2, seeds=[3, 5], **told)
    assert [found.seed for found in caught.value.selections] == [3, 5]
    assert [len(found.indices) for found in caught.value.selections] == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"chosen": ["no"]}, "chosen: 'no' is not a feature of X, which has 8"),
        ({"chosen": [-1]}, "chosen: -1 is not a feature"),
        ({"chosen": [1, 1]}, "chosen: 1 stands twice"),
        ({"chosen": [False, True]}, "chosen: the mask has 2 values, X has 8 features"),
        ({"chosen": [1], "candidates": [1]}, "candidates: .* is already chosen"),
        ({"folds": 6}, "folds: .* at most 5"),
    ],
)
def test_bad_arguments_are_named(problem, arguments, message):
    with pytest.raises(ValueError, match=message):
        seqatt.marginal_gains(*problem, **arguments)


@pytest.mark.parametrize("asked", [[1.7], [None], [True, 2], 3, "x1", np.array(3), [[1], [2]]])
@pytest.mark.parametrize("argument", ["chosen", "candidates"])
def test_what_is_no_list_of_features_is_refused(problem, argument, asked):
    with pytest.raises(TypeError, match=f"{argument}: (.* is no feature; use|must be positions or names)"):
        seqatt.marginal_gains(*problem, **{argument: asked})


def test_a_mask_and_a_selection_mean_the_features_they_mark():
    X, y = linear_problem("regression", rows=40)
    told = {"epochs": 3, "hidden": (4,), "device": "cpu"}
    frame = pd.DataFrame(X, columns=list("hgfedcba"))
    selection = seqatt.select(frame, y, 2, method="f_test")
    wanted = seqatt.marginal_gains(frame, y, selection.indices, **told)
    for asked in (selection, selection.features):
        np.testing.assert_array_equal(seqatt.marginal_gains(frame, y, asked, **told), wanted)
    mask = selection.support
    wanted_by_place = seqatt.marginal_gains(frame, y, sorted(selection.indices), **told)
    for asked in (mask, mask.tolist(), torch.from_numpy(mask)):
        np.testing.assert_array_equal(seqatt.marginal_gains(frame, y, asked, **told), wanted_by_place)
    turned = seqatt.marginal_gains(frame[list("abcdefgh")], y, selection, **told)
    np.testing.assert_array_equal(turned, wanted[::-1])
    np.testing.assert_array_equal(np.isnan(seqatt.marginal_gains(X, y, selection, **told)), mask)
    pair = {"groups": {"pair": ["h", "a"]}}
    grouped = seqatt.select(frame, y, 1, method="f_test", **pair)
    gains = seqatt.marginal_gains(frame, y, grouped, **pair, **told)
    assert np.isnan(gains).tolist() == grouped.support.tolist()


def test_an_unknown_option_of_marginal_gains_is_an_error(problem):
    with pytest.raises(TypeError, match="unknown option 'epoch'"):
        seqatt.marginal_gains(*problem, epoch=3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_finds_what_a_cpu_finds():
    X, y = linear_problem("multiclass", rows=600, features=20)
    for seed, found in enumerate(
        seqatt.select_trials(X, y, 2, seeds=range(3), method="greedy", device="cuda")
    ):
        assert set(found.indices) == {1, 4}
        alone = seqatt.select(X, y, 2, seed=seed, method="greedy", device="cpu")
        assert set(found.indices) == set(alone.indices)
