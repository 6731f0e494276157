"""Experiments that compare methods: the list of methods, ranks, and tables with extra columns."""

from __future__ import annotations

import json

import numpy as np
import pytest
from experiments import marginal, methods, spurious
from experiments.__main__ import main
from experiments.compared_methods import COMPARED_METHODS, SAME_AS_LINEAR_OMP, available_methods, takes_epochs
from experiments.extra_columns import KINDS, MAX_REAL_FEATURES, add_columns
from experiments.paper import TITLES
from experiments.paper_baselines import ACCURACY_OF, EFFICIENCY_OF
from experiments.ranking import complete_means, critical_difference, describe, friedman, rank
from experiments.results_file import Results
from experiments.runs import Run, RunRequest, catch_failure, execute_runs

import seqatt
from seqatt.datasets import Split


def by_method(table: np.ndarray) -> dict[str, dict[str, float]]:
    """Scores by block (row number) and method (letter)."""
    return {str(i): dict(zip("abcdefgh", row, strict=False)) for i, row in enumerate(table.tolist())}


def test_every_method_is_compared():
    assert set(seqatt.methods()) <= {c.name for c in COMPARED_METHODS} | set(SAME_AS_LINEAR_OMP)


@pytest.mark.parametrize("name", [c.name for c in available_methods()])
def test_methods_take_epochs_as_their_entries_state(name, problem):
    if takes_epochs(name):
        assert len(seqatt.select(*problem, 2, method=name, epochs=0.1).indices) == 2
    elif name != "greedy":
        with pytest.raises(TypeError, match="epochs"):
            seqatt.select(*problem, 2, method=name, epochs=0.1)


def test_the_papers_columns_are_complete():
    columns = [c.paper for c in COMPARED_METHODS if c.paper]
    for known in (ACCURACY_OF, EFFICIENCY_OF):
        assert set(known) == set(columns)
        assert all(set(by_data) == set(TITLES) for by_data in known.values())


def test_critical_differences_are_the_published_ones():
    # Demšar 2006, table 5(a) of q at 5 % and the example of section 3.2.2.
    published = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for count, q in enumerate(published, 2):
        spread = np.sqrt(count * (count + 1) / 6)
        assert critical_difference(count, 1) / spread == pytest.approx(q, abs=2e-3)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.01)


def test_ranks_and_the_friedman_test_of_a_known_table():
    always = np.tile([0.9, 0.8, 0.7], (4, 1))  # chi-squared 8 with 2 degrees of freedom: exp(-4)
    assert friedman(always) == pytest.approx(np.exp(-4))
    assert friedman(np.ones((4, 3))) == 1
    ranking = rank(by_method(np.array([[0.9, 0.8, 0.7], [0.5, 0.5, 0.1], [0.2, 0.3, 0.1]])))
    assert ranking is not None
    assert ranking.ranks == pytest.approx({"a": (1 + 1.5 + 2) / 3, "b": (2 + 1.5 + 1) / 3, "c": 3})
    assert list(ranking.ranks)[-1] == "c"


def test_methods_without_a_significant_difference_are_grouped():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 4)) + np.array([0.0, 0.1, 5.0, 5.1])
    ranking = rank(by_method(table))
    assert ranking is not None
    assert [set(run) for run in ranking.indistinct_groups()] == [{"c", "d"}, {"a", "b"}]
    assert ranking.p_value < 1e-6


def test_ranks_need_a_score_of_every_method_on_every_block():
    scores = by_method(np.random.default_rng(0).normal(size=(5, 4)))
    del scores["2"]["d"]
    scores["4"] = {"a": 1.0}  # begun and not finished
    ranking = rank(scores)
    assert ranking is not None
    assert (set(ranking.ranks), ranking.blocks) == ({"a", "b", "c"}, 4)
    assert rank({"only": {"a": 1.0, "b": 2.0, "c": 3.0}}) is None
    assert rank({}) is None


