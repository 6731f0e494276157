from __future__ import annotations

import json
import os

import pytest
from tests.support.problems import linear_problem

import seqatt
from seqatt.selection import write_atomically


@pytest.fixture(scope="module")
def selection() -> seqatt.Selection:
    return seqatt.select(*linear_problem("binary"), 3, epochs=3)


def test_saved_and_loaded_it_is_the_same(selection, tmp_path):
    selection.save(tmp_path / "s.json")
    loaded = seqatt.Selection.load(tmp_path / "s.json")
    assert loaded.to_dict() == selection.to_dict()
    assert loaded.indices.dtype == selection.indices.dtype
    assert loaded.support.dtype == bool


def test_the_file_is_plain_json(selection, tmp_path):
    selection.save(tmp_path / "s.json")
    raw = json.loads((tmp_path / "s.json").read_text())
    assert raw["features"] == selection.features
    assert raw["settings"]["mask"] == "softmax"
    assert {"seqatt", "torch", "python", "device"} <= set(raw["environment"])


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", '{"format": 99}', "not json"])
def test_anything_else_is_refused(content, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="not a saved selection"):
        seqatt.Selection.load(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "s.json"
    write_atomically(path, "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_it_shows_itself_briefly(selection):
    assert repr(selection).startswith("Selection(3 of 8 features: ")


def test_settings_tell_what_was_said_about_the_table():
    X, y = linear_problem("binary")
    told = seqatt.select(
        X, y, 2, epochs=1, class_weight={0: 1, 1: 2}, groups=[[0, 2]], sample_weight=X[:, 0] ** 2
    ).settings
    assert told["class_weight"] == {"0": 1, "1": 2}
    assert told["groups"] == [[0, 2]]
    assert told["sample_weight"] is True
    json.dumps(told)
