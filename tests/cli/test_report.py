"""``seqatt report`` and --report: the page of a run, from the command line."""

from __future__ import annotations

import json
import shlex

import pytest
from tests.support.command import run
from tests.support.reports import make_comparison, make_full_selection, make_table


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, y = make_table()
    path = tmp_path_factory.mktemp("table") / "table.csv"
    X.assign(target=y).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """A folder with a selection that was evaluated, and its page."""
    out = tmp_path_factory.mktemp("run")
    arguments = ["select", table, "-t", "target", "-k", "2", "--method", "f_test", "--holdout", "0.3"]
    done = run(*arguments, "--out", out, "--report", out / "page.html")
    assert done.returncode == 0, done.stderr
    assert f"Wrote {out / 'page.html'}" in done.stdout
    assert "report " in done.stdout.splitlines()[-1]
    return out


def test_select_writes_a_page_with_distributions_evaluation_and_the_command(folder, table):
    page = (folder / "page.html").read_text()
    for heading in ("distributions", "correlation", "evaluation", "origin"):
        assert f'<h2 id="{heading}"' in page
    command = json.loads((folder / "selection.json").read_text())["settings"]["command"]
    assert shlex.split(command)[:3] == ["seqatt", "select", str(table)]
    assert "--holdout 0.3" in command
    assert "171 held-out rows" in page


def test_report_makes_the_page_of_a_folder_or_of_a_file(folder, tmp_path):
    assert run("report", folder).stdout == f"Wrote {folder / 'report.html'}\n"
    page = (folder / "report.html").read_text()
    assert '<h2 id="evaluation"' in page
    assert '<h2 id="distributions"' not in page
    done = run("report", folder / "selection.json", "--out", tmp_path / "p.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.html").read_text() == page


def test_report_with_the_data_has_distributions(folder, table, tmp_path):
    out = tmp_path / "p.html"
    done = run("report", folder, "--data", table, "--target", "target", "--out", out)
    assert done.returncode == 0, done.stderr
    assert '<h2 id="distributions"' in out.read_text()


def test_report_prints_its_facts_as_json(folder):
    facts = json.loads(run("report", folder, "--json").stdout)
    assert facts["kind"] == "selection"
    assert len(facts["features"]) == 2


def test_report_of_a_comparison(tmp_path):
    make_comparison().save(tmp_path / "comparison.json")
    assert run("report", tmp_path, "--target", "kind").returncode == 0
    assert "3 methods compared for kind" in (tmp_path / "report.html").read_text()


def test_compare_writes_a_page(table, tmp_path, monkeypatch):
    for module in ("evaluate", "evaluation_networks"):
        monkeypatch.setattr(f"seqatt.api.{module}.evaluation_steps", lambda *_: 20)
    page = tmp_path / "new" / "page.html"
    arguments = ["compare", table, "-t", "target", "-k", "2,3", "--methods", "f_test,random,all"]
    done = run(*arguments, "--seeds", "2", "--report", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "seqatt compare" in text
    assert '<h2 id="chart"' in text


def test_pixels_are_drawn_in_their_shape(tmp_path):
    make_full_selection().save(tmp_path / "selection.json")
    assert run("report", tmp_path, "--image-shape", "5,6").returncode == 0
    assert '<h2 id="image"' in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere"], 1, "does not exist"),
        (["."], 1, "has no selection.json, comparison.json"),
        (["selection.json", "--image-shape", "28x28"], 2, "is not a height and a width such as 28,28"),
        (["selection.json", "--image-shape", "2,2"], 1, "image_shape: must be the height and width"),
        (["selection.json", "--data", "x.csv"], 2, "add --target NAME"),
        (["wrong.json"], 1, "not a saved selection"),
        (["selection.json", "--out", "no/folder/r.html"], 1, "--out: cannot write"),
    ],
)
def test_what_cannot_be_reported_is_one_line(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if arguments != ["."]:
        make_full_selection().save("selection.json")
        (tmp_path / "wrong.json").write_text("{}")
    done = run("report", *arguments)
    assert done.returncode == code
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_a_page_that_cannot_be_written_is_refused_before_any_work(table, tmp_path):
    done = run("select", table, "-t", "target", "-k", "2", "--report", tmp_path)
    assert done.returncode == 1
    assert "is a folder; name a file such as" in done.stderr
    assert done.stdout == ""
