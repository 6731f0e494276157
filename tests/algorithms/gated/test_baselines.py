"""What the methods that are a gate and a schedule promise beyond the contract of every method."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from tests.support.budgets import short_or_default
from tests.support.problems import linear_problem
from torch import nn

import seqatt
from seqatt.algorithms.gated import gated_method
from seqatt.algorithms.gated.options import PenaltyOptions, StochasticGatesOptions
from seqatt.algorithms.registry import all_methods
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.defaults import default_steps
from seqatt.training.schedule import at_once

QUICK = {"epochs": 5, "hidden": (8,)}
GATED = [
    name
    for name, method in all_methods().items()
    if getattr(method.plan, "func", None) is gated_method.make_plan
]
# Deep Lasso differentiates twice, which takes several times as long: the contract tests have it too.
QUICK_GATED = [
    pytest.param(name, marks=pytest.mark.exhaustive) if name == "deep_lasso" else name for name in GATED
]
PENALISED = [name for name in GATED if issubclass(all_methods()[name].options, PenaltyOptions)]
NEED_A_FIRST_LAYER = ["sequential_lasso", "group_lasso", "omp", "first_layer", "entry_prune"]


def test_the_methods_under_test_are_all_there():
    assert len(GATED) >= 8
    assert len(PENALISED) >= 5


def mixed_table(rows: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    """The target depends on a category and a pair of numbers, not on four other numbers and another category."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 6)), columns=["left", "right", "a", "b", "c", "d"])
    frame["city"] = rng.choice(["Bonn", "Kiel", "Ulm"], size=rows)
    frame["noise"] = rng.choice(list("pqrstuvw"), size=rows)
    effect = frame["city"].map({"Bonn": -2.0, "Kiel": 0.0, "Ulm": 2.0})
    return frame, np.asarray(effect + frame["left"] + frame["right"] + 0.1 * rng.normal(size=rows))


@pytest.mark.slow
@short_or_default(60)
@pytest.mark.parametrize("method", QUICK_GATED)
def test_a_category_and_a_group_are_each_selected_as_one_feature(method, epochs):
    frame, y = mixed_table()
    selection = seqatt.select(frame, y, 2, method=method, groups={"pair": ["left", "right"]}, epochs=epochs)
    assert set(selection.features) == {"city", "pair"}


@pytest.mark.slow
@short_or_default(30)
@pytest.mark.parametrize("method", QUICK_GATED)
def test_three_relevant_features_among_thirty_are_found(method, epochs):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 30))
    y = (X[:, 3] + X[:, 17] * 1.2 - X[:, 29] + 0.2 * rng.normal(size=600) > 0).astype(int)
    assert set(seqatt.select(X, y, 3, method=method, epochs=epochs).indices) == {3, 17, 29}


@pytest.mark.slow
@short_or_default(100)
@pytest.mark.parametrize("method", QUICK_GATED)
def test_rows_of_weight_zero_have_no_influence(method, epochs):
    X, y = linear_problem("regression", rows=400)
    misleading = y.copy()
    misleading[200:] = 5 * X[200:, 7]
    weight = np.repeat([1.0, 0.0], 200)
    selection = seqatt.select(X, misleading, 2, method=method, sample_weight=weight, epochs=epochs)
    assert set(selection.indices) == {1, 4}


@pytest.mark.parametrize("method", GATED)
def test_a_sparse_table_gives_the_selection_of_the_dense_table(method):
    X, y = linear_problem("binary", rows=80)
    X[np.abs(X) < 0.5] = 0
    from_dense, from_sparse = (
        seqatt.select(table, y, 3, method=method, **QUICK) for table in (X, sparse.csr_matrix(X))
    )
    assert from_dense.indices.tolist() == from_sparse.indices.tolist()


