from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import orthogonal_mp

from seqatt.linear import Gram, linear_attention, omp, sequential_lasso
from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.inputs import read_blocks
from seqatt.linear.omp import pursue_rows
from seqatt.linear.residual_problem import ResidualFromRows
from seqatt.linear.stepwise import select_stepwise

ALGORITHMS = [omp, sequential_lasso, linear_attention]


def planted(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    beta = np.zeros(d)
    beta[rng.choice(d, k, replace=False)] = rng.normal(size=k) + 1
    return X, X @ beta + 0.3 * rng.normal(size=n)


def pursue_basis(design, y, k, blocks):
    """OMP on an orthonormal basis alone: the reference for everything that uses a Gram matrix."""
    return select_stepwise(ResidualFromRows(design, y), blocks, k, None, y.shape[1] == 1)


@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(400, 60, 6), (400, 60, 50), (30, 400, 10), (70_000, 12, 3), (5000, 300, 20), (200, 1, 1)],
    ids=["few columns", "full Gram", "wide", "tall", "blocks", "one column"],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_code_path_from_rows_gives_scikit_learns_coefficients(n, d, k, order):
    X, y = planted(n, d, min(k, d))
    X = np.asarray(X, order=order)
    path = omp(X, y, k)
    expected = orthogonal_mp(X, y, n_nonzero_coefs=k)
    np.testing.assert_allclose(path.coef, expected.ravel(), atol=1e-9)
    assert sorted(path.order) == np.flatnonzero(expected).tolist()
    residual = y - X @ path.coef
    assert path.losses[-1] == pytest.approx(residual @ residual, rel=1e-9)
    assert path.stopped is None
    assert path.support.tolist() == sorted(path.order)


@pytest.mark.parametrize("seed", range(20))
def test_omp_on_gram_columns_and_on_an_orthonormal_basis_agree(seed):
    X, y = planted(60, 25, 5, seed)
    design, blocks = DesignMatrix(X), read_blocks(None, 25)
    path = pursue_rows(design, y[:, None], 8, blocks, True)
    reference = pursue_basis(design, y[:, None], 8, blocks)
    assert path.order == reference.order
    np.testing.assert_allclose(path.coef, reference.coef, rtol=1e-8)
    np.testing.assert_allclose(path.losses, reference.losses, rtol=1e-8)
    np.testing.assert_allclose(path.scores, reference.scores, rtol=1e-8)


@pytest.mark.parametrize(("n", "d", "k"), [(300, 15_000, 30), (90_000, 200, 19)], ids=["wide", "tall"])
@pytest.mark.parametrize("kind", ["noise", "correlated", "duplicates"])
def test_wrong_predictions_of_columns_do_not_change_the_selection(n, d, k, kind):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    if kind == "correlated":
        X += 2 * rng.normal(size=(n, 1))
    if kind == "duplicates":
        X[:, d // 2 :] = X[:, : d - d // 2]
    design, blocks = DesignMatrix(X), read_blocks(None, d)
    path = pursue_rows(design, y[:, None], k, blocks, True)
    reference = pursue_basis(design, y[:, None], k, blocks)
    assert path.order == reference.order
    np.testing.assert_allclose(path.losses, reference.losses, rtol=1e-9)
    np.testing.assert_allclose(path.coef, reference.coef, rtol=1e-6, atol=1e-9)


def test_columns_on_demand_work_with_groups_and_several_targets():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(300, 15_000)), rng.normal(size=(300, 2))
    for groups in (None, np.arange(15_000) // 2):
        design, blocks = DesignMatrix(X), read_blocks(groups, 15_000)
        path = pursue_rows(design, y, 20, blocks, False)
        assert path.order == pursue_basis(design, y, 20, blocks).order


def test_omp_continues_on_the_rows_if_the_gram_matrix_is_too_imprecise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6))
    X[:, 4] = X[:, 1] + 1e-7 * rng.normal(size=50)  # a squared remainder of 1e-14
    y = X @ rng.normal(size=6) + rng.normal(size=50)
    path = omp(X, y, 6)
    assert sorted(path.order) == list(range(6))
    fit = np.linalg.lstsq(X[:, path.order], y, rcond=None)[0]
    np.testing.assert_allclose(path.coef[path.order], fit, rtol=1e-5)
    from_gram = omp(Gram.of(X, y), k=6)  # no rows to continue on: column 4 counts as a copy of column 1
    assert len(from_gram.order) == 5


