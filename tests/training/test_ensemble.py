"""A committee chooses: every member has one voice, and is judged on rows it has not learnt from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.support.problems import linear_problem
from torch import nn

import seqatt
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.sequential_attention import members_of, plan, prepare
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.build import _split_rows
from seqatt.training.defaults import default_input_dropout, default_members
from seqatt.training.input_dropout import InputDropout
from seqatt.training.loop import pool_scores

CPU = torch.device("cpu")


def test_a_loud_member_has_one_voice_like_the_others():
    voices = np.array([[[100.0, 0, 0, 50], [0, 1, 0, 0], [0, 1, 0, 0]]])
    assert pool_scores(voices, np.ones((1, 4), dtype=bool))[0].argmax() == 1


def test_only_free_features_tell_how_loud_a_member_is():
    free = np.array([[True, True, False]])
    quiet, loud = np.array([[[0.0, 1, 0], [0, 1, 0]]]), np.array([[[0.0, 1, 900], [0, 1, -900]]])
    np.testing.assert_allclose(pool_scores(quiet, free)[:, :2], pool_scores(loud, free)[:, :2])


def test_one_member_alone_is_left_as_it_is():
    history = seqatt.select(*linear_problem("binary"), 1, ensemble=1, univariate_test=0, epochs=40).history
    scores = np.array([score for entry in history for score in (entry["scores"] or {}).values()])
    assert 0 < np.abs(scores).max() < 0.5  # logits that took small steps from zero, not standardised ones


def test_members_that_say_nothing_change_nothing():
    voices = np.array([[[0.0, 0, 0], [1, 2, 3]]])
    assert np.isfinite(pool_scores(voices, np.ones((1, 3), dtype=bool))).all()
    assert pool_scores(voices, np.ones((1, 3), dtype=bool))[0].argmax() == 2


@pytest.mark.parametrize("members", [2, 4, 7])
def test_no_member_learns_from_the_rows_it_is_judged_on(members):
    source = read_table_data(*linear_problem("binary", rows=101))
    judged_by_any: list[int] = []
    for _, (learns, judged) in _split_rows(source, 3, members):
        assert sorted([*learns.tolist(), *judged.tolist()]) == list(range(101))
        judged_by_any += judged.tolist()
    assert len(judged_by_any) == len(set(judged_by_any)) == 101 // (members + 1) * members


def test_training_keeps_to_the_rows_it_was_dealt():
    source = read_table_data(*linear_problem("binary", rows=600))
    (group,) = prepare(source, [5], AttentionOptions(batch_size=16), CPU)
    for trainer, (_, (learns, judged)) in zip(group.trainers, _split_rows(source, 5, 4), strict=True):
        seen = set()
        for _ in range(10):
            trainer._loader.load(60)
            seen |= set(trainer._loader._index[:60].flatten().tolist())
        assert seen == set(learns.tolist())
        shown = torch.cat([batch.index[0] for batch in trainer._loader.validation_batches(50)])
        assert set(shown.tolist()) <= set(judged.tolist())


@pytest.mark.parametrize(("rows", "members"), [(31, 1), (32, 4), (100_000, 4)])
def test_very_small_tables_have_one_model(rows, members):
    assert default_members(rows) == members


def test_ones_own_model_trains_alone_unless_asked_otherwise():
    source = read_table_data(*linear_problem("binary"))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    assert members_of(source, AttentionOptions(model=model)) == 1
    selection = seqatt.select(*linear_problem("regression"), 2, model=model, ensemble=3, epochs=600)
    assert selection.settings["ensemble"] == 3
    assert set(selection.indices) == {1, 4}


@pytest.mark.parametrize(
    ("rows", "columns", "rate"),
    [(60_000, 784, 0.0), (6_238, 617, 0.3145), (50, 10_000, 0.6), (20, 500, 0.0), (1_000, 10, 0.0)],
)
def test_the_more_columns_for_the_rows_the_more_inputs_are_left_out(rows, columns, rate):
    assert default_input_dropout(rows, columns) == pytest.approx(rate, abs=1e-4)


def test_noise_leaves_out_its_share_and_keeps_the_mean():
    x = InputDropout(0.3, 40_000, CPU).apply(torch.ones(1, 200, 200), torch.tensor([123]))
    assert (x == 0).float().mean() == pytest.approx(0.3, abs=0.02)
    assert x.mean() == pytest.approx(1, abs=0.03)


def test_noise_is_another_at_another_place_and_the_same_at_the_same():
    noise = InputDropout(0.5, 1_000, CPU)
    one, same, other = noise.apply(torch.ones(3, 10, 100), torch.tensor([7, 7, 8]))
    assert torch.equal(one, same)
    assert (one != other).float().mean() > 0.3


@pytest.mark.parametrize("options", [{}, {"input_dropout": 0.3}])
def test_members_side_by_side_choose_what_they_choose_one_after_the_other(options):
    X, y = linear_problem("multiclass", rows=400)
    before = torch.get_num_threads()
    try:
        histories = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            chosen = seqatt.select(X, y, 3, epochs=40, device="cpu", **options)
            histories.append([entry["scores"] for entry in chosen.history])
    finally:
        torch.set_num_threads(before)
    assert histories[0] == histories[1]


def test_the_papers_own_algorithm_is_one_model_and_k_choices():
    plain = {
        "ensemble": 1,
        "surplus": 1,
        "replacement": 0,
        "input_dropout": 0,
        "univariate_test": 0,
        "asinh_inputs": False,
    }
    history = seqatt.select(*linear_problem("binary"), 3, **plain).history
    assert [len(entry["taken"]) for entry in history] == [0, 1, 1, 1]
    assert not any(entry["dropped"] for entry in history)


def test_a_surplus_is_dropped_again():
    history = seqatt.select(*linear_problem("binary"), 3, replacement=0).history
    assert sum(len(entry["taken"]) for entry in history) == 6
    assert sum(len(entry["dropped"]) for entry in history) == 3


@pytest.mark.parametrize(
    ("option", "value"), [("ensemble", 0), ("surplus", 0.5), ("input_dropout", 1.0), ("input_dropout", -0.1)]
)
def test_bad_values_are_named(option, value):
    with pytest.raises(ValueError, match=option):
        seqatt.select(*linear_problem("binary"), 2, **{option: value})


def test_members_and_trials_share_one_bank_of_noise():
    source = read_table_data(*linear_problem("binary", rows=100))
    groups = prepare(source, [0, 1], AttentionOptions(input_dropout=0.3), CPU)
    assert len({id(trainer._loader._noise) for group in groups for trainer in group.trainers}) == 1


def test_the_networks_that_judge_see_inputs_at_their_own_scale():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(2, 2000, 3))
    found = seqatt.evaluate(X, X[:, 0], Z, Z[:, 0], [0], seeds=[0])
    assert found["r2"][0] > 0.998


def test_what_was_dropped_last_ranks_right_after_the_chosen():
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 2, replacement=0)
    dropped = [name for entry in selection.history for name in entry["dropped"]]
    by_rank = [selection.names[i] for i in np.argsort(selection.ranking)]
    assert len(dropped) == 2
    assert by_rank[2:4] == dropped[::-1]


@pytest.mark.parametrize("options", [{}, {"epochs": 1}, {"one_pass": False, "epochs": 2}, {"surplus": 10}])
@pytest.mark.parametrize("k", [1, 3])
def test_resolved_settings_can_be_given_back(options, k):
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
    cut = sum(len(entry["dropped"]) for entry in first.history if entry["steps"])
    assert first.settings["surplus"] == pytest.approx(1 + cut / k)
    assert taken >= k


def test_a_surplus_beyond_all_bounds_is_all_there_is():
    X, y = linear_problem("binary", rows=60)
    assert len(seqatt.select(X, y, 2, surplus=1e308, epochs=20).indices) == 2


@pytest.mark.parametrize(("k", "each", "phases"), [(3, 2, 3), (50, 2, 50), (77, 4, 39), (100, 4, 50)])
def test_a_surplus_is_chosen_in_fifty_phases_at_most(k, each, phases):
    source = read_table_data(np.random.default_rng(0).normal(size=(100, 300)), np.arange(100) % 2)
    schedule = plan(source, k, AttentionOptions(replacement=0))
    takes = [phase.take for phase in schedule if phase.take]
    assert (max(takes), len(takes), sum(takes)) == (each, phases, 2 * k)
    alone = plan(source, k, AttentionOptions(replacement=0, surplus=1))
    assert [phase.take for phase in alone if phase.take] == [1] * k
