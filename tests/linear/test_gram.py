from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from seqatt.linear import Gram, omp


def exact_covariances(X, weights):
    """Products of the centred columns in rational numbers, rounded once."""
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


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("weighted", [False, True])
def test_centring_loses_no_digits_on_data_far_from_zero(offset, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + offset
    y = X[:, 0] + rng.normal(size=60)
    weights = rng.random(60) if weighted else np.ones(60)
    expected = exact_covariances(np.column_stack([X, y]), weights)
    gram = Gram()
    for rows in np.array_split(np.arange(60), 4):
        gram.update(X[rows], y[rows], weights[rows] if weighted else None)
    normal = gram.normal(centre=True)
    atol = 1e-11 * expected.max()
    np.testing.assert_allclose(normal.square, expected[:3, :3], rtol=1e-11, atol=atol)
    np.testing.assert_allclose(normal.cross[:, 0], expected[:3, 3], rtol=1e-11, atol=atol)
    np.testing.assert_allclose(normal.target_squares, expected[3, 3], rtol=1e-11)


def test_products_sums_and_scaled_products_are_those_of_numpy():
    rng = np.random.default_rng(1)
    X, Y, w = rng.normal(size=(100, 7)) + 2, rng.normal(size=(100, 2)), rng.random(100)
    gram = Gram.of(X, Y, w)
    normal = gram.normal()
    np.testing.assert_allclose(normal.square, X.T @ (w[:, None] * X), rtol=1e-12)
    np.testing.assert_allclose(normal.cross, X.T @ (w[:, None] * Y), rtol=1e-10)
    np.testing.assert_allclose(normal.target_squares, w @ Y**2, rtol=1e-12)
    np.testing.assert_allclose(gram.sums[0], w @ X, rtol=1e-12)
    np.testing.assert_allclose(gram.sums[1], w @ Y, rtol=1e-12)
    standard = gram.normal(centre=True, scale=True)
    np.testing.assert_allclose(np.diag(standard.square), gram.weight, rtol=1e-12)


def test_batches_added_grams_and_sparse_rows_give_the_same_gram():
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


def test_adding_does_not_change_the_operands():
    rng = np.random.default_rng(3)
    one, other = (Gram.of(rng.normal(size=(9, 2)), rng.normal(size=9)) for _ in range(2))
    before = one.normal().square.copy(), other.normal().square.copy()
    total = one + other
    assert (one.rows, other.rows, total.rows) == (9, 9, 18)
    np.testing.assert_array_equal(one.normal().square, before[0])
    np.testing.assert_array_equal(other.normal().square, before[1])


def test_large_tables_are_computed_in_parallel_with_the_same_result():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(70_000, 40)).astype(np.float32)
    y = X[:, 3] - X[:, 7]
    normal = Gram.of(X, y).normal()
    reference = X.astype(np.float64)
    np.testing.assert_allclose(normal.square, reference.T @ reference, rtol=1e-9, atol=1e-7)
    np.testing.assert_array_equal(normal.square, normal.square.T)
    again = Gram.of(X, y).normal()
    np.testing.assert_array_equal(normal.square, again.square)


def test_weights_are_equivalent_to_repeated_rows():
    rng = np.random.default_rng(5)
    X, y, times = rng.normal(size=(30, 6)), rng.normal(size=30), rng.integers(0, 4, size=30)
    repeated = omp(np.repeat(X, times, axis=0), np.repeat(y, times), 4, centre=True, scale=True)
    weighted = omp(X, y, 4, sample_weight=times, centre=True, scale=True)
    gram = omp(Gram.of(X, y, times), k=4, centre=True, scale=True)
    assert repeated.order == weighted.order == gram.order
    np.testing.assert_allclose(repeated.coef, weighted.coef, rtol=1e-9)
    np.testing.assert_allclose(repeated.coef, gram.coef, rtol=1e-9)


def test_invalid_rows_raise_and_leave_the_gram_unchanged():
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
    with pytest.raises(ValueError, match="batches: must not be empty"):
        Gram.from_batches([])


def test_a_saved_and_restored_gram_continues_bit_for_bit(tmp_path):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, 6)) + 1e6, rng.normal(size=(300, 2))
    gram = Gram.of(X[:100], y[:100])
    np.savez(tmp_path / "gram.npz", **gram.arrays())
    with np.load(tmp_path / "gram.npz") as saved:
        restored = Gram.from_arrays(saved)
    for continued in (gram, restored):
        continued.update(X[100:], y[100:])
    assert (restored.rows, restored.targets, restored.flat) == (300, 2, False)
    for name, array in gram.arrays().items():
        assert np.array_equal(restored.arrays()[name], array), name
    with pytest.raises(ValueError, match="not the arrays of a Gram"):
        Gram.from_arrays(gram.arrays() | {"mean": np.zeros(3)})
