"""The methods that accumulate sums over files select what they select in memory."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import seqatt
from seqatt.algorithms.filters.variables import bin_values
from seqatt.algorithms.sums import pair_counts
from seqatt.algorithms.sums.category_products import category_products
from seqatt.linear import Gram


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


def test_cmim_on_files_selects_what_it_selects_in_memory(frame, path):
    X, y = frame.drop(columns="click"), frame["click"]
    for options in ({}, {"missing_indicator": True, "bins": 5}, {"lazy": False, "max_categories": 3}):
        in_memory = seqatt.select(X, y, k=4, method="cmim", **options)
        on_files = seqatt.select(
            path, target="click", k=4, method="cmim", schema_rows=6_000, memory=0, **options
        )
        assert on_files.features == in_memory.features
        assert on_files.scores == pytest.approx(in_memory.scores, rel=1e-9)


def test_cmim_on_files_weights_rows_as_in_memory(frame, tmp_path):
    weights = np.random.default_rng(3).integers(0, 4, size=len(frame)).astype(float)
    frame.assign(w=weights).to_parquet(tmp_path / "a.parquet")
    X, y = frame.drop(columns="click"), frame["click"]
    in_memory = seqatt.select(X, y, k=4, method="cmim", sample_weight=weights)
    on_files = seqatt.select(
        tmp_path / "a.parquet",
        target="click",
        k=4,
        method="cmim",
        sample_weight="w",
        schema_rows=6_000,
        memory=0,
    )
    assert on_files.features == in_memory.features
    assert on_files.scores == pytest.approx(in_memory.scores, rel=1e-3)


def test_rows_of_weight_zero_are_counted_and_change_nothing(frame, tmp_path):
    frame.assign(w=np.arange(len(frame)) // 2_000).to_parquet(tmp_path / "a.parquet")
    options = {"target": "click", "k": 4, "method": "linear_omp", "sample_weight": "w"}
    on_files = seqatt.select(tmp_path, **options, schema_rows=6_000, memory=0)
    X, y = frame.drop(columns="click"), frame["click"]
    in_memory = seqatt.select(X, y, 4, method="linear_omp", sample_weight=np.arange(len(frame)) // 2_000)
    assert on_files.features == in_memory.features
    assert on_files.settings["rows"] == len(frame)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("widths", [[], [3, 1, 4]])
def test_products_with_categories_are_those_of_their_one_hot_columns(weighted, widths):
    rng = np.random.default_rng(0)
    n = 700
    numbers, targets = rng.normal(5, 2, size=(n, 3)), rng.normal(size=(n, 2))
    indicators = [rng.integers(-1, width, size=n) for width in widths]
    weights = rng.integers(0, 4, size=n).astype(float) if weighted else np.full(n, 2.0)
    one_hot = [
        (indicator[:, None] == np.arange(width)).astype(float)
        for indicator, width in zip(indicators, widths, strict=True)
    ]
    expected = Gram.of(np.concatenate([numbers, *one_hot], axis=1), targets, weights)
    gram = Gram()
    for rows in np.array_split(np.arange(n), 3):
        batch = [indicator[rows] for indicator in indicators]
        products = category_products(numbers[rows], batch, widths, targets[rows], weights[rows])
        gram.join(len(rows), *products, 2)
    assert (gram.rows, gram.weight) == (n, expected.weight)
    np.testing.assert_allclose(gram.means[0], expected.means[0], rtol=1e-12)
    for centre in (True, False):
        ours, theirs = gram.normal(centre=centre), expected.normal(centre=centre)
        np.testing.assert_allclose(ours.square, theirs.square, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ours.cross, theirs.cross, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ours.target_squares, theirs.target_squares, rtol=1e-9)


def test_joint_tables_give_the_mutual_information_of_brute_force():
    """``I(Y; X | Z)`` summed over every triple of values, for weighted rows added in several blocks."""
    rng = np.random.default_rng(0)
    widths, classes, n = [3, 4, 2], 3, 900
    codes = np.stack([rng.integers(w, size=n) for w in widths])
    labels = (codes[0] + codes[1] + (rng.random(n) < 0.3)) % classes
    weights = rng.integers(1, 4, size=n).astype(np.float32)
    tables = pair_counts.JointTables(widths, classes)
    for rows in np.array_split(np.arange(n), 4):
        tables.add(codes[:, rows], labels[rows], weights[rows])

    def share(*conditions):
        return np.sum(weights[np.logical_and.reduce(conditions)], dtype=float) / weights.sum(dtype=float)

    for x, z in [*combinations(range(3), 2), *((b, a) for a, b in combinations(range(3), 2))]:
        expected = 0.0
        for i in range(widths[x]):
            for j in range(widths[z]):
                for c in range(classes):
                    X, Z, Y = codes[x] == i, codes[z] == j, labels == c
                    if p := share(X, Y, Z):
                        expected += p * np.log(p * share(Z) / (share(X, Z) * share(Y, Z)))
        assert tables.information(x, z)[0] == pytest.approx(expected, abs=1e-12)


def test_a_numeric_target_is_binned_by_the_schema_sample(frame, path):
    selection = seqatt.select(path, target="n3", k=1, method="cmim", bins=4, memory=0)
    codes = bin_values(frame["n3"].to_numpy(), 4)
    assert selection.features == ["click"]
    assert selection.settings["task"] == "regression"
    assert selection.settings["bins"] == 4
    joint = np.histogram2d(codes, frame["click"], bins=(4, 2))[0] / len(frame)
    independent = joint.sum(1, keepdims=True) * joint.sum(0)
    information = (joint * np.log(joint / independent)).sum()
    assert selection.scores[0] == pytest.approx(information, rel=0.01)


@pytest.mark.parametrize("method", ["cmim", "linear_omp"])
def test_a_quantile_on_files_is_that_of_memory(method, tmp_path):
    """The feature n1 changes the spread alone, which only a high quantile depends on."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3_000, 4)), columns=[f"n{i}" for i in range(4)])
    y = 0.3 * X["n0"] + np.exp(X["n1"]) * rng.normal(size=len(X))
    X.assign(y=y).to_parquet(tmp_path / "a.parquet", row_group_size=1_000)
    options = {"k": 2, "method": method, "task": "quantile", "quantile": 0.95}
    in_memory = seqatt.select(X, y, **options)
    on_files = seqatt.select(tmp_path / "a.parquet", target="y", memory=0, schema_rows=3_000, **options)
    assert on_files.settings["reading"] == "batches"
    assert on_files.features == in_memory.features
    assert on_files.features[0] == "n1"
    assert on_files.scores == pytest.approx(in_memory.scores, rel=1e-5)


def test_more_pairs_of_values_than_fit_in_memory_are_refused(path, monkeypatch):
    monkeypatch.setattr(pair_counts, "MAX_CELLS", 100)
    with pytest.raises(ValueError, match="use fewer bins, a smaller max_categories, or ignore some columns"):
        seqatt.select(path, target="click", k=2, method="cmim", memory=0)
