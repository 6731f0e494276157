"""``fdr``: features compete with knockoffs, and are chosen at a false discovery rate."""

from __future__ import annotations

import json
import warnings
from math import inf

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem

import seqatt
from seqatt.api.knockoffs.discoveries import choose_threshold, knockoff_statistics
from seqatt.api.knockoffs.gaussian import choose_s, normal_scores, sample_knockoffs, shrunk_correlations
from seqatt.api.knockoffs.knockoff_table import make_knockoff_table
from seqatt.data.tables.table_data import read_table_data

FAST = {"epochs": 20}


def correlated(rows, columns, correlation, seed=0):
    matrix = correlation ** np.abs(np.subtract.outer(np.arange(columns), np.arange(columns)))
    return np.random.default_rng(seed).standard_normal((rows, columns)) @ np.linalg.cholesky(matrix).T, matrix


@pytest.fixture(scope="module")
def found():
    X, y = linear_problem("regression", rows=400, features=12)
    return seqatt.select(pd.DataFrame(X).add_prefix("c"), y, fdr=0.1, **FAST)


@pytest.mark.parametrize("copies", [1, 5])
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
def test_knockoffs_have_the_second_moments_of_the_columns(copies, correlation):
    X, matrix = correlated(20_000, 6, correlation)
    s = choose_s(matrix, copies)
    rng = np.random.default_rng(1)
    all_columns = np.concatenate([X, *sample_knockoffs(X, matrix, s, copies, rng)], axis=1)
    expected = np.tile(matrix - np.diag(s), (copies + 1, copies + 1)) + np.kron(
        np.eye(copies + 1), np.diag(s)
    )
    assert np.abs(all_columns.T @ all_columns / len(X) - expected).max() < 0.05
    assert s.min() > 0.01


def test_s_of_uncorrelated_columns_is_one_so_that_knockoffs_are_independent():
    np.testing.assert_allclose(choose_s(np.eye(5), 1), 1.0, atol=0.02)


def test_s_is_a_minimum_in_every_coordinate():
    _, matrix = correlated(2, 8, 0.7)

    def objective(s):
        return np.trace(np.linalg.inv(6 * matrix - 5 * np.diag(s))) + 5 * (1 / s).sum()

    s = choose_s(matrix, 5)
    for j, factor in ((0, 0.9), (0, 1.1), (4, 0.9), (4, 1.1)):
        moved = s.copy()
        moved[j] *= factor
        assert objective(moved) > objective(s) * 0.999


def test_normal_scores_are_normal_whatever_the_distribution():
    rng = np.random.default_rng(0)
    scores = normal_scores(np.column_stack([np.exp(3 * rng.normal(size=999)), np.ones(999)]), rng)
    np.testing.assert_allclose([scores.mean(0), scores.std(0)], [[0, 0], [1, 1]], atol=1e-9)
    assert np.abs(scores).max() < 4


def test_correlations_of_copied_columns_can_be_inverted():
    X, _ = correlated(30, 20, 0.5)
    copied = normal_scores(np.concatenate([X, X], axis=1), np.random.default_rng(0))
    assert np.linalg.eigvalsh(shrunk_correlations(copied))[0] > 0


def mixed_table():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 4))
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    frame["b"] = np.exp(2 * x[:, 1])
    frame.loc[::9, "c"] = np.nan
    frame["category"] = np.where(x[:, 0] > 0.5, "u", np.where(x[:, 0] < -0.5, "v", "w"))
    frame["many"] = rng.integers(20, size=400).astype(str)
    frame["same"] = 1.0
    return frame, x[:, 0] + x[:, 3]


def make_mixed_table(seed=0):
    X, y = mixed_table()
    groups = {"pair": ["a", "b"]}
    data = read_table_data(X, y, groups=groups, categories="mixed", missing_indicator=True)
    return data, make_knockoff_table(data, 3, seed)


