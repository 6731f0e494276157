"""``evaluate`` on files, in memory and batch by batch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import seqatt
from seqatt.datasets.synthetic import click_log

READINGS = [0, "1GB"]  # memory


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 6_000
    frame = pd.DataFrame({f"n{i}": rng.normal(size=n).round(3) for i in range(4)})
    frame["good"] = np.array(list("abcd"))[rng.integers(4, size=n)]
    frame["noise"] = np.char.add("v", rng.integers(40, size=n).astype(str))
    frame["still"] = 1.0
    effect = frame["good"].map(dict(zip("abcd", [2.5, -2.0, 2.0, -2.5], strict=True)))
    odds = 2.0 * frame["n3"] + effect + 1.5 * frame["n1"]
    frame["click"] = (odds + rng.logistic(size=n) > 0).astype(int)
    frame.loc[rng.random(n) < 0.2, "n0"] = np.nan
    frame.loc[rng.random(n) < 0.05, "good"] = None
    return frame


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "a.parquet"
    frame.to_parquet(path, index=False, row_group_size=1_500)
    return path


@pytest.mark.parametrize("memory", READINGS)
def test_selected_features_are_evaluated_on_other_files(tmp_path, memory):
    log = click_log(tmp_path, 9_000, rows_per_file=7_000)
    train, test = log.files
    others = [f"category{i:02d}" for i in range(19, 27)]
    options = {"hidden": (16,), "log1p": True, "epochs": 4, "memory": memory}
    good = seqatt.evaluate(train, "click", test, indices=log.planted, seeds=[0, 1], **options)
    bad = seqatt.evaluate(train, "click", test, indices=others, seeds=[0], **options)
    assert list(good) == ["accuracy", "auc", "log_loss"]
    assert good["auc"].shape == (2,)
    assert (good["auc"] > 0.7).all()
    assert bad["auc"][0] < 0.58
    assert good.mean["log_loss"] < bad.mean["log_loss"]
    reversed_order = seqatt.evaluate(train, "click", test, indices=log.planted[::-1], seeds=[0], **options)
    assert reversed_order["auc"][0] == good["auc"][0]


@pytest.mark.parametrize("memory", READINGS)
@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_evaluation_supports_every_task(frame, tmp_path, task, memory):
    table = frame.copy()
    table["y"] = 3.0 * table["n3"] + 7.0
    if task == "multiclass":
        table["y"] = pd.cut(table["n3"], 3, labels=["low", "middle", "high"]).astype(str)
    for name, part in {"train": table[:5_000], "test": table[5_000:]}.items():
        part.to_parquet(tmp_path / f"{name}.parquet")
    train, test = tmp_path / "train.parquet", tmp_path / "test.parquet"
    options = {"seeds": [0], "hidden": (16,), "epochs": 5, "batch_size": 32, "memory": memory}
    evaluation = seqatt.evaluate(train, "y", test, indices=["n3"], **options)
    assert evaluation[evaluation.metric][0] > 0.9
    if task == "regression":
        assert evaluation["rmse"][0] < 1.0


def test_invalid_arguments_of_evaluation_are_refused_before_any_work(frame, path, tmp_path):
    frame.drop(columns="good").to_parquet(tmp_path / "narrow.parquet")
    frame.assign(n1="text").to_parquet(tmp_path / "text.parquet")
    for arguments, options, message in [
        ((path, "click", path), {"indices": ["gone"]}, "indices: 'gone'"),
        ((path, "click", path), {"indices": []}, "indices: at least one feature is needed"),
        ((path, "click", tmp_path / "narrow.parquet"), {}, "X_test: column 'good' is missing"),
        ((path, "click", tmp_path / "text.parquet"), {}, "X_test: column 'n1' holds text, but numbers"),
        ((path, "gone", path), {}, "target: no column 'gone'"),
        ((path, "click", path), {"k": 3}, "evaluate has no option 'k'"),
        ((path, "click", path), {"seeds": []}, "seeds: at least one seed"),
    ]:
        with pytest.raises((ValueError, TypeError)) as error:
            seqatt.evaluate(*arguments, **options)
        assert message in str(error.value)
