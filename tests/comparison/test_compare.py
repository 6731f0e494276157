"""``compare`` on small tables."""

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
from seqatt.algorithms import registry
from seqatt.api.evaluation.evaluator import Evaluator
from seqatt.comparison import compare as compare_module
from seqatt.comparison import split_runs
from seqatt.comparison.arguments import DEFAULT_METHODS, default_methods
from seqatt.comparison.split_runs import SplitRuns
from seqatt.comparison.splits import hold_out
from seqatt.comparison.table_rows import SplitRequest, read_table_rows
from seqatt.data.tables import encoding
from seqatt.data.tables.table_data import read_table_data
from seqatt.options import to_json
from seqatt.trace import Trace

QUICK = ["linear_omp", "random"]


def first_features(request) -> list[Trace]:
    """The traces of a method that selects the first k features."""
    ranked = list(range(request.data.features))
    return [Trace(ranked[: request.k], ranked[request.k :]) for _ in request.seeds]


def register(monkeypatch, name, select) -> None:
    """Register a method for one test; ``select`` maps a SelectionRequest to traces."""
    registry.all_methods()
    functions = registry.Functions(registry.plan_per_seed, lambda request, plan, advance: select(request))
    monkeypatch.setitem(registry._METHODS, name, registry.Method(name, "", name, name))
    monkeypatch.setitem(registry._FUNCTIONS, name, functions)


@pytest.fixture
def broken(monkeypatch):
    """Register a method that fails for seed 1 and for k = 3."""

    def select(request):
        if request.seeds[0] == 1 or request.k == 3:
            raise RuntimeError("out of\nluck")
        return first_features(request)

    register(monkeypatch, "broken", select)


@pytest.fixture
def small():
    X, y = linear_problem("binary", rows=80)
    return pd.DataFrame(X[:, :6], columns=list("abcdef")), y


@pytest.mark.slow
def test_every_run_equals_select_and_evaluate_on_its_split(small):
    X, y = small
    comparison = seqatt.compare(X, y, [2, 0.5], methods=["linear_omp", "all"], seeds=[4, 7], test_size=0.4)
    assert comparison.k == [2, 3]
    assert [run.key for run in comparison.runs] == [
        ("linear_omp", 2, 4), ("linear_omp", 3, 4), ("all", 6, 4),
        ("linear_omp", 2, 7), ("linear_omp", 3, 7), ("all", 6, 7),
    ]  # fmt: skip
    train, test = hold_out(80, 0.4, 7, classes=y, stratify=True, groups=None)
    rows = (X.iloc[train], y[train], X.iloc[test], y[test])
    selection = seqatt.select(*rows[:2], 2, method="linear_omp", seed=7)
    run = comparison.runs[3]
    assert run.features == selection.features
    assert run.metrics == {
        name: value[0] for name, value in seqatt.evaluate(*rows, selection, seeds=[7]).items()
    }
    assert comparison.runs[5].metrics["auc"] == seqatt.evaluate(*rows, None, seeds=[7])["auc"][0]
    assert comparison.best(2) == "linear_omp"
    assert comparison.by("log_loss").table()[0]["metric"] == "log_loss"


def test_no_method_sees_a_test_row(monkeypatch):
    """The target is the row number, so that it identifies the rows that a method receives."""
    X, _ = linear_problem("regression", rows=60)
    train_rows, test_rows = [], []

    def record_train_rows(request):
        target = request.data.target
        rows = np.round(target.values * target.scale + target.shift).astype(int).ravel().tolist()
        train_rows.append(rows)
        return first_features(request)

    def record_test_rows(X_train, y_train, X_test, y_test, *rest):
        test_rows.append(y_test.astype(int).tolist())
        return Evaluator(X_train, y_train, X_test, y_test, *rest)

    register(monkeypatch, "recorder", record_train_rows)
    monkeypatch.setattr(split_runs, "Evaluator", record_test_rows)
    seqatt.compare(X, np.arange(60.0), 2, methods=["recorder"], seeds=range(3), task="regression")
    assert len(train_rows) == len(test_rows) == 3
    for train, test in zip(train_rows, test_rows, strict=True):
        assert len(test) == 15
        assert sorted(train + test) == list(range(60))
    assert test_rows[0] != test_rows[1]


