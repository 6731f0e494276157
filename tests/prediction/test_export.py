"""Files of a model: onnxruntime and torch.export predict what the estimator does, from the selected columns alone."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem, mixed_frame

import seqatt
from seqatt import SequentialAttentionClassifier, SequentialAttentionRegressor
from seqatt.training import defaults

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'seqatt[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime to run the files")

OTHER_OPTIONS = {"missing_indicator": True, "log1p": ("size",), "hidden": (12, 8)}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Train the networks that predict for a moment."""
    monkeypatch.setattr(defaults, "EVALUATION_MIN_STEPS", 100)


def targets(frame: pd.DataFrame, y: np.ndarray) -> dict[str, np.ndarray]:
    size = frame["size"].to_numpy() - 1e6
    return {
        "binary": y,
        "multiclass": np.digitize(size, [-0.5, 0.5]) + 5,
        "multilabel": np.stack([size > 0, frame["flag"]], 1).astype(int),
        "regression": 100 * size + 500,
        "multi-output": np.stack([size, 3 * size + frame["flag"]], 1),
    }


def inputs_of(session, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """The columns that an ONNX model asks for, as docs/how_to/predict.md says."""
    columns = {}
    for each in session.get_inputs():
        if each.type == "tensor(string)":
            columns[each.name] = frame[each.name].astype(object).fillna("").to_numpy()
        else:
            columns[each.name] = frame[each.name].to_numpy(dtype=np.float64)
    return columns


TASKS = ("binary", "multiclass", "multilabel", "regression", "multi-output")
ACTIVATIONS = ("gelu", "silu", "tanh")


@pytest.mark.parametrize(
    ("task", "options"),
    [(task, {}) for task in TASKS]
    + [("binary", OTHER_OPTIONS | {"activation": each}) for each in ACTIVATIONS],
)
def test_both_files_predict_what_the_estimator_predicts(task, options, tmp_path):
    frame, y = mixed_frame()
    y = targets(frame, y)[task]
    numeric = task in ("regression", "multi-output")
    estimator = SequentialAttentionRegressor if numeric else SequentialAttentionClassifier
    fitted = estimator(5, epochs=20, **options).fit(frame[:300], y[:300])
    rows = frame[300:].copy()
    rows.loc[rows.index[:5], ["colour", "city", "age"]] = [None, "Atlantis", np.nan]
    rows.loc[rows.index[5:9], "size"] = [0.0, 1e9, -1e12, 1e6]
    expected = fitted.predict(rows) if numeric else fitted.predict_proba(rows)

    fitted.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    selected = fitted.get_feature_names_out().tolist()
    assert [each.name for each in session.get_inputs()] == selected
    for number in (1, 100):  # any number of rows
        outputs = session.run(None, inputs_of(session, rows[:number]))
        np.testing.assert_allclose(
            outputs[-1].reshape(expected[:number].shape), expected[:number], rtol=1e-5, atol=1e-5
        )
        if not numeric:
            np.testing.assert_array_equal(outputs[0], fitted.predict(rows[:number]))

    fitted.export(tmp_path / "model.pt2")
    extra = {"metadata.json": ""}
    program = torch.export.load(tmp_path / "model.pt2", extra_files=extra)
    metadata = json.loads(extra["metadata.json"])
    numbers = torch.tensor(rows[metadata["numbers"]].to_numpy(dtype=np.float64))
    codes = np.zeros((len(rows), len(metadata["categories"])), dtype=np.int64)
    for j, (name, code_of) in enumerate(metadata["categories"].items()):
        codes[:, j] = [
            code_of.get(value, metadata["other_code"]) for value in rows[name].astype(object).fillna("")
        ]
    for number in (1, 100):
        out = program.module()(numbers[:number], torch.from_numpy(codes[:number])).numpy()
        np.testing.assert_allclose(out.reshape(expected[:number].shape), expected[:number], rtol=1e-9)


def test_extreme_values_of_the_training_rows_and_of_new_rows_are_clipped_in_files_too(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    y = (X.a + X.b > 0).astype(int)
    X.loc[:3, "a"] = -999.0
    fitted = SequentialAttentionClassifier(2, epochs=5).fit(X, y)
    assert set(fitted.get_feature_names_out()) == {"a", "b"}
    rows = X[:8].assign(a=[-999.0, -1e12, -50.0, 99_999.0, 1e9, np.nan, 0.0, 1.0])
    expected = fitted.predict_proba(rows)
    np.testing.assert_array_equal(
        fitted.predict_proba(rows.assign(a=-999.0)), fitted.predict_proba(rows.assign(a=-50.0))
    )
    fitted.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    np.testing.assert_allclose(
        session.run(None, inputs_of(session, rows))[-1], expected, rtol=1e-6, atol=1e-6
    )


def test_the_file_says_what_it_is(tmp_path):
    frame, y = mixed_frame()
    fitted = SequentialAttentionClassifier(3, epochs=20).fit(frame, y)
    fitted.export(tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    metadata = {each.key: each.value for each in model.metadata_props}
    assert json.loads(metadata["features"]) == fitted.get_feature_names_out().tolist()
    assert json.loads(metadata["classes"]) == ["high", "low"]
    assert (metadata["seqatt"], model.producer_name) == (seqatt.__version__, "seqatt")


def test_a_table_without_names_or_with_names_of_outputs_can_be_exported(tmp_path):
    X, y = linear_problem("binary")
    SequentialAttentionClassifier(2, epochs=30).fit(X, y).export(tmp_path / "array.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "array.onnx")
    assert [each.name for each in session.get_inputs()] == ["x1", "x4"]
    frame = pd.DataFrame(X[:, [1, 4]], columns=["label", "probabilities"])
    fitted = SequentialAttentionClassifier(1.0, epochs=10).fit(frame, y)
    fitted.export(tmp_path / "names.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "names.onnx")
    assert [each.name for each in session.get_outputs()] == ["label_", "probabilities_"]
    np.testing.assert_array_equal(session.run(None, inputs_of(session, frame))[0], fitted.predict(frame))


def test_only_categories(tmp_path):
    frame, _ = mixed_frame()
    y = frame["city"].str.slice(5).astype(int) < 15
    fitted = SequentialAttentionClassifier(1, epochs=20).fit(frame[["city"]], y)
    fitted.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    outputs = session.run(None, inputs_of(session, frame))
    np.testing.assert_allclose(outputs[1], fitted.predict_proba(frame[["city"]]), atol=1e-12)
    assert outputs[0].dtype == bool


def test_a_failed_export_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    X, y = linear_problem("binary")
    fitted = SequentialAttentionClassifier(2, epochs=10).fit(X, y)
    path = tmp_path / "model.onnx"
    path.write_text("before")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        fitted.export(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match=r"^path: must end with .onnx or .pt2, got .*model.pkl"):
        fitted.export(tmp_path / "model.pkl")


def test_without_onnx_the_error_says_what_to_install(tmp_path, monkeypatch):
    X, y = linear_problem("binary")
    fitted = SequentialAttentionClassifier(2, epochs=10).fit(X, y)
    monkeypatch.delitem(sys.modules, "seqatt.prediction.onnx_file", raising=False)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'seqatt\[onnx\]', or write a .pt2 file"):
        fitted.export(tmp_path / "model.onnx")