def test_a_knockoff_is_a_permutation_of_its_column_and_of_all_its_encoded_columns_together():
    data, knockoffs = make_mixed_table()
    width, columns, codes = data.columns.shape[1], knockoffs.table.columns, knockoffs.table.codes
    for slot in range(4):
        part = columns[:, slot * width : (slot + 1) * width]
        np.testing.assert_array_equal(np.sort(part, 0), np.sort(data.columns, 0))
        for number in np.unique(data.encoder.input_of):
            own = data.encoder.input_of == number
            np.testing.assert_array_equal(
                np.unique(part[:, own], axis=0), np.unique(data.columns[:, own], axis=0)
            )
        np.testing.assert_array_equal(np.sort(codes[:, slot]), np.sort(data.codes[:, 0]))
    assert knockoffs.table.features == 4 * data.features
    assert knockoffs.table.code_counts == data.code_counts * 4


def test_the_feature_itself_is_in_its_slot_and_nowhere_else():
    data, knockoffs = make_mixed_table()
    for feature in np.flatnonzero(~data.constant):
        of_feature = data.columns[:, data.feature_of == feature]
        if not of_feature.shape[1]:
            continue
        same = [
            np.array_equal(
                knockoffs.table.columns[:, knockoffs.table.feature_of == slot * data.features + feature],
                of_feature,
            )
            for slot in range(4)
        ]
        assert np.flatnonzero(same).tolist() == [knockoffs.original[feature]]


def test_knockoffs_of_flags_are_as_correlated_with_the_others_as_the_flags():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(2000, 6)) + 1.5 * rng.normal(size=(2000, 1))
    data = read_table_data((latent > 0) * 1.0, rng.normal(size=2000))
    knockoffs = make_knockoff_table(data, 5, 0)
    itself = knockoffs.original * 6 + np.arange(6)
    knockoff = (knockoffs.original + 1) % 6 * 6 + np.arange(6)
    correlations = np.corrcoef(knockoffs.table.columns.T)
    others = ~np.eye(6, dtype=bool)
    of_flags = correlations[np.ix_(itself, itself)][others].mean()
    assert of_flags > 0.4
    # With random ranks of equal values it would be about half of that.
    assert correlations[np.ix_(knockoff, itself)][others].mean() == pytest.approx(of_flags, abs=0.04)
    assert correlations[np.ix_(knockoff, knockoff)][others].mean() == pytest.approx(of_flags, abs=0.04)


def test_knockoffs_of_a_category_keep_its_relation_to_a_number():
    data, knockoffs = make_mixed_table()
    category = data.names.index("category")
    a = data.columns[:, data.feature_of == data.names.index("pair")][:, 0]
    relations = []
    for slot in range(4):
        one_hot = (
            knockoffs.table.columns[:, knockoffs.table.feature_of == slot * data.features + category] > 0
        )
        means = [a[one_hot[:, j]].mean() for j in range(one_hot.shape[1])]
        relations.append(np.ptp(means))
    assert min(relations) > 0.5  # of shuffled rows about 0.1


def test_swapping_a_feature_with_a_knockoff_flips_its_statistic_and_no_other():
    X, y = linear_problem("regression", features=6)
    knockoffs = make_knockoff_table(read_table_data(X, y), 1, 0)
    order = np.random.default_rng(0).permutation(12).tolist()
    before = knockoff_statistics(knockoffs, order)
    knockoffs.original[2] = 1 - knockoffs.original[2]
    after = knockoff_statistics(knockoffs, order)
    assert after[2] == -before[2] != 0
    np.testing.assert_array_equal(np.delete(after, 2), np.delete(before, 2))


def test_statistics_of_an_order_by_hand():
    X = np.random.default_rng(0).normal(size=(50, 3))
    knockoffs = make_knockoff_table(read_table_data(X, X[:, 0]), 1, 0)
    knockoffs.original[:] = [0, 0, 1]
    # Feature 1 itself, a knockoff of 2, feature 2, a knockoff of 1, feature 0, a knockoff of 0.
    np.testing.assert_array_equal(knockoff_statistics(knockoffs, [1, 2, 5, 4, 0, 3]), [1.0, 3.0, -2.0])


