"""What each selected feature adds on held-out rows, and which rejected features could stand in for it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.support.command import run
from tests.support.problems import linear_problem

import seqatt
from seqatt.training.ensemble import average_blocks

FAST = {"epochs": 40}


def by_name(selection: seqatt.Selection, key: str = "increases") -> dict[str, float]:
    assert selection.importance is not None
    return dict(zip(selection.features, selection.importance[key], strict=True))


def strengths(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features 0 to 3 matter, each more than the one before; feature 4 is a near copy of 3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 10))
    X[:, 4] = X[:, 3] + 0.1 * rng.normal(size=600)
    return X, X[:, :4] @ np.array([0.5, 1.0, 1.5, 2.0]) + 0.3 * rng.normal(size=600)


@pytest.mark.parametrize("options", [{}, {"method": "f_test", "importance": True}])
def test_a_feature_adds_more_the_more_it_matters_and_noise_adds_nothing(options):
    X, y = strengths()
    X = np.delete(X, 4, axis=1)
    selection = seqatt.select(X, y, 5, **(options or FAST))
    adds, errors = by_name(selection), by_name(selection, "standard_errors")
    assert adds["x3"] > adds["x2"] > adds["x1"] > adds["x0"] > 2 * errors["x0"]
    (noise,) = set(selection.features) - {"x0", "x1", "x2", "x3"}
    assert abs(adds[noise]) < 0.01


def test_the_feature_that_was_selected_last_is_measured_at_its_full_weight():
    X, y = strengths()
    selection = seqatt.select(np.delete(X, 4, axis=1), y, 4, **FAST)
    last = [name for phase in selection.history for name in phase["taken"]][-1]
    assert by_name(selection)[last] > 2 * by_name(selection, "standard_errors")[last]


def test_the_closest_rejected_features_are_named_with_their_correlation():
    X, y = strengths()
    selection = seqatt.select(X, y, 3, **FAST)
    twin = {"x3": "x4", "x4": "x3"}
    assert len(set(selection.features) & set(twin)) == 1
    for name, found in zip(selection.features, selection.importance["stand_ins"], strict=True):
        if name in twin:
            ((other, correlation),) = found
            assert other == twin[name]
            assert abs(correlation - np.corrcoef(X[:, 3], X[:, 4])[0, 1]) < 1e-3
        else:
            assert found == []


def test_categories_have_stand_ins_by_their_closest_columns():
    rng = np.random.default_rng(0)
    value = rng.integers(0, 4, 400)
    frame = pd.DataFrame({f"n{i}": rng.normal(size=400) for i in range(3)})
    frame["site"], frame["area"] = pd.Categorical(value.astype(str)), pd.Categorical((value * 10).astype(str))
    frame["code"] = pd.Categorical(rng.integers(0, 40, 400).astype(str))
    selection = seqatt.select(frame, np.isin(value, [0, 3]).astype(int), 1, **FAST)
    (((other, correlation), *_),) = selection.importance["stand_ins"]
    assert {selection.features[0], other} == {"site", "area"}
    assert correlation == 1


def test_the_standard_error_is_that_of_the_mean_over_rows_and_members():
    values = np.random.default_rng(0).normal(size=(4, 3, 16))  # mean of 8 rows of standard deviation sqrt(8)
    rows = np.full(16, 8)
    means, errors = average_blocks(values, rows)
    np.testing.assert_allclose(means, values.mean((0, 2)))
    np.testing.assert_allclose(errors, values.transpose(1, 0, 2).reshape(3, -1).std(1, ddof=1) / 8, rtol=0.6)
    apart = values + np.arange(4)[:, None, None]  # the members disagree
    assert min(average_blocks(apart, rows)[1]) > 0.4


def test_importance_is_saved_loaded_and_shown(tmp_path):
    X, y = strengths()
    frame = pd.DataFrame(X).add_prefix("f").assign(y=y)
    frame.to_csv(tmp_path / "table.csv", index=False)
    done = run(
        "select", tmp_path / "table.csv", "-t", "y", "-k", 4, "--epochs", 40, "--out", tmp_path / "run"
    )
    assert "adds" in done.stdout
    assert " ± " in done.stdout
    loaded = seqatt.Selection.load(tmp_path / "run" / "selection.json")
    assert len(loaded.importance["increases"]) == 4
    path, raw = tmp_path / "other.json", loaded.to_dict()
    for key, value in (("increases", [1.0]), ("stand_ins", [[["nothing", 0.5]]] * 4), ("rows", "many")):
        path.write_text(json.dumps(raw | {"importance": raw["importance"] | {key: value}}))
        with pytest.raises(ValueError, match="'importance' must have"):
            seqatt.Selection.load(path)


def test_it_is_measured_by_default_only_where_it_is_free_and_can_be_left_out():
    X, y = linear_problem("binary")
    assert seqatt.select(X, y, 2, method="f_test").importance is None
    assert seqatt.select(X, y, 2, importance=False, **FAST).importance is None
    assert seqatt.select(X, y, 2, ensemble=1, **FAST).importance is None
    assert seqatt.select(X, y, 2, method="cancel_out", epochs=5).importance["networks"] == 1
    with pytest.raises(ValueError, match="importance: 30 rows are too few to hold some out"):
        seqatt.select(X[:30], y[:30], 2, method="f_test", importance=True)


@pytest.mark.parametrize("task", ["multiclass", "multilabel", "multi-output"])
def test_every_kind_of_target_has_one(task):
    selection = seqatt.select(*linear_problem(task), 3, **FAST)
    adds = by_name(selection)
    assert min(adds["x1"], adds["x4"]) > 5 * max(v for name, v in adds.items() if name not in ("x1", "x4"))


def test_files_read_batch_by_batch_have_one_from_their_validation_rows(tmp_path):
    X, y = linear_problem("regression", rows=2000)
    pd.DataFrame(X).add_prefix("x").assign(y=y).to_parquet(tmp_path / "t.parquet", row_group_size=200)
    selection = seqatt.select(tmp_path / "t.parquet", k=2, target="y", memory=1000)
    assert selection.settings["reading"] == "batches"
    assert sorted(selection.features) == ["x1", "x4"]
    assert min(selection.importance["increases"]) > 5 * max(selection.importance["standard_errors"])