@pytest.mark.parametrize("method", GATED)
def test_every_strength_of_a_penalty_has_the_budget_of_one_training(method):
    data = read_table_data(*linear_problem("binary", rows=2000))
    registered = all_methods()[method]
    plan = registered.plan(SelectionRequest(data, 3, [0], registered.options(), torch.device("cpu")))
    steps = default_steps(2000, plan.settings["batch_size"], 3)
    assert sum(phase.steps for phase in plan.schedule if phase.sees != "selected" or phase.take) == steps
    if len(plan.penalties) > 1:  # a new network compares the strengths
        assert plan.settings["steps"] == round((1 + gated_method.VALIDATION_SHARE) * steps)
    assert plan.settings["epochs"] == plan.settings["steps"] * plan.settings["batch_size"] / 2000


def test_sequential_lasso_penalises_all_features_for_a_tenth_of_the_steps_before_its_phases():
    data = read_table_data(*linear_problem("binary", rows=2000))
    registered = all_methods()["sequential_lasso"]
    options = registered.options(penalty=0.01)
    plan = registered.plan(SelectionRequest(data, 4, [0], options, torch.device("cpu")))
    assert [phase.steps for phase in plan.schedule] == [400 + 900, 900, 900, 900]
    assert [phase.take for phase in plan.schedule] == [1, 1, 1, 1]