@pytest.mark.usefixtures("quick_evaluation")
def test_a_failing_method_is_reported_and_the_others_continue(small, broken):
    comparison = seqatt.compare(*small, [2, 3], methods=["broken", "random"], seeds=[0, 1])
    rows = {(row["method"], row["k"]): row for row in comparison.table()}
    assert rows["broken", 2]["runs"] == 1
    assert rows["broken", 3]["mean"] is None
    assert rows["broken", 3]["error"] == "RuntimeError: out of luck"
    assert rows["random", 2]["runs"] == rows["random", 3]["runs"] == 2
    assert comparison.missing == 0
    assert "broken failed at k = 2, 3: RuntimeError: out of luck" in comparison.to_markdown()


@pytest.mark.slow
@pytest.mark.usefixtures("quick_evaluation")
@pytest.mark.parametrize("interrupted", [2, 3])
def test_an_interrupted_comparison_continues_and_gives_the_same_table(
    small, tmp_path, monkeypatch, interrupted
):
    arguments = {"k": 1, "methods": QUICK, "seeds": [0, 1]}
    uninterrupted = seqatt.compare(*small, **arguments)
    real_select, calls = SplitRuns.select, []

    def interrupt_some_call(split, method, *args):
        calls.append(method)
        if len(calls) == interrupted:
            raise KeyboardInterrupt
        return real_select(split, method, *args)

    monkeypatch.setattr(SplitRuns, "select", interrupt_some_call)
    partial = seqatt.compare(*small, **arguments, out=tmp_path)
    assert len(partial.runs) == interrupted - 1  # what was selected is evaluated
    assert partial.missing == 5 - interrupted
    assert seqatt.Comparison.load(tmp_path / "comparison.json").runs == partial.runs
    resumed = seqatt.compare(*small, **arguments, out=tmp_path)
    assert len(calls) == 5
    assert _without_seconds(resumed) == _without_seconds(uninterrupted)
    assert [path.name for path in tmp_path.iterdir()] == ["comparison.json"]


@pytest.mark.usefixtures("quick_evaluation")
def test_an_interrupt_during_the_evaluation_loses_no_selection(small, tmp_path, monkeypatch):
    real, calls = SplitRuns.evaluate, []

    def interrupt_the_first_call(split, selected, advance):
        calls.append(len(selected))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(split, selected, advance)

    monkeypatch.setattr(SplitRuns, "evaluate", interrupt_the_first_call)
    arguments = {"k": [1, 2], "methods": ["random", "f_test"], "seeds": [0, 1]}
    partial = seqatt.compare(*small, **arguments, out=tmp_path)
    assert calls == [4, 4]
    assert len(partial.runs) == 4
    assert seqatt.Comparison.load(tmp_path / "comparison.json").runs == partial.runs


@pytest.mark.usefixtures("quick_evaluation")
def test_a_comparison_with_another_recipe_of_evaluation_is_not_continued(small, tmp_path):
    seqatt.compare(*small, 1, methods=["random"], seeds=[0], out=tmp_path)
    path = tmp_path / "comparison.json"
    saved = json.loads(path.read_text())
    del saved["settings"]["evaluation_steps"]
    path.write_text(json.dumps(saved))
    with pytest.raises(ValueError, match="differs in the recipe of the evaluation"):
        seqatt.compare(*small, 1, methods=["random"], seeds=[0], out=tmp_path)


