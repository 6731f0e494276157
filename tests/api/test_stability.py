"""``repeats``: how often each feature is chosen on halves of the rows, what stands in for what, and one answer."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from tests.support.command import run
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.registry import all_methods
from seqatt.algorithms.request import SelectionRequest
from seqatt.api.stability import repeats
from seqatt.api.stability.clusters import correlations, find_clusters
from seqatt.api.stability.pooling import false_choices, pool_repeats
from seqatt.api.stability.repeats import divide
from seqatt.data.tables.encoding import SparseColumns
from seqatt.data.tables.table_data import read_table_data, take_rows
from seqatt.options import names_of
from seqatt.report.facts.selection_facts import selection_facts
from seqatt.trace import Trace
from seqatt.training.screening.row_sample import draw_sample

QUICK = {"epochs": 2, "batch_size": 2, "hidden": (8,), "n_estimators": 20, "max_iter": 5}


def frame(task="binary", **options):
    """The columns are in the opposite of the order by name, in which methods work."""
    X, y = linear_problem(task, **options)
    return pd.DataFrame(X[:, ::-1], columns=[f"c{i}" for i in reversed(range(X.shape[1]))]), y


def twins(rows=300):
    """Two signals; the first has a near copy. The last two columns are correlated, and each adds something."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 9))
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=rows)
    X[:, 8] = 0.8 * X[:, 7] + 0.6 * X[:, 8]
    return X, X[:, 0] + X[:, 1] + 2 * X[:, 2] + 3 * X[:, 7] - 3 * X[:, 8] + 0.5 * rng.normal(size=rows)


@pytest.fixture(scope="module")
def repeated():
    return seqatt.select(*frame(), 3, repeats=4, epochs=200)


@pytest.fixture(scope="module")
def with_twins():
    return seqatt.select(*twins(), 4, method="linear_omp", repeats=20)


def table(X, y=None):
    return read_table_data(X, np.arange(len(X)) % 2 if y is None else y)


def request(data, k):
    return SelectionRequest(data, k, [0], None, torch.device("cpu"))


@pytest.mark.filterwarnings("ignore:.*steps.*:UserWarning")
@pytest.mark.parametrize("method", seqatt.methods())
def test_every_method_can_be_repeated(method):
    options = {name: QUICK[name] for name in names_of(all_methods()[method].options) if name in QUICK}
    X, y = frame(rows=60)
    selection = seqatt.select(X, y, 2, method=method, repeats=2, **options)
    assert len(selection.features) == 2
    assert selection.frequency.sum() == pytest.approx(2.0)
    assert sorted(selection.ranking.tolist()) == list(range(1, 9))


def test_two_halves_share_no_row_and_divide_every_class_evenly():
    y = np.repeat([0, 1, 2], [31, 12, 8])
    data = table(np.random.default_rng(0).normal(size=(51, 3)), y)
    pairs = [divide(data, 0, pair) for pair in range(3)]
    for one, other in pairs:
        assert len(one) == len(other) == 25
        assert not set(one) & set(other)
        counts = np.abs(np.bincount(y[one]) - np.bincount(y[other]))
        assert counts.max() <= 1
    assert len({tuple(one) for one, _ in pairs}) == 3


def test_a_repeat_sees_one_half_of_the_rows_and_each_row_is_seen_once_per_pair(monkeypatch):
    seen = []
    monkeypatch.setattr(repeats, "take_rows", lambda data, rows: seen.append(rows) or take_rows(data, rows))
    X, y = linear_problem("regression", rows=40)
    assert seqatt.select(X, y, 2, method="f_test", repeats=4).stability["rows"] == 20
    for one, other in (seen[:2], seen[2:]):
        assert sorted([*one, *other]) == list(range(40))


def test_the_frequency_is_the_share_of_repeats_that_chose_the_feature_named_at_its_place(repeated):
    assert repeated.names == [f"c{i}" for i in reversed(range(8))]
    frequency = dict(zip(repeated.names, repeated.frequency, strict=True))
    assert frequency["c1"] == frequency["c4"] == 1.0
    assert repeated.frequency.sum() == pytest.approx(3.0)
    assert set(repeated.features[:2]) == {"c1", "c4"}
    np.testing.assert_array_equal(repeated.scores, [frequency[name] for name in repeated.features])


