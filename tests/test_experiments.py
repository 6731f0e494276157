"""The experiments: the command, resuming after a stop, and the page of results."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from experiments.__main__ import main
from experiments.markdown import MISSING, format_trials, provenance
from experiments.page import EXPERIMENTS, page, page_path
from experiments.pixels import mean_distance, mean_neighbours
from experiments.planted import planted
from experiments.results_file import COMMITTED, Results
from experiments.runs import ROOT, Run, RunRequest, evaluate_again, execute_runs
from experiments.stability import jaccard

from seqatt.datasets import synthetic


def run_command(folder: Path, *arguments: str) -> str:
    """The standard output of ``python -m experiments``."""
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *arguments, "--results", str(folder)],
        cwd=ROOT,
        env=os.environ | {"SEQATT_COMMIT": "abc1234"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # progress is printed on terminals only
    return done.stdout


@pytest.mark.slow
def test_the_command_runs_end_to_end_and_resumes(tmp_path):
    arguments = ["accuracy", "--data", "digits", "--setting", "default", "--setting", "random"]
    arguments += ["--seeds", "2", "--epochs", "3"]
    assert "executed 4 of 4 runs" in run_command(tmp_path, *arguments)
    path = tmp_path / "accuracy.json"
    first = json.loads(path.read_text())
    assert set(first["environments"][0]) >= {
        "command",
        "date",
        "commit",
        "machine",
        "cores",
        "python",
        "torch",
    }
    assert first["environments"][0]["commit"] == "abc1234"
    for run in first["runs"].values():
        assert run["seconds"] > 0
        assert [len(set(features)) for features in run["features"]] == [50]
        assert all(0.8 < accuracy <= 1 for accuracy in run["accuracy"])
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    values = [first["runs"][f"digits | default | seed {seed}"]["accuracy"][0] for seed in (0, 1)]
    assert f"| digits | {MISSING} | {format_trials(values)} |" in text
    assert (tmp_path / "results" / "accuracy.svg").read_text().startswith("<?xml")

    removed = first["runs"].pop("digits | default | seed 1")
    path.write_text(json.dumps(first))
    assert "executed 1 of 4 runs" in run_command(tmp_path, *arguments)
    again = json.loads(path.read_text())["runs"]["digits | default | seed 1"]
    assert again["accuracy"] == removed["accuracy"]
    assert again["features"] == removed["features"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "setting"),
    [
        ("masks", "wine", "l1"),
        ("adaptivity", "digits", "8 per phase"),
        ("remarks", "digits", "Algorithm 1"),
        ("remarks", "digits", "logits kept"),
        ("efficiency", "wine", "trials together"),
        ("budget", "wine", "200 steps"),
        ("pixels", "digits", "plain"),
        ("speed", "wine", "linear_omp"),
        ("wide", "wine", "mutual information"),
        ("nested", "wine", "default"),
        ("size_peers", "wine", "auto"),
        ("sizes", "suppressor", "auto"),
    ],
)
def test_every_experiment_runs_and_draws(name, data, setting, tmp_path, capsys):
    arguments = [name, "--data", data, "--setting", setting, "--seeds", "2", "--epochs", "2"]
    assert main([*arguments, "--results", str(tmp_path)]) == 0
    runs = Results(name, tmp_path).runs.values()
    assert sorted(seed for run in runs for seed in run["seeds"]) == [0, 1]
    assert (tmp_path / "results" / f"{name}.svg").stat().st_size > 1000
    assert f"| {data} |" in (tmp_path / "results.md").read_text(encoding="utf-8")


def test_selections_from_click_logs_are_evaluated_from_files(tmp_path, monkeypatch):
    """A synthetic log with the columns of the Criteo sample takes its place."""
    log = pq.read_table(synthetic.click_log(tmp_path, 1_600).files[0])
    names = ["label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
    pq.write_table(log.rename_columns(names), tmp_path / "criteo_sample.parquet")
    monkeypatch.setenv("SEQATT_DATA_DIR", str(tmp_path))
    arguments = ["criteo", "--setting", "CMIM", "--seeds", "1", "--results", str(tmp_path / "results")]
    assert main([*arguments, "--data", "criteo"]) == 0
    assert main([*arguments, "--data", "click_log", "--epochs", "0.05"]) == 0
    results = Results("criteo", tmp_path / "results")
    real = results.runs["criteo | CMIM | seed 0"]
    assert [len(set(features)) for features in real["features"][0]] == [5, 10, 15, 20, 25, 30, 35]
    assert all(0.4 < auc < 1 for auc in real["auc"][0])
    (found,) = results.runs["click_log | CMIM | seed 0"]["found"]
    assert all(count <= k for k, count in enumerate(found, 1))
    assert found[-1] >= 4
    text = (tmp_path / "results" / "results.md").read_text(encoding="utf-8")
    assert f"| 5 | – | **{real['auc'][0][0]:.4f} (1 trial)** | – |" in text
    assert "| paper | 0.6723 ± 0.0001 | 0.6395 ± 0.0008 |" in text
    assert (tmp_path / "results" / "results" / "criteo.svg").stat().st_size > 1000
    monkeypatch.delenv("SEQATT_DATA_DIR")
    with pytest.raises(ValueError, match=r"criteo_sample\.parquet"):
        EXPERIMENTS["criteo"].plan_runs(RunRequest(data=("criteo",)))


def test_finished_runs_stay_recorded_after_an_interrupt(tmp_path):
    runs = [Run("wine", "default", (seed,)) for seed in range(3)]
    executed = []

    def execute(run):
        if len(executed) == 1:
            raise KeyboardInterrupt
        executed.append(run.key)
        return {"accuracy": [0.5]}

    with pytest.raises(KeyboardInterrupt):
        execute_runs(Results("stopped", tmp_path), runs, execute)
    assert list(Results("stopped", tmp_path).runs) == ["wine | default | seed 0"]
    executed.append("the interrupt comes at length 1 only")
    assert execute_runs(Results("stopped", tmp_path), runs, execute) == 2
    assert executed[-2:] == ["wine | default | seed 1", "wine | default | seed 2"]
    assert [p.name for p in tmp_path.iterdir()] == ["stopped.json"]


def test_a_run_with_other_options_is_executed_again(tmp_path):
    for options, executed in (({"k": 3}, 1), ({"k": 3}, 0), ({"k": 4}, 1)):
        results, runs = Results("again", tmp_path), [Run("wine", "default", (0,), options)]
        assert execute_runs(results, runs, lambda run: {"accuracy": [run.options["k"]]}) == executed
    assert Results("again", tmp_path).values("wine", "default") == [4]


def test_recorded_features_are_evaluated_again_without_a_selection(tmp_path, monkeypatch):
    monkeypatch.setenv("SEQATT_COMMIT", "older")
    results, runs = Results("wide", tmp_path), [Run("wine", name, (0,), {}) for name in ("forest", "default")]
    execute_runs(results, runs, lambda run: {"accuracy": [0.5], "features": [[1, 2]]})
    monkeypatch.setenv("SEQATT_COMMIT", "newer")
    for pending in (1, 0):  # what this commit has evaluated is not evaluated again
        request = RunRequest(settings=("forest",))
        assert (
            evaluate_again(results, request, lambda run, features: {"accuracy": [len(features[0])]})
            == pending
        )
    recorded = Results("wide", tmp_path)
    assert [recorded.values("wine", name) for name in ("forest", "default")] == [[2], [0.5]]
    assert "features of 1 of these runs evaluated again" in provenance(recorded)


def test_a_seed_of_several_runs_counts_once(tmp_path):
    runs = [Run("wine", "default", seeds) for seeds in ((0,), (0, 1, 2), (3,))]
    results = Results("pooled", tmp_path)
    execute_runs(results, runs, lambda run: {"accuracy": [10 * len(run.seeds) + s for s in run.seeds]})
    assert results.values("wine", "default") == [30, 31, 32, 13]


def test_machines_are_kept_apart(tmp_path):
    runs = [Run("wine", "default", (0,), {}, machine) for machine in ("CPU", "GPU")]
    results = Results("machines", tmp_path)
    execute_runs(results, runs, lambda run: {"accuracy": [len(results.runs)]})
    assert results.machines() == ["CPU", "GPU"]
    assert results.values("wine", "default", machine="GPU") == [1]


def test_provenance_has_one_line_per_machine_and_commit(tmp_path):
    results = Results("provenance", tmp_path)
    environment = {"machine": "CPU", "date": "2026-01-01", "commit": "abc1234", "torch": "2.13.0"}
    for seed, command in enumerate(("first", "second")):
        run = {"data": "wine", "setting": "default", "seeds": [seed], "options": {}, "seconds": 1.2}
        results.add(f"run {seed}", run, environment | {"command": command})
    assert "CPU, 2026-01-01, commit abc1234, torch 2.13.0: 2 runs, 2 s." in provenance(results)


def test_the_page_is_rendered_from_the_results_files():
    path = page_path(COMMITTED)
    text = path.read_text(encoding="utf-8")
    assert text == page(COMMITTED), "run python -m experiments.page"
    for chart in re.findall(r"\]\((results/[^)]+)\)", text):
        assert (path.parent / chart).is_file()


def test_a_figure_that_was_not_measured_is_a_dash(tmp_path):
    results = Results("accuracy", tmp_path)
    measured = {"accuracy": [0.5, 0.7], "features": [[1, 2], [2, 3]]}
    execute_runs(results, [Run("mnist", "default", (0, 1))], lambda run: measured)
    text = EXPERIMENTS["accuracy"].render(results)
    assert "| MNIST | 0.956 ± 0.002 | 0.600 ± 0.100 (2 trials) | – | – | – | 0.953 |" in text
    assert "| ISOLET | 0.920 ± 0.006 | – | – | – | – | 0.961 |" in text
    assert "Not run yet: `make paper-wide`" in page(tmp_path)


def test_experiments_use_public_names_only():
    for path in (ROOT / "experiments").glob("*.py"):
        imported = re.findall(
            r"^\s*(?:from|import) (seqatt\S*)", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert set(imported) <= {"seqatt", "seqatt.datasets", "seqatt.linear"}, path.name


def test_every_experiment_has_its_make_target():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^PAPER := (.*)$", makefile, re.MULTILINE)[1].split() == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["accuracy", "--epochs", "1"], "shortened runs must not mix with full results"),
        (["accurracy"], "there is no experiment 'accurracy'"),
        (["accuracy", "--seeds", "0"], "--seeds: must be at least 1"),
    ],
)
def test_wrong_usage_is_an_error(arguments, message, capsys, monkeypatch):
    monkeypatch.delenv("SEQATT_RESULTS", raising=False)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("accuracy", "mnits", "did you mean"),
        ("wide", "wine/groups", "no split"),
        ("pixels", "wine", "no images"),
        ("marginal", "wine", "no images"),
        ("spurious", "mnits", "did you mean"),
        ("criteo", "mnist", "no click log 'mnist'"),
    ],
)
def test_wrong_data_are_an_error_before_any_run(name, data, message):
    with pytest.raises(ValueError, match=message):
        EXPERIMENTS[name].plan_runs(RunRequest(data=(data,)))


def test_a_broken_results_file_is_an_error(tmp_path):
    (tmp_path / "accuracy.json").write_text("{")
    with pytest.raises(ValueError, match="not a results file"):
        Results("accuracy", tmp_path)


def test_planted_features_are_of_the_kind_in_their_names():
    data = planted(3)
    kinds = np.array([name.split("_")[0] for name in data.feature_names])
    assert [(kinds == kind).sum() for kind in ("informative", "redundant", "noise")] == [5, 15, 480]
    design = np.c_[data.X[:, kinds == "informative"], np.ones(len(data.y))]
    for kind, combined in (("redundant", True), ("noise", False)):
        X = data.X[:, kinds == kind]
        residual = X - design @ np.linalg.lstsq(design, X, rcond=None)[0]
        assert ((residual.std(0) < 1e-8) == combined).all()


def test_jaccard_index_and_clustering_of_known_sets():
    assert jaccard([[1, 2], [2, 3], [1, 2]]) == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert jaccard([[1, 2]]) is None
    block, corners = np.zeros((6, 6)), np.zeros((6, 6))
    block[:2, :2] = 1
    corners[[0, 0, 5, 5], [0, 5, 0, 5]] = 1
    assert (mean_neighbours(block), mean_distance(block)) == (3, 1)
    assert (mean_neighbours(corners), mean_distance(corners)) == (0, 5)