@pytest.mark.parametrize("choose", ALGORITHMS)
@pytest.mark.parametrize("gram", [False, True])
class TestEarlyStopIsReportedWithItsReason:
    def run(self, choose, gram, X, y, k):
        return choose(Gram.of(X, y), k=k) if gram else choose(X, y, k)

    def test_when_the_residual_is_zero(self, choose, gram):
        X = np.random.default_rng(0).normal(size=(30, 8))
        path = self.run(choose, gram, X, 2 * X[:, 3] - X[:, 5], 6)
        assert sorted(path.order) == [3, 5]
        assert "residual is zero" in path.stopped

    def test_when_the_rest_depends_on_the_selected(self, choose, gram):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 8))
        path = self.run(choose, gram, X, rng.normal(size=30), 8)
        assert len(path.order) == 3
        assert "linear combinations" in path.stopped

    def test_when_nothing_more_can_be_explained(self, choose, gram):
        path = self.run(choose, gram, np.eye(6)[:, :4], np.array([2.0, 0, 0, 0, 0, 1]), 3)
        assert path.order == [0]
        assert "no remaining feature is correlated" in path.stopped


@pytest.mark.parametrize("choose", ALGORITHMS)
class TestTies:
    """OMP selects the lowest of the tied features; the other two select any of them."""

    def test_of_two_copies_only_the_first_is_selected(self, choose):
        X = np.random.default_rng(0).normal(size=(20, 4))
        X[:, 3] = X[:, 1]
        path = choose(X, X[:, 1] + 0.1 * X[:, 0] + 0.01 * X[:, 2], 4)
        assert path.order == [1, 0, 2]

    def test_a_negated_copy_counts_as_a_copy(self, choose):
        X = np.random.default_rng(0).normal(size=(20, 3))
        X[:, 2] = -X[:, 0]
        assert choose(X, X[:, 0] + 0.1 * X[:, 1], 2).order == [0, 1]

    def test_orthogonal_columns_in_an_exact_tie_are_selected_by_index(self, choose):
        X = np.eye(5)
        assert choose(X, np.array([1.0, 2, -2, 2, 0]), 4).order == [1, 2, 3, 0]

    def test_the_lasso_may_skip_a_tied_feature(self, choose):
        """Of three tied columns, the last two together explain more than any pair with the first."""
        X = np.column_stack([[1.0, 0, 0.9], [1.0, 0.6, 0.3], [1.0, -0.6, 0.3]])
        path = choose(X, np.array([1.0, 0, 0]), 1)
        assert path.order == ([0] if choose is omp else [1])


def test_integers_float32_sparse_and_lists_give_the_same_result():
    X, y = planted(80, 10, 3)
    X = np.round(4 * X)
    expected = omp(X, y, 4, centre=True, scale=True)
    for other in (X.astype(np.int32), X.astype(np.float32), sp.csr_matrix(X), X.tolist()):
        path = omp(other, y, 4, centre=True, scale=True)
        assert path.order == expected.order
        np.testing.assert_allclose(path.coef, expected.coef, rtol=1e-9)


def test_centre_and_scale_are_omp_on_standardised_columns():
    X, y = planted(60, 8, 3)
    X = X * np.geomspace(1, 1e3, 8) + 5
    Z = (X - X.mean(0)) / X.std(0)
    expected = omp(Z, y - y.mean(), 4)
    for path in (omp(X, y, 4, centre=True, scale=True), omp(Gram.of(X, y), k=4, centre=True, scale=True)):
        assert path.order == expected.order
        np.testing.assert_allclose(path.coef, expected.coef, rtol=1e-8)


def test_invalid_arguments_raise_before_any_computation():
    X, y = planted(20, 5, 2)
    for arguments, message in (
        ((X, y, 0), "k: must be from 1 to the 5"),
        ((X, y, 6), "k: must be from 1 to the 5"),
        ((X, y[:5], 2), "X has 20 rows and y has 5"),
        ((X, None, 2), "y: a target is needed"),
        ((np.where(X > 2, np.nan, X), y, 2), "X: contains NaN"),
        ((X[:, 0], y, 2), "X: must have rows and columns"),
    ):
        for choose in ALGORITHMS:
            with pytest.raises(ValueError, match=message):
                choose(*arguments)
    with pytest.raises(TypeError, match="k: must be a whole number"):
        omp(X, y, 2.5)
    with pytest.raises(TypeError, match="X: must hold numbers"):
        omp(X.astype(str), y, 2)
    with pytest.raises(ValueError, match="groups: every number"):
        omp(X, y, 2, groups=[0, 0, 3, 3, 1])
    with pytest.raises(ValueError, match="parameterisation: unknown 'sigmoid'"):
        linear_attention(X, y, 2, parameterisation="sigmoid")