def test_without_repeats_no_frequency_is_known():
    X, y = linear_problem("regression")
    selection = seqatt.select(X, y, 2, method="f_test")
    assert selection.stability is None
    assert selection.frequency is None


def test_the_same_seed_gives_the_same_answer_and_seeds_together_the_same_as_alone(repeated):
    again = seqatt.select_trials(*frame(), 3, seeds=[0, 1], repeats=4, epochs=200)
    assert again[0].stability == repeated.stability
    np.testing.assert_array_equal(again[0].ranking, repeated.ranking)
    assert again[1].seed == 1


def test_twenty_repeats_take_less_than_ten_times_the_steps_of_one_selection():
    for rows in (150, 600):
        X, y = linear_problem("binary", rows=rows)
        one, often = (seqatt.select(X, y, 2, repeats=n, epochs=200).settings for n in (None, 2))
        assert 20 * often["steps"] * often["ensemble"] < 10 * one["steps"] * one["ensemble"]
        assert often["repeats"] == 2


def test_the_answer_has_the_features_that_were_chosen_most_often_ties_by_mean_rank():
    data = table(np.random.default_rng(0).normal(size=(50, 4)))
    orders = [([0, 1], [2, 3]), ([2, 0], [1, 3]), ([0, 2], [1, 3]), ([1, 2], [0, 3])]
    trace = pool_repeats(request(data, 2), [Trace(*order) for order in orders], 25)
    assert trace.order == [0, 2]  # both 0.75; mean ranks 1.75 and 2.0
    assert trace.rest == [1, 3]
    assert trace.stability["frequency"] == [0.75, 0.5, 0.75, 0.0]
    assert trace.stability["repeats"] == 4


def test_tables_of_text_or_of_groups_alone_can_be_repeated():
    rng = np.random.default_rng(0)
    answers = rng.integers(0, 3, (300, 6))
    names = [f"q{i}" for i in range(6)]
    y = (answers[:, 3] + rng.normal(scale=0.3, size=300) > 1).astype(int)
    survey = pd.DataFrame(np.array(["no", "maybe", "yes"])[answers], columns=names)
    assert seqatt.select(survey, y, 1, repeats=4, epochs=40).features == ["q3"]
    pairs = {f"pair{i}": names[2 * i : 2 * i + 2] for i in range(3)}
    numbers = pd.DataFrame(answers, columns=names).astype(float)
    assert seqatt.select(numbers, y, 1, repeats=4, epochs=40, groups=pairs).features == ["pair1"]


def test_a_cluster_counts_once_with_the_share_of_the_repeats_that_chose_any_of_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    X[:, 1] = -X[:, 0]
    orders = [([0, 2], [1, 3]), ([1, 3], [0, 2]), ([0, 2], [1, 3]), ([1, 2], [0, 3])]
    trace = pool_repeats(request(table(X), 2), [Trace(*order) for order in orders], 25)
    assert trace.order == [0, 2]  # 1 has 0.5 as well, but 0 stands for it
    assert trace.stability["clusters"] == [{"features": [0, 1], "frequency": 1.0}]
    np.testing.assert_array_equal(trace.phases[0].scores, [1.0, 0.5, 0.75, 0.25])


def test_of_features_in_all_repeats_a_cluster_comes_first_if_it_was_chosen_first():
    X = np.random.default_rng(0).normal(size=(50, 4))
    X[:, 1] = -X[:, 0]
    orders = [([0, 2], [1, 3]), ([1, 2], [0, 3])] * 2
    trace = pool_repeats(request(table(X), 2), [Trace(*order) for order in orders], 25)
    assert trace.order == [0, 2]  # 0 alone was chosen in half of the repeats, 2 in all
    assert trace.rest == [1, 3]


def test_where_too_few_features_were_ever_chosen_another_member_of_a_cluster_fills_up():
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[:, 1] = X[:, 0]
    traces = [Trace([0], [1, 2]), Trace([1], [0, 2])]
    assert pool_repeats(request(table(X), 2), traces, 25).order == [0, 1]


