"""Extreme values of a numeric target are named with what to do; quantile regression is not disturbed by them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from tests.support.command import run

import seqatt
from seqatt.data.tables.target import read_target

ROWS = 600


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, a target that depends on columns 3, 7 and 11, and the same with three wild values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 20))
    y = 100 + 6 * X[:, 3] + 5 * X[:, 7] + 4 * X[:, 11] + 3 * rng.normal(size=ROWS)
    wild = y.copy()
    wild[[5, 200, 411]] = 1e9
    return X, y, wild


@pytest.mark.parametrize("task", [None, "poisson"])
def test_a_warning_names_the_rows_the_range_of_the_others_and_what_to_do(task):
    X, y, wild = problem()
    with pytest.warns(UserWarning, match="y holds extreme values in 3 of 600 rows, up to 1e") as caught:
        seqatt.select(X, wild, 3, method="f_test", task=task)
    (message,) = {str(each.message) for each in caught}
    assert f"from {y.min():.6g} to {y.max():.6g}" in message
    assert "correct the values" in message
    assert "task='quantile'" in message
    with pytest.warns(UserWarning, match=r"y \(column 2\) holds extreme values in 3 of 600 rows"):
        seqatt.select(X, np.stack([y, -wild], axis=1), 3, method="f_test")


@pytest.mark.parametrize("memory", [None, 0])
def test_those_of_files_are_named_once(tmp_path, memory):
    X, _, wild = problem()
    pd.DataFrame(X).assign(y=wild).to_csv(tmp_path / "data.csv", index=False)
    options = ("--memory", 0) if memory == 0 else ()
    done = run("select", tmp_path / "data.csv", "--target", "y", "-k", 1, "--method", "f_test", *options)
    assert done.stderr.count("extreme values in 3 of 600 rows") == 1
    assert "--task 'quantile'" in done.stderr


def test_long_tails_classes_and_quantiles_have_no_warning():
    X, _, wild = problem()
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (
            np.exp(rng.normal(size=ROWS)),
            rng.standard_t(3, ROWS),
            np.where(wild > 1e6, "rare", "usual"),
        ):
            seqatt.select(X, y, 2, method="f_test")
        seqatt.select(X, wild, 2, method="f_test", task="quantile")
        counts = rng.poisson(np.exp(2 + X[:, 3])) + 2_000 * (np.arange(ROWS) % 100 == 0)
        seqatt.select(X, counts, 2, method="f_test", task="poisson")
    with pytest.warns(UserWarning, match="extreme values"):
        seqatt.select(X, counts + 0.5, 2, method="f_test")


def test_quantile_regression_finds_what_the_other_rows_say():
    for seed in range(2):
        X, _, wild = problem(seed)
        assert set(seqatt.select(X, wild, 3, task="quantile").indices) == {3, 7, 11}


@pytest.mark.parametrize("value", [1e60, 1.7e308, -9e307])
def test_quantile_regression_stays_finite_whatever_the_values_are(value):
    X, y, _ = problem()
    y[7] = value
    selection = seqatt.select(X, y, 1, task="quantile", epochs=2)
    assert np.isfinite(list(selection.scores)).all()


def test_a_quantile_of_other_targets_is_encoded_as_before():
    _, y, _ = problem()
    target = read_target(y, None, "quantile", quantile=0.5)
    assert target.shift == y.mean()
    assert target.scale == pytest.approx(y.std())
