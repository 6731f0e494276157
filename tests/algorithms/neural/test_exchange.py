"""Exchanges: where few features are selected, networks that train on each set alone decide between sets."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

import seqatt
from seqatt.algorithms.neural import exchange
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.exchange import exchange_features
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.select import select_trials
from seqatt.data.tables.table_data import read_table_data
from seqatt.trace import PhaseRecord, Trace
from seqatt.training.screening.row_sample import draw_sample
from seqatt.training.screening.univariate_test import univariate_test


def far_from_a_line(rows=2000, seed=0):
    """Two features that say nothing alone and nearly all together, as places on a map do, and two useful ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 8))
    y = 2 * X[:, 0] * X[:, 1] + 1.2 * X[:, 2] + 0.6 * X[:, 3] + 0.1 * rng.normal(size=rows)
    return X, y


def select(k=1, problem=None, **options):
    X, y = problem or far_from_a_line()
    return seqatt.select(X, y, k, device="cpu", **options)


def test_the_single_feature_is_the_best_single_one():
    """Attention keeps one of the pair, because it seems indispensable while the other is there."""
    assert select(exchanges=0).indices[0] in (0, 1)
    selection = select()
    assert selection.indices.tolist() == [2]
    assert selection.settings["exchanges"] == 4


def test_the_answer_is_consistent_after_an_exchange():
    selection = select()
    before = select(exchanges=0).indices[0]
    last = selection.history[-1]
    assert (last["taken"], last["dropped"]) == (["x2"], [f"x{before}"])
    assert len(selection.history) == len(select(exchanges=0).history) + 1
    assert selection.features == ["x2"]
    assert selection.scores[0] == pytest.approx(selection.history[-4]["scores"]["x2"], rel=1e-4)
    assert selection.importance["increases"][0] > 5 * selection.importance["standard_errors"][0]
    assert (selection.ranking[2], selection.ranking[before]) == (1, 2)
    assert sorted(selection.ranking) == list(range(1, 9))


def test_pairs_that_are_useful_together_stay():
    assert sorted(select(2).indices.tolist()) == [0, 1]
    assert sorted(select(3).indices.tolist()) == [0, 1, 2]


def test_nothing_is_exchanged_by_default_where_more_features_or_fewer_rows_are():
    assert select(3).settings["exchanges"] == 4
    assert select(4).settings["exchanges"] == 0
    few = tuple(part[:199] for part in far_from_a_line())
    assert select(problem=few).settings["exchanges"] == 0
    assert select(4, exchanges=1).settings["exchanges"] == 1
    for recipe in ("paper", "algorithm_1"):
        assert select(recipe=recipe, epochs=2).settings["exchanges"] == 0


def test_kept_features_are_not_exchanged_and_forbidden_ones_do_not_enter():
    assert select(2, keep=["x5"]).indices.tolist() == [5, 2]
    assert select(forbid=["x2"]).indices[0] != 2


def test_quotas_hold_after_exchanges():
    quotas = {"pair": {"features": ["x0", "x1"], "most": 1}}
    # Not the pair, and then without half of it.
    assert sorted(select(2, far_from_a_line(seed=2), quotas=quotas).indices.tolist()) == [2, 3]


def test_an_exchange_is_the_same_for_any_number_of_threads_and_company():
    alone = select(2, exchanges=4)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        single = select(2, exchanges=4)
    finally:
        torch.set_num_threads(threads)
    together = select_trials(*far_from_a_line(), 2, device="cpu", exchanges=4, seeds=[7, 0])[1]
    for other in (single, together):
        assert other.features == alone.features
        assert other.importance == alone.importance


def test_halves_of_the_rows_are_exchanged_too():
    repeated = select(repeats=4)
    assert repeated.indices.tolist() == [2]


def make_request(X, y, k=1, **options):
    return SelectionRequest(read_table_data(X, y), k, [0], AttentionOptions(**options), torch.device("cpu"))


def no_advance(steps):
    pass


def test_a_feature_that_is_useful_alone_is_a_candidate_wherever_attention_ranks_it():
    data = read_table_data(*far_from_a_line())
    request = SelectionRequest(data, 1, [0], AttentionOptions(), torch.device("cpu"))
    worst_of_all = Trace([0], [7, 6, 5, 4, 3, 1, 2], [])
    explained = univariate_test(draw_sample(data)).explained
    (trace,) = exchange_features(request, [worst_of_all], [explained], 1, no_advance)
    assert trace.order == [2]
    (trace,) = exchange_features(request, [worst_of_all], [None], 1, no_advance)
    assert trace.order != [2]


