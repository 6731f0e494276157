"""The command ``seqatt data``."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy.io import savemat
from tests.support import command
from tests.support.local_server import serve

import seqatt
from seqatt.datasets.catalogue import CATALOGUE
from seqatt.datasets.entry import PublisherFile


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A folder with one data set, and an empty cache."""
    folder = tmp_path / "data"
    (folder / "extra").mkdir(parents=True)
    entry = CATALOGUE["california_housing"]
    np.savez(
        folder / "extra" / "california_housing.npz",
        X=np.zeros((entry.rows[0], entry.features)),
        y=np.zeros(entry.rows[0]),
        feature_names=np.array([f"f{i}" for i in range(entry.features)]),
        target_names=np.array(["price"]),
    )
    monkeypatch.setenv("SEQATT_DATA_DIR", str(folder))
    monkeypatch.setenv("SEQATT_CACHE_DIR", str(tmp_path / "cache"))
    return folder, tmp_path / "cache"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return command.run("data", *arguments)


def test_list_shows_every_data_set_and_its_location(folders):
    done = run("list")
    assert done.returncode == 0, done.stderr
    line = {name: next(x for x in done.stdout.splitlines() if f" {name} " in x) for name in CATALOGUE}
    assert "in SEQATT_DATA_DIR" in line["california_housing"]
    assert "numeric" in line["california_housing"]
    assert "needs download" in line["mnist"]
    assert "60,000 + 10,000" in line["mnist"]
    assert "bring your own file" in line["sylva"]
    assert "with scikit-learn" in line["iris"]
    assert not folders[1].exists()  # listing writes nothing


def test_list_as_json_has_licences_citations_and_paths(folders):
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert list(rows) == seqatt.datasets.names()
    assert rows["mnist"]["where"] == "download"
    assert rows["mnist"]["path"] is None
    assert rows["mice_protein"]["licence"] == "CC BY 4.0"
    assert "Higuera" in rows["mice_protein"]["citation"]
    assert rows["california_housing"]["path"] == str(folders[0] / "extra" / "california_housing.npz")


def test_path_names_the_folders_or_a_file(folders, monkeypatch):
    folder, cache = folders
    assert run("path").stdout.splitlines() == [str(folder), str(cache)]
    done = run("path", "california_housing")
    assert done.stdout == f"{folder / 'extra' / 'california_housing.npz'}\n"
    monkeypatch.delenv("SEQATT_DATA_DIR")
    assert run("path").stdout.splitlines() == [str(cache)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("path", "mnist"),
            1,
            "error: mnist: is not on this machine yet; seqatt data fetch mnist downloads it\n",
        ),
        (("path", "iris"), 1, "error: iris: comes with scikit-learn and has no file of its own\n"),
        (("path", "mnits"), 1, "error: name: there is no data set 'mnits'; did you mean 'mnist'?\n"),
        (("fetch", "iris", "mnits"), 1, "error: name: there is no data set 'mnits'; did you mean 'mnist'?\n"),
        (
            ("fetch", "sylva"),
            1,
            "error: sylva: is not on this machine and has no download; put extra/sylva.npz",
        ),
    ],
)
def test_an_error_is_one_line(folders, arguments, code, message):
    done = run(*arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_fetch_needs_names_or_all_but_not_both(folders):
    for arguments in ((), ("iris", "--all")):
        done = run("fetch", *arguments)
        assert done.returncode == 2
        assert "--all" in done.stderr


def test_fetch_prints_the_file_of_a_data_set_that_exists(folders):
    done = run("fetch", "california_housing", "iris")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"california_housing: {folders[0] / 'extra' / 'california_housing.npz'}",
        "iris: comes with scikit-learn",
    ]


def test_fetch_all_downloads_all_it_can_and_fails_if_one_fails(folders, monkeypatch):
    stream = io.BytesIO()
    savemat(stream, {"X": np.ones((8, 2)), "Y": np.arange(8)[:, None] % 2})
    with serve() as site:
        site.files["yale.mat"] = stream.getvalue()
        for name in [n for n, e in CATALOGUE.items() if e.originals]:
            entry = dataclasses.replace(
                CATALOGUE[name], rows=(8,), features=2, classes=2, parser="matlab", needs=(),
                originals=(PublisherFile(f"{site.url}/{name}.mat"),),
            )  # fmt: skip
            monkeypatch.setitem(CATALOGUE, name, entry)
        done = run("fetch", "--all")
    assert done.returncode == 1
    assert re.search("^note: .*no checksum of yale.mat is known", done.stderr, re.MULTILINE)
    assert f"yale: {folders[1] / 'extra' / 'yale.npz'}" in done.stdout
    assert "error: mnist: 127.0.0.1" in done.stderr
    assert "sylva" not in done.stdout + done.stderr
    assert (folders[1] / "extra" / "yale.npz").is_file()


def test_the_commands_do_not_import_torch(folders):
    code = (
        "import sys; from typer.testing import CliRunner; from seqatt.cli.app import app; "
        "assert CliRunner().invoke(app, ['data', 'list']).exit_code == 0; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