def test_an_interrupt_before_the_first_finished_run_is_raised(small, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(SplitRuns, "select", interrupt)
    with pytest.raises(KeyboardInterrupt):
        seqatt.compare(*small, 1, methods=["random"], seeds=[0])


@pytest.mark.usefixtures("quick_evaluation")
def test_methods_can_be_added_and_failed_runs_are_repeated(small, broken, tmp_path, monkeypatch):
    seqatt.compare(*small, 2, methods=["broken"], seeds=[0, 1], out=tmp_path)
    seeds_run = []

    def select(request):
        seeds_run.append(request.seeds[0])
        return first_features(request)

    register(monkeypatch, "broken", select)
    extended = seqatt.compare(*small, 2, methods=["broken", "random"], seeds=[0, 1], out=tmp_path)
    assert seeds_run == [1]
    assert [row["runs"] for row in extended.table()] == [2, 2]


@pytest.mark.usefixtures("quick_evaluation")
def test_a_ranking_method_runs_once_for_all_k_and_an_error_for_one_k_spares_the_others(small, monkeypatch):
    requested = []

    def select(request):
        requested.append(request.k)
        if request.k == 3:
            raise RuntimeError("not three")
        return first_features(request)

    register(monkeypatch, "ranking", select)
    monkeypatch.setitem(registry._METHODS, "ranking", registry.Method("ranking", "", "", "", nested=True))
    comparison = seqatt.compare(*small, [1, 2, 4], methods=["ranking"], seeds=[0])
    assert requested == [4]
    assert [run.features for run in comparison.runs] == [["a"], ["a", "b"], ["a", "b", "c", "d"]]
    comparison = seqatt.compare(*small, [1, 3], methods=["ranking"], seeds=[0])
    assert requested == [4, 3, 1, 3]
    assert [run.error for run in comparison.runs] == [None, "RuntimeError: not three"]


@pytest.mark.usefixtures("quick_evaluation")
def test_runs_in_one_go_and_added_later_have_the_same_results(small, tmp_path):
    arguments = {"methods": ["f_test", "linear_omp", "random", "all"], "seeds": [0, 1]}
    in_one_go = seqatt.compare(*small, [1, 2, 4], **arguments)
    for methods, k in ((["random"], 2), (["random", "all"], [1, 2]), (arguments["methods"], [1, 2, 4])):
        later = seqatt.compare(*small, k, **arguments | {"methods": methods}, out=tmp_path)
    outcomes = [{run.key: (run.features, run.metrics) for run in each.runs} for each in (in_one_go, later)]
    assert outcomes[0] == outcomes[1]


@pytest.mark.usefixtures("quick_evaluation")
def test_a_split_is_encoded_once_for_methods_that_encode_alike_and_once_for_evaluation(small, monkeypatch):
    calls = []
    encode = encoding.Encoder.encode
    monkeypatch.setattr(encoding.Encoder, "encode", lambda *args: calls.append(1) or encode(*args))
    seqatt.compare(*small, [1, 2], methods=["f_test", "linear_omp", "random", "all"], seeds=[0])
    # All rows, once, to check them; the training rows for the methods; training and test rows for the evaluation.
    assert len(calls) == 4


@pytest.mark.usefixtures("quick_evaluation")
def test_runs_are_saved_while_a_seed_is_unfinished_if_selections_take_long(small, tmp_path, monkeypatch):
    saved = []

    def select(request):
        path = tmp_path / "comparison.json"
        saved.append(len(json.loads(path.read_text())["runs"]))
        return first_features(request)

    register(monkeypatch, "slow", select)
    monkeypatch.setattr(compare_module, "MAX_WAITING_SECONDS", 0.0)
    seqatt.compare(*small, [1, 2], methods=["random", "slow"], seeds=[0], out=tmp_path)
    assert saved == [2, 3]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    X, y = linear_problem("binary", rows=40)
    out = tmp_path_factory.mktemp("earlier")
    arguments = {"X": X, "y": y, "k": 2, "methods": ["random", "linear_attention"], "seeds": [0], "out": out}
    seqatt.compare(**arguments)
    return arguments


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"test_size": 0.3}, "differs in the test rows"),
        ({"class_weight": "balanced"}, "differs in the table options"),
        ({"methods": ["linear_attention"]}, "also holds methods 'random'"),
        ({"seeds": [1, 2]}, "also holds seeds 0"),
        ({"k": 3}, "also holds k 2"),
        ({"X": linear_problem("binary", rows=40, seed=1)[0]}, "differs in the data"),
        ({"sample_weight": np.ones(40)}, "differs in the data"),
        ({"options": {"linear_attention": {"parameterisation": "softmax"}}}, "with other options"),
    ],
)
def test_other_settings_raise_and_the_saved_file_is_unchanged(earlier, changed, message):
    before = (earlier["out"] / "comparison.json").read_text()
    with pytest.raises(ValueError, match=message):
        seqatt.compare(**(earlier | changed))
    assert (earlier["out"] / "comparison.json").read_text() == before


