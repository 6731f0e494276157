"""``evaluate`` on files, in memory and batch by batch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import seqatt
from seqatt.datasets.synthetic import click_log
from seqatt.training.defaults import resolve_stream_budget

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


def numbers(rows: int = 5000, columns: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, columns)), columns=list("abcdefgh"[:columns]))
    return frame.assign(y=(frame.a + frame.b > 0).astype(int), z=(frame.c > 0).astype(int))


@pytest.mark.parametrize("files", [False, True])
def test_large_batches_can_be_predicted_after_training(files, tmp_path):
    frame = numbers()
    frame.to_parquet(tmp_path / "a.parquet")
    X = tmp_path / "a.parquet" if files else frame
    options = {"memory": 0} if files else {}
    result = seqatt.evaluate(
        X, "y", X, indices=["a", "b"], batch_size=2048, seeds=[0, 1], epochs=20, ignore=["z"], **options
    )
    assert result["accuracy"].min() > 0.9


def test_several_targets_of_files_are_evaluated_as_those_of_a_table(tmp_path):
    frame = numbers(400)
    frame.to_parquet(tmp_path / "a.parquet")
    path, targets = tmp_path / "a.parquet", frame[["y", "z"]].to_numpy()
    from_files = seqatt.evaluate(path, "y,z", path, indices=["a", "c"], seeds=[0], epochs=5)
    table = frame[["a", "b", "c", "d"]]
    from_table = seqatt.evaluate(table, targets, table, targets, ["a", "c"], seeds=[0], epochs=5)
    assert from_files["accuracy"].tolist() == from_table["accuracy"].tolist()


def test_test_rows_may_still_have_the_target_column_beside_a_target():
    frame = numbers(300)
    result = seqatt.evaluate(frame, "y", frame, frame.y.to_numpy(), ["a"], seeds=[0], epochs=5)
    assert len(result["accuracy"]) == 1


def test_test_targets_of_files_are_named(tmp_path):
    numbers(50).to_parquet(tmp_path / "a.parquet")
    path = tmp_path / "a.parquet"
    with pytest.raises(TypeError, match="y_test: is not for files"):
        seqatt.evaluate(path, "y", path, np.zeros(50), seeds=[0])
    with pytest.raises(TypeError, match="X_test: must be a table or files"):
        seqatt.evaluate(path, "y", DataLoader(TensorDataset(torch.zeros(4, 2), torch.zeros(4))), seeds=[0])


def test_too_few_rows_to_be_read_batch_by_batch_are_refused_before_training(tmp_path):
    numbers(4).assign(y=[0, 1, 0, 1]).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="too few to be read batch by batch; leave memory out"):
        seqatt.select(tmp_path / "a.parquet", target="y", k=2, memory=0)


def test_an_own_model_gets_no_batch_of_a_single_row(tmp_path):
    numbers(401).to_parquet(tmp_path / "a.parquet")
    model = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    for method, batch_size in (("sequential_attention", 50), ("deep_lasso", 100)):
        selection = seqatt.select(
            tmp_path / "a.parquet",
            target="y",
            k=2,
            memory=0,
            model=model,
            method=method,
            epochs=4,
            batch_size=batch_size,
        )
        assert len(selection.features) == 2


def test_a_batch_larger_than_the_files_does_not_multiply_the_passes():
    assert resolve_stream_budget(2000, 5, 1, 20_000) == (2000, 5, 5)


@pytest.mark.parametrize("role", ["groups_of_rows", "time"])
def test_positions_do_not_count_a_column_that_divides_rows(role, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    frame.insert(0, "q", np.repeat(np.arange(20), 10))
    frame["y"] = frame["a"] + 0.1 * rng.normal(size=200)
    frame.to_parquet(tmp_path / "rows.parquet")
    path = tmp_path / "rows.parquet"
    by_position, by_name = (
        seqatt.evaluate(path, None, path, None, columns, target="y", seeds=[0], **{role: "q"})
        for columns in ([0], ["a"])
    )
    assert by_position.mean == by_name.mean
    assert by_name.mean["r2"] > 0.9
