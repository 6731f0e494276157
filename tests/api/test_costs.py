"""Costs: the best set that a budget pays for, what features share is paid once, and the frontier."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from tests.support.command import run

import seqatt
from seqatt.api.constraints import frontier
from seqatt.api.constraints.costs import Costs
from seqatt.api.constraints.search import BudgetSearch
from seqatt.cli.display import show
from seqatt.training import defaults
from seqatt.training.selection_state import Quotas

FEATURES = 12


class CostedProblem:
    """Correlated features of random cost, of which the first four share one; a linear target with R² of 0.75."""

    def __init__(self, seed: int, rows: int = 600) -> None:
        rng = np.random.default_rng(seed)
        mix = 0.3 * rng.normal(size=(FEATURES, FEATURES)) + np.eye(FEATURES)
        self.beta = rng.normal(size=FEATURES) * (rng.random(FEATURES) < 0.7)
        self.covariance = mix.T @ mix
        signal = self.beta @ self.covariance @ self.beta
        self.variance = signal * 4 / 3
        values = rng.normal(size=(rows, FEATURES)) @ mix
        self.X = pd.DataFrame(values, columns=[f"f{i}" for i in range(FEATURES)])
        self.y = values @ self.beta + np.sqrt(signal / 3) * rng.normal(size=rows)
        own = {f"f{i}": float(np.round(rng.lognormal(3, 1))) for i in range(4, FEATURES)}
        self.given: dict[str, Any] = own | {"blood": {"cost": 40.0, "features": ["f0", "f1", "f2", "f3"]}}
        members = np.zeros((len(own) + 1, FEATURES), dtype=bool)
        members[np.arange(len(own)), np.arange(4, FEATURES)] = True
        members[-1, :4] = True
        self.costs = Costs(tuple(self.given), np.array([*own.values(), 40.0]), members)

    def r2(self, features: Any) -> float:
        """R² of the best linear prediction, of infinitely many rows."""
        own = sorted(features)
        if not own:
            return 0.0
        covariances = self.covariance[own] @ self.beta
        explained = covariances @ np.linalg.solve(self.covariance[np.ix_(own, own)], covariances)
        return float(explained / self.variance)

    def optimum(self, budget: float, k: int = FEATURES) -> float:
        """By trying every set."""
        sets = [s for n in range(k + 1) for s in combinations(range(FEATURES), n)]
        return max(self.r2(s) for s in sets if self.costs.total(s) <= budget)


TEN_DRAWS = [(0, 0.35), *((seed, 0.2) for seed in (4, 5, 8, 21, 22, 23, 24, 25, 26))]


@pytest.mark.parametrize(("seed", "share"), [*((s, 0.1) for s in range(6)), (5, 0.2), (8, 0.4), (9, 0.3)])
def test_with_exact_scores_the_search_finds_the_best_set_but_for_its_margin(seed, share):
    problem = CostedProblem(seed, rows=5)
    budget = share * problem.costs.total(range(FEATURES))
    search = BudgetSearch(
        lambda sets: [problem.r2(s) for s in sets], problem.costs, budget, 0.0, FEATURES, (), None, 0.0
    )
    search.run(range(FEATURES))
    best = search.best(budget)
    assert problem.costs.total(best) <= budget
    assert problem.r2(best) >= 0.975 * problem.optimum(budget)
    assert len(search.scores) < 400


def test_a_search_without_a_budget_that_binds_tries_a_fraction_of_the_moves_of_every_step():
    """Of 24 features that gain less and less: a path that tried all of them in every step would try 300 sets."""
    gains = 0.7 ** np.arange(24)
    costs = Costs(tuple(f"f{i}" for i in range(24)), np.ones(24), np.eye(24, dtype=bool))
    search = BudgetSearch(
        lambda sets: [gains[sorted(s)].sum() for s in sets], costs, np.inf, 0.0, 24, (), None, 0.0
    )
    search.run(range(24))
    assert gains[sorted(search.best(np.inf))].sum() >= 0.99 * gains.sum()
    assert len(search.scores) < 200


def test_the_search_keeps_to_k_kept_features_and_quotas():
    problem = CostedProblem(3, rows=2)
    quotas = Quotas(np.repeat([0, 1], [4, 8]), np.array([2, 0]), np.array([3, 12]), 5)
    search = BudgetSearch(
        lambda sets: [problem.r2(s) for s in sets], problem.costs, 150.0, 0.0, 5, (7,), quotas, 0.0
    )
    search.run([f for f in range(FEATURES) if f != 7])
    best = search.best(150.0)
    assert 7 in best
    assert len(best) <= 5
    assert 2 <= len(best & {0, 1, 2, 3}) <= 3
    assert problem.costs.total(best) <= 150


def test_a_rate_chooses_what_is_worth_its_cost():
    problem = CostedProblem(1, rows=2)

    def found(rate: float) -> frozenset[int]:
        search = BudgetSearch(
            lambda sets: [problem.r2(s) for s in sets], problem.costs, np.inf, rate, FEATURES, (), None, 0.0
        )
        search.run(range(FEATURES))
        return search.best(np.inf)

    paid = [problem.costs.total(found(rate)) for rate in (1e-5, 1e-3, 5e-3, 1.0)]
    assert paid == sorted(paid, reverse=True)
    assert paid[0] > paid[2] > paid[3] == 0
    chosen = found(1e-3)
    worth = problem.r2(chosen) - 1e-3 * problem.costs.total(chosen)
    singles = [problem.r2([f]) - 1e-3 * problem.costs.total([f]) for f in range(FEATURES)]
    assert worth > max(singles)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [[(5, 0.2)], pytest.param(TEN_DRAWS, marks=pytest.mark.exhaustive)])
def test_the_chosen_set_is_close_to_the_exhaustive_optimum_and_its_score_is_not_optimistic(draws):
    """On the mean of ten draws within 3 %, and none is further than 7 % from it; fewer rows may find a worse set."""
    shares = []
    for seed, share in draws:
        problem = CostedProblem(seed)
        budget = share * problem.costs.total(range(FEATURES))
        selection = seqatt.select(problem.X, problem.y, costs=problem.given, budget=budget)
        assert selection.cost == problem.costs.total(selection.indices) <= budget
        r2, frontier = problem.r2(selection.indices), selection.frontier
        shares.append(r2 / problem.optimum(budget))
        assert -0.3 < frontier["means"][frontier["costs"].index(selection.cost)] - r2 < 0.08
        assert abs(frontier["all_features"] - 0.75) < 0.12  # of 600 rows
    assert np.mean(shares) >= 0.97
    assert min(shares) >= 0.93


@pytest.fixture(scope="module")
def problem() -> tuple[pd.DataFrame, np.ndarray, dict]:
    """a and b share a test; c knows what a knows, and is dear; d is free and weak, the others are noise."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(240, 7)), columns=list("abcdefg"))
    X["c"] = X["a"] + 0.05 * X["c"]
    y = X["a"] + X["b"] + 0.3 * X["d"] + 0.3 * rng.normal(size=240)
    return X, y.to_numpy(), {"test": {"cost": 40, "features": ["a", "b"]}, "c": 100, "e": 5, "f": 5}


