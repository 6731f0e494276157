"""Plots return the axes they draw on; results become data frames and display in notebooks."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.support.reports import HOSTILE, make_comparison, make_full_selection, make_selection

import seqatt

matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


@pytest.mark.parametrize("name", ["curve", "scores", "history", "stability"])
def test_every_plot_of_a_selection_draws_on_the_axes_given_and_returns_them(name, axes):
    assert getattr(make_full_selection().plot, name)(ax=axes) is axes
    assert axes.has_data()


def test_plots_make_axes_of_their_own():
    from matplotlib import pyplot as plt

    assert make_full_selection().plot.scores().has_data()
    plt.close("all")


def test_the_plot_of_scores_shows_importance_where_it_was_measured(axes):
    make_full_selection().plot.scores(axes)
    assert [bar.get_width() for bar in axes.patches] == [0.3, 0.1, 0.02]
    assert axes.get_yticklabels()[0].get_text() == HOSTILE


def test_the_plot_of_an_image_has_the_selected_pixels(axes):
    assert make_selection().plot.image((5, 6), ax=axes) is axes
    pixels = np.ma.filled(axes.images[0].get_array(), np.nan)
    assert np.flatnonzero(~np.isnan(pixels)).tolist() == [0, 22, 27]
    assert pixels.flat[0] > pixels.flat[27] > pixels.flat[22]
    with pytest.raises(ValueError, match="image_shape"):
        make_selection().plot.image((2, 2))


def test_a_plot_without_its_facts_says_how_to_get_them():
    bare = replace(make_selection(), history=[])
    for name, message in (("curve", "k='auto'"), ("stability", "repeats=20"), ("history", "phases")):
        with pytest.raises(ValueError, match=message):
            getattr(bare.plot, name)()


def test_plots_of_comparisons_and_evaluations_return_the_axes(axes):
    comparison = make_comparison()
    assert comparison.plot(axes) is axes
    assert comparison.plot.curve(ax=axes) is axes
    assert comparison.plot.stability(ax=axes) is axes
    evaluation = seqatt.Evaluation({"accuracy": np.array([0.9, 0.8])}, [0, 1])
    assert evaluation.plot.scores(ax=axes) is axes
    with pytest.raises(ValueError, match="metric: unknown 'auc'"):
        evaluation.plot.scores("auc")


def test_without_matplotlib_or_pandas_one_line_says_what_to_install(monkeypatch):
    for module, call, extra in (
        ("matplotlib", make_selection().plot.scores, "seqatt\\[plot\\]"),
        ("pandas", make_selection().to_frame, "seqatt\\[pandas\\]"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=extra):
            call()


def test_data_frames_have_a_row_per_feature_seed_and_method():
    frame = make_full_selection().to_frame()
    assert frame["feature"].tolist() == make_selection().features
    assert {"rank", "score", "importance", "metric", "frequency"} <= set(frame.columns)
    evaluation = seqatt.Evaluation({"accuracy": np.array([0.9, 0.8])}, [4, 7])
    assert evaluation.to_frame()["accuracy"].to_dict() == {4: 0.9, 7: 0.8}
    assert len(make_comparison().to_frame()) == 10


def test_notebooks_show_escaped_tables():
    shown = make_full_selection()._repr_html_()
    assert HOSTILE not in shown
    assert "&lt;script&gt;" in shown
    assert shown.count("<tr>") == 4
    assert all(f"<td>{value}</td>" in shown for value in ("0.300", "0.100", "0.020", "0.050", "0.010"))
    evaluation = seqatt.Evaluation({"auc": np.array([0.9, 0.8])}, [0, 1])
    assert "AUC" in evaluation._repr_html_()
    assert HOSTILE not in make_comparison()._repr_html_()


def test_a_notebook_displays_selections_evaluations_and_comparisons():
    nbclient = pytest.importorskip("nbclient", reason="runs a notebook: make test-browser installs nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [
        "from tests.support.reports import *\nmake_full_selection()",
        "make_comparison()",
        "seqatt.Evaluation({'auc': np.array([0.9, 0.8])}, [0, 1])",
        "make_full_selection().plot.curve();",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": os.getcwd()}}).execute()
    kinds = [set().union(*(output.get("data", {}) for output in cell.outputs)) for cell in notebook.cells]
    assert all("text/html" in some for some in kinds[:3])
    assert "image/png" in kinds[3]
    assert HOSTILE not in notebook.cells[0].outputs[0]["data"]["text/html"]
