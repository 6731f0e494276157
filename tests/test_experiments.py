"""The experiments: run as a person runs them, kept when they are stopped, shown as they were measured."""

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
from experiments.page import EXPERIMENTS, page, page_path
from experiments.pixels import distance, neighbours
from experiments.planted import planted
from experiments.rendering import MISSING, provenance, shown
from experiments.results_file import COMMITTED, Results
from experiments.running import ROOT, Cell, Slice, run_cells
from experiments.variation import jaccard

from seqatt.datasets import synthetic


def run_slice(folder: Path, *words: str) -> str:
    """What ``python -m experiments`` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *words, "--results", str(folder)],
        cwd=ROOT,
        env=os.environ | {"SEQATT_COMMIT": "abc1234"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # progress is for terminals
    return done.stdout


def test_a_slice_runs_end_to_end_and_goes_on_where_it_stopped(tmp_path):
    words = ["accuracy", "--data", "digits", "--setting", "default", "--setting", "random"]
    words += ["--seeds", "2", "--epochs", "3"]
    assert "4 cells run, 0 were there already" in run_slice(tmp_path, *words)
    path = tmp_path / "accuracy.json"
    first = json.loads(path.read_text())
    assert set(first["runs"][0]) >= {"command", "date", "commit", "machine", "cores", "python", "torch"}
    assert first["runs"][0]["commit"] == "abc1234"
    for cell in first["cells"].values():
        assert cell["seconds"] > 0
        assert [len(set(features)) for features in cell["features"]] == [50]
        assert all(0.8 < accuracy <= 1 for accuracy in cell["accuracy"])
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    values = [first["cells"][f"digits | default | seed {seed}"]["accuracy"][0] for seed in (0, 1)]
    assert f"| digits | {MISSING} | {shown(values)} |" in text
    assert (tmp_path / "results" / "accuracy.svg").read_text().startswith("<?xml")

    lost = first["cells"].pop("digits | default | seed 1")
    path.write_text(json.dumps(first))
    assert "1 cells run, 3 were there already" in run_slice(tmp_path, *words)
    again = json.loads(path.read_text())["cells"]["digits | default | seed 1"]
    assert again["accuracy"] == lost["accuracy"]
    assert again["features"] == lost["features"]


@pytest.mark.parametrize(
    ("name", "data", "setting"),
    [
        ("masks", "wine", "l1"),
        ("adaptivity", "digits", "8 a phase"),
        ("efficiency", "wine", "trials together"),
        ("budget", "wine", "200 steps"),
        ("pixels", "digits", "plain"),
        ("speed", "wine", "linear_omp"),
        ("wide", "wine", "mutual information"),
    ],
)
def test_every_experiment_runs_and_draws(name, data, setting, tmp_path, capsys):
    words = [name, "--data", data, "--setting", setting, "--seeds", "2", "--epochs", "2"]
    assert main([*words, "--results", str(tmp_path)]) == 0
    cells = Results(name, tmp_path).cells.values()
    assert sorted(seed for cell in cells for seed in cell["seeds"]) == [0, 1]
    assert (tmp_path / "results" / f"{name}.svg").stat().st_size > 1000
    assert f"| {data} |" in (tmp_path / "results.md").read_text(encoding="utf-8")


def test_click_logs_are_chosen_from_and_judged_as_files(tmp_path, monkeypatch):
    """A synthetic log with the sample's columns stands in for it."""
    log = pq.read_table(synthetic.click_log(tmp_path, 1_600).files[0])
    names = ["label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
    pq.write_table(log.rename_columns(names), tmp_path / "criteo_sample.parquet")
    monkeypatch.setenv("SEQATT_DATA_DIR", str(tmp_path))
    words = ["criteo", "--setting", "CMIM", "--seeds", "1", "--results", str(tmp_path / "found")]
    assert main([*words, "--data", "criteo"]) == 0
    assert main([*words, "--data", "click_log", "--epochs", "0.05"]) == 0
    results = Results("criteo", tmp_path / "found")
    real = results.cells["criteo | CMIM | seed 0"]
    assert [len(set(chosen)) for chosen in real["features"][0]] == [5, 10, 15, 20, 25, 30, 35]
    assert all(0.4 < auc < 1 for auc in real["auc"][0])
    (found,) = results.cells["click_log | CMIM | seed 0"]["found"]
    assert all(number <= k for k, number in enumerate(found, 1))
    assert found[-1] >= 4
    text = (tmp_path / "found" / "results.md").read_text(encoding="utf-8")
    assert f"| 5 | – | **{real['auc'][0][0]:.4f} (1 trial)** | – |" in text
    assert "| paper | 0.6723 ± 0.0001 | 0.6395 ± 0.0008 |" in text
    assert (tmp_path / "found" / "results" / "criteo.svg").stat().st_size > 1000
    monkeypatch.delenv("SEQATT_DATA_DIR")
    with pytest.raises(ValueError, match=r"criteo_sample\.parquet"):
        EXPERIMENTS["criteo"].cells(Slice(data=("criteo",)))


def test_a_stopped_run_keeps_what_was_done(tmp_path):
    cells = [Cell("wine", "default", (seed,)) for seed in range(3)]
    ran = []

    def run(cell):
        if len(ran) == 1:
            raise KeyboardInterrupt
        ran.append(cell.key)
        return {"accuracy": [0.5]}

    with pytest.raises(KeyboardInterrupt):
        run_cells(Results("stopped", tmp_path), cells, run)
    assert list(Results("stopped", tmp_path).cells) == ["wine | default | seed 0"]
    ran.append("so that it runs on")
    assert run_cells(Results("stopped", tmp_path), cells, run) == 2
    assert ran[-2:] == ["wine | default | seed 1", "wine | default | seed 2"]
    assert [p.name for p in tmp_path.iterdir()] == ["stopped.json"]


def test_a_cell_with_other_options_is_run_again(tmp_path):
    for options, new in (({"k": 3}, 1), ({"k": 3}, 0), ({"k": 4}, 1)):
        cell = Cell("wine", "default", (0,), options)
        assert run_cells(Results("again", tmp_path), [cell], lambda c: {"accuracy": [c.options["k"]]}) == new
    assert Results("again", tmp_path).values("wine", "default") == [4]


def test_trials_are_counted_once_whatever_batches_they_came_in(tmp_path):
    cells = [Cell("wine", "default", seeds) for seeds in ((0,), (0, 1, 2), (3,))]
    results = Results("pooled", tmp_path)
    run_cells(results, cells, lambda cell: {"accuracy": [10 * len(cell.seeds) + s for s in cell.seeds]})
    assert results.values("wine", "default") == [30, 31, 32, 13]


def test_machines_are_kept_apart(tmp_path):
    cells = [Cell("wine", "default", (0,), {}, machine) for machine in ("CPU", "GPU")]
    results = Results("machines", tmp_path)
    run_cells(results, cells, lambda cell: {"accuracy": [len(results.cells)]})
    assert results.machines() == ["CPU", "GPU"]
    assert results.values("wine", "default", machine="GPU") == [1]


def test_runs_of_one_commit_on_one_machine_are_told_once(tmp_path):
    results = Results("told", tmp_path)
    run = {"machine": "CPU", "date": "2026-01-01", "commit": "abc1234", "torch": "2.13.0"}
    for seed, command in enumerate(("first", "second")):
        cell = {"data": "wine", "setting": "default", "seeds": [seed], "options": {}, "seconds": 1.2}
        results.add(f"cell {seed}", cell, run | {"command": command})
    assert "CPU, 2026-01-01, commit abc1234, torch 2.13.0: 2 cells, 2 s." in provenance(results)


def test_the_page_is_what_the_result_files_render_to():
    path = page_path(COMMITTED)
    text = path.read_text(encoding="utf-8")
    assert text == page(COMMITTED), "run python -m experiments.page"
    for chart in re.findall(r"\]\((results/[^)]+)\)", text):
        assert (path.parent / chart).is_file()


def test_what_was_not_measured_is_a_dash(tmp_path):
    results = Results("accuracy", tmp_path)
    found = {"accuracy": [0.5, 0.7], "features": [[1, 2], [2, 3]]}
    run_cells(results, [Cell("mnist", "default", (0, 1))], lambda cell: found)
    text = EXPERIMENTS["accuracy"].render(results)
    assert "| MNIST | 0.956 ± 0.002 | 0.600 ± 0.100 (2 trials) | – | – | – | 0.953 |" in text
    assert "| ISOLET | 0.920 ± 0.006 | – | – | – | – | 0.961 |" in text
    assert "Not run yet: `make paper-wide`" in page(tmp_path)


def test_experiments_use_public_names_alone():
    for path in (ROOT / "experiments").glob("*.py"):
        used = re.findall(r"^\s*(?:from|import) (seqatt\S*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(used) <= {"seqatt", "seqatt.datasets", "seqatt.linear"}, path.name


def test_every_experiment_has_its_make_target():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^PAPER := (.*)$", makefile, re.MULTILINE)[1].split() == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["accuracy", "--epochs", "1"], "a shortened run is no result"),
        (["accurracy"], "there is no experiment 'accurracy'"),
        (["accuracy", "--seeds", "0"], "--seeds: must be at least 1"),
    ],
)
def test_wrong_usage_is_told(words, says, capsys, monkeypatch):
    monkeypatch.delenv("SEQATT_RESULTS", raising=False)
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("accuracy", "mnits", "did you mean"),
        ("wide", "wine/groups", "no split"),
        ("pixels", "wine", "no images"),
        ("marginal", "wine", "no images"),
        ("spurious", "mnits", "did you mean"),
        ("criteo", "mnist", "no click log 'mnist'"),
    ],
)
def test_wrong_data_are_told_before_any_work(name, data, says):
    with pytest.raises(ValueError, match=says):
        EXPERIMENTS[name].cells(Slice(data=(data,)))


