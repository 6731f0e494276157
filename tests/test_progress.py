"""Progress is shown on terminals and in notebooks, and logged where logging is on."""

from __future__ import annotations

import logging
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest
from tests.support.problems import linear_problem

import seqatt
from seqatt import progress
from seqatt.progress import progress_bar


class Notebook:
    """What IPython is in a notebook: a shell with a kernel, and displays that can be updated."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data, *, raw, display_id):
        assert raw
        assert display_id is True
        self.shown.append(data)
        return self

    def update(self, data, *, raw):
        assert raw
        self.shown.append(data)


@pytest.fixture
def notebook(monkeypatch) -> Notebook:
    notebook, package = Notebook(), ModuleType("IPython")
    package.get_ipython = lambda: SimpleNamespace(kernel=object())
    package.display = ModuleType("IPython.display")
    package.display.display = notebook.display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", package.display)
    monkeypatch.setattr(progress, "NOTEBOOK_SECONDS", 0.0)
    return notebook


def test_a_notebook_gets_a_bar(notebook):
    seqatt.select(*linear_problem("binary"), 2, epochs=3, progress=True)
    assert len(notebook.shown) > 2
    assert notebook.shown[0]["text/plain"].startswith("Preparing")
    assert "value" not in notebook.shown[0]["text/html"]  # how long that takes is not known
    assert 'value="0.0000"' in notebook.shown[1]["text/html"]
    assert "Sequential Attention: 100%" in notebook.shown[-1]["text/plain"]


def test_a_notebook_without_progress_gets_nothing(notebook):
    seqatt.select(*linear_problem("binary"), 2, epochs=1)
    assert notebook.shown == []


def test_a_notebook_bar_shows_where_an_error_came(notebook):
    def fail() -> None:
        with progress_bar("Work", 4, shown=True) as advance:
            advance(1)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert notebook.shown[-1]["text/plain"].startswith("Work: 25%")


def test_ipython_on_a_terminal_is_no_notebook(notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", SimpleNamespace)
    with progress_bar("Work", 4, shown=True) as advance:
        advance(4)
    assert notebook.shown == []


def test_a_line_is_logged_now_and_then(caplog, monkeypatch):
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    with caplog.at_level(logging.INFO, "seqatt"), progress_bar("Work", 4, shown=False) as advance:
        advance(1)
        advance(1, "Other work")
        advance(2)
    texts = [record.getMessage() for record in caplog.records]
    assert texts[0] == "Work: started"
    assert texts[1].startswith("Work: 25% after 0 s, about ")
    assert texts[2].startswith("Other work: 50%")
    assert texts[-1] == "Other work: 100% after 0 s"


def test_a_new_total_starts_the_count_again(caplog):
    with caplog.at_level(logging.INFO, "seqatt"), progress_bar("Reading", None, shown=False) as advance:
        advance(3)
        advance(0, "Work", 4)
        advance(1)
    texts = [record.getMessage() for record in caplog.records]
    assert texts == ["Reading: started", "Work: started", "Work: 100% after 0 s"]


def test_parts_of_a_call_add_up():
    timings = progress.Timings()
    timings.end("read")
    timings.end("select")
    timings.include({"select": 2.0, "prepare": 1.0})
    timings.end("write")
    assert list(timings.seconds) == ["read", "select", "prepare", "write"]
    assert timings.seconds["select"] >= 2.0
    assert sum(timings.seconds.values()) < 1.0  # included time is taken from the time that passed


def test_lines_are_seconds_apart(caplog):
    with caplog.at_level(logging.INFO, "seqatt"), progress_bar("Work", 1000, shown=False) as advance:
        for _ in range(1000):
            advance(1)
    assert len(caplog.records) == 2  # the first and the last


def test_logging_is_off_by_default():
    code = """
import seqatt
from sklearn.datasets import load_wine
seqatt.select(*load_wine(return_X_y=True), 2, method="linear_omp", progress=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