@short_or_default(40)
@pytest.mark.parametrize("method", ["sequential_lasso", "group_lasso", "entry_prune", "gumbel_gates"])
def test_five_planted_features_of_different_scales_are_found(method, epochs):
    """Two of the scales are those of raw tables: the largest is no advantage, the smallest no disadvantage."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 40))
    y = (X[:, [2, 7, 11, 23, 31]] * [1.0, -1.0, 0.8, 1.2, -0.9]).sum(1) + 0.3 * rng.normal(size=700)
    X *= np.geomspace(1e-3, 1e3, 40)
    assert set(seqatt.select(X, y, 5, method=method, epochs=epochs).indices) == {2, 7, 11, 23, 31}


@pytest.mark.slow
def test_sequential_lasso_selects_one_of_several_copies_and_group_lasso_several():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(800, 3))
    X = np.hstack(
        [base[:, [0]] + 0.2 * rng.normal(size=(800, 4)), base[:, [1, 2]], rng.normal(size=(800, 10))]
    )
    y = 3 * base[:, 0] + base[:, 1] + base[:, 2]
    sequential, group = (
        seqatt.select(X, y, 3, method=method, penalty=0.01, epochs=100).indices
        for method in ("sequential_lasso", "group_lasso")
    )
    assert {4, 5} < set(sequential)
    assert set(group) <= {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("method", PENALISED)
def test_the_strength_with_the_lowest_held_out_loss_gives_the_result(method):
    X, y = linear_problem("multiclass", rows=200)
    trials = seqatt.select_trials(X, y, 3, seeds=[0, 1], method=method, **QUICK)
    for settings in (trial.settings for trial in trials):
        json.dumps(settings)
        losses = settings["penalty_losses"]
        assert settings["penalty"] == settings["penalties"][int(np.argmin(losses))]
        assert len(losses) == len(settings["penalties"]) > 1


@pytest.mark.parametrize("method", PENALISED)
def test_a_requested_strength_is_used(method):
    X, y = linear_problem("multiclass", rows=200)
    selection = seqatt.select(X, y, 3, method=method, penalty=0.05, **QUICK)
    assert selection.settings["penalty"] == 0.05
    assert len(selection.history) == (3 if method == "sequential_lasso" else 1)


@pytest.mark.parametrize("method", PENALISED)
def test_if_all_strengths_diverge_the_error_has_one_selection_per_seed(method):
    X, y = linear_problem("regression", rows=60)
    options = {"method": method, "learning_rate": 1e20, **QUICK}
    with pytest.raises(seqatt.TrainingDiverged, match="learning_rate") as caught:
        seqatt.select_trials(X, y, 2, seeds=[3, 5], **options)
    assert [selection.seed for selection in caught.value.selections] == [3, 5]
    assert [len(selection.indices) for selection in caught.value.selections] == [0, 0]


def test_a_strength_that_diverges_is_not_used():
    data = read_table_data(*linear_problem("regression", rows=60))
    request = SelectionRequest(data, 2, [0], StochasticGatesOptions(**QUICK), torch.device("cpu"))
    plan = gated_method.make_plan(
        request, schedule=at_once, penalties=lambda k: (float("inf"), 0.1), weight_decay=False
    )
    (trace,) = all_methods()["stochastic_gates"].select(request, plan, lambda steps: None)
    assert len(trace.order) == 2
    assert trace.settings["penalty"] == 0.1
    assert trace.settings["penalty_losses"][0] is None


def test_a_strong_penalty_shrinks_the_first_layer_weights_of_irrelevant_features():
    X, y = linear_problem("regression")
    scores = seqatt.select(X, y, 8, method="group_lasso", penalty=0.1, epochs=200).scores
    assert scores[2:].max() < scores[1] / 10


@pytest.mark.parametrize("penalty", [-1, float("nan"), "strong"])
def test_an_invalid_penalty_is_an_error(penalty, problem):
    with pytest.raises(ValueError, match="penalty: must be a number at least 0"):
        seqatt.select(*problem, 2, method="group_lasso", penalty=penalty)


def test_omp_without_hidden_layers_is_linear_omp():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 12))
    X[:, 5] = 0.7 * X[:, 2] + 0.7 * X[:, 9] + 0.2 * X[:, 5]
    y = X[:, 2] + 0.8 * X[:, 9] + 0.5 * X[:, 0] + 0.05 * rng.normal(size=300)
    linear = seqatt.select(X, y, 3, method="linear_omp").indices.tolist()
    neural = seqatt.select(X, y, 3, method="omp", hidden=()).indices.tolist()
    assert neural == linear


class NoFirstLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 16)
        self.outer = nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(torch.tanh(self.inner(x)))


@pytest.mark.slow
@short_or_default(40)
@pytest.mark.parametrize("method", QUICK_GATED)
def test_every_method_works_with_a_users_own_network(method, epochs):
    X, y = linear_problem("regression")

    def make(columns: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(columns, 16), nn.Tanh(), nn.Linear(16, outputs))

    assert set(seqatt.select(X, y, 2, method=method, model=make, epochs=epochs).indices) == {1, 4}


@pytest.mark.parametrize("method", GATED)
def test_a_network_without_a_first_linear_layer_is_an_error_only_for_methods_that_need_one(method):
    X, y = linear_problem("regression", rows=60)
    torch.manual_seed(0)
    if method in NEED_A_FIRST_LAYER:
        with pytest.raises(ValueError, match=r"model: .* first Linear layer, and NoFirstLayer has none"):
            seqatt.select(X, y, 2, method=method, model=NoFirstLayer(), epochs=5)
    else:
        selection = seqatt.select(X, y, 2, method=method, model=NoFirstLayer(), epochs=5)
        assert len(set(selection.indices.tolist())) == 2


@pytest.mark.parametrize("method", ["sequential_lasso", "group_lasso", "entry_prune"])
def test_a_frozen_first_layer_is_an_error_that_says_so(method):
    X, y = linear_problem("regression")
    model = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    model[0].requires_grad_(False)
    with pytest.raises(ValueError, match="model: this method trains the first Linear layer, which is frozen"):
        seqatt.select(X, y, 2, method=method, model=model, epochs=5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("method", GATED)
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression"])
def test_a_gpu_finds_the_relevant_features_and_repeats_its_result(method, task):
    X, y = linear_problem(task)
    first, second = (
        seqatt.select_trials(X, y, 2, seeds=[0, 1], method=method, device="cuda") for _ in range(2)
    )
    for once, again in zip(first, second, strict=True):
        assert set(once.indices) == {1, 4}
        assert once.scores.tolist() == again.scores.tolist()
