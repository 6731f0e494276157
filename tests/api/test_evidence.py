"""A selection says when no feature is related to the target by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.support.command import run
from tests.support.problems import linear_problem
from tests.support.reports import make_full_selection

import seqatt
from seqatt.cli.display import show
from seqatt.report.facts.selection_facts import selection_facts
from seqatt.selection import lacks_evidence


def noise(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(400, 50)), rng.integers(0, 2, 400)


def test_pure_noise_is_said_to_lack_evidence():
    lacking = 0
    for seed in range(8):
        X, y = noise(seed)
        selection = seqatt.select(X[:80], y[:80], 5, epochs=1)  # too few rows for a test on held-out rows
        lacking += lacks_evidence(selection.settings)
        assert lacks_evidence(selection.settings) == (
            "no feature is significant by itself" in repr(selection)
        )
    assert lacking >= 6  # a false discovery rate of 5 %


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression", "multi-output"])
def test_planted_features_are_evidence(task):
    selection = seqatt.select(*linear_problem(task), 2, epochs=1)
    assert selection.settings["min_q_value"] < 1e-6
    assert "significant" not in repr(selection)


def test_a_method_without_the_test_says_nothing():
    for options in ({"recipe": "paper"}, {"method": "linear_omp"}):
        assert "min_q_value" not in seqatt.select(*noise(0), 5, **options).settings


def test_the_command_line_says_so_under_the_features(tmp_path):
    X, y = noise(0)
    frame = pd.DataFrame(X).add_prefix("f").assign(label=y)
    frame[:80].to_csv(tmp_path / "noise.csv", index=False)
    done = run("select", tmp_path / "noise.csv", "-t", "label", "-k", 5)
    assert "No feature is significantly related to label by itself (smallest q-value" in done.stdout
    X, y = linear_problem("binary")
    pd.DataFrame(X).add_prefix("f").assign(label=y).to_csv(tmp_path / "signal.csv", index=False)
    assert "significant" not in run("select", tmp_path / "signal.csv", "-t", "label", "-k", 2).stdout


def test_features_that_auto_finds_together_are_not_doubted_because_none_stands_out(capsys):
    selection = make_full_selection()
    settings = selection.settings | {"min_q_value": 0.4}
    pair = replace(selection, settings=settings, chance=None)
    fixed = replace(pair, curve=None)
    kept = replace(pair, settings=settings | {"keep": ["mean area"]})  # selected whether or not it helps
    for each, doubted in ((pair, False), (fixed, True), (kept, True)):
        show(each, "label")
        assert ("No feature is significant" in capsys.readouterr().out) == doubted
        assert ("no feature is significant" in repr(each)) == doubted
        summary = " ".join(selection_facts(each)["summary"])
        assert ("No feature is related to the target by itself" in summary) == doubted