def test_a_method_without_all_its_trials_is_named_and_not_ranked():
    trials = {"a": [0.9, 0.8], "b": [0.1, 0.2], "c": [0.5, 0.5], "d": [1.0]}
    scores = {f"table {i}": complete_means(trials) for i in range(3)}
    scores["table 0"]["d"] = 1.0
    ranking = rank(scores)
    assert list(ranking.ranks) == ["a", "c", "b"]
    assert "`d`" in describe(ranking)


@pytest.fixture
def split() -> Split:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 7)) * [1, 10, 100, 1, 1, 1, 1] + [0, 5, 0, 0, 0, 0, 0]
    X[:, 3] = 2.0  # constant
    X[5, 4] = X[399, 4] = np.nan
    y = np.arange(400) % 2
    return Split(X[:300], y[:300], X[300:], y[300:])


def unexplained(X: np.ndarray, column: np.ndarray) -> float:
    """Share of a column's variance that the columns X do not explain linearly."""
    design = np.c_[X, np.ones(len(X))]
    left = column - design @ np.linalg.lstsq(design, column, rcond=None)[0]
    return float(left.var() / column.var())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.5, 0.75])
def test_extra_columns_have_the_properties_of_their_kind(kind, share, split):
    table, extra = add_columns(split, kind, share, 0)
    assert extra.mean() == share
    assert (~extra).sum() == 6
    assert (table.X_train.shape, table.X_test.shape) == ((300, len(extra)), (100, len(extra)))
    assert np.isfinite(table.X_train).all()
    assert np.isfinite(table.X_test).all()
    real, added = table.X_train[:, ~extra], table.X_train[:, extra]
    originals = {column.tobytes() for column in np.delete(split.X_train, [3, 4], 1).T.copy()}
    assert len({column.tobytes() for column in real.T.copy()} & originals) == 5
    if kind == "products":
        i, j = np.triu_indices(6)
        known = [(real[:, a] * real[:, b]).tobytes() for a, b in zip(i, j, strict=True)]
        assert {column.tobytes() for column in added.T.copy()} <= set(known)
        return
    left = [unexplained(real, column) for column in added.T]
    low, high = (0.9, 1.0) if kind == "noise" else (0.35, 0.65)
    assert all(low < value <= high for value in left)


def test_extra_columns_do_not_depend_on_the_test_rows(split):
    other = split._replace(X_test=split.X_test * 50 + 7, y_test=1 - split.y_test)
    for kind in KINDS:
        one, extra = add_columns(split, kind, 0.5, 3)
        two, same = add_columns(other, kind, 0.5, 3)
        assert np.array_equal(one.X_train, two.X_train)
        assert np.array_equal(extra, same)


def test_wide_tables_keep_a_hundred_features_that_depend_on_the_seed():
    X = np.random.default_rng(0).normal(size=(50, 300))
    wide = Split(X[:40], np.arange(40) % 2, X[40:], np.arange(10) % 2)
    kept = []
    for seed in (0, 0, 1):
        table, extra = add_columns(wide, "noise", 0.5, seed)
        assert (~extra).sum() == MAX_REAL_FEATURES
        kept.append({column.tobytes() for column in table.X_train[:, ~extra].T.copy()})
    assert kept[0] == kept[1] != kept[2]


@pytest.mark.parametrize(
    ("kind", "columns", "message"),
    [("squares", 7, "there is no 'squares'"), ("products", 2, "2 real features")],
)
def test_impossible_extensions_raise(kind, columns, message, split):
    narrow = split._replace(X_train=split.X_train[:, :columns], X_test=split.X_test[:, :columns])
    with pytest.raises(ValueError, match=message):
        add_columns(narrow, kind, 0.75, 0)


@pytest.mark.slow
def test_spurious_columns_run_end_to_end(tmp_path, capsys):
    words = ["spurious", "--data", "diabetes", "--seeds", "1", "--epochs", "30", "--results", str(tmp_path)]
    for setting in ("original", "sequential_attention", "linear_omp", "random"):
        words += ["--setting", setting]
    assert main(words) == 0
    assert "executed 24 of 24 runs" in capsys.readouterr().out
    results = Results("spurious", tmp_path)
    for kind in KINDS:
        for percent in (50, 75):
            name = f"diabetes/{kind}/{percent}"
            assert results.values(name, "original", "extra") == [0]
            assert results.pick(name, "linear_omp")[0]["k"] == 10
    noisy = [results.values("diabetes/noise/75", m, "extra")[0] for m in ("sequential_attention", "random")]
    assert noisy[0] < noisy[1]
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "| the original features | – | – | – | – | 0% | 0% | 0% |" in text
    assert "3 methods on 6 tables" in text
    assert "critical difference" in (tmp_path / "results" / "spurious.svg").read_text()
    assert main(words) == 0
    assert "executed 0 of 24 runs" in capsys.readouterr().out