@pytest.mark.usefixtures("quick_evaluation")
def test_options_that_hold_code_are_never_regarded_as_the_same(tmp_path):
    X, y = linear_problem("binary", rows=40)
    options = {"sequential_attention": {"optimizer": lambda p: torch.optim.SGD(p, 0.1), "epochs": 1}}
    arguments = {"k": 1, "methods": ["sequential_attention"], "seeds": [0], "options": options}
    assert seqatt.compare(X, y, **arguments, out=tmp_path).runs[0].error is None
    with pytest.raises(ValueError, match="with code among its options"):
        seqatt.compare(X, y, **arguments, out=tmp_path)


def test_a_file_that_is_not_a_comparison_is_not_overwritten(small, tmp_path):
    (tmp_path / "comparison.json").write_text("[]")
    with pytest.raises(ValueError, match="not a saved comparison"):
        seqatt.compare(*small, 2, methods=["random"], seeds=[0], out=tmp_path)
    assert (tmp_path / "comparison.json").read_text() == "[]"


@pytest.mark.slow
@pytest.mark.usefixtures("quick_evaluation")
def test_one_seed_gives_the_same_result_in_any_container(small):
    X, y = small
    tables = [pl.from_pandas(X), X.to_numpy(), sp.csr_array(X.to_numpy())]
    comparisons = [seqatt.compare(table, y, 2, methods=["linear_omp"], seeds=[3]) for table in (X, *tables)]
    assert len({json.dumps(comparison.runs[0].metrics) for comparison in comparisons}) == 1
    hashes = [comparison.settings["data"] for comparison in comparisons]
    assert hashes[0] == hashes[1] != hashes[2]


def test_text_labels_categories_missing_values_weights_and_groups():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=["u", "v", "w"])
    X["place"] = rng.choice(["here", "there"], 90)
    X.loc[::7, "u"] = np.nan
    y = pd.Series(np.where(X["v"] > 0, "yes", "no"))
    comparison = seqatt.compare(
        X, y, 1, methods=["linear_omp"], seeds=[0], sample_weight=np.arange(90) % 3,
        groups={"both": ["v", "place"]}, missing_indicator=True,
    )  # fmt: skip
    assert comparison.runs[0].features == ["both"]
    assert comparison.runs[0].metrics["accuracy"] > 0.8
    assert comparison.settings["rows"] == 60  # rows of weight 0 are left out
    assert comparison.settings["features"] == 3


@pytest.mark.slow
def test_test_rows_supplied_by_the_user(small):
    X, y = small
    comparison = seqatt.compare(X[:50], y[:50], 2, methods=QUICK, seeds=[0, 1], X_test=X[50:], y_test=y[50:])
    selection = seqatt.select(X[:50], y[:50], 2, method="linear_omp")
    expected = seqatt.evaluate(X[:50], y[:50], X[50:], y[50:], selection, seeds=[0, 1])
    auc = [run.metrics["auc"] for run in comparison.runs if run.method == "linear_omp"]
    assert auc == expected["auc"].tolist()
    assert "on your 30 test rows" in comparison.to_markdown()


