"""Commands start quickly: they import what they need, show at once that they work, and say where time went."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from sklearn.datasets import load_wine
from tests.support.command import run_on_terminal, run_process

HEAVY = ("torch", "numpy", "scipy", "sklearn", "pandas", "polars", "pyarrow")


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    path = tmp_path_factory.mktemp("start") / "wine.csv"
    load_wine(as_frame=True).frame.to_csv(path, index=False)
    return path


def imported_by(*arguments: object) -> set[str]:
    """The modules that a command has imported when it ends."""
    code = (
        "import os, sys\n"
        "def end(code):\n"
        "    print('\\nMODULES', *sys.modules, file=sys.stderr)\n"
        "    raise SystemExit(code)\n"
        "os._exit = end\n"
        "from seqatt.cli.main import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return set(done.stderr.rsplit("MODULES", 1)[1].split())


@pytest.mark.parametrize(
    "arguments", [["methods"], ["methods", "--json"], ["--help"], ["select", "--help"], ["compare", "--help"]]
)
def test_lists_and_help_import_no_numeric_library(arguments):
    assert not imported_by(*arguments) & set(HEAVY)


def test_a_selection_imports_neither_scikit_learn_nor_pandas_nor_unused_parts_of_scipy(wine):
    modules = imported_by("select", wine, "--target", "target", "-k", "2", "--epochs", "2")
    assert "torch" in modules
    unused = {
        "sklearn",
        "pandas",
        "polars",
        "pyarrow.dataset",
        "scipy.stats",
        "scipy.sparse",
        "scipy.optimize",
    }
    assert not modules & unused
    assert "seqatt.algorithms.neural.lassonet" not in modules  # of the methods, only the one that is used


def test_the_command_says_what_its_seconds_were_spent_on(wine, tmp_path):
    arguments = ["select", wine, "--target", "target", "-k", "2", "--epochs", "2"]
    done = run_process(*arguments, "--out", tmp_path)
    total, parts = re.search(r"^([\d.]+) s in all: (.*)$", done.stdout, re.MULTILINE).groups()
    seconds = {name: float(value) for name, value in re.findall(r"(\w+) ([\d.]+)", parts)}
    assert list(seconds) == ["import", "read", "prepare", "select", "write"]
    assert sum(seconds.values()) == pytest.approx(float(total), abs=0.3)
    alone = run_process(*arguments[:-2], "--method", "f_test").stdout
    parts = dict(re.findall(r"(\w+) ([\d.]+)", alone.rsplit("s in all: ", 1)[1]))
    assert list(parts) == ["import", "read", "prepare", "select", "print"]
    assert float(parts["print"]) < 0.1 * float(parts["import"])  # of the method too
    printed = json.loads(run_process(*arguments, "--json").stdout)
    assert printed["command_timings"]["import"] > 0
    assert printed["command_timings"]["prepare"] == printed["timings"]["prepare"]


def test_a_terminal_shows_what_is_going_on_from_the_start(wine):
    shown = run_on_terminal("-m", "seqatt", "select", wine, "--target", "target", "-k", "2", "--epochs", "40")
    titles = ["Loading PyTorch", "Reading", "Sequential Attention"]
    positions = [shown.find(title) for title in titles]
    assert -1 not in positions, shown
    assert positions == sorted(positions)


def test_a_pipe_gets_no_progress(wine):
    done = run_process("select", wine, "--target", "target", "-k", "2", "--epochs", "500")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_seconds_of_a_first_selection_are_all_that_its_call_takes():
    code = (
        "import sys, time, numpy as np, seqatt\n"
        "X = np.random.default_rng(0).normal(size=(60, 4))\n"
        "start = time.perf_counter()\n"
        "first = seqatt.select(X, X[:, 0], 2, method='random')\n"
        "assert time.perf_counter() - start - first.seconds < 0.2 * first.seconds, first.timings\n"
        "assert first.timings['import'] > 0.5 * first.seconds, first.timings\n"
        "assert 'import' not in seqatt.select(X, X[:, 0], 2, method='random').timings\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
