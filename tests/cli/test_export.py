"""``seqatt select --export``: a model on the selected columns of files."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tests.support.command import run, run_process
from tests.support.problems import mixed_frame

from seqatt.training import defaults

onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime to run the files")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(defaults, "EVALUATION_MIN_STEPS", 100)
    frame, y = mixed_frame()
    frame = frame.assign(target=y, id=np.arange(len(y)), weight=1.0)
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv", frame


def test_the_model_takes_the_selected_columns_and_predicts(table, tmp_path):
    path, frame = table
    model = tmp_path / "models" / "model.onnx"
    done = run(
        "select", path, "--target", "target", "-k", 4, "--epochs", 30, "--ignore", "id", "--weight", "weight",
        "--json", "--export", model,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    features = json.loads(done.stdout)["features"]
    session = onnxruntime.InferenceSession(model)
    assert {each.name for each in session.get_inputs()} == set(features)
    inputs = {
        each.name: frame[each.name].astype(object).fillna("").to_numpy()
        if each.type == "tensor(string)"
        else frame[each.name].to_numpy(dtype=np.float64)
        for each in session.get_inputs()
    }
    labels, probabilities = session.run(None, inputs)
    assert (labels == frame["target"]).mean() > 0.8
    assert probabilities.shape == (len(frame), 2)


def test_a_program_of_torch_is_written_by_a_process_of_its_own(table, tmp_path):
    """The program refuses to import pandas, which torch.export looks for."""
    path, _ = table
    model = tmp_path / "model.pt2"
    done = run_process(
        "select", path, "--target", "target", "-k", 2, "--epochs", 30, "--ignore", "id,weight", "--json",
        "--export", model,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    extra = {"metadata.json": ""}
    torch.export.load(model, extra_files=extra)
    assert set(json.loads(extra["metadata.json"])["features"]) == set(json.loads(done.stdout)["features"])


@pytest.mark.parametrize("flags", [["--groups-of-rows"], ["--time"], ["--groups-of-rows", "--time"]], ids=str)
def test_columns_that_divide_rows_are_no_inputs(flags, table, tmp_path):
    path, frame = table
    columns = ["group", "day"][: len(flags)]
    frame.assign(group=np.arange(len(frame)) // 10, day=np.arange(len(frame)) // 7).to_csv(path, index=False)
    given = [word for pair in zip(flags, columns, strict=True) for word in pair]
    ignored = ",".join(["id", "weight", *({"group", "day"} - set(columns))])
    model = tmp_path / "model.onnx"
    done = run(
        "select", path, "--target", "target", "-k", 2, "--epochs", 30, "--ignore", ignored, "--json",
        "--export", model, *given,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    inputs = {each.name for each in onnxruntime.InferenceSession(model).get_inputs()}
    assert inputs == set(json.loads(done.stdout)["features"])


def test_another_ending_is_refused_before_anything_is_read(tmp_path):
    done = run("select", "missing.csv", "--target", "y", "-k", 2, "--export", tmp_path / "model.pkl")
    assert done.returncode == 2
    assert "must end with .onnx or .pt2" in done.stderr