@pytest.mark.parametrize("y_name", [None, "label"])
@pytest.mark.usefixtures("quick_evaluation")
def test_test_rows_may_have_columns_that_are_no_features(small, y_name):
    X, y = small
    X.columns = range(X.shape[1])  # numbered columns have no text as names
    X = X if y_name is None else X.assign(label=y)
    target = y[:50] if y_name is None else y_name
    shared = {"methods": ["all"], "seeds": [0], "ignore": [5]}
    with_ignored = seqatt.compare(X[:50], target, 1, X_test=X[50:], y_test=y[50:], **shared)
    assert with_ignored.settings["features"] == 5
    assert with_ignored.runs[0].error is None


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (["1", "2", "a"], [1.0, 2.0, np.nan], "X_test: column 'g' holds numbers, but text in X"),
        ([1.0, 2.0, 3.0], ["1", "2", "a"], "X_test: column 'g' holds 'a', which is not a number"),
        (pd.date_range("2020-01-01", periods=3), [1, 2, 3], "'g' holds numbers, but times in X"),
        ([1.0, 2.0, 3.0], [1.0, np.inf, 3.0], "X_test: column 'g' contains infinity"),
    ],
)  # fmt: skip
def test_test_rows_of_other_column_types_raise_before_any_run(small, train, test, message, monkeypatch):
    monkeypatch.setattr(compare_module, "SplitRuns", lambda *_, **__: pytest.fail("a run was started"))
    X, y = small
    X, X_test = X[:60].assign(g=list(train) * 20), X[60:78].assign(g=list(test) * 6)
    with pytest.raises(ValueError, match=message):
        seqatt.compare(X, y[:60], 2, methods=["random"], seeds=[0], X_test=X_test, y_test=y[60:78])
    with pytest.raises(ValueError, match=message.replace("in X ", "in X_train ")):
        seqatt.evaluate(X, y[:60], X_test, y[60:78], seeds=[0])


@pytest.mark.usefixtures("quick_evaluation")
def test_a_test_column_with_only_missing_values_has_any_type(small):
    X, y = small
    X, X_test = X[:60].assign(g=["u", "v", "w"] * 20), X[60:].assign(g=np.nan)
    comparison = seqatt.compare(X, y[:60], 1, methods=["all"], seeds=[0], X_test=X_test, y_test=y[60:])
    assert comparison.runs[0].error is None


def test_a_selection_whose_evaluation_failed_is_saved(small, monkeypatch):
    def fail(*_):
        raise RuntimeError("no evaluation")

    monkeypatch.setattr("seqatt.api.evaluation.evaluator.evaluate_networks", fail)
    run = seqatt.compare(*small, 2, methods=["linear_omp"], seeds=[0]).runs[0]
    assert run.error == "RuntimeError: no evaluation"
    assert len(run.features) == 2
    assert run.seconds > 0
    assert run.metrics == {}


def test_groups_of_rows_are_never_split():
    classes = np.arange(60) % 3
    groups = np.repeat(np.arange(12), 5)
    for seed in range(5):
        train, test = hold_out(60, 0.25, seed, classes=classes, stratify=False, groups=groups)
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(60))


@pytest.mark.usefixtures("quick_evaluation")
def test_an_integer_test_size_counts_rows_with_split_groups_too(small):
    X, y = small
    groups = np.repeat(np.arange(10), 8)
    comparison = seqatt.compare(X, y, 1, methods=["random"], seeds=[0, 1], test_size=24, split_groups=groups)
    assert comparison.settings["split_rows"] == [[56, 24]] * 2
    assert "tested on 24 of the rows, whole groups" in comparison.to_markdown()