def useful(features, rows=2000, columns=8, seed=0):
    """The earlier of these features are more useful."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    y = sum(2.0**-i * X[:, f] for i, f in enumerate(features)) + 0.1 * rng.normal(size=rows)
    return X, y


@pytest.mark.parametrize("rows", [1000, 3000])
def test_features_are_exchanged_one_after_another(rows):
    """In the second round of four features, there is one set that was not compared before."""
    request = make_request(*useful([1, 0], rows, columns=4), k=2)
    trace = exchange_features(request, [Trace([3, 2], [1, 0], [])], [None], 4, no_advance)[0]
    assert trace.order == [1, 0]
    (phase,) = trace.phases
    assert (sorted(phase.taken), sorted(phase.dropped)) == ([0, 1], [2, 3])
    once = exchange_features(request, [Trace([3, 2], [1, 0], [])], [None], 1, no_advance)[0]
    assert len({*once.order} & {0, 1}) == 1


@pytest.mark.parametrize(("rows", "networks"), [(1000, 3), (3000, 1)])
def test_all_sets_hold_out_the_same_rows(rows, networks, monkeypatch):
    held_out = []
    note_losses = exchange._Search.note_losses

    def note(search, sets, group):
        losses, counts = group.validation_losses
        held_out.append((len(sets), losses.shape[1], counts.sum()))
        note_losses(search, sets, group)

    monkeypatch.setattr(exchange._Search, "note_losses", note)
    request = make_request(*useful([1, 0], rows, columns=4), k=2)
    exchange_features(request, [Trace([3, 2], [1, 0], [])], [None], 4, no_advance)
    assert held_out == [(5, networks, rows // 5), (1, networks, rows // 5)]


def search_with_losses(losses):
    """A search for one of three features, with these losses (sets, blocks) of the selected one and the others."""
    search = exchange._Search(
        make_request(*useful([0])), exchange._Budget(2000, 64, 100), 0, Trace([0], [1, 2], []), None, None
    )
    rows = np.full(len(losses[0]), 50)
    for feature, of_set in enumerate(losses):
        search._compared[frozenset([feature])] = exchange._Comparison(
            [feature], 0.0, np.array([of_set]), rows
        )
    return search


def test_a_set_is_taken_if_it_is_better_by_more_than_chance():
    noise = np.array([-0.1, 0.1, -0.1, 0.1, -0.1, 0.1, -0.1, 0.1])
    selected = 1.0 + 0 * noise
    search = search_with_losses([selected, selected - 0.02 + noise, selected + 0.3])
    assert not search.take_best()
    search = search_with_losses([selected, selected - 0.08 + noise, selected - 0.06])
    assert search.take_best()
    assert search.trace.order == [1]
    assert search.trace.rest == [0, 2]


def test_sets_whose_losses_are_not_finite_are_not_taken():
    class Group:
        finite = np.array([True, True, True])
        validation_losses = np.array([[[1.0, 1.0]], [[0.5, np.nan]], [[1.2, 1.2]]]), np.array([50, 50])

        def traces(self):
            return [Trace([0], [], [PhaseRecord(1, "selected", 0.0, 0.0)])] * 3

    search = search_with_losses([np.ones(2)] * 3)
    search.note_losses([[0], [1], [2]], Group())
    assert not search.take_best()


def test_constant_features_are_no_candidates():
    X, y = useful([0])
    X[:, 3] = 1.0
    request = make_request(X, y)
    data = request.table
    search = exchange._Search(
        request,
        exchange._Budget(2000, 64, 100),
        0,
        Trace([0], [1, 2, *range(3, data.features)], []),
        None,
        None,
    )
    assert all(3 not in features for features in search.new_sets())


def test_trials_that_see_some_rows_exchange_by_these_rows():
    X, y = useful([2])
    y[1000:] = X[1000:, 3]
    halves = (np.arange(1000), np.arange(1000, 2000))
    request = replace(make_request(X, y), seeds=[0, 1], subsets=halves)
    traces = exchange_features(request, [Trace([0], [1, 2, 3], [])] * 2, [None] * 2, 1, no_advance)
    assert [trace.order for trace in traces] == [[2], [3]]


def test_of_a_large_table_some_rows_are_drawn(monkeypatch):
    monkeypatch.setattr(exchange, "MAX_ROWS", 500)
    X, y = useful([0])
    X[:, 1] = np.arange(len(y)) % 2
    request = make_request(X, y)
    for rows in (None, np.arange(0, 2000, 2)):
        search = exchange._Search(
            request, exchange._resolve_budget(request), 0, Trace([0], [1], []), rows, None
        )
        assert search.data.rows == 500
        assert len(np.unique(search.data.columns[:, 1])) == (2 if rows is None else 1)
    search = exchange._Search(
        request, exchange._resolve_budget(request), 0, Trace([0], [1], []), np.arange(400), None
    )
    assert search.data.rows == 400


def test_networks_train_for_fewer_steps_where_fewer_epochs_are_requested():
    X, y = useful([0])
    steps = exchange._resolve_budget(make_request(X, y)).steps
    # A selection has 4,000 steps, here of batches of 128 of 2,000 rows.
    half = exchange._resolve_budget(make_request(X, y, epochs=2000 * 128 / 2000)).steps
    assert half == pytest.approx(steps / 2, abs=1)
    assert exchange._resolve_budget(make_request(X, y, epochs=0.1)).steps == 100
    assert exchange._resolve_budget(make_request(X, y, epochs=10_000)).steps == steps


def test_importance_and_order_after_an_exchange_are_those_of_an_ensemble():
    data = read_table_data(*useful([0, 1], 3000, columns=4))
    request = SelectionRequest(data, 2, [0], AttentionOptions(), torch.device("cpu"))
    known = {"loss": 1.0, "features": [1, 2]}
    (trace,) = exchange_features(
        request, [Trace([1, 2], [0, 3], [], importance=known)], [None], 4, no_advance
    )
    assert trace.order == trace.importance["features"] == [0, 1]
    assert trace.importance["increases"][0] > trace.importance["increases"][1] > 0
    assert (trace.importance["networks"], trace.importance["rows"]) == (4, 2048)
    (trace,) = exchange_features(request, [Trace([1, 2], [0, 3], [])], [None], 4, no_advance)
    assert trace.order == [0, 1]
    assert trace.importance is None


def test_few_groups_of_rows_are_not_exchanged():
    X, y = far_from_a_line()
    for groups, options in ((4, {"ensemble": 2}), (8, {"repeats": 2})):
        of_rows = np.arange(len(y)) % groups
        selection = select(1, (X, y), groups_of_rows=of_rows, epochs=2, **options)
        assert selection.settings["exchanges"] == 0
    assert select(1, (X, y), groups_of_rows=np.arange(len(y)) % 5, epochs=2).settings["exchanges"] == 4


def test_features_that_are_kept_do_not_count():
    assert select(4, keep=["x5"], epochs=2).settings["exchanges"] == 4
    assert select(5, keep=["x5"], epochs=2).settings["exchanges"] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_exchanges_ends_them_and_a_checkpoint_resumes(number, tmp_path, monkeypatch):
    train = exchange._train_networks

    def train_and_interrupt(*arguments, **options):
        os.kill(os.getpid(), number)
        return train(*arguments, **options)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(exchange, "_train_networks", train_and_interrupt)
    try:
        with (
            pytest.warns(UserWarning, match="continue with resume"),
            pytest.raises((seqatt.SelectionInterrupted, SystemExit)) as caught,
        ):
            select(checkpoint=tmp_path)
    finally:
        signal.signal(signal.SIGINT, handler)
    if number == signal.SIGINT:
        assert len(caught.value.selections[0].features) == 1
    monkeypatch.setattr(exchange, "_train_networks", train)
    resumed = select(checkpoint=tmp_path, resume=True)
    assert resumed.features == ["x2"]
    assert resumed.importance == select().importance
    monkeypatch.setattr(exchange, "_train_networks", None)  # what is finished is not exchanged again
    assert select(checkpoint=tmp_path, resume=True).features == ["x2"]


def test_own_models_and_losses_have_no_exchanges():
    X, y = far_from_a_line()
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    selection = seqatt.select(X, y, 1, model=model, epochs=2)
    assert selection.settings["exchanges"] == 0
    with pytest.raises(ValueError, match="exchanges: are for tables and the built-in network"):
        seqatt.select(X, y, 1, model=model, exchanges=2)


def test_categories_are_exchanged_as_features():
    import pandas as pd

    X, y = far_from_a_line()
    codes = np.random.default_rng(1).integers(0, 40, len(y))
    levels = np.random.default_rng(2).normal(size=40)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)]).assign(town=[f"t{c}" for c in codes])
    assert seqatt.select(frame, y + 4 * levels[codes], 1, device="cpu").features == ["town"]