def test_near_copies_split_the_frequency_and_their_cluster_has_it_together(with_twins):
    cluster = with_twins.stability["clusters"][0]
    assert sorted(cluster["features"]) == [0, 1]
    assert cluster["frequency"] >= 0.9 > with_twins.frequency[[0, 1]].max()
    assert len(set(with_twins.indices) & {0, 1}) == 1


def test_correlated_features_of_which_each_adds_something_are_no_cluster(with_twins):
    assert len(with_twins.stability["clusters"]) == 1
    assert {2, 7, 8} < set(with_twins.indices.tolist())


def test_features_form_no_cluster_if_they_are_unrelated_or_chosen_together_or_rare():
    X = np.random.default_rng(0).normal(size=(50, 4))
    X[:, 1] = X[:, 0]
    half = np.arange(20) < 10
    apart, together = np.stack([half, ~half, half, ~half], 1), np.stack([half, half, half, half], 1)
    assert find_clusters(table(X), apart) == [[0, 1]]  # 2 and 3 are unrelated
    assert find_clusters(table(X), together) == []
    rare = np.zeros((20, 4), dtype=bool)
    rare[0, 0] = rare[1, 1] = True
    assert find_clusters(table(X), rare) == []


def test_features_are_as_related_as_their_correlation_correlation_ratio_or_cramer_s_v():
    rng = np.random.default_rng(0)
    number = rng.normal(size=2000)
    category = np.digitize(number, [-0.5, 0.5]).astype(str)
    X = pd.DataFrame(
        {
            "a_number": number,
            "b_near": -number + 0.5 * rng.normal(size=2000),
            "c_category": category,
            "d_renamed": pd.Series(category).map({"0": "x", "1": "z", "2": "y"}),
            "e_other": rng.integers(40, size=2000).astype(str),
            "f_other": rng.integers(40, size=2000).astype(str),
        }
    )
    data = read_table_data(X, np.arange(2000) % 2, categories="mixed")
    assert data.code_counts  # those of 40 values are codes
    related = correlations(draw_sample(data), np.arange(6))
    means = pd.Series(number).groupby(category).transform("mean")
    assert related[0, 1] == pytest.approx(abs(np.corrcoef(number, X["b_near"])[0, 1]), abs=1e-3)
    assert related[0, 2] == pytest.approx(means.std() / number.std(), abs=1e-2)
    assert related[2, 3] == pytest.approx(1.0)
    assert related[4, 5] < 0.2  # Cramer's V without the correction for chance is as large as 0.14
    assert related[0, 4] < 0.15


def test_the_bounds_are_those_of_shah_and_samworth():
    rates = np.full(100, 0.1)  # k = 10 of 100
    unimodal, any_distribution = false_choices(0.9, 50, rates)
    assert any_distribution == pytest.approx(10**2 / 100 / (2 * 0.9 - 1))
    assert unimodal == pytest.approx(4 * (1 - 0.9 + 1 / 100) / (1 + 1 / 50) * 10**2 / 100)
    assert false_choices(0.7, 50, rates)[0] == pytest.approx(1 / (2 * (2 * 0.7 - 1 - 1 / 100)))
    assert false_choices(0.51, 50, rates)[0] == false_choices(0.51, 50, rates)[1]
    high = np.full(10, 0.7)  # theorem 2 is about rates up to 0.58
    assert false_choices(0.9, 50, high)[0] == false_choices(0.9, 50, high)[1]


@pytest.mark.parametrize("signals", [0, 3])
def test_on_average_no_more_choices_are_false_than_the_bound(signals):
    false, bounds = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 40))
        y = X[:, :signals].sum(1) + rng.normal(size=100)
        selection = seqatt.select(X, y, 6, method="linear_omp", repeats=20, seed=seed)
        stability = selection.stability
        false.append((selection.indices[: stability["bounded"]] >= signals).sum())
        bounds.append(stability["false_choices"])
        assert stability["bounded"] >= signals
    assert np.mean(false) <= np.mean(bounds)