@pytest.mark.usefixtures("quick_evaluation")
@pytest.mark.parametrize("grouped", [False, True])
def test_with_time_the_latest_rows_are_tested_and_the_notes_say_so(small, tmp_path, grouped):
    X, y = small
    time = np.random.default_rng(0).permutation(len(y))
    groups = {"groups_of_rows": time // 2} if grouped else {}
    comparison = seqatt.compare(X, y, 1, methods=["random"], seeds=2, time=time, **groups)
    said = f"over 2 seeds (tested on the latest 25% of the rows{', whole groups' * grouped})"
    comparison.report(tmp_path / "report.html")
    shown = comparison.to_markdown(), comparison._repr_html_(), (tmp_path / "report.html").read_text()
    assert all(said in text for text in shown)
    request = SplitRequest((None, None), 0.25, None, None, range(2))
    rows = read_table_rows(X, y, {"time": time} | groups, request)
    for train, test in map(rows.split, range(2)):
        assert train.time.max() < test.time.min() == len(y) * 3 // 4


def test_splits_are_stratified_and_a_class_of_one_row_is_in_the_training_rows():
    classes = np.array([0] * 60 + [1] * 20 + [2])
    for seed in range(5):
        train, test = hold_out(81, 0.25, seed, classes=classes, stratify=True, groups=None)
        assert np.bincount(classes[test]).tolist() == [15, 5]
        assert 2 in classes[train]
    many = np.repeat(np.arange(20), 2)
    train, test = hold_out(40, 5, 0, classes=many, stratify=True, groups=None)
    assert set(many[test]) <= set(many[train])


def test_the_default_methods_are_registered(small, monkeypatch):
    data = read_table_data(*small)
    assert default_methods(data) == list(DEFAULT_METHODS)
    assert {"sequential_attention", "random", "all"} <= set(default_methods(data))
    monkeypatch.delitem(registry._METHODS, "random")
    assert "random" not in default_methods(data)


def test_the_default_methods_support_the_table(small, monkeypatch):
    X, y = small
    assert "mutual_information" in default_methods(read_table_data(X, y))
    weighted = read_table_data(X, y, class_weight="balanced")
    monkeypatch.setattr(encoding, "DENSE_CELLS", 10)
    large_sparse = read_table_data(sp.csr_array(X.to_numpy()), y)
    for data in (weighted, large_sparse):
        names = default_methods(data)
        assert "mutual_information" not in names
        assert names.index("cmim") == DEFAULT_METHODS.index("mutual_information")


def test_groups_given_as_sets_are_saved_in_a_fixed_order():
    names = {f"column {i}" for i in range(20)}
    assert to_json({"g": names}) == {"g": sorted(names)}
    assert to_json(frozenset({2, "a", 1})) == to_json({"a", 1, 2})


def test_a_missing_value_in_split_groups_raises_with_that_name(small):
    groups = np.r_[np.nan, np.arange(79.0)]
    with pytest.raises(ValueError, match="split_groups: contains NaN"):
        seqatt.compare(*small, 1, methods=["random"], seeds=[0], split_groups=groups)
    with pytest.raises(ValueError, match="split_groups: contains NaN"):
        seqatt.compare(*small, 1, methods=["random"], seeds=[0], split_groups=[None, *"ab"] + ["c"] * 77)


def test_options_reach_their_method(small):
    options = {"sequential_attention": {"epochs": 1, "hidden": (4,), "ensemble": 1}}
    comparison = seqatt.compare(*small, 1, methods=["sequential_attention"], seeds=[0], options=options)
    expected = {"sequential_attention": {"epochs": 1, "hidden": [4], "ensemble": 1}}
    assert comparison.settings["options"] == expected
    assert comparison.runs[0].error is None


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"methods": ["magic"]}, ValueError, "methods: unknown 'magic'; use some of sequential_attention"),
        ({"methods": []}, ValueError, "methods: at least one"),
        ({"methods": ["random", "random"]}, ValueError, "methods: must not contain duplicates"),
        ({"k": 7}, ValueError, "k: 7 features requested, but the table has 6"),
        ({"k": [2, 1.5]}, ValueError, "k: a float is a fraction"),
        ({"k": []}, ValueError, "k: at least one"),
        ({"k": "2"}, TypeError, "k: must be a whole number"),
        ({"k": [2, "auto"]}, ValueError, "k: 'auto' is for select; methods are compared at equal numbers"),
        (
            {"options": {"random": {"fdr": 0.1}}},
            ValueError,
            "options: 'fdr' lets random choose how many features; methods are compared at equal numbers",
        ),
        (
            {"options": {"random": {"costs": {"a": 1}, "budget": 1}}},
            ValueError,
            "options: 'costs' lets random choose how many features; methods are compared at equal numbers",
        ),
        ({"seeds": True}, TypeError, r"seeds: must be a number of seeds or a list such as range\(5\)"),
        ({"seeds": "5"}, TypeError, r"seeds: must be a number of seeds or a list such as range\(5\)"),
        ({"seeds": 0}, ValueError, "seeds: at least one seed is needed"),
        ({"seeds": [1, 1]}, ValueError, "seeds: must not contain duplicates"),
        ({"seeds": [-1]}, ValueError, "seed: must be a whole number"),
        ({"test_size": 1.0}, ValueError, "test_size: must be above 0 and below 1"),
        ({"test_size": 80}, ValueError, "test_size: must be above 0 and below the 80 rows"),
        ({"test_size": "some"}, TypeError, "test_size: must be a share"),
        ({"metric": "r2"}, ValueError, "metric: unknown 'r2'; use one of accuracy, auc, log_loss"),
        ({"options": {"linear_omp": {}}}, ValueError, "options: 'linear_omp' is not among the methods"),
        ({"options": {"random": {"epochs": 2}}}, TypeError, "random has no option 'epochs'"),
        ({"options": {"random": {"groups": {}}}}, ValueError, "'groups' applies to all methods"),
        ({"options": {"random": 3}}, TypeError, "options: 'random' needs"),
        ({"device": "abacus"}, ValueError, "device: 'abacus'"),
        ({"split_groups": [1, 2]}, ValueError, "split_groups: must have one value for each of the 80 rows"),
        ({"split_groups": np.zeros(80)}, ValueError, "1 groups are too few"),
        (
            {"stratify": True, "split_groups": np.arange(80)},
            ValueError,
            "stratify: cannot be combined with split_groups",
        ),
        ({"X_test": [[0]]}, ValueError, "X_test and y_test: pass both or neither"),
        ({"X_test": [[0]], "y_test": [1]}, ValueError, "X_test: must have the same columns"),
        ({"sample_weight": [1]}, ValueError, "sample_weight: must have one value"),
        ({"class_weight": "even"}, ValueError, "class_weight: use 'balanced'"),
        (
            {"task": "regression", "stratify": True},
            ValueError,
            "stratify: needs a binary or multiclass target",
        ),
        ({"out": "/proc/none"}, ValueError, "out: cannot write"),
    ],
)
def test_invalid_arguments_raise_before_any_run(small, changed, error, message, monkeypatch):
    monkeypatch.setattr(compare_module, "SplitRuns", lambda *_, **__: pytest.fail("a run was started"))
    arguments = {"k": 2, "methods": ["random"], "seeds": [0]} | changed
    with pytest.raises(error, match=message):
        seqatt.compare(*small, **arguments)