def test_trials_of_one_draw_share_their_columns_and_draws_differ():
    runs = spurious.plan_runs(RunRequest(("wine",), ("random",), 7))
    seeds = [run.seeds for run in runs if run.data == "wine/noise/50"]
    assert seeds == [(0, 1, 2, 3, 4), (5, 6)]


def test_methods_are_ranked_over_the_papers_data_sets(tmp_path):
    results = Results("methods", tmp_path)
    better = {"sequential_attention": 0.9, "linear_omp": 0.8, "random": 0.7}
    runs = [Run(data, name, (0,)) for data in ("mnist", "isolet", "mice_protein/groups") for name in better]
    execute_runs(results, runs, lambda run: {"accuracy": [better[run.setting]]})
    text = methods.render(results)
    assert "3 methods on 2 tables" in text
    row = next(line for line in text.splitlines() if line.startswith("| Sequential Attention |"))
    assert row.endswith("| 1.00 |")
    assert "| 0.944 ± 0.001 |" in text  # the paper's, for a method that was not run


def test_a_failed_run_is_reported_and_repeated(tmp_path):
    calls = []

    def execute(run):
        calls.append(run.key)
        if len(calls) == 1:
            raise RuntimeError("out of\nmemory")
        return {"accuracy": [0.5]}

    results = Results("methods", tmp_path)
    runs = [Run("mnist", "random", (0,))]
    for new in (1, 1, 0):
        assert execute_runs(results, runs, lambda run: catch_failure(execute, run, "accuracy")) == new
        if len(calls) == 1:
            assert results.values("mnist", "random") == []
            assert "mnist | random | seed 0 (RuntimeError: out of memory)" in methods.render(results)
    assert results.values("mnist", "random") == [0.5]
    assert "Failed" not in methods.render(results)


def test_agreement_of_logits_and_gains():
    assert marginal.correlation([5.0, 4.0, 3.0, 1.0]) == pytest.approx(1)
    assert marginal.correlation([1.0, 2.0, 3.0]) == pytest.approx(-1)
    assert marginal.shared_in_top([9.0, 1.0, 8.0, 7.0], top=2) == 1


@pytest.mark.skipif(not hasattr(seqatt, "marginal_gains"), reason="this seqatt has no marginal_gains")
def test_marginal_gains_run_and_are_plotted(tmp_path, capsys):
    words = ["marginal", "--data", "digits", "--setting", "9 chosen", "--seeds", "1", "--epochs", "2"]
    assert main([*words, "--results", str(tmp_path)]) == 0
    run = json.loads((tmp_path / "marginal.json").read_text())["runs"]["digits | 9 chosen | seed 0"]
    assert len(run["chosen"][0]) == 9
    assert not set(run["chosen"][0]) & set(run["candidates"][0])
    assert len(run["gains"][0]) == len(run["candidates"][0])
    assert "best 50 by marginal gain" in (tmp_path / "results" / "marginal.svg").read_text()


@pytest.mark.parametrize("name", ["methods", "speed", "spurious"])
def test_missing_data_stop_the_experiment_and_are_not_recorded_as_a_failed_run(
    name, tmp_path, monkeypatch, capsys
):
    monkeypatch.delenv("SEQATT_DATA_DIR", raising=False)
    monkeypatch.setenv("SEQATT_CACHE_DIR", str(tmp_path / "cache"))
    words = [name, "--data", "sylva", "--setting", "random", "--results", str(tmp_path)]
    assert main(words) == 1
    assert "sylva" in capsys.readouterr().err
    assert not (tmp_path / f"{name}.json").exists()
