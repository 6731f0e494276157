"""``keep``: features that are selected from the start, as those of an earlier selection that is extended."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.support.command import run
from tests.support.problems import linear_problem

import seqatt
from seqatt.checkpoints.training import CheckpointHook

FAST = {"epochs": 40}


def planted(rows: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    """Five features matter, and b and z do not."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 12)), columns=list("bcdefghijklz"))
    return X, X[list("cefhk")].to_numpy() @ np.array([2.0, 1.5, 1.2, 1.0, 0.8]) + 0.2 * rng.normal(size=rows)


@pytest.mark.parametrize("method", ["sequential_attention", "f_test", "forest", "cmim", "random"])
def test_kept_features_stay_and_come_first_in_their_order(method):
    X, y = planted()
    options = FAST if method == "sequential_attention" else {}
    selection = seqatt.select(X, y, 5, keep=["z", "b", "e"], method=method, **options)
    assert selection.features[:3] == ["z", "b", "e"]
    assert len(set(selection.features)) == 5
    assert selection.settings["keep"] == ["z", "b", "e"]


def test_an_extended_selection_finds_what_the_earlier_one_lacks():
    X, y = planted()
    earlier = seqatt.select(X, y, 2, **FAST)
    extended = seqatt.select(X, y, 5, keep=earlier, **FAST)
    assert extended.features[:2] == earlier.features
    assert sorted(extended.features) == list("cefhk")
    again = seqatt.select(X[X.columns[::-1]], y, 5, keep=earlier.features, **FAST)
    assert again.features == extended.features


def test_features_that_matter_only_beside_a_kept_one_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 12))
    y = (X[:, 2] * X[:, 7] > 0).astype(int)
    assert seqatt.select(X, y, 2, keep=["x2"], epochs=100).features == ["x2", "x7"]


def test_groups_are_kept_by_name():
    X, y = planted()
    groups = {"pair": ["b", "z"], "good": ["c", "e"]}
    selection = seqatt.select(X, y, 3, keep=["pair"], groups=groups, **FAST)
    assert selection.features[0] == "pair"
    assert selection.features[1] == "good"
    assert selection.columns[:2].tolist() == [0, 11]


def test_constant_features_can_be_kept_and_wide_tables_extended():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2200))
    X[:, 5] = 1.0
    y = X[:, 30] - X[:, 40] + 0.1 * rng.normal(size=200)
    selection = seqatt.select(X, y, 4, keep=["x5", "x30"], epochs=30)
    assert selection.features[:2] == ["x5", "x30"]
    assert selection.settings["working_set"]
    assert "x40" in selection.features


def test_files_read_batch_by_batch_keep_features_too(tmp_path):
    X, y = planted(2000)
    X.assign(y=y).to_parquet(tmp_path / "t.parquet", row_group_size=200)
    selection = seqatt.select(tmp_path / "t.parquet", k=6, target="y", memory=1000, keep=["z"])
    assert selection.settings["reading"] == "batches"
    assert selection.features[0] == "z"
    assert sorted(selection.features[1:]) == list("cefhk")


def test_the_command_line_extends_a_saved_selection(tmp_path):
    X, y = planted()
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    (earlier := seqatt.select(X, y, 2, **FAST)).save(tmp_path / "selection.json")
    command = ["select", tmp_path / "t.csv", "-t", "y", "--epochs", 40, "--json"]
    for keep in (tmp_path / "selection.json", ",".join(earlier.features)):
        done = json.loads(run(*command, "-k", 3, "--keep", keep).stdout)
        assert done["features"][:2] == earlier.features
        assert len(done["features"]) == 3


def test_the_selector_keeps_features():
    X, y = planted()
    selector = seqatt.SequentialAttentionSelector(3, keep=["z"], **FAST).fit(X, y)
    assert selector.selection_.features[0] == "z"
    assert selector.support_[11]


def test_a_run_that_keeps_features_is_resumed_bit_for_bit(tmp_path, monkeypatch):
    X, y = planted()
    options = {"keep": ["z", "b"], "epochs": 20}
    whole = seqatt.select(X, y, 5, **options)
    chunks = 0

    def stop(hook, group):
        nonlocal chunks
        chunks += 1
        if chunks == 9:
            raise RuntimeError("killed")
        after_chunk(hook, group)

    after_chunk = CheckpointHook.after_chunk
    monkeypatch.setattr(CheckpointHook, "after_chunk", stop)
    files = {"checkpoint": tmp_path / "run", "checkpoint_every": 0}
    with pytest.raises(RuntimeError, match="killed"):
        seqatt.select(X, y, 5, **options, **files)
    resumed = seqatt.select(X, y, 5, **options, **files, resume=True)
    assert resumed.features == whole.features
    assert resumed.scores.tolist() == whole.scores.tolist()
    assert resumed.importance == whole.importance
    with pytest.raises(ValueError, match="belongs to another run: keep was"):
        seqatt.select(X, y, 5, keep=["z", "c"], epochs=20, **files, resume=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": ["q"]}, "keep: 'q' is not a feature of X, which has 12; the features are b, c, d"),
        ({"keep": ["zz"]}, "keep: 'zz' is not a feature of X, which has 12; did you mean 'z'?"),
        ({"keep": {"z", "c"}}, "keep: a set has no order, in which the features come first; use a list"),
        ({"keep": 3}, "keep: must be positions or names"),
        ({"keep": ["z", "z"]}, "keep: 'z' appears twice"),
        (
            {"keep": list("bcdefg")},
            "keep: has 6 features, so that none is left to select for k=4; use a larger k",
        ),
        (
            {"keep": ["z"], "method": "lassonet"},
            "keep: needs a method that ranks its features, .* leave it out, or use",
        ),
        ({"keep": ["z"], "fdr": 0.1}, "keep: cannot be combined with fdr"),
    ],
)
def test_what_cannot_be_kept_is_refused(options, message):
    X, y = planted(100)
    with pytest.raises((TypeError, ValueError), match=message):
        seqatt.select(X, y, **{"k": 4} | options)


def test_a_selection_of_another_table_is_refused():
    X, y = planted(100)
    other = seqatt.select(*linear_problem("binary"), 2, epochs=1)
    with pytest.raises(ValueError, match="keep: the selection has feature 'x1', X does not"):
        seqatt.select(X, y, 4, keep=other)
