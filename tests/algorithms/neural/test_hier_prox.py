"""Hier-Prox minimises its objective for every feature."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqatt.algorithms.neural.hier_prox import hier_prox
from seqatt.training.feature_columns import FeatureColumns

TRIALS, OUTPUTS, HIDDEN, COLUMNS = 2, 3, 9, 40
ONE_COLUMN_EACH = FeatureColumns(torch.arange(COLUMNS), COLUMNS)
ONE_FEATURE = FeatureColumns(torch.arange(1), 1)


def targets(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    skip = torch.randn(TRIALS, OUTPUTS, COLUMNS, generator=generator, dtype=torch.float64)
    # Magnitudes over several orders, so that all linear pieces of the equation occur.
    scale = 10 ** (3 * torch.rand(TRIALS, 1, COLUMNS, generator=generator, dtype=torch.float64) - 2)
    return skip, scale * torch.randn(TRIALS, HIDDEN, COLUMNS, generator=generator, dtype=torch.float64)


def objective(r: np.ndarray, length: float, size: np.ndarray, penalty: float, bound: float) -> np.ndarray:
    """The objective at each length r of the skip weights, minimised over everything else."""
    over = np.maximum(size[None] - bound * r[:, None], 0)
    return (r - length) ** 2 / 2 + (over**2).sum(1) / 2 + penalty * r


@pytest.mark.parametrize("bound", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("penalty", [0.0, 0.5, 3.0, 30.0])
def test_no_other_length_of_the_skip_weights_has_a_lower_objective(bound, penalty):
    skip, layer = targets()
    before = skip.clone(), layer.clone()
    r = hier_prox(
        skip, layer, torch.full((TRIALS, COLUMNS), penalty, dtype=torch.float64), bound, ONE_COLUMN_EACH
    )
    for t in range(TRIALS):
        for j in range(COLUMNS):
            length, size = float(before[0][t, :, j].norm()), before[1][t, :, j].abs().numpy()
            grid = np.linspace(0, length + size.max() / bound + 1, 20_001)
            minimum = objective(np.array([float(r[t, j])]), length, size, penalty, bound)[0]
            assert minimum <= objective(grid, length, size, penalty, bound).min() + 1e-9


@pytest.mark.parametrize("penalty", [0.0, 0.5, 3.0, 30.0])
def test_the_constraint_holds_and_skip_weights_keep_their_direction(penalty):
    skip, layer = targets(1)
    before = skip.clone(), layer.clone()
    r = hier_prox(
        skip, layer, torch.full((TRIALS, COLUMNS), penalty, dtype=torch.float64), 10.0, ONE_COLUMN_EACH
    )
    torch.testing.assert_close(skip.norm(dim=1), r)
    assert (layer.abs().amax(1) <= 10 * r + 1e-12).all()
    torch.testing.assert_close(layer, before[1].clamp(-10 * r.unsqueeze(1), 10 * r.unsqueeze(1)))
    cosine = torch.nn.functional.cosine_similarity(skip, before[0], dim=1)
    torch.testing.assert_close(cosine[r > 0], torch.ones_like(cosine[r > 0]))


def test_a_large_penalty_removes_a_feature_and_a_small_one_does_not():
    skip, layer = targets(2)
    largest = skip.norm(dim=1) + 10 * layer.abs().sum(1)  # the least penalty for which zero is the minimum
    for factor, active in ((1.001, False), (0.999, True)):
        r = hier_prox(skip.clone(), layer.clone(), factor * largest, 10.0, ONE_COLUMN_EACH)
        assert ((r > 0) == active).all()


def test_the_columns_of_a_feature_are_solved_as_one_problem():
    skip, layer = targets(3)
    feature_of = torch.tensor([0] * 7 + [1] + [2] * (COLUMNS - 8))
    penalty = torch.full((TRIALS, 3), 2.0, dtype=torch.float64)
    joined = skip.clone(), layer.clone()
    r = hier_prox(*joined, penalty, 10.0, FeatureColumns(feature_of, 3))
    for feature in range(3):
        columns = feature_of == feature
        flat = [tensor[:, :, columns].flatten(1).unsqueeze(2).clone() for tensor in (skip, layer)]
        expected = hier_prox(*flat, penalty[:, :1], 10.0, ONE_FEATURE)
        torch.testing.assert_close(r[:, feature : feature + 1], expected)
        torch.testing.assert_close(joined[1][:, :, columns].flatten(1).unsqueeze(2), flat[1])


def test_a_feature_without_skip_weights_stays_at_zero():
    layer = torch.ones(1, 4, 1)
    assert float(hier_prox(torch.zeros(1, 2, 1), layer, torch.zeros(1, 1), 10.0, ONE_FEATURE)) == 0
    assert not layer.any()
