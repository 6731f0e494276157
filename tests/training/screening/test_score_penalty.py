"""The score penalty is larger for features unrelated to the selected ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from experiments.planted import planted
from scipy.stats import norm, pearsonr

import seqatt
from seqatt.data.tables import encoding
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.screening.copies import copies_last
from seqatt.training.screening.relatedness import correlation_p_value
from seqatt.training.screening.row_sample import draw_sample
from seqatt.training.screening.score_penalty import UNRELATED_FACTOR, ScorePenalty, TrialPenalties, screen
from seqatt.training.screening.univariate_test import benjamini_hochberg, univariate_test


def table(rows=200, noise=30, seed=0):
    """Feature 0 determines the target, 1 and 2 are related to 0 only, the others to nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3 + noise))
    X[:, 1] += 2 * X[:, 0]
    X[:, 2] -= X[:, 0]
    return X, X[:, 0] > 0


def make_penalty(X, y, **options):
    data = read_table_data(X, y, **options)
    return ScorePenalty(draw_sample(data), np.where(np.arange(data.features) > 0, -1.0, 0.0))


def penalties_of(penalty, selected):
    """The penalty (d,) of every feature when these are selected."""
    scores = np.zeros((1, len(penalty.shortfall)))
    TrialPenalties([penalty]).add_to_scores(scores, [selected])
    return scores[0]


def test_features_unrelated_to_the_selected_get_a_larger_penalty():
    penalty = make_penalty(*table())
    before, after = penalties_of(penalty, []), penalties_of(penalty, [0])
    assert before.tolist() == [0] + [-1] * 32
    np.testing.assert_allclose(after[:3], [0, -1, -1])
    assert after[3:].mean() < -1 - 0.9 * UNRELATED_FACTOR
    assert after[3:].min() >= -1 - UNRELATED_FACTOR


@pytest.mark.parametrize("selected", [[0], [5, 0, 1], [4, 1]])
def test_penalties_of_selected_features_are_those_of_all_features(selected):
    penalty = make_penalty(*table())
    usefulness = np.zeros((1, len(selected)))
    TrialPenalties([penalty]).add_to_usefulness(usefulness, [selected])
    assert usefulness[0].tolist() == penalties_of(penalty, selected)[selected].tolist()


def test_p_values_agree_with_the_t_test_of_a_correlation():
    X, y = table(rows=30, noise=10)
    penalty = make_penalty(X, y)
    smallest = np.array([min(pearsonr(X[:, c], X[:, f]).pvalue for c in (0, 5)) for f in range(1, 13)])
    smallest[4] = pearsonr(X[:, 0], X[:, 5]).pvalue  # a selected feature is compared with the other one
    tests = np.where(np.arange(1, 13) == 5, 1, 2)
    expected = 1 + UNRELATED_FACTOR * (
        1 - np.minimum(-np.log10(benjamini_hochberg(1 - (1 - smallest) ** tests)), 2) / 2
    )
    np.testing.assert_allclose(-penalties_of(penalty, [0, 5])[1:], expected, rtol=0.05)


@pytest.mark.parametrize("kind", ["normal", "rare", "skewed"])
def test_p_values_agree_with_random_permutations(kind):
    rng = np.random.default_rng(0)
    uniform = rng.random((2, 200))
    x, y = {"normal": norm.ppf(uniform), "rare": uniform < 0.03, "skewed": -np.log(uniform)}[kind].astype(
        float
    )
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    permuted = np.array([x @ rng.permutation(y) / 200 for _ in range(20_000)])
    skew = np.array((x**3).mean() * (y**3).mean())
    for large in np.quantile(permuted, [0.98, 0.999]):
        share = np.mean(np.abs(permuted) >= large - 1e-9)
        assert share / 4 < correlation_p_value(np.array(large), skew, 200) < 4 * share