@pytest.mark.parametrize(
    ("fdr", "copies", "most", "threshold", "chosen"),
    [
        (0.5, 1, None, 3.0, 4),  # (1 + 1) / 4
        (0.2, 1, None, inf, 0),  # three before the first knockoff are too few for 1 / 3 to be 0.2
        (0.1, 5, None, 3.0, 4),  # (1 + 1) / (5 * 4) = 0.1
        (0.05, 5, None, inf, 0),  # (1 + 0) / (5 * 3) = 0.067
        (0.1, 5, 3, 5.0, 3),
        (0.1, 5, 1, inf, 0),  # the first alone has an estimate of 0.2
    ],
)
def test_the_threshold_is_that_of_a_case_computed_by_hand(fdr, copies, most, threshold, chosen):
    w = np.array([7.0, 6.0, 5.0, -4.0, 3.0, -2.0, -1.0, 0.0])
    choice = choose_threshold(w, fdr, copies, most)
    assert (choice.threshold, choice.chosen) == (threshold, chosen)


def test_the_features_that_decide_are_found_and_the_result_says_how(found):
    assert {"c1", "c4"} <= set(found.features)
    details = found.false_discoveries
    assert details["rate"] == 0.1
    assert details["estimated_rate"] <= 0.1
    assert details["raced"] == 12
    assert details["fewest"] == 2
    assert sorted(map(abs, details["statistics"])) == list(range(1, 13))
    chosen = [
        name for name, w in zip(found.names, details["statistics"], strict=True) if w >= details["threshold"]
    ]
    assert sorted(chosen) == sorted(found.features)
    assert found.settings["k"] == len(found.features)
    assert all(set(phase["scores"] or ()) <= set(found.names) for phase in found.history)
    assert found.importance is None


def test_the_result_is_saved_and_checked_when_loaded(found, tmp_path):
    path = tmp_path / "selection.json"
    found.save(path)
    assert seqatt.Selection.load(path).false_discoveries == found.false_discoveries
    raw = json.loads(path.read_text())
    for changes, message in (
        ({"statistics": [1.0]}, "one number per feature"),
        ({"threshold": 0.5}, "must agree with indices"),
        ({"rate": "high"}, "must have a rate"),
        ({"warnings": [1]}, "texts as warnings"),
        ({"raced": 1.5}, "whole numbers"),
    ):
        path.write_text(json.dumps(raw | {"false_discoveries": raw["false_discoveries"] | changes}))
        with pytest.raises(ValueError, match=f"false_discoveries.*{message}"):
            seqatt.Selection.load(path)


def test_the_same_seed_gives_the_same_result_with_any_number_of_threads(found):
    X, y = linear_problem("regression", rows=400, features=12)
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if threads > 1 else 2)
    try:
        again = seqatt.select(pd.DataFrame(X).add_prefix("c"), y, fdr=0.1, **FAST)
    finally:
        torch.set_num_threads(threads)
    assert again.false_discoveries == found.false_discoveries