def test_the_bound_is_about_the_features_in_nine_of_ten_repeats(with_twins):
    stability, scores = with_twins.stability, with_twins.scores
    assert stability["threshold"] == 0.9
    assert stability["bounded"] == (scores >= 0.9).sum() == 4
    assert 0 < stability["false_choices"] < stability["false_choices_any"]
    data = table(np.random.default_rng(0).normal(size=(50, 4)))
    traces = [Trace([i], [j for j in range(4) if j != i]) for i in range(4)]
    nothing = pool_repeats(request(data, 1), traces, 25).stability
    assert nothing["bounded"] == 0
    assert nothing["threshold"] == 1.0  # 9 of 10 of 4 repeats are all of them


def test_what_repeats_say_is_saved_and_loaded_and_a_changed_file_is_refused(with_twins, tmp_path):
    path = tmp_path / "selection.json"
    with_twins.save(path)
    assert seqatt.Selection.load(path).stability == with_twins.stability
    raw = json.loads(path.read_text())
    changes = (
        {"frequency": [0.5]},
        {"frequency": [2.0] * 9},
        {"repeats": "20"},
        {"repeats": 0},
        {"bounded": 9},
        {"clusters": [{"features": [0, 99], "frequency": 1.0}]},
        {"clusters": [{"features": [0, 1], "frequency": 1.0}, {"features": [1, 2], "frequency": 1.0}]},
        {"clusters": [{"features": [0, 1]}]},
        {"threshold": None},
    )
    for change in changes:
        (tmp_path / "changed.json").write_text(json.dumps(raw | {"stability": raw["stability"] | change}))
        with pytest.raises(ValueError, match="'stability'"):
            seqatt.Selection.load(tmp_path / "changed.json")


def test_the_representation_says_how_often_the_features_were_chosen(repeated):
    often = "all" if repeated.scores.min() == 1 else f"at least {repeated.scores.min():.0%} of"
    assert f"each chosen in {often} 4 repeats" in repr(repeated)


def test_the_share_of_a_cluster_is_not_said_to_be_that_of_the_feature_which_stands_for_it(with_twins):
    assert "each, or a feature it stands for, chosen in" in repr(with_twins)
    summary = " ".join(selection_facts(with_twins)["summary"])
    assert "Each, or a feature it stands for, was selected in" in summary
    alone = replace(with_twins, stability=with_twins.stability | {"frequency": [1.0] * 9})
    assert "each chosen in" in repr(alone)
    assert "Each was selected in" in " ".join(selection_facts(alone)["summary"])


def test_auto_chooses_the_number_first_and_repeats_select_as_many():
    X, y = frame(rows=120)
    selection = seqatt.select(X, y, "auto", max_k=4, repeats=4, method="f_test")
    assert selection.curve["chosen"] == len(selection.features) == selection.settings["k"]
    assert selection.frequency.sum() == pytest.approx(len(selection.features))
    noise = np.random.default_rng(0).normal(size=120)
    nothing = seqatt.select(X, noise, "auto", max_k=4, repeats=4, method="f_test")
    assert nothing.features == []
    assert nothing.stability is None


def interrupt(monkeypatch, call):
    """Ctrl-C when repeat number ``call`` starts."""
    calls = []

    def take(data, rows):
        calls.append(rows)
        if len(calls) == call:
            raise KeyboardInterrupt
        return take_rows(data, rows)

    monkeypatch.setattr(repeats, "take_rows", take)


def test_an_interruption_carries_what_the_finished_pairs_say(monkeypatch):
    X, y = linear_problem("regression")
    interrupt(monkeypatch, 6)
    with pytest.raises(seqatt.SelectionInterrupted, match="interrupted after 4 of 20 repeats") as caught:
        seqatt.select(X, y, 2, method="f_test", repeats=20)
    (selection,) = caught.value.selections
    assert set(selection.indices) == {1, 4}
    assert selection.stability["repeats"] == 4
    assert selection.settings["partial"] == "interrupted"


def test_an_interruption_in_the_first_pair_carries_nothing(monkeypatch):
    interrupt(monkeypatch, 2)
    with pytest.raises(seqatt.SelectionInterrupted) as caught:
        seqatt.select(*linear_problem("regression"), 2, method="f_test", repeats=20)
    assert caught.value.selections == []


