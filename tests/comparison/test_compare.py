"""``compare``, run on small tables."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.algorithms.registry import METHODS, Method, NoOptions
from seqatt.api.select import plain
from seqatt.comparison import arguments as checks
from seqatt.comparison import compare as running
from seqatt.comparison.splits import hold_out
from seqatt.data.tables import encoding
from seqatt.data.tables.table_data import read_table_data
from seqatt.selection import Trace

QUICK = ["linear_omp", "random"]


def in_order(job) -> list[Trace]:
    ranked = list(range(job.source.features))
    return [Trace(ranked[: job.k], ranked[job.k :]) for _ in job.seeds]


@pytest.fixture
def broken(monkeypatch):
    def run(job):
        if job.seeds[0] == 1 or job.k == 3:
            raise RuntimeError("out of\nluck")
        return in_order(job), {}

    monkeypatch.setitem(METHODS, "broken", Method(NoOptions, run))


@pytest.fixture
def small():
    X, y = linear_problem("binary", rows=80)
    return pd.DataFrame(X[:, :6], columns=list("abcdef")), y


def test_every_cell_is_what_select_and_evaluate_give_on_its_split(small):
    X, y = small
    made = seqatt.compare(X, y, [2, 0.5], methods=["linear_omp", "all"], seeds=[4, 7], test_size=0.4)
    assert made.k == [2, 3]
    assert [cell.key for cell in made.cells] == [
        ("linear_omp", 2, 4), ("linear_omp", 3, 4), ("all", 6, 4),
        ("linear_omp", 2, 7), ("linear_omp", 3, 7), ("all", 6, 7),
    ]  # fmt: skip
    train, test = hold_out(80, 0.4, 7, classes=y, stratify=True, groups=None)
    rows = (X.iloc[train], y[train], X.iloc[test], y[test])
    selection = seqatt.select(*rows[:2], 2, method="linear_omp", seed=7)
    cell = made.cells[3]
    assert cell.features == selection.features
    assert cell.metrics == {
        name: value[0] for name, value in seqatt.evaluate(*rows, selection, seeds=[7]).items()
    }
    assert made.cells[5].metrics["auc"] == seqatt.evaluate(*rows, None, seeds=[7])["auc"][0]
    assert made.best(2) == "linear_omp"
    assert made.by("log_loss").table()[0]["metric"] == "log_loss"


def test_no_method_sees_a_test_row(monkeypatch):
    """The target is the row number, so a method can tell which rows it was given."""
    X, _ = linear_problem("regression", rows=60)
    seen, tested = [], []

    def spy(job):
        target = job.source.target
        seen.append(np.round(target.values * target.scale + target.shift).astype(int).ravel().tolist())
        return in_order(job), {}

    def watch(X_train, y_train, X_test, y_test, *rest, **more):
        tested.append(y_test.astype(int).tolist())
        return seqatt.evaluate(X_train, y_train, X_test, y_test, *rest, **more)

    monkeypatch.setitem(METHODS, "spy", Method(NoOptions, spy))
    monkeypatch.setattr(running, "evaluate", watch)
    seqatt.compare(X, np.arange(60.0), 2, methods=["spy"], seeds=range(3), task="regression")
    assert len(seen) == len(tested) == 3
    for learnt, judged in zip(seen, tested, strict=True):
        assert len(judged) == 15
        assert sorted(learnt + judged) == list(range(60))
    assert tested[0] != tested[1]


def test_a_method_that_fails_is_reported_and_the_others_go_on(small, broken):
    made = seqatt.compare(*small, [2, 3], methods=["broken", "random"], seeds=[0, 1])
    rows = {(row["method"], row["k"]): row for row in made.table()}
    assert rows["broken", 2]["runs"] == 1
    assert rows["broken", 3]["mean"] is None
    assert rows["broken", 3]["error"] == "RuntimeError: out of luck"
    assert rows["random", 2]["runs"] == rows["random", 3]["runs"] == 2
    assert made.missing == 0
    assert "broken failed at k = 2, 3: RuntimeError: out of luck" in made.to_markdown()


def test_a_run_that_was_stopped_goes_on_and_gives_the_same_table(small, tmp_path, monkeypatch):
    asked = {"k": 1, "methods": QUICK, "seeds": [0, 1]}
    whole = seqatt.compare(*small, **asked)
    real, calls = running.select, []

    def stop(*rest, **more):
        calls.append(more["method"])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*rest, **more)

    monkeypatch.setattr(running, "select", stop)
    partial = seqatt.compare(*small, **asked, out=tmp_path)
    assert len(partial.cells) == partial.missing == 2
    assert seqatt.Comparison.load(tmp_path / "comparison.json").cells == partial.cells
    resumed = seqatt.compare(*small, **asked, out=tmp_path)
    assert len(calls) == 3 + 2
    assert _without_seconds(resumed) == _without_seconds(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["comparison.json"]


def test_an_interrupt_before_anything_was_finished_is_an_interrupt(small, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "select", stop)
    with pytest.raises(KeyboardInterrupt):
        seqatt.compare(*small, 1, methods=["random"], seeds=[0])


def test_methods_can_be_added_and_failures_are_tried_again(small, broken, tmp_path, monkeypatch):
    seqatt.compare(*small, 2, methods=["broken"], seeds=[0, 1], out=tmp_path)
    ran = []
    monkeypatch.setitem(
        METHODS, "broken", Method(NoOptions, lambda job: (ran.append(job.seeds[0]), (in_order(job), {}))[1])
    )
    more = seqatt.compare(*small, 2, methods=["broken", "random"], seeds=[0, 1], out=tmp_path)
    assert ran == [1]
    assert [row["runs"] for row in more.table()] == [2, 2]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    X, y = linear_problem("binary", rows=40)
    folder = tmp_path_factory.mktemp("earlier")
    asked = {"X": X, "y": y, "k": 2, "methods": ["random", "linear_attention"], "seeds": [0], "out": folder}
    seqatt.compare(**asked)
    return asked


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"test_size": 0.3}, "differs in the test rows"),
        ({"class_weight": "balanced"}, "differs in what is said about the table"),
        ({"methods": ["linear_attention"]}, "also holds methods 'random'"),
        ({"seeds": [1, 2]}, "also holds seeds 0"),
        ({"k": 3}, "also holds k 2"),
        ({"X": linear_problem("binary", rows=40, seed=1)[0]}, "differs in the data"),
        ({"sample_weight": np.ones(40)}, "differs in the data"),
        ({"options": {"linear_attention": {"parameterisation": "softmax"}}}, "with other options"),
    ],
)
def test_other_settings_are_refused_and_nothing_is_lost(earlier, changed, message):
    before = (earlier["out"] / "comparison.json").read_text()
    with pytest.raises(ValueError, match=message):
        seqatt.compare(**(earlier | changed))
    assert (earlier["out"] / "comparison.json").read_text() == before


def test_code_among_the_options_is_not_taken_for_the_same(tmp_path):
    X, y = linear_problem("binary", rows=40)
    options = {"sequential_attention": {"optimizer": lambda p: torch.optim.SGD(p, 0.1), "epochs": 1}}
    asked = {"k": 1, "methods": ["sequential_attention"], "seeds": [0], "options": options, "out": tmp_path}
    assert seqatt.compare(X, y, **asked).cells[0].error is None
    with pytest.raises(ValueError, match="with code among its options"):
        seqatt.compare(X, y, **asked)


def test_another_file_in_the_folder_is_not_overwritten(small, tmp_path):
    (tmp_path / "comparison.json").write_text("[]")
    with pytest.raises(ValueError, match="not a saved comparison"):
        seqatt.compare(*small, 2, methods=["random"], seeds=[0], out=tmp_path)
    assert (tmp_path / "comparison.json").read_text() == "[]"


def test_one_seed_gives_one_answer_in_any_container(small):
    X, y = small
    tables = [pl.from_pandas(X), X.to_numpy(), sp.csr_array(X.to_numpy())]
    found = [seqatt.compare(table, y, 2, methods=["linear_omp"], seeds=[3]) for table in (X, *tables)]
    assert len({json.dumps(one.cells[0].metrics) for one in found}) == 1
    assert found[0].settings["data"] == found[1].settings["data"] != found[2].settings["data"]


def test_text_labels_categories_missing_values_weights_and_groups():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=["u", "v", "w"])
    X["place"] = rng.choice(["here", "there"], 90)
    X.loc[::7, "u"] = np.nan
    y = pd.Series(np.where(X["v"] > 0, "yes", "no"))
    made = seqatt.compare(
        X, y, 1, methods=["linear_omp"], seeds=[0], sample_weight=np.arange(90) % 3,
        groups={"both": ["v", "place"]}, missing_indicator=True,
    )  # fmt: skip
    assert made.cells[0].features == ["both"]
    assert made.cells[0].metrics["accuracy"] > 0.8
    assert made.settings["rows"] == 60  # those of weight zero are left out
    assert made.settings["features"] == 3


def test_test_rows_of_ones_own(small):
    X, y = small
    made = seqatt.compare(X[:50], y[:50], 2, methods=QUICK, seeds=[0, 1], X_test=X[50:], y_test=y[50:])
    chosen = seqatt.select(X[:50], y[:50], 2, method="linear_omp")
    expected = seqatt.evaluate(X[:50], y[:50], X[50:], y[50:], chosen, seeds=[0, 1])
    assert [c.metrics["auc"] for c in made.cells if c.method == "linear_omp"] == expected["auc"].tolist()
    assert "on your 30 test rows" in made.to_markdown()


@pytest.mark.parametrize(
    ("learnt", "tested", "message"),
    [
        (["1", "2", "a"], [1.0, 2.0, np.nan], "X_test: column 'g' holds numbers, in X it holds text"),
        ([1.0, 2.0, 3.0], ["1", "2", "a"], "X_test: column 'g' holds text, in X it holds numbers"),
        (pd.date_range("2020-01-01", periods=3), [1, 2, 3], "'g' holds numbers, in X it holds times"),
        ([1.0, 2.0, 3.0], [1.0, np.inf, 3.0], "X_test: column 'g' contains infinity"),
    ],
)  # fmt: skip
def test_test_rows_that_cannot_be_read_as_the_training_rows_are_errors_before_any_work(
    small, learnt, tested, message, monkeypatch
):
    monkeypatch.setattr(running, "select", lambda *_, **__: pytest.fail("work was done"))
    X, y = small
    X, X_test = X[:60].assign(g=list(learnt) * 20), X[60:78].assign(g=list(tested) * 6)
    with pytest.raises(ValueError, match=message):
        seqatt.compare(X, y[:60], 2, methods=["random"], seeds=[0], X_test=X_test, y_test=y[60:78])
    with pytest.raises(ValueError, match=message.replace("in X ", "in X_train ")):
        seqatt.evaluate(X, y[:60], X_test, y[60:78], seeds=[0])


def test_a_test_column_of_nothing_but_gaps_is_of_any_kind(small):
    X, y = small
    X, X_test = X[:60].assign(g=["u", "v", "w"] * 20), X[60:].assign(g=np.nan)
    made = seqatt.compare(X, y[:60], 1, methods=["all"], seeds=[0], X_test=X_test, y_test=y[60:])
    assert made.cells[0].error is None


def test_a_choice_that_could_not_be_judged_is_kept(small, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no judge")

    monkeypatch.setattr(running, "evaluate", fail)
    cell = seqatt.compare(*small, 2, methods=["linear_omp"], seeds=[0]).cells[0]
    assert cell.error == "RuntimeError: no judge"
    assert len(cell.features) == 2
    assert cell.seconds > 0
    assert cell.metrics == {}


def test_groups_of_rows_are_never_split():
    classes = np.arange(60) % 3
    groups = np.repeat(np.arange(12), 5)
    for seed in range(5):
        train, test = hold_out(60, 0.25, seed, classes=classes, stratify=False, groups=groups)
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(60))


def test_a_number_of_test_rows_is_of_rows_where_groups_stay_together_too(small):
    X, y = small
    groups = np.repeat(np.arange(10), 8)
    made = seqatt.compare(X, y, 1, methods=["random"], seeds=[0, 1], test_size=24, split_groups=groups)
    assert made.settings["split_rows"] == [[56, 24]] * 2
    assert "tested on 24 of the rows, whole groups" in made.to_markdown()


def test_classes_keep_their_shares_and_a_lonely_row_is_learnt_from():
    classes = np.array([0] * 60 + [1] * 20 + [2])
    for seed in range(5):
        train, test = hold_out(81, 0.25, seed, classes=classes, stratify=True, groups=None)
        assert np.bincount(classes[test]).tolist() == [15, 5]
        assert 2 in classes[train]
    many = np.repeat(np.arange(20), 2)
    train, test = hold_out(40, 5, 0, classes=many, stratify=True, groups=None)
    assert set(many[test]) <= set(many[train])


def test_the_usual_methods_are_those_registered(small, monkeypatch):
    source = read_table_data(*small)
    assert checks.usual_methods(source) == list(checks.USUAL)
    assert {"sequential_attention", "random", "all"} <= set(checks.usual_methods(source))
    monkeypatch.delitem(METHODS, "random")
    assert "random" not in checks.usual_methods(source)


def test_the_usual_methods_can_all_cope_with_the_table(small, monkeypatch):
    X, y = small
    assert "mutual_information" in checks.usual_methods(read_table_data(X, y))
    weighed = read_table_data(X, y, class_weight="balanced")
    monkeypatch.setattr(encoding, "DENSE_CELLS", 10)
    large = read_table_data(sp.csr_array(X.to_numpy()), y)
    for source in (weighed, large):
        names = checks.usual_methods(source)
        assert "mutual_information" not in names
        assert names.index("cmim") == checks.USUAL.index("mutual_information")


def test_groups_as_sets_are_written_down_in_one_order():
    names = {f"column {i}" for i in range(20)}
    assert plain({"g": names}) == {"g": sorted(names)}
    assert plain(frozenset({2, "a", 1})) == plain({"a", 1, 2})


def test_a_missing_value_among_split_groups_is_told_by_that_name(small):
    groups = np.r_[np.nan, np.arange(79.0)]
    with pytest.raises(ValueError, match="split_groups: Input split_groups contains NaN"):
        seqatt.compare(*small, 1, methods=["random"], seeds=[0], split_groups=groups)
    with pytest.raises(ValueError, match="split_groups: Input split_groups contains NaN"):
        seqatt.compare(*small, 1, methods=["random"], seeds=[0], split_groups=[None, *"ab"] + ["c"] * 77)


def test_options_reach_their_method(small):
    options = {"sequential_attention": {"epochs": 1, "hidden": (4,), "ensemble": 1}}
    made = seqatt.compare(*small, 1, methods=["sequential_attention"], seeds=[0], options=options)
    assert made.settings["options"] == {"sequential_attention": {"epochs": 1, "hidden": [4], "ensemble": 1}}
    assert made.cells[0].error is None


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"methods": ["magic"]}, ValueError, "methods: unknown 'magic'; use some of sequential_attention"),
        ({"methods": []}, ValueError, "methods: at least one"),
        ({"methods": ["random", "random"]}, ValueError, "methods: one stands twice"),
        ({"k": 7}, ValueError, "k: 7 features asked for, but the table has 6"),
        ({"k": [2, 1.5]}, ValueError, "k: a float is a fraction"),
        ({"k": []}, ValueError, "k: at least one"),
        ({"k": "2"}, TypeError, "k: must be a whole number"),
        ({"seeds": 5}, TypeError, r"seeds: must be a list such as range\(5\)"),
        ({"seeds": [1, 1]}, ValueError, "seeds: one stands twice"),
        ({"seeds": [-1]}, ValueError, "seed: must be a whole number"),
        ({"test_size": 1.0}, ValueError, "test_size: must be above 0 and below 1"),
        ({"test_size": 80}, ValueError, "test_size: must be above 0 and below the 80 rows"),
        ({"test_size": "some"}, TypeError, "test_size: must be a share"),
        ({"metric": "r2"}, ValueError, "metric: unknown 'r2'; use one of accuracy, auc, log_loss"),
        ({"options": {"linear_omp": {}}}, ValueError, "options: 'linear_omp' is not among the methods"),
        ({"options": {"random": {"epochs": 2}}}, TypeError, "random has no option 'epochs'"),
        ({"options": {"random": {"groups": {}}}}, ValueError, "'groups' is for all methods alike"),
        ({"options": {"random": 3}}, TypeError, "options: 'random' needs"),
        ({"device": "abacus"}, ValueError, "device: 'abacus'"),
        ({"split_groups": [1, 2]}, ValueError, "split_groups: must have one value for each of the 80 rows"),
        ({"split_groups": np.zeros(80)}, ValueError, "1 groups are too few"),
        ({"stratify": True, "split_groups": np.arange(80)}, ValueError, "stratify: rows that stay together"),
        ({"X_test": [[0]]}, ValueError, "X_test and y_test: give both or neither"),
        ({"X_test": [[0]], "y_test": [1]}, ValueError, "X_test: must have the same columns"),
        ({"sample_weight": [1]}, ValueError, "sample_weight: must have one value"),
        ({"class_weight": "even"}, ValueError, "class_weight: use 'balanced'"),
        ({"task": "regression", "stratify": True}, ValueError, "stratify: needs a target of classes"),
        ({"out": "/proc/none"}, ValueError, "out: cannot write"),
    ],
)
def test_bad_arguments_are_errors_before_any_work(small, changed, error, message, monkeypatch):
    monkeypatch.setattr(running, "select", lambda *_, **__: pytest.fail("work was done"))
    arguments = {"k": 2, "methods": ["random"], "seeds": [0]} | changed
    with pytest.raises(error, match=message):
        seqatt.compare(*small, **arguments)


def _without_seconds(made: seqatt.Comparison) -> list[dict]:
    return [row | {"seconds": 0} for row in made.table()]
