"""Ensembles: every member has the same influence, and is evaluated on rows it did not train on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.support.problems import linear_problem
from torch import nn

import seqatt
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.attention_plan import make_plan
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import read_table_data
from seqatt.data.tables.target import Target
from seqatt.training import group_factory
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.defaults import default_input_dropout
from seqatt.training.ensemble import pool_scores, split_rows
from seqatt.training.group_factory import make_trial_groups
from seqatt.training.loaders.input_dropout import InputDropout
from seqatt.training.schedule import Phase
from seqatt.training.trial_group import TrialGroup

CPU = torch.device("cpu")


def make_request(X, y, k: int, **options) -> SelectionRequest:
    return SelectionRequest(read_table_data(X, y), k, [5], AttentionOptions(**options), CPU)


def trial_groups(X, y, seeds: list[int], **options) -> list[TrialGroup]:
    """The trial groups of a selection, without gates."""
    selection_request = make_request(X, y, 1, **options)
    plan = make_plan(selection_request)
    groups = make_trial_groups(selection_request.data, seeds, selection_request.options, CPU, plan.setup)
    assert isinstance(groups, list)
    return groups


def test_members_have_the_same_influence_whatever_the_scale_of_their_scores():
    scores = np.array([[[100.0, 0, 0, 50], [0, 1, 0, 0], [0, 1, 0, 0]]])
    assert pool_scores(scores, np.ones((1, 4), dtype=bool))[0].argmax() == 1


def test_only_candidates_count_in_the_scale_of_a_members_scores():
    candidates = np.array([[True, True, False]])
    small, large = np.array([[[0.0, 1, 0], [0, 1, 0]]]), np.array([[[0.0, 1, 900], [0, 1, -900]]])
    np.testing.assert_allclose(pool_scores(small, candidates)[:, :2], pool_scores(large, candidates)[:, :2])


def test_the_scores_of_a_single_model_are_not_standardised():
    rates = {"univariate_test": 0, "logit_learning_rate": 3e-3}
    history = seqatt.select(*linear_problem("binary"), 1, ensemble=1, epochs=40, **rates).history
    scores = np.array([score for entry in history for score in (entry["scores"] or {}).values()])
    assert 0 < np.abs(scores).max() < 0.5  # logits after small steps from zero


def test_a_member_whose_scores_are_all_equal_changes_nothing():
    scores = np.array([[[0.0, 0, 0], [1, 2, 3]]])
    assert np.isfinite(pool_scores(scores, np.ones((1, 3), dtype=bool))).all()
    assert pool_scores(scores, np.ones((1, 3), dtype=bool))[0].argmax() == 2


@pytest.mark.parametrize("members", [2, 4, 7])
def test_no_member_trains_on_its_held_out_rows(members):
    all_held_out: list[int] = []
    for trained, held_out in split_rows(np.arange(101) % 2, 3, members):
        assert sorted([*trained.tolist(), *held_out.tolist()]) == list(range(101))
        all_held_out += held_out.tolist()
    assert len(all_held_out) == len(set(all_held_out)) == 101 // (members + 1) * members


def test_each_member_is_trained_and_evaluated_on_its_own_rows():
    problem = linear_problem("binary", rows=600)
    (group,) = trial_groups(*problem, [5], batch_size=16)
    split = split_rows(read_table_data(*problem).target.strata, 5, 4)
    (trainer,) = group.trainers  # of a small network all members are in one tensor
    rows: list[set[int]] = [set() for _ in split]
    for _ in range(10):
        trainer._loader.load(60)
        for own, index in zip(rows, trainer._loader._index[:60].transpose(0, 1), strict=True):
            own |= set(index.flatten().tolist())
    evaluated = torch.cat([batch.index for batch in trainer._loader.validation_batches(50)], 1)
    for own, validation, (trained, held_out) in zip(rows, evaluated, split, strict=True):
        assert own == set(trained.tolist())
        assert set(validation.tolist()) <= set(held_out.tolist())


@pytest.mark.parametrize(("columns", "trainers"), [(20, 1), (500, 4)])
def test_members_of_a_small_network_train_in_one_tensor(columns, trainers):
    X = np.random.default_rng(0).normal(size=(2_000, columns)).astype(np.float32)
    (group,) = trial_groups(X, X[:, 0] > 0, [0], batch_size=256)
    assert len(group.trainers) == trainers
    assert sum(trainer.models for trainer in group.trainers) == 4


def test_members_in_one_tensor_give_the_scores_of_members_apart(monkeypatch):
    problem = linear_problem("binary", rows=300)
    together = seqatt.select(*problem, 3, epochs=20)
    monkeypatch.setattr(group_factory, "SERIAL_WORK", 0)
    apart = seqatt.select(*problem, 3, epochs=20)
    assert together.indices.tolist() == apart.indices.tolist()
    for one, other in zip(together.history, apart.history, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-3)


@pytest.mark.parametrize("rows", [3, 9, 31, 32])
def test_a_small_table_has_an_ensemble_too(rows):
    X, y = linear_problem("regression", rows=rows)
    selection = seqatt.select(X, y, 2, epochs=20)
    assert selection.settings["ensemble"] == 4
    assert len(selection.indices) == 2


@pytest.mark.slow
def test_a_users_own_model_has_an_ensemble_only_on_request():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    assert make_plan(make_request(*linear_problem("binary"), 2, model=model)).setup.members == 1
    selection = seqatt.select(*linear_problem("regression"), 2, model=model, ensemble=3, epochs=600)
    assert selection.settings["ensemble"] == 3
    assert set(selection.indices) == {1, 4}


@pytest.mark.parametrize(
    ("rows", "columns", "rate"),
    [(60_000, 784, 0.0), (6_238, 617, 0.3145), (50, 10_000, 0.6), (20, 500, 0.6), (1_000, 10, 0.0)],
)
def test_the_default_input_dropout_grows_with_columns_per_row(rows, columns, rate):
    assert default_input_dropout(rows, columns) == pytest.approx(rate, abs=1e-4)


def test_input_dropout_drops_its_share_of_inputs_and_keeps_their_mean():
    x = InputDropout(0.3, 40_000, CPU).apply(torch.ones(1, 200, 200), torch.tensor([123]))
    assert (x == 0).float().mean() == pytest.approx(0.3, abs=0.02)
    assert x.mean() == pytest.approx(1, abs=0.03)


def test_input_dropout_is_a_function_of_its_offset():
    dropout = InputDropout(0.5, 1_000, CPU)
    one, same, other = dropout.apply(torch.ones(3, 10, 100), torch.tensor([7, 7, 8]))
    assert torch.equal(one, same)
    assert (one != other).float().mean() > 0.3


@pytest.mark.parametrize("options", [{}, {"input_dropout": 0.3}])
def test_members_trained_concurrently_give_the_scores_of_members_trained_in_turn(options):
    X, y = linear_problem("multiclass", rows=400)
    before = torch.get_num_threads()
    try:
        histories = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            selection = seqatt.select(X, y, 3, epochs=40, device="cpu", **options)
            histories.append([entry["scores"] for entry in selection.history])
    finally:
        torch.set_num_threads(before)
    assert histories[0] == histories[1]


def test_the_recipe_of_the_paper_trains_one_model_and_selects_k_features_one_by_one():
    history = seqatt.select(*linear_problem("binary"), 3, recipe="paper").history
    assert [len(entry["taken"]) for entry in history] == [0, 1, 1, 1]
    assert not any(entry["dropped"] for entry in history)


def test_a_surplus_is_selected_and_then_dropped():
    history = seqatt.select(*linear_problem("binary"), 3, replacement=0).history
    assert sum(len(entry["taken"]) for entry in history) == 6
    assert sum(len(entry["dropped"]) for entry in history) == 3


def test_of_two_copies_that_can_each_be_spared_one_is_dropped():
    """Features are dropped one at a time: once the first copy is gone, the second is needed."""
    (group,) = trial_groups(*linear_problem("binary", rows=100), [0])
    group.state.take(np.array([[3.0, 2.0, 1.0, 0, 0, 0, 0, 0]]), 3)

    def usefulness(pool):
        both = {0, 1} <= set(group.state.order[0])
        return np.array([[1.0 if f == 2 else 9.0 - 9.0 * both for f in group.state.order[0]]])

    group._usefulness = usefulness
    group.end_phase(Phase(0, drop=2, sees="selected"), WorkerPool(1))
    assert group.state.order == [[1]]
    assert group.records[0][-1].dropped == [0, 2]


@pytest.mark.parametrize(
    ("option", "value"), [("ensemble", 0), ("surplus", 0.5), ("input_dropout", 1.0), ("input_dropout", -0.1)]
)
def test_an_error_names_the_invalid_option(option, value):
    with pytest.raises(ValueError, match=option):
        seqatt.select(*linear_problem("binary"), 2, **{option: value})


def test_all_trainers_share_the_random_numbers_of_input_dropout():
    groups = trial_groups(*linear_problem("binary", rows=100), [0, 1], input_dropout=0.3)
    assert len({id(trainer._loader._dropout) for group in groups for trainer in group.trainers}) == 1


def test_evaluation_does_not_rescale_inputs_for_dropout():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(2, 2000, 3))
    evaluation = seqatt.evaluate(X, X[:, 0], Z, Z[:, 0], [0], seeds=[0])
    assert evaluation["r2"][0] > 0.998


def test_features_dropped_last_rank_right_after_the_selected():
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 2, replacement=0)
    dropped = [name for entry in selection.history for name in entry["dropped"]]
    by_rank = [selection.names[i] for i in np.argsort(selection.ranking)]
    assert len(dropped) == 2
    assert by_rank[2:4] == dropped[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"epochs": 1}, {"one_pass": False, "epochs": 2}, {"surplus": 10}])
@pytest.mark.parametrize("k", [1, 3])
def test_the_recorded_settings_reproduce_the_selection(options, k):
    X, y = linear_problem("binary", rows=60)
    first = seqatt.select(X, y, k, **options)
    names = (
        "ensemble",
        "surplus",
        "features_per_phase",
        "replacement",
        "input_dropout",
        "univariate_test",
        "asinh_inputs",
        "batch_size",
    )
    again = seqatt.select(X, y, k, **options | {name: first.settings[name] for name in names})
    assert again.indices.tolist() == first.indices.tolist()
    taken = sum(len(entry["taken"]) for entry in first.history)
    dropped = sum(len(entry["dropped"]) for entry in first.history if entry["steps"])
    assert first.settings["surplus"] == pytest.approx(1 + dropped / k)
    assert taken >= k


def test_a_surplus_of_more_features_than_there_are_is_all_features():
    X, y = linear_problem("binary", rows=60)
    assert len(seqatt.select(X, y, 2, surplus=1e308, epochs=20).indices) == 2


@pytest.mark.parametrize(
    ("k", "per_phase", "phases"), [(3, 1, 6), (25, 1, 50), (50, 2, 50), (77, 4, 39), (100, 4, 50)]
)
def test_a_surplus_is_selected_in_at_most_fifty_phases(k, per_phase, phases):
    X, y = np.random.default_rng(0).normal(size=(100, 300)), np.arange(100) % 2
    schedule = make_plan(make_request(X, y, k, replacement=0)).schedule
    takes = [phase.take for phase in schedule if phase.take]
    assert (max(takes), len(takes), sum(takes)) == (per_phase, phases, 2 * k)
    schedule = make_plan(make_request(X, y, k, replacement=0, surplus=1)).schedule
    assert [phase.take for phase in schedule if phase.take] == [1] * k


@pytest.mark.parametrize("k", [5, 20, 50])
def test_the_default_batch_of_files_leaves_every_phase_thirty_two_steps(k):
    """At 1.2 million rows, a batch that counted k phases, without those of the surplus, would leave 21 steps."""
    files = SimpleNamespace(
        rows=1_200_000,
        encoded_columns=200,
        features=200,
        constant=np.zeros(200, dtype=bool),
        target=Target("binary", np.zeros((0, 1)), 1),
    )
    plan = make_plan(SelectionRequest(files, k, [0], AttentionOptions(), CPU))
    assert plan.setup.batch_size > 256
    assert min(phase.steps for phase in plan.schedule if phase.take) >= 32