def test_progress_advances_by_one_per_repeat(caplog):
    counted = []
    data = table(*linear_problem("binary"))
    import torch

    from seqatt.algorithms.registry import get_method, plan_per_seed
    from seqatt.algorithms.request import SelectionRequest

    method = get_method("f_test")
    request = SelectionRequest(data, 2, [0], method.options(), torch.device("cpu"))
    repeats.select_repeatedly(method, 6, request, plan_per_seed(request), lambda *a: counted.append(a))
    assert counted[0][0] == 0
    assert counted[0][2] == 6
    assert counted[1:] == [(1,)] * 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 3}, "repeats: must be even, because halves of the rows come in pairs, got 3"),
        ({"repeats": 0}, "repeats: must be a whole number of at least 2, got 0"),
        ({"repeats": 4, "checkpoint": "c"}, "checkpoint: a selection with repeats writes none; leave it out"),
    ],
)
def test_an_error_names_the_argument_what_was_wrong_and_what_to_do(options, message):
    with pytest.raises(ValueError, match=message):
        seqatt.select(*linear_problem("binary"), 2, **options)


def test_files_that_do_not_fit_in_memory_and_few_rows_are_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(repeats, "take_rows", None)
    X, y = frame()
    X.assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(ValueError, match="repeats: needs a table; raise memory"):
        seqatt.select(tmp_path / "table.csv", k=2, target="y", memory=10_000, repeats=4)
    with pytest.raises(ValueError, match="repeats: needs at least 20 rows, got 12; leave it out"):
        seqatt.select(*linear_problem("binary", rows=12), 2, repeats=4)


def test_files_that_fit_in_memory_give_the_answer_of_the_table(tmp_path):
    X, y = frame()
    X.assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    of_file = seqatt.select(tmp_path / "table.csv", k=2, target="y", method="f_test", repeats=4)
    assert of_file.stability == seqatt.select(X, y, 2, method="f_test", repeats=4).stability


def test_rows_of_a_sparse_table_are_taken_and_columns_that_are_constant_there_are_marked():
    dense = np.array([[0, 1, 0], [2, 1, 0], [0, 0, 0], [0, 0, 3.0]])
    data = table(dense)
    sparse = SparseColumns(scipy.sparse.csr_array(dense), np.zeros(3), np.ones(3))
    rows = np.array([1, 2, 3])
    from dataclasses import replace

    taken = take_rows(replace(data, columns=sparse), rows)
    np.testing.assert_array_equal(taken.columns.to_dense(np.arange(3)), dense[rows])
    assert take_rows(replace(data, columns=sparse), rows[:2]).constant.tolist() == [False, False, True]
    assert taken.constant.tolist() == take_rows(data, rows).constant.tolist() == [False] * 3


def test_the_selector_takes_repeats():
    X, y = frame()
    selector = seqatt.SequentialAttentionSelector(2, repeats=2, epochs=200).fit(X, y)
    assert set(selector.get_feature_names_out()) == {"c1", "c4"}
    assert selector.selection_.stability["repeats"] == 2
    other = seqatt.FeatureSelector(2, method="f_test", options={"repeats": 2}).fit(X, y)
    assert other.selection_.stability["repeats"] == 2


def test_the_command_shows_how_often_each_was_chosen_the_clusters_and_the_bound(tmp_path):
    X, y = twins()
    pd.DataFrame(X).add_prefix("c").assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    arguments = ("select", tmp_path / "table.csv", "-t", "y", "-k", 4, "--method", "linear_omp")
    done = run(*arguments, "--repeats", 20, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "chosen in" in done.stdout
    assert "100 % together" in done.stdout
    text = " ".join(done.stdout.split())
    assert "20 repeats on 150 rows each: at most" in text
    assert "are expected to be false choices" in text
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["selection.json"]  # no checkpoints
    shown = run(*arguments, "--repeats", 20, "--json")
    assert json.loads(shown.stdout)["stability"]["repeats"] == 20
