"""Categories of many values that are noise are not selected before features that matter."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import seqatt
from seqatt.training.defaults import penalty_share

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from noise_categories import KINDS, make_table


def planted(selection: seqatt.Selection) -> int:
    return sum(feature.startswith("p") for feature in selection.features)


@pytest.mark.parametrize(
    ("kind", "rows"),
    [("numbers", 3_000), ("categories", 3_000), ("slopes", 3_000), ("pair", 20_000), ("rare", 20_000)],
)
@pytest.mark.parametrize("values", [50, 300])
def test_what_matters_is_found_beside_categories_of_noise(kind, rows, values):
    selection = seqatt.select(make_table(kind, rows, values, seed=7), target="y", k=KINDS[kind])
    assert planted(selection) == KINDS[kind]


def test_a_category_that_raises_the_held_out_loss_comes_after_a_weak_number():
    assert planted(seqatt.select(make_table("numbers", 3_000, 300, seed=11), target="y", k=5)) == 5


def test_a_significant_category_need_not_lower_the_loss_of_networks_that_learn_it_by_heart():
    assert planted(seqatt.select(make_table("categories", 1_500, 50, seed=5), target="y", k=5)) == 5


@pytest.mark.parametrize("seed", [502, 503])
def test_two_categories_that_matter_only_together_are_found_where_nothing_is_significant(seed):
    selection = seqatt.select(make_table("pair", 3_000, 50, seed), target="y", k=2, seed=seed)
    assert planted(selection) == 2


def test_files_read_batch_by_batch_and_repeats_find_it_too(tmp_path):
    frame = make_table("numbers", 6_000, 300, seed=7)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=1_000)
    assert planted(seqatt.select(tmp_path / "rows.parquet", target="y", k=5, memory=0)) == 5
    assert planted(seqatt.select(frame, target="y", k=5, repeats=4)) >= 4


def test_a_category_of_noise_adds_nothing_where_positives_are_rare():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=10_000), "b": rng.normal(size=10_000)})
    X["noise"] = pd.Series(rng.integers(0, 300, 10_000)).map("v{}".format)
    y = (rng.random(10_000) < 1 / (1 + np.exp(5 - 1.5 * X["a"]))).astype(int)
    selection = seqatt.select(X, y, 3, exchanges=0)
    found = selection.importance
    assert found is not None
    increases = dict(zip(selection.features, found["increases"], strict=True))
    errors = dict(zip(selection.features, found["standard_errors"], strict=True))
    assert increases["noise"] < 2 * errors["noise"]
    assert increases["a"] > 2 * errors["a"]
    assert selection.features[0] == "a"


def test_the_test_of_a_category_counts_the_more_the_fewer_rows_each_value_has():
    assert penalty_share(20_000, 20) == 0.25
    shares = [penalty_share(20_000, 20, values) for values in (1, 16, 50, 100, 1_000)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
