"""``seqatt report`` and --report: the page of a run, from the command line."""

from __future__ import annotations

import json
import shlex

import pandas as pd
import pytest
from tests.support.command import run
from tests.support.reports import make_comparison, make_evaluation, make_full_selection, make_table

from seqatt.cli.report import identify


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
    for target in (["--target", "target"], []):  # by default that of the selection
        done = run("report", folder, "--data", table, *target, "--out", out)
        assert done.returncode == 0, done.stderr
        assert '<h2 id="distributions"' in out.read_text()


def test_report_prints_its_facts_as_json(folder):
    facts = json.loads(run("report", folder, "--json").stdout)
    assert facts["kind"] == "selection"
    assert len(facts["features"]) == 2
    assert facts["target"] == "target"
    assert facts["summary"][0].startswith("Selected 2 of 30 features for target, in this order: ")


def test_several_targets_are_known_to_the_report_where_rows_are_held_out(table, tmp_path):
    frame = pd.read_csv(table)
    frame.assign(other=1 - frame["target"]).to_csv(tmp_path / "two.csv", index=False)
    arguments = ["-t", "target,other", "-k", "1", "--method", "f_test", "--holdout", "0.3"]
    done = run("select", tmp_path / "two.csv", *arguments, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(run("report", tmp_path, "--json").stdout)["target"] == "target, other"


def test_report_of_a_comparison(tmp_path):
    make_comparison().save(tmp_path / "comparison.json")
    assert run("report", tmp_path, "--target", "kind").returncode == 0
    assert "3 methods compared for kind" in (tmp_path / "report.html").read_text()


def test_compare_writes_a_page(table, tmp_path, monkeypatch):
    for module in ("evaluate", "networks"):
        monkeypatch.setattr(f"seqatt.api.evaluation.{module}.evaluation_steps", lambda *_: 20)
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


@pytest.mark.parametrize("command", ["select", "compare", "report"])
def test_a_page_never_replaces_a_file_of_another_kind(command, table, tmp_path):
    data, run_file = tmp_path / "data.csv", tmp_path / "selection.json"
    data.write_bytes(table.read_bytes())
    make_full_selection().save(run_file)
    of_data = [data, "-t", "target", "-k", "2", "--report", data]
    done = run(command, *([run_file, "--out", data] if command == "report" else of_data))
    assert done.returncode == 1
    assert "name a file such as report.html" in done.stderr
    assert data.read_bytes() == table.read_bytes()


def test_the_scores_say_which_selection_they_are_of(folder):
    written = json.loads((folder / "evaluation.json").read_text())["selection"]
    selection = json.loads((folder / "selection.json").read_text())
    assert written == {name: selection[name] for name in ("indices", "method", "seed")}


@pytest.mark.parametrize("other", [{"indices": [0, 27, 21]}, {"method": "f_test"}, {"seed": 1}, None])
def test_the_scores_of_another_selection_are_left_out(other, tmp_path):
    selection = make_full_selection()
    selection.save(tmp_path / "selection.json")
    scores, own = tmp_path / "evaluation.json", identify(selection)
    scores.write_text(json.dumps(make_evaluation() | {"selection": own}))
    assert json.loads(run("report", tmp_path, "--json").stdout)["evaluation"]["rows"] == "171 held-out rows"
    scores.write_text(json.dumps(make_evaluation() | ({} if other is None else {"selection": own | other})))
    done = run("report", tmp_path, "--json")
    assert json.loads(done.stdout)["evaluation"] is None
    assert f"{scores}: not known to be of this selection" in done.stderr.replace("\n", "")


def test_a_new_selection_removes_the_scores_of_the_one_before(table, tmp_path):
    (tmp_path / "evaluation.json").write_text("{}")
    done = run("select", table, "-t", "target", "-k", "2", "--method", "f_test", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "evaluation.json").exists()


SCORES = {"features": 3, "auc": [0.9, None]}


@pytest.mark.parametrize(
    "contents",
    [
        {},
        {"holdout": []},
        {"holdout": {}},
        {"holdout": {"all": SCORES}},
        {"holdout": {"selected": SCORES, "other": SCORES}},
        {"holdout": {"selected": [0.9]}},
        {"holdout": {"selected": {"features": 2}}},
        {"holdout": {"selected": SCORES | {"auc": 0.9}}},
        {"holdout": {"selected": SCORES | {"auc": ["0.9"]}}},
        {"holdout": {"selected": SCORES | {"features": "3"}}},
        {"holdout": {"selected": SCORES, "all": {"features": 30, "accuracy": [0.9]}}},
        {"holdout": {"selected": SCORES}, "rows": 171},
    ],
)
def test_a_damaged_evaluation_is_one_line_that_names_the_file(contents, tmp_path):
    selection = make_full_selection()
    selection.save(tmp_path / "selection.json")
    (tmp_path / "evaluation.json").write_text(json.dumps(contents | {"selection": identify(selection)}))
    done = run("report", tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path / 'evaluation.json'}: not a saved evaluation (" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_shape_of_images_without_a_report_is_refused(table):
    done = run("select", table, "-t", "target", "-k", "2", "--method", "f_test", "--image-shape", "5,6")
    assert done.returncode == 2
    assert "add --report FILE" in done.stderr


def test_classes_of_files_are_shown_as_they_were_written(folder):
    page = (folder / "page.html").read_text()
    assert "class 1" in page
    assert "class 1.0" not in page