def test_noise_gives_an_empty_selection_that_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 8)), rng.normal(size=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = seqatt.select(X, y, fdr=0.05, method="f_test")
        selector = seqatt.FeatureSelector(method="f_test", options={"fdr": 0.05}).fit(X, y)
    assert selection.features == []
    assert "no feature stands out from its knockoffs" in repr(selection)
    with pytest.raises(ValueError, match=r"^fdr: selected no features"):
        selector.transform(X)


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_the_rate_is_kept_on_noise_and_on_planted_features(correlation):
    shares = []
    for seed in range(60):
        X, _ = correlated(300, 25, correlation, seed)
        y = X[:, :4].sum(1) * (seed % 2) + np.random.default_rng(seed).normal(size=300)
        knockoffs = make_knockoff_table(read_table_data(X, y), 5, seed)
        order = np.argsort(-np.abs(knockoffs.table.columns.T @ (y - y.mean()))).tolist()
        w = knockoff_statistics(knockoffs, order)
        chosen = np.flatnonzero(w >= choose_threshold(w, 0.2, 5).threshold)
        false = int((chosen >= 4 * (seed % 2)).sum())
        shares.append(false / max(1, len(chosen)))
    assert np.mean(shares) < 0.2 + 2 * np.std(shares) / np.sqrt(60)


@pytest.mark.parametrize("method", ["forest", "linear_omp", "cmim", "first_layer"])
def test_other_methods_race_too(method):
    X, y = linear_problem("binary", rows=300, features=10)
    options = {"epochs": 20} if method == "first_layer" else {}
    selection = seqatt.select(X, y, fdr=0.1, method=method, **options)
    assert {1, 4} <= set(selection.indices.tolist())


def test_categories_groups_and_missing_values_race_as_one_feature_each():
    X, y = mixed_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = seqatt.select(X, y, fdr=0.2, groups={"pair": ["a", "b"]}, missing_indicator=True, **FAST)
    assert selection.false_discoveries["raced"] == 5  # the constant column takes no part
    assert {"pair", "d"} <= set(selection.features)


def test_k_is_an_upper_bound(found):
    X, y = linear_problem("regression", rows=400, features=12)
    bounded = seqatt.select(X, y, 2, fdr=0.1, **FAST)
    assert len(bounded.features) in (0, 2)


def test_seeds_make_knockoffs_of_their_own_and_agree_with_one_seed_alone():
    X, y = linear_problem("regression", features=6)
    both = seqatt.select_trials(X, y, fdr=0.2, seeds=[0, 1], method="linear_omp")
    alone = seqatt.select(X, y, fdr=0.2, seed=1, method="linear_omp")
    assert both[1].false_discoveries == alone.false_discoveries


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": "auto"}, "k: fdr finds the number of features itself"),
        ({"repeats": 4}, "repeats: cannot be combined with fdr"),
        ({"keep": [1]}, "keep: cannot be combined with fdr"),
        ({"importance": True}, "importance: cannot be combined with fdr"),
        ({"model": torch.nn.Linear(8, 1)}, "model: fdr trains on 6 times the columns"),
        ({"fdr": 0.0}, "fdr: must be a number above 0"),
        ({"fdr": 0.7}, "fdr: must be a number above 0 and at most 0.5"),
        ({"k": 9}, "k: 9 features requested"),
    ],
)
def test_what_cannot_be_combined_is_refused_before_any_work(arguments, message):
    X, y = linear_problem("regression")
    with pytest.raises(ValueError, match=f"^{message}"):
        seqatt.select(X, y, **{"fdr": 0.1} | arguments)


def test_few_rows_and_streams_are_refused(tmp_path):
    X, y = linear_problem("regression", rows=40)
    with pytest.raises(ValueError, match=r"^fdr: needs at least 50 rows"):
        seqatt.select(X, y, fdr=0.1)
    pd.DataFrame(np.c_[X, y]).add_prefix("c").to_parquet(tmp_path / "data.parquet")
    with pytest.raises(ValueError, match=r"^fdr: needs a table; raise memory"):
        seqatt.select(tmp_path / "data.parquet", "c8", fdr=0.1, memory=0)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda X: X[:60, :40], {}, "fdr: 60 rows are few for 40 columns"),
        (lambda X: np.c_[X[:, :5], X[:, 0] + 0.01 * X[:, 7]], {}, r"fdr: 'x0', 'x5' can hardly be told"),
        (lambda X: X[:, :5], {"fdr": 0.01}, "fdr: a rate of 0.01 needs at least 20 features"),
    ],
)
def test_a_rate_that_cannot_be_promised_is_warned_of(make, options, message):
    X = make(np.random.default_rng(0).normal(size=(300, 40)))
    with pytest.warns(UserWarning, match=message) as caught:
        selection = seqatt.select(X, X[:, 0], method="f_test", **{"fdr": 0.2} | options)
    assert [str(w.message) for w in caught] == [
        f"fdr: {text}" for text in selection.false_discoveries["warnings"]
    ]


def test_ctrl_c_ends_the_race_without_a_selection():
    X, y = linear_problem("regression")

    calls = iter(range(100))

    def interrupt(outputs, targets):
        if next(calls) == 99:
            raise KeyboardInterrupt
        return (outputs - targets).square().mean()

    with pytest.raises(seqatt.SelectionInterrupted, match="before the features were compared") as caught:
        seqatt.select(X, y, fdr=0.1, loss=interrupt)
    assert all(selection.features == [] for selection in caught.value.selections)


def test_the_selector_takes_a_rate_instead_of_a_number(found):
    X, y = linear_problem("regression", rows=400, features=12)
    selector = seqatt.SequentialAttentionSelector(fdr=0.1, **FAST).fit(pd.DataFrame(X).add_prefix("c"), y)
    assert selector.selection_.features == found.features