def test_categories_are_not_related_because_two_rare_levels_coincide():
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.integers(0, 40, 1000).astype(str) for i in range(8)}
    data = read_table_data(pd.DataFrame(columns), np.arange(1000) % 2)
    penalties = penalties_of(ScorePenalty(draw_sample(data), np.full(8, -1.0)), [0, 1, 2])
    assert penalties.mean() < -1 - 0.8 * UNRELATED_FACTOR


def test_a_selected_feature_is_not_related_to_itself():
    X, y = table()
    penalty = make_penalty(X, y)
    assert penalties_of(penalty, [5])[5] == -1 - UNRELATED_FACTOR
    assert penalties_of(penalty, [3, 5])[5] < -2.5
    assert penalties_of(penalty, [0, 1])[1] == -1


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_and_dense_tables_get_the_same_penalties(monkeypatch, weighted):
    X = sp.random(80, 40, 0.3, random_state=0, format="csr").toarray()
    X[:, 1] = 2 * X[:, 0]
    options = {"sample_weight": np.random.default_rng(0).random(80)} if weighted else {}
    dense = penalties_of(make_penalty(X, X[:, 0] > 0, **options), [0, 3])
    monkeypatch.setattr(encoding, "DENSE_CELLS", 0)
    sparse = penalties_of(make_penalty(sp.csr_array(X), X[:, 0] > 0, **options), [0, 3])
    np.testing.assert_allclose(sparse, dense, atol=1e-5)
    assert dense[1] == -1


def test_groups_and_categories_are_related_by_any_of_their_columns():
    X, y = table()
    frame = pd.DataFrame(X, columns=[f"x{i:02}" for i in range(33)])
    frame["z"] = pd.cut(frame["x00"], 4, labels=list("abcd"))
    frame["constant"] = 1.0
    data = read_table_data(frame, y, groups={"g": ["x05", "x02"], "h": ["x06", "x07"]})
    penalty = ScorePenalty(draw_sample(data), np.full(data.features, -1.0))
    penalties = dict(zip(data.names, penalties_of(penalty, [data.names.index("x00")]), strict=True))
    assert penalties["g"] == penalties["z"] == -1
    assert penalties["h"] < -1.5
    assert penalties["constant"] == -1
    assert np.isfinite(penalties_of(penalty, [data.names.index("constant")])).all()


@pytest.mark.slow
def test_features_that_repeat_a_selected_one_come_before_noise():
    """Six of twenty useful features are not significant alone: they are combinations of the others.

    By chance one of the 20 selected would be useful; without the test it is 13.
    """
    problem = planted(50)
    useful = np.array([not str(name).startswith("noise") for name in problem.feature_names])
    rows = np.random.default_rng(0).permutation(2000)[:1600]
    selected = seqatt.select(problem.X[rows], problem.y[rows], 20, seed=0).indices
    assert useful[selected].sum() >= 15


def test_each_trial_gets_its_own_penalties_and_one_without_them_keeps_its_scores():
    one, other = (replace(make_penalty(*table(seed=seed)), share=0.5) for seed in (0, 1))
    penalties, orders = TrialPenalties([one, None, other]), [[0, 5], [1, 7], [8, 2]]
    assert penalties
    assert not TrialPenalties([None, None])
    some = np.array([3, 9])
    for _ in range(2):  # the second time, p-values are known
        scores, usefulness = np.ones((3, 2)), np.ones((3, 2))
        penalties.add_to_scores(scores, orders, some)
        penalties.add_to_usefulness(usefulness, orders)
        expected = [penalties_of(one, orders[0]), np.zeros(40), penalties_of(other, orders[2])]
        np.testing.assert_allclose(scores - 1, [own[some] for own in expected])
        own = [
            2 * all_[order] for all_, order in zip(expected, orders, strict=True)
        ]  # in full, not by their share
        np.testing.assert_allclose(usefulness - 1, own)
        assert usefulness.min() < 1 > scores.min()


