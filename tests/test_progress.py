"""Progress is shown on terminals and in notebooks, and logged where logging is on."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest
from tests.support.command import run_on_terminal
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


def test_a_notebook_shows_the_phase_the_loss_and_the_names_as_text(notebook):
    X, y = linear_problem("binary")
    names = ["a", "<b>bold</b>", *"cdefgh"]  # the second and the fifth decide
    seqatt.select(pd.DataFrame(X, columns=names), y, 2, epochs=60, progress=True)
    texts = [shown["text/plain"] for shown in notebook.shown]
    assert any(
        re.search(r"phase \d+ of \d+ · loss [\d.]+ · 2 selected, latest first: ", text) for text in texts
    )
    assert any("<b>bold</b>" in text for text in texts)
    assert not any("<b>" in shown["text/html"] for shown in notebook.shown)
    assert "selected" not in texts[-1]  # what is left behind is one short line


def test_parts_of_the_work_move_the_bar_and_are_named(notebook):
    seqatt.select(*linear_problem("binary"), 2, repeats=2, epochs=30, progress=True)
    texts = [shown["text/plain"] for shown in notebook.shown]
    shares = [int(share) for text in texts for share in re.findall(r"2 repeats: (\d+)%", text)]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert len({share for share in shares if 0 < share < 50}) > 2  # within the first repeat
    assert len({share for share in shares if 50 < share < 100}) > 2  # within the second
    assert any("· repeat 1 of 2 · phase" in text for text in texts)
    assert any("· repeat 2 of 2 · phase" in text for text in texts)


def test_a_real_notebook_is_left_with_one_short_line():
    nbclient = pytest.importorskip("nbclient", reason="runs a notebook: make test-browser installs nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    code = """
import seqatt
from seqatt import progress
from tests.support.command import run_on_terminal
from tests.support.problems import linear_problem
progress.NOTEBOOK_SECONDS = 0.0
selection = seqatt.select(*linear_problem("binary"), 2, progress=True)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": os.getcwd()}}).execute()
    (output,) = notebook.cells[0].outputs
    assert re.fullmatch(r"Sequential Attention: 100% after \d+ s", output["data"]["text/plain"])
    assert 'value="1.0000"' in output["data"]["text/html"]


@pytest.mark.skipif(os.name != "posix", reason="makes a terminal")
def test_a_terminal_shows_the_phase_the_loss_and_the_names_and_is_left_clean():
    code = """
import pandas as pd, seqatt
from tests.support.command import run_on_terminal
from tests.support.problems import linear_problem
X, y = linear_problem("binary", rows=3000)
names = ["first", "sec\\x1b[2Jond", "[bold]third", *"defgh"]
seqatt.select(pd.DataFrame(X, columns=names), y, 3, epochs=200, progress=True)
"""
    written = run_on_terminal("-c", code)
    lines = [re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", written)]
    assert any(re.fullmatch(r"phase \d+ of \d+ · loss [\d.e-]+", line) for line in lines)
    assert any("selected, latest first: " in line and "sec\\x1b[2Jond" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b[2J" not in written
    # The last thing that is written removes the lines of the bar and shows the cursor again.
    assert re.search(
        r"\x1b\[\?25h\r?\x1b\[1A\x1b\[2K(\x1b\[1A\x1b\[2K)*$|\x1b\[2K\x1b\[\?25h$", written.rstrip()
    )


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
