"""A selection is saved, loaded and shown without loss."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.support.problems import linear_problem

import seqatt
from seqatt.json_files import write_atomically
from seqatt.selection_file import why_empty


@pytest.fixture(scope="module")
def selection() -> seqatt.Selection:
    return seqatt.select(*linear_problem("binary"), 3, epochs=3)


def test_a_loaded_selection_equals_the_saved_one(selection, tmp_path):
    selection.save(tmp_path / "s.json")
    loaded = seqatt.Selection.load(tmp_path / "s.json")
    assert loaded == selection
    assert len({loaded, selection}) == 1
    assert replace(loaded, seed=1) != selection
    assert selection != "selection"
    assert loaded.indices.dtype == selection.indices.dtype
    assert loaded.support.dtype == bool


def test_a_partial_selection_of_a_number_that_was_chosen_is_read_and_is_no_empty_answer(selection, tmp_path):
    lines = {"no_features": 0.5, "all_features": 0.9, "random_features": 0.6, "random_size": 3, "folds": 3}
    points = {"sizes": [1, 4], "means": [0.7, 0.9], "standard_errors": [0.1, 0.1]}
    curve = {"metric": "auc", "chosen": 4} | lines | points
    partial = replace(selection, curve=curve, settings=selection.settings | {"partial": "interrupted"})
    partial.save(tmp_path / "s.json")
    assert seqatt.Selection.load(tmp_path / "s.json").curve == curve
    replace(partial, settings=selection.settings).save(tmp_path / "s.json")
    with pytest.raises(ValueError, match="must have chosen as many features as are selected"):
        seqatt.Selection.load(tmp_path / "s.json")
    assert why_empty(replace(partial, features=[])) is None


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


def test_a_file_without_timings_is_read(selection, tmp_path):
    path = tmp_path / "s.json"
    plain = selection.to_dict()
    del plain["timings"]
    path.write_text(json.dumps(plain))
    loaded = seqatt.Selection.load(path)
    assert (loaded.timings, loaded.seconds) == ({}, selection.seconds)


def test_seconds_are_those_of_the_whole_call(tmp_path):
    X, y = linear_problem("binary")
    started = time.perf_counter()
    selection = seqatt.select(X, y, 2, epochs=2)
    elapsed = time.perf_counter() - started
    assert list(selection.timings) == ["prepare", "select"]
    assert sum(selection.timings.values()) == pytest.approx(selection.seconds)
    assert 0.9 * elapsed - 0.05 < selection.seconds <= elapsed
    path = tmp_path / "table.csv"
    path.write_text("a,b,y\n" + "".join(f"{i % 7},{i % 5},{i % 2}\n" for i in range(60)))
    assert list(seqatt.select(path, "y", 1, epochs=2).timings) == ["read", "prepare", "select"]


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


DAMAGES = [
    ("indices", [0, 0, 1], "'indices' must not contain duplicates"),
    ("indices", [0, 1, 8], "'indices' must be between 0 and 7"),
    ("indices", [0, 1, -1], "'indices' must be between 0 and 7"),
    ("indices", [0, 1, 10**400], "'indices' must be between 0 and 7"),
    ("indices", [0.0, 1.0, 2.0], "'indices' must be a list of integers"),
    ("indices", "abc", "'indices' must be a list of integers"),
    ("features", ["a", "b", "c"], "'features' must be the names at the indices"),
    ("features", [{}, {}, {}], "'features' must be a list of names"),
    ("scores", [1.0, 2.0], "'scores' must be one per selected feature"),
    ("scores", [1.0, 2.0, 10**400], "'scores' must be a list of numbers"),
    ("scores", [1.0, 2.0, None], "'scores' must be a list of numbers"),
    ("ranking", [1] * 8, "'ranking' must have every rank once"),
    ("ranking", [1, 2, 3], "'ranking' must have every rank once"),
    ("support", [True] * 8, "'support' must mark the selected features"),
    ("columns", [0], "'columns' must be those of the indices"),
    ("input_columns", [[99]] * 8, "'input_columns' must be between 0 and 7"),
    ("input_columns", [], "'input_columns' must be one per feature"),
    ("names", 8, "'names' must be a list of names"),
    ("seed", "0", "'seed' must be an integer"),
    ("method", None, "'method' must be a name"),
    ("history", {}, "'history' must be objects"),
    ("settings", [], "'settings' must be an object"),
    ("settings", {"target": ["y"]}, "'settings' must have a text as target"),
    ("environment", {"torch": 2}, "'environment' must be an object of texts"),
    ("seconds", 10**400, "'seconds' must be a number"),
    ("timings", [1.0], "'timings' must be an object of numbers"),
    ("timings", {"select": "long"}, "'timings' must be an object of numbers"),
]


@pytest.mark.parametrize(("name", "value", "message"), DAMAGES)
def test_load_checks_types_lengths_ranges_and_duplicates(name, value, message, selection, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(selection.to_dict() | {name: value}))
    with pytest.raises(ValueError, match=re.escape(f"s.json: not a saved selection ({message}")):
        seqatt.Selection.load(path)


@pytest.mark.parametrize("depth", [100, 100_000])
def test_load_refuses_deep_nesting(depth, selection, tmp_path):
    path = tmp_path / "s.json"
    text = json.dumps(selection.to_dict() | {"settings": "here"})
    path.write_text(text.replace('"here"', '{"a": ' + "[" * depth + "]" * depth + "}"))
    with pytest.raises(ValueError, match=r"s\.json: not a saved selection \(nested too deeply\)"):
        seqatt.Selection.load(path)


@pytest.mark.parametrize("keep", [0, 1, 100])
def test_load_names_a_half_written_file(keep, selection, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(selection.to_dict())[:keep])
    with pytest.raises(ValueError, match=r"s\.json: not a saved selection"):
        seqatt.Selection.load(path)


def test_load_names_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.json"):
        seqatt.Selection.load(tmp_path / "gone.json")


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


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_written_file_has_the_permissions_of_any_other_new_file(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "s.json", "{}")
        (tmp_path / "other").write_text("{}")
    finally:
        os.umask(before)
    assert (tmp_path / "s.json").stat().st_mode == (tmp_path / "other").stat().st_mode


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


def test_a_notebook_says_why_nothing_was_selected():
    rng = np.random.default_rng(0)
    empty = seqatt.select(rng.normal(size=(90, 4)), rng.integers(2, size=90), 4, fdr=0.1, method="f_test")
    assert empty.features == []
    assert why_empty(empty) in empty._repr_html_()
