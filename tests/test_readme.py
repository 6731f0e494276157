"""The examples in README.md, the documentation pages and the docstrings run.

The commands of README.md run in ``test_smallest_installation.py``.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.support.budgets import short_or_full

import seqatt.api.evaluation.evaluate
import seqatt.api.select
import seqatt.callbacks.builtin
import seqatt.callbacks.callback
import seqatt.comparison.compare
import seqatt.datasets
import seqatt.datasets.synthetic
import seqatt.estimators
import seqatt.feature_selector
import seqatt.prediction.predictors
import seqatt.report.selection_display

LINEAR_MODULES = ("gram", "omp", "sequential_lasso", "attention", "penalty", "guarantees")
MODULES = [
    seqatt.api.select,
    seqatt.comparison.compare,
    seqatt.callbacks.callback,
    seqatt.callbacks.builtin,
    seqatt.estimators,
    seqatt.feature_selector,
    seqatt.prediction.predictors,
    seqatt.report.selection_display,
    seqatt.api.evaluation.evaluate,
    seqatt.datasets,
    seqatt.datasets.synthetic,
    *(import_module(f"seqatt.linear.{name}") for name in LINEAR_MODULES),
]
ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
DATASETS = DOCS / "datasets.md"
PAGES = (README, *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("how_to/*.md")))


def code_blocks(path: Path, language: str) -> list[str]:
    """The contents of a page's fenced code blocks in one language."""
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


PYTHON_BLOCKS = [(path.stem, code) for path in PAGES for code in code_blocks(path, "python")]


@pytest.mark.slow
@short_or_full
@pytest.mark.parametrize(("name", "code"), PYTHON_BLOCKS)
@pytest.mark.usefixtures("training")
@pytest.mark.filterwarnings("ignore:time. in .* outside the range")  # an example of a series that grows
def test_python_examples_run(name, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    exec(compile(code, name, "exec"), {"__name__": "readme"})
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_run(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_table_of_data_sets_matches_the_catalogue():
    pattern = r"^\| `(\w+)` " + 4 * r"\| ([^|]+) " + r"\|"
    rows = re.findall(pattern, DATASETS.read_text(encoding="utf-8"), re.MULTILINE)
    documented = [row for row in rows if row[0] in seqatt.datasets.names()]
    entries = [seqatt.datasets.info(name) for name in seqatt.datasets.names()]
    assert documented == [
        (
            entry.name,
            " + ".join(f"{n:,}" for n in entry.rows),
            f"{entry.features:,}",
            str(entry.classes or "numeric"),
            ", ".join(entry.splits),
        )
        for entry in entries
    ]


@pytest.mark.slow
def test_public_names_work_in_any_order_of_use():
    code = (
        "import seqatt; seqatt.SequentialAttentionSelector, seqatt.select, seqatt.evaluate; "
        "assert {'sequential_attention', 'linear_omp', 'random'} <= set(seqatt.methods()); "
        "assert callable(seqatt.linear.omp); "
        "rest = set(seqatt.__all__) - {'__version__', 'callbacks', 'datasets', 'linear', 'ray'}; "
        "assert all(callable(getattr(seqatt, n)) for n in rest)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_import_loads_no_dataframe_library():
    code = (
        "import sys, seqatt; seqatt.select; "
        "sys.exit(bool({'pandas', 'polars', 'pyarrow', 'typer'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