def test_columns_of_test_rows_are_found_by_name(small):
    X, y = small
    arguments = {"k": 2, "methods": QUICK, "seeds": [0], "y_test": y}
    expected = seqatt.compare(X, y, X_test=X, **arguments)
    shuffled = seqatt.compare(X, y, X_test=X.assign(z="more")[list("zfedcba")], **arguments)
    assert _without_seconds(shuffled) == _without_seconds(expected)
    with pytest.raises(ValueError, match=r"^X_test: column 'c' is missing; the training rows have it$"):
        seqatt.compare(X, y, X_test=X.drop(columns="c"), **arguments)


def _without_seconds(comparison: seqatt.Comparison) -> list[dict]:
    return [row | {"seconds": 0} for row in comparison.table()]


def test_groups_of_rows_in_another_order_than_the_table_are_refused():
    frame = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0)[::-1]})
    groups = pd.Series(np.arange(40) // 4, index=frame.index)
    call = {"methods": ["random"], "seeds": [0]}
    seqatt.compare(frame, frame["a"] > 20, 1, split_groups=groups, **call)
    with pytest.raises(
        ValueError, match=r"^split_groups: has the index of X in another order; pass split_gr"
    ):
        seqatt.compare(frame, frame["a"] > 20, 1, split_groups=groups[::-1], **call)


def test_a_misspelt_method_is_answered_with_the_one_that_was_meant():
    X = np.arange(40.0)[:, None]
    with pytest.raises(
        ValueError, match=r"^methods: unknown 'linear_opm'; did you mean 'linear_omp'\? Use some of"
    ):
        seqatt.compare(X, X[:, 0] > 20, 1, methods=["linear_opm"])
    with pytest.raises(
        ValueError,
        match=r"^methods: unknown 'magic'; use some of sequential_attention, .*, all, or say in options which method",
    ):
        seqatt.compare(X, X[:, 0] > 20, 1, methods=["magic"])


def test_a_number_of_seeds_is_those_from_zero_on(small):
    X, y = small
    assert seqatt.compare(X, y, 1, methods=["random"], seeds=2).settings["seeds"] == [0, 1]
    assert [each.seed for each in seqatt.select_trials(X, y, 1, method="random", seeds=2)] == [0, 1]
    rows = X[::2], y[::2], X[1::2], y[1::2]
    assert seqatt.evaluate(*rows, [0], seeds=2, epochs=1).seeds == [0, 1]


def test_two_settings_of_a_method_are_compared_by_names_of_their_own(problem, tmp_path):
    settings = {
        "few": {"method": "sequential_attention", "epochs": 2, "ensemble": 1},
        "paper": {"method": "sequential_attention", "epochs": 4, "recipe": "paper"},
    }
    given = {"k": [2, 3], "seeds": 2, "options": settings, "out": tmp_path, "task": "binary"}
    both = seqatt.compare(*problem[:2], methods=["few", "paper", "random"], **given)
    assert [row["method"] for row in both.table() if row["k"] == 2] == ["few", "paper", "random"]
    assert all(run.error is None for run in both.runs)
    direct = seqatt.compare(
        *problem[:2],
        k=3,
        seeds=2,
        methods=["sequential_attention"],
        options={"sequential_attention": {"epochs": 4, "recipe": "paper"}},
        task="binary",
    )
    of_paper = [run.features for run in both.runs if run.method == "paper" and run.k == 3]
    assert of_paper == [run.features for run in direct.runs]
    given["options"] = settings | {"few": settings["few"] | {"epochs": 3}}
    with pytest.raises(ValueError, match="holds few with other options"):
        seqatt.compare(*problem[:2], methods=["few", "paper", "random"], **given)


@pytest.mark.parametrize(
    ("methods", "options", "message"),
    [
        (
            ["mine"],
            {"mine": {"method": "forrest"}},
            "unknown method 'forrest' of 'mine'; did you mean 'forest'",
        ),
        (["forest"], {"forest": {"method": "random"}}, "'forest' is a name of its own; choose another"),
        (["all"], {"all": {"method": "random"}}, "'all' is a name of its own"),
        (["mine"], {"mine": {"method": "forest", "epoch": 3}}, "epoch"),
        (["mine"], {"mine": {"epochs": 3}}, "methods: unknown 'mine'"),
    ],
)
def test_a_setting_that_is_no_setting_is_refused_by_name(problem, methods, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        seqatt.compare(*problem[:2], k=2, methods=methods, options=options)
