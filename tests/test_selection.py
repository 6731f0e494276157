"""A selection is saved, loaded and shown without loss."""

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


def test_a_loaded_selection_equals_the_saved_one(selection, tmp_path):
    selection.save(tmp_path / "s.json")
    loaded = seqatt.Selection.load(tmp_path / "s.json")
    assert loaded.to_dict() == selection.to_dict()
    assert loaded.indices.dtype == selection.indices.dtype
    assert loaded.support.dtype == bool


def test_a_file_of_format_1_is_read_with_its_old_names(selection, tmp_path):
    raw = selection.to_dict()
    assert raw["format"] == 2
    old = {"input_columns": "members", "input_names": "inputs"}
    saved = {old.get(name, name): value for name, value in raw.items()} | {"format": 1}
    (tmp_path / "s.json").write_text(json.dumps(saved))
    assert seqatt.Selection.load(tmp_path / "s.json").to_dict() == raw


def test_a_file_of_a_later_format_is_refused(selection, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(selection.to_dict() | {"format": 3}))
    with pytest.raises(ValueError, match=r"not a saved selection \(format 3\)"):
        seqatt.Selection.load(tmp_path / "s.json")


def test_the_file_is_plain_json(selection, tmp_path):
    selection.save(tmp_path / "s.json")
    raw = json.loads((tmp_path / "s.json").read_text())
    assert raw["features"] == selection.features
    assert raw["settings"]["mask"] == "softmax"
    assert {"seqatt", "torch", "python", "device"} <= set(raw["environment"])


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", '{"format": 99}', "not json"])
def test_a_file_that_is_no_selection_is_refused(content, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="not a saved selection"):
        seqatt.Selection.load(path)


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "s.json"
    write_atomically(path, "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_repr_is_short(selection):
    assert repr(selection).startswith("Selection(3 of 8 features: ")


def test_settings_record_the_options_about_the_table():
    X, y = linear_problem("binary")
    settings = seqatt.select(
        X, y, 2, epochs=1, class_weight={0: 1, 1: 2}, groups=[[0, 2]], sample_weight=X[:, 0] ** 2
    ).settings
    assert settings["class_weight"] == {"0": 1, "1": 2}
    assert settings["groups"] == [[0, 2]]
    assert settings["sample_weight"] is True
    json.dumps(settings)