def test_a_large_table_is_searched_on_a_sample_and_the_frontier_is_scored_on_all_rows(problem, monkeypatch):
    X, y, costs = problem
    searched, scored = [], []
    search, score = frontier.AffordableFeatures._search, frontier.score_per_fold

    def record_searched(self, data, folds):
        searched.append((data.rows, sum(len(fold.rows) for fold in folds)))
        return search(self, data, folds)

    def record_scored(folds, *others):
        scored.append(sum(len(fold.rows) for fold in folds))
        return score(folds, *others)

    monkeypatch.setattr(frontier, "SEARCHED_ROWS", 120)
    monkeypatch.setattr(frontier.AffordableFeatures, "_search", record_searched)
    monkeypatch.setattr(frontier, "score_per_fold", record_scored)
    with pytest.MonkeyPatch.context() as patch:
        shorten_networks(patch)
        selection = seqatt.select(X, y, costs=costs, budget=50, method="f_test")
    assert searched == [(120, 120), *[(120, 40)] * 3]
    assert sum(scored) == selection.frontier["rows"] == 240
    assert selection.cost <= 50


def shorten_networks(patch: pytest.MonkeyPatch) -> None:
    """Networks that score sets train for a fifth of the steps: the sets of ``problem`` are easily told apart."""
    patch.setattr(defaults, "EVALUATION_MIN_STEPS", defaults.EVALUATION_MIN_STEPS // 5)


@pytest.fixture
def short_networks(monkeypatch) -> None:
    shorten_networks(monkeypatch)


@pytest.fixture(scope="module")
def selection(problem) -> seqatt.Selection:
    X, y, costs = problem
    with pytest.MonkeyPatch.context() as patch:
        shorten_networks(patch)
        return seqatt.select(X, y, costs=costs, budget=120, method="f_test")


def test_what_features_share_is_paid_once(selection):
    assert {"a", "b"} <= set(selection.features)
    assert selection.cost == 40
    assert "c" not in selection.features
    assert selection.settings["budget"] == 120
    assert selection.settings["costs"]["test"] == {"cost": 40.0, "features": ["a", "b"]}


def test_the_frontier_rises_to_the_cost_of_the_selection_and_survives_a_file(selection, tmp_path):
    frontier = selection.frontier
    assert frontier["cost"] == frontier["costs"][-1] == 40
    assert frontier["costs"][0] == 0
    assert frontier["means"][-1] > frontier["means"][0] + 0.3
    assert frontier["all_cost"] == 150
    assert frontier["metric"] == "r2"
    selection.save(tmp_path / "s.json")
    again = seqatt.Selection.load(tmp_path / "s.json")
    assert again.frontier == frontier
    assert again.cost == 40
    raw = json.loads((tmp_path / "s.json").read_text())
    for name, value in (("costs", [3.0, 1.0]), ("means", [0.1]), ("cost", "40"), ("metric", None)):
        damaged = raw | {"frontier": raw["frontier"] | {name: value}}
        (tmp_path / "d.json").write_text(json.dumps(damaged))
        with pytest.raises(ValueError, match=r"not a saved selection \('frontier' must"):
            seqatt.Selection.load(tmp_path / "d.json")


def test_the_chart_tells_all_features_from_a_selection_of_the_same_cost(selection, capsys):
    frontier = selection.frontier | {"all_cost": 40.0}
    show(replace(selection, frontier=frontier), "y")
    bars = [line for line in capsys.readouterr().out.splitlines() if "█" in line]
    assert bars[-1].startswith("all 40  ")
    assert [line.split()[0] for line in bars if "← selected" in line] == ["40"]


@pytest.mark.usefixtures("short_networks")
def test_k_bounds_the_number_and_kept_features_are_paid_for(problem):
    X, y, costs = problem
    few = seqatt.select(X, y, 1, costs=costs, budget=120, method="f_test")
    assert len(few.features) == 1
    kept = seqatt.select(X, y, costs=costs, budget=46, keep=["e"], forbid=["d"], method="f_test")
    assert kept.features[0] == "e"
    assert set(kept.features) == {"e", "a", "b"}
    assert kept.cost == 45
    assert len(kept.names) == 7


@pytest.mark.usefixtures("short_networks")
def test_nothing_is_selected_if_nothing_is_worth_its_cost(problem):
    X, y, _ = problem
    dear = dict.fromkeys(X.columns, 1.0)
    nothing = seqatt.select(X, y, costs=dear, cost_rate=5.0, method="f_test")
    assert nothing.features == []
    assert nothing.cost == 0
    assert "no feature is worth its cost at this rate" in repr(nothing)
    assert nothing.chance is None  # there is nothing to test
    options = {"costs": dear, "cost_rate": 5.0}
    selector = seqatt.FeatureSelector(method="f_test", options=options).fit(X, y)
    with pytest.raises(ValueError, match=r"^costs: selected no features: no feature is worth its cost"):
        selector.transform(X)
    some = seqatt.select(X, y, costs=dear, cost_rate=0.05, method="f_test")
    assert set(some.features) <= {"a", "b", "c", "d"}
    assert len(some.features) == 2


def test_a_budget_without_anything_to_find_speaks_of_no_rate():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    nothing = seqatt.select(X, rng.normal(size=120), costs={"a": 1}, budget=1, method="f_test")
    assert nothing.features == []
    assert "no number of features does better than none" in repr(nothing)


def test_a_fraction_is_one_of_the_features_that_may_be_selected(problem):
    X, y, _ = problem
    options = {"forbid": ["a", "b", "c"], "costs": {"d": 1}, "budget": 1, "method": "random"}
    assert seqatt.select(X, y, 0.5, **options).settings["max_k"] == 2  # of four, as without costs


@pytest.mark.slow
@pytest.mark.usefixtures("short_networks")
def test_many_features_are_narrowed_down_by_the_method(problem):
    X, y, costs = problem
    wide = X.join(pd.DataFrame(np.random.default_rng(1).normal(size=(240, 40))).add_prefix("n"))
    selection = seqatt.select(wide, y, 3, costs=costs, budget=60, method="f_test")
    assert {"a", "b"} <= set(selection.features)
    random = seqatt.select(wide, y, 3, costs=costs, budget=60, method="random", seed=1)
    assert len(random.features) <= 3
    assert random.cost <= 60


@pytest.mark.usefixtures("short_networks")
def test_files_read_batch_by_batch_are_searched_on_a_sample(problem, tmp_path):
    X, y, costs = problem
    pd.concat([X.assign(y=y)] * 3).to_parquet(tmp_path / "t.parquet", row_group_size=100)
    options = {"target": "y", "memory": 1000, "schema_rows": 300}
    selection = seqatt.select(tmp_path / "t.parquet", costs=costs, budget=50, method="cmim", **options)
    assert selection.settings["reading"] == "batches"
    assert {"a", "b"} <= set(selection.features)
    assert selection.frontier["rows"] < 720


@pytest.mark.usefixtures("short_networks")
def test_the_selector_needs_no_number_with_a_budget(problem):
    X, y, costs = problem
    selector = seqatt.SequentialAttentionSelector(costs=costs, budget=50, epochs=5).fit(X, y)
    assert {"a", "b"} <= set(selector.selection_.features)
    assert selector.selection_.cost <= 50


@pytest.mark.usefixtures("short_networks")
def test_costs_may_be_a_series_from_names_to_costs(problem):
    X, y, _ = problem
    costs = {"a": 3.0, "c": 2.0}
    given = pd.Series(costs)
    for budget in ({"budget": 4}, {"cost_rate": 0.01}):
        found, expected = (seqatt.select(X, y, costs=c, method="f_test", **budget) for c in (given, costs))
        assert found.features == expected.features
        assert (found.cost, found.frontier) == (expected.cost, expected.frontier)
    selector = clone(seqatt.SequentialAttentionSelector(costs=given, budget=4, epochs=5)).fit(X, y)
    assert selector.selection_.settings["costs"]["a"]["cost"] == 3
    with pytest.raises(ValueError, match=r"^costs: 'a' appears twice in the index of the Series"):
        seqatt.select(X, y, costs=pd.Series([1, 2], index=["a", "a"]), budget=4)
    for wrong, kind in ((X, "DataFrame"), (500, "int")):
        with pytest.raises(TypeError, match=rf"^costs: must be a dict such as {{.*}}, got {kind}$"):
            seqatt.select(X, y, costs=wrong)


def test_costs_without_a_budget_name_what_is_missing_and_not_k(problem, tmp_path):
    X, y, costs = problem
    with pytest.raises(ValueError, match="costs: need a budget"):
        seqatt.SequentialAttentionSelector(costs=costs).fit(X, y)
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    done = run("select", tmp_path / "t.csv", "-t", "y", "--cost", "c=100")
    assert done.returncode == 1
    assert "--cost: need a budget" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("short_networks")
def test_the_command_line_the_report_and_the_plot_show_the_frontier(problem, tmp_path):
    X, y, costs = problem
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    page = tmp_path / "report.html"
    given = ["--cost", "test=40:a,b", "--cost", "c=100", "--cost", "e=5", "--cost", "f=5", "--budget", 120]
    command = ["select", tmp_path / "t.csv", "-t", "y", "--method", "f_test"]
    done = run(*command, *given, "--out", tmp_path, "--report", page)
    shown = " ".join(done.stdout.split())
    assert "Cost: 40 of 120; for that, R²" in shown
    assert "← selected" in shown
    text = page.read_text()
    assert "What the features cost" in text
    assert "paid for" in text
    assert "Cost: 40 of 120" in text
    pytest.importorskip("matplotlib").use("Agg")
    selection = seqatt.Selection.load(tmp_path / "selection.json")
    assert selection.plot.frontier().get_xlabel() == "cost"
    (tmp_path / "costs.json").write_text(json.dumps(costs))
    from_file = run(*command, "--cost", tmp_path / "costs.json", "--budget", 120, "--json")
    assert json.loads(from_file.stdout)["features"] == selection.features
    wrong = run(*command, "--cost", "mri", "--budget", 1)
    assert wrong.returncode == 2
    with pytest.raises(ValueError, match=r"plot\.frontier: this selection has no frontier"):
        seqatt.select(X, y, 1, method="f_test").plot.frontier()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 10}, "budget: needs costs, such as"),
        ({"costs": {"a": 5}}, "costs: need a budget, such as budget=100, or a cost_rate"),
        ({"costs": {"a": 5}, "budget": -1}, "budget: must be a number at least 0"),
        ({"costs": {"a": -5}, "budget": 1}, "costs: that of 'a': must be a number at least 0, got -5"),
        ({"costs": ["a"], "budget": 1}, "costs: must be a dict such as"),
        (
            {"costs": {"aa": 5}, "budget": 1},
            "costs: 'aa' is not a feature of X, which has 7; did you mean 'a'?",
        ),
        ({"costs": {"t": {"cost": 5}}, "budget": 1}, "costs: 't' must have 'cost' and 'features'"),
        (
            {"costs": dict.fromkeys("abcdefg", 20), "budget": 10},
            "budget: 10 pays for no feature; the cheapest costs 20",
        ),
        (
            {"costs": {"a": 8, "b": 9}, "budget": 10, "keep": ["a", "b"]},
            r"budget: 10 does not pay for the features of keep, which cost 17 \(a 8 and b 9\)",
        ),
        (
            {"costs": {"a": 5}, "budget": 1, "model": torch.nn.Linear(7, 1)},
            "model: the module was made for all columns, and costs leave fewer; give a function",
        ),
        ({"costs": {"a": 5}, "budget": 1, "k": "auto"}, "k: costs decide how many features are selected"),
        ({"costs": {"a": 5}, "budget": 1, "repeats": 4}, "costs: cannot be combined with repeats"),
        ({"costs": {"a": 5}, "budget": 1, "fdr": 0.1}, "costs: cannot be combined with fdr"),
        (
            {"costs": {"a": 5}, "budget": 9, "quotas": {"q": {"features": ["a", "b"], "least": 2}}, "k": 1},
            r"k: 1 is less than the 2 features that are needed \('q' needs 2\)",
        ),
    ],
)
def test_contradictions_are_refused(problem, options, message):
    X, y, _ = problem
    with pytest.raises((TypeError, ValueError), match=message):
        seqatt.select(X, y, **options)


def test_nothing_is_paid_for_noise_where_few_rows_are_positive():
    """Networks weight the classes: else they fit the few positive rows, and sets are compared by chance."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20_000, 6)), columns=["hour", "amount", "n0", "n1", "n2", "n3"])
    X["merchant"] = pd.Series(rng.integers(0, 300, 20_000)).map("m{}".format)
    odds = 0.6 * X["hour"] + X["amount"] - 5.2
    y = (rng.random(20_000) < 1 / (1 + np.exp(-odds))).astype(int)
    costs = {"amount": 10, "merchant": 5, "hour": 1}
    assert seqatt.select(X, y, costs=costs, budget=6).features == ["hour"]
    assert seqatt.select(X, y, costs=costs, budget=11).features[:2] == ["amount", "hour"]
