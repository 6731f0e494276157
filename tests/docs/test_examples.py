"""Every example of the gallery runs, draws something and warns of nothing."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from tests.support.budgets import short_or_full

plt = pytest.importorskip("matplotlib.pyplot", reason="the examples draw: pip install 'seqatt[plot]'")
pytest.importorskip("pandas", reason="the examples use data frames: pip install 'seqatt[pandas]'")

LONG = ("plot_costs", "plot_wide_table")  # only by make test-all, and where the site runs them
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


def test_there_are_at_least_ten_examples():
    assert len(EXAMPLES) >= 10


@pytest.mark.slow
@short_or_full
@pytest.mark.usefixtures("training")
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.exhaustive] * (path.stem in LONG))
        for path in EXAMPLES
    ],
)
def test_an_example_runs_and_draws(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    plt.close("all")
    monkeypatch.setattr(plt, "show", lambda: None)
    runpy.run_path(str(example), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    assert all(axes.has_data() for figure in figures for axes in figure.axes)
    for figure in figures:
        figure.canvas.draw()
    plt.close("all")
