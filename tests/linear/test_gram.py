from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from seqatt.linear import Gram, omp


def exact_covariances(X, weights):
    """Products around the mean in rational numbers, rounded once."""
    rows = [[Fraction(float(v)) for v in row] for row in X]
    w = [Fraction(float(v)) for v in weights]
    total = sum(w)
    mean = [sum(a * row[j] for a, row in zip(w, rows, strict=True)) / total for j in range(X.shape[1])]
    return np.array(
        [
            [
                float(sum(a * (r[i] - mean[i]) * (r[j] - mean[j]) for a, r in zip(w, rows, strict=True)))
                for j in range(X.shape[1])
            ]
            for i in range(X.shape[1])
        ]
    )


@pytest.mark.parametrize("far", [0.0, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("weighted", [False, True])
def test_centring_keeps_its_digits_however_far_from_zero(far, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + far
    y = X[:, 0] + rng.normal(size=60)
    weights = rng.random(60) if weighted else np.ones(60)
    truth = exact_covariances(np.column_stack([X, y]), weights)
    gram = Gram()
    for part in np.array_split(np.arange(60), 4):
        gram.update(X[part], y[part], weights[part] if weighted else None)
    normal = gram.normal(centre=True)
    np.testing.assert_allclose(normal.square, truth[:3, :3], rtol=1e-11, atol=1e-11 * truth.max())
    np.testing.assert_allclose(normal.cross[:, 0], truth[:3, 3], rtol=1e-11, atol=1e-11 * truth.max())
    np.testing.assert_allclose(normal.energy, truth[3, 3], rtol=1e-11)


def test_uncentred_scaled_and_summed_it_is_what_numpy_says():
    rng = np.random.default_rng(1)
    X, Y, w = rng.normal(size=(100, 7)) + 2, rng.normal(size=(100, 2)), rng.random(100)
    gram = Gram.of(X, Y, w)
    normal = gram.normal()
    np.testing.assert_allclose(normal.square, X.T @ (w[:, None] * X), rtol=1e-12)
    np.testing.assert_allclose(normal.cross, X.T @ (w[:, None] * Y), rtol=1e-10)
    np.testing.assert_allclose(normal.energy, w @ Y**2, rtol=1e-12)
    np.testing.assert_allclose(gram.sums[0], w @ X, rtol=1e-12)
    np.testing.assert_allclose(gram.sums[1], w @ Y, rtol=1e-12)
    standard = gram.normal(centre=True, scale=True)
    np.testing.assert_allclose(np.diag(standard.square), gram.weight, rtol=1e-12)


def test_batches_sums_and_sparse_rows_are_one_gram():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 5)) * (rng.random((90, 5)) < 0.3)
    y = rng.normal(size=90)
    whole = Gram.of(X, y).normal(centre=True)
    batches = Gram.from_batches((X[i : i + 30], y[i : i + 30]) for i in (0, 30, 60))
    added = Gram.of(X[:20], y[:20]) + Gram.of(X[20:], y[20:]) + Gram()
    sparse = Gram.of(sp.csc_matrix(X), y)
    for other in (batches, added, sparse):
        assert other.rows == 90
        np.testing.assert_allclose(other.normal(centre=True).square, whole.square, atol=1e-12)
        np.testing.assert_allclose(other.normal(centre=True).cross, whole.cross, atol=1e-12)


def test_adding_leaves_both_as_they_were():
    rng = np.random.default_rng(3)
    one, other = (Gram.of(rng.normal(size=(9, 2)), rng.normal(size=9)) for _ in range(2))
    before = one.normal().square.copy(), other.normal().square.copy()
    total = one + other
    assert (one.rows, other.rows, total.rows) == (9, 9, 18)
    np.testing.assert_array_equal(one.normal().square, before[0])
    np.testing.assert_array_equal(other.normal().square, before[1])


def test_large_tables_take_the_shared_way_and_agree():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(70_000, 40)).astype(np.float32)
    y = X[:, 3] - X[:, 7]
    normal = Gram.of(X, y).normal()
    reference = X.astype(np.float64)
    np.testing.assert_allclose(normal.square, reference.T @ reference, rtol=1e-9, atol=1e-7)
    np.testing.assert_array_equal(normal.square, normal.square.T)
    again = Gram.of(X, y).normal()
    np.testing.assert_array_equal(normal.square, again.square)


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(5)
    X, y, times = rng.normal(size=(30, 6)), rng.normal(size=30), rng.integers(0, 4, size=30)
    repeated = omp(np.repeat(X, times, axis=0), np.repeat(y, times), 4, centre=True, scale=True)
    weighted = omp(X, y, 4, sample_weight=times, centre=True, scale=True)
    gram = omp(Gram.of(X, y, times), k=4, centre=True, scale=True)
    assert repeated.order == weighted.order == gram.order
    np.testing.assert_allclose(repeated.coef, weighted.coef, rtol=1e-9)
    np.testing.assert_allclose(repeated.coef, gram.coef, rtol=1e-9)


def test_bad_rows_are_refused_and_change_nothing():
    X, y = np.ones((4, 2)), np.arange(4.0)
    gram = Gram.of(X, y)
    for bad, message in (
        ((X, y[:3]), "X has 4 rows and y has 3"),
        ((np.ones((4, 3)), y), "2 columns and 1 target"),
        ((np.full((4, 2), np.nan), y), "X: contains NaN"),
        ((X, np.full(4, np.inf)), "y: contains NaN or infinity"),
        ((X, y, -y), "sample_weight: must be 4 finite"),
    ):
        with pytest.raises(ValueError, match=message):
            gram.update(*bad)
    assert gram.rows == 4
    with pytest.raises(ValueError, match="batches: there were none"):
        Gram.from_batches([])


def test_a_gram_that_was_written_down_goes_on_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, 6)) + 1e6, rng.normal(size=(300, 2))
    gram = Gram.of(X[:100], y[:100])
    np.savez(tmp_path / "gram.npz", **gram.arrays())
    with np.load(tmp_path / "gram.npz") as kept:
        again = Gram.from_arrays(kept)
    for one in (gram, again):
        one.update(X[100:], y[100:])
    assert (again.rows, again.targets, again.flat) == (300, 2, False)
    for name, array in gram.arrays().items():
        assert np.array_equal(again.arrays()[name], array), name
    with pytest.raises(ValueError, match="not of a Gram"):
        Gram.from_arrays(gram.arrays() | {"mean": np.zeros(3)})
