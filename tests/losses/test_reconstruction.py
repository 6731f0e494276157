"""Features from which the whole table can be reconstructed."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

import seqatt
from seqatt.data.tables.table_data import read_table_data


def factor_problem(rows=400):
    """Columns 0 to 3 are independent, each has six noisy copies; columns 28 and 29 are noise of their own."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(rows, 4))
    copies = np.repeat(factors, 6, axis=1) + 0.6 * rng.normal(size=(rows, 24))
    return np.hstack([factors, copies, rng.normal(size=(rows, 2))])


@pytest.mark.parametrize("method", ["sequential_attention", "linear_omp"])
def test_the_columns_that_the_others_are_made_of_are_found(method):
    found = seqatt.select(factor_problem(), k=4, task="reconstruction", method=method)
    assert sorted(found.indices) == [0, 1, 2, 3]
    assert found.settings["task"] == "reconstruction"
    if method == "sequential_attention":
        assert found.settings["univariate_test"] == 0


def test_an_evaluation_measures_the_whole_table():
    X = factor_problem()
    parts = {"X_train": X[:300], "X_test": X[300:], "task": "reconstruction", "seeds": [0, 1], "epochs": 40}
    best = seqatt.evaluate(indices=[0, 1, 2, 3], **parts)
    copies = seqatt.evaluate(indices=[0, 4, 5, 6], **parts)
    everything = seqatt.evaluate(**parts)
    share = (4 + 24 / 1.36) / 30  # of the variance, that the factors explain
    assert best.mean["r2"] == pytest.approx(share, abs=0.08)
    assert copies.mean["r2"] < best.mean["r2"] - 0.3
    assert everything.mean["r2"] > best.mean["r2"]
    alone = seqatt.evaluate(indices=[0, 1, 2, 3], **parts | {"seeds": [1]})
    assert alone["r2"][0] == best["r2"][1]


def test_every_feature_has_the_same_weight():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(list("uvwx"), 90)})
    data = read_table_data(frame, None, task="reconstruction", categories="mixed")
    variance = np.bincount(data.feature_of, data.target.values.var(0))
    np.testing.assert_allclose(variance, 1, atol=1e-5)


def test_pixels_of_digits_are_better_than_random_ones():
    X = np.random.default_rng(0).permutation(load_digits().data)
    found = seqatt.select(X[:1000], k=10, task="reconstruction")
    random = seqatt.select(X[:1000], k=10, task="reconstruction", method="random")
    parts = {"X_train": X[:1000], "X_test": X[1000:], "task": "reconstruction", "seeds": [0]}
    selected = seqatt.evaluate(indices=found, **parts).mean["r2"]
    assert selected > seqatt.evaluate(indices=random, **parts).mean["r2"] + 0.05


def test_selectors_and_comparisons_need_no_target():
    X = factor_problem(120)
    fitted = seqatt.FeatureSelector(4, method="linear_omp", options={"task": "reconstruction"}).fit(X)
    assert (
        fitted.selection_.indices.tolist()
        == seqatt.select(X, k=4, task="reconstruction", method="linear_omp").indices.tolist()
    )
    compared = seqatt.compare(X, k=4, task="reconstruction", methods=["linear_omp", "random"], seeds=[0])
    assert compared.best() == "linear_omp"


def test_a_target_is_refused():
    X = factor_problem(60)
    with pytest.raises(ValueError, match="y: task='reconstruction' predicts the table itself; leave y out"):
        seqatt.select(X, X[:, 0], 2, task="reconstruction")
    with pytest.raises(ValueError, match="univariate_test: is not defined for task='reconstruction'"):
        seqatt.select(X, k=2, task="reconstruction", univariate_test=2.0)
    with pytest.raises(ValueError, match="a target is needed"):
        seqatt.select(X, k=2)