def test_features_of_several_columns_in_samples_of_their_own_are_related_as_alone():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 9))
    X[:, 7] += 2 * X[:, 0]
    data = read_table_data(X, X[:, 0] > 0, groups={"pair": [0, 1], "triple": [4, 5, 6]})
    halves = [np.arange(0, 90, 2), np.arange(1, 90, 2)]
    shortfall = np.full(data.features, -1.0)
    shortfall[2] = 0.0
    samples = [ScorePenalty(draw_sample(data, half), shortfall) for half in halves]
    orders = [[0], [3]]  # a feature of one column in one half, of several in the other
    scores = np.zeros((2, data.features))
    TrialPenalties(samples).add_to_scores(scores, orders)
    alone = [penalties_of(sample, order) for sample, order in zip(samples, orders, strict=True)]
    np.testing.assert_allclose(scores, alone, rtol=1e-6)
    assert len({len(np.flatnonzero(data.feature_of == order[0])) for order in orders}) == 2


@pytest.mark.parametrize("groups", [None, {"pair": [0, 1]}])
def test_sums_where_the_table_is_give_the_same_penalties_as_on_the_host(groups):
    """What an accelerator does, on a CPU: the sampled rows are in one tensor, which has the unit columns of all."""
    X, y = table()
    data = read_table_data(X, y, groups=groups)
    shortfall = np.where(np.arange(data.features) > 0, -1.0, 0.0)
    sample = draw_sample(data)
    moved = replace(sample, values=torch.from_numpy(data.columns))
    found = [penalties_of(ScorePenalty(each, shortfall), [0, 4]) for each in (sample, moved)]
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)
    np.testing.assert_allclose(univariate_test(moved).log_q, univariate_test(sample).log_q, atol=1e-9)
    assert copies_last([2, 0, 1], moved) == copies_last([2, 0, 1], sample)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("groups", [None, {"pair": [0, 1]}])
def test_a_gpu_gives_the_tests_and_penalties_of_a_cpu(groups):
    X, y = table(rows=700)
    data = read_table_data(X, y, groups=groups, sample_weight=np.random.default_rng(2).random(700))
    shortfall = np.where(np.arange(data.features) > 0, -1.0, 0.0)
    devices = [torch.device(name) for name in ("cpu", "cuda")]
    on_table = torch.from_numpy(np.ascontiguousarray(data.columns)).cuda()
    halves = np.arange(0, 700, 2), np.arange(1, 700, 2)
    for half in (None, *halves):
        samples = [draw_sample(data, half, device=device) for device in devices]
        samples.append(draw_sample(data, half, device=devices[1], table=on_table))
        for moved in samples[1:]:
            assert moved.values.device.type == "cuda"
            np.testing.assert_allclose(
                univariate_test(moved).log_q, univariate_test(samples[0]).log_q, atol=1e-6
            )
            assert copies_last([2, 0, 1], moved) == copies_last([2, 0, 1], samples[0])
    found = []
    for device in devices:
        penalties = [ScorePenalty(draw_sample(data, half, device=device), shortfall) for half in halves]
        scores = np.zeros((2, data.features))
        TrialPenalties(penalties).add_to_scores(scores, [[0, 4], [3, 0]])
        found.append(scores)
    np.testing.assert_allclose(*found, atol=1e-4)


def test_significant_features_are_known_also_where_all_are_significant():
    rng = np.random.default_rng(0)
    codes, x = rng.integers(0, 40, 1_000), rng.normal(size=1_000)
    frame = pd.DataFrame({"x": x, "c": pd.Series(codes).map("v{}".format)})
    data = read_table_data(frame, x + rng.normal(size=40)[codes], categories="mixed")
    penalty = screen(data, 2.0, data.rows, torch.device("cpu")).score_penalty
    assert TrialPenalties([penalty]).has_none(0, 2).all()
    assert not TrialPenalties([None]).has_none(0, 2).any()