def test_a_broken_file_of_results_is_told(tmp_path):
    (tmp_path / "accuracy.json").write_text("{")
    with pytest.raises(ValueError, match="not a file of results"):
        Results("accuracy", tmp_path)


def test_planted_features_are_what_their_names_say():
    data = planted(3)
    kinds = np.array([name.split("_")[0] for name in data.feature_names])
    assert [(kinds == kind).sum() for kind in ("informative", "redundant", "noise")] == [5, 15, 480]
    sources = np.c_[data.X[:, kinds == "informative"], np.ones(len(data.y))]
    for kind, combined in (("redundant", True), ("noise", False)):
        X = data.X[:, kinds == kind]
        left = X - sources @ np.linalg.lstsq(sources, X, rcond=None)[0]
        assert ((left.std(0) < 1e-8) == combined).all()


def test_jaccard_and_clumping_of_known_sets():
    assert jaccard([[1, 2], [2, 3], [1, 2]]) == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert jaccard([[1, 2]]) is None
    block, apart = np.zeros((6, 6)), np.zeros((6, 6))
    block[:2, :2] = 1
    apart[[0, 0, 5, 5], [0, 5, 0, 5]] = 1
    assert (neighbours(block), distance(block)) == (3, 1)
    assert (neighbours(apart), distance(apart)) == (0, 5)
