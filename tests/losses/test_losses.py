import numpy as np
import pytest
import torch

from seqatt.data.tables.options import TASKS
from seqatt.data.tables.target import Target, read_target
from seqatt.losses.quantile import QuantileLoss
from seqatt.losses.table import LOSSES, autograd_loss

ROWS = 12


def targets(task: str, outputs: int) -> torch.Tensor:
    """Targets of two models, encoded as in training."""
    generator = torch.Generator().manual_seed(1)
    if task == "multiclass":
        return torch.randint(outputs, (2, ROWS), generator=generator)
    values = torch.randn(2, ROWS, outputs, generator=generator, dtype=torch.float64)
    if task == "poisson":
        return values.abs()
    return values if task in ("regression", "quantile") else (values > 0).double()


SHAPES = {
    "binary": 1,
    "multiclass": 4,
    "multilabel": 3,
    "regression": 2,
    "poisson": 1,
    "quantile": 1,
    "ordinal": 3,
}


def test_every_task_has_a_loss():
    assert list(LOSSES) == list(TASKS)


@pytest.mark.parametrize("task", SHAPES)
def test_losses_per_row_and_gradients_agree_with_autograd(task):
    y = targets(task, SHAPES[task])
    generator = torch.Generator().manual_seed(2)
    out = 2 * torch.randn(2, ROWS, SHAPES[task], generator=generator, dtype=torch.float64)
    out.requires_grad_()
    expected = torch.stack([autograd_loss(task, out[t], y[t]) for t in range(2)])
    (expected_grad,) = torch.autograd.grad(expected.sum(), out)
    with torch.no_grad():
        torch.testing.assert_close(LOSSES[task].per_row(out, y), expected)
        torch.testing.assert_close(LOSSES[task].grad(out, y), expected_grad)


def test_a_binary_target_may_have_two_outputs():
    one = torch.tensor([[0.7], [-0.2]])
    two = torch.cat([torch.zeros_like(one), one], 1)
    y = torch.tensor([[1.0], [0.0]])
    torch.testing.assert_close(autograd_loss("binary", one, y), autograd_loss("binary", two, y))


def test_the_poisson_loss_is_least_at_the_logarithm_of_the_mean_and_finite_everywhere():
    y = torch.tensor([0.0, 1.0, 5.0], dtype=torch.float64).view(1, 3, 1)
    at_mean = LOSSES["poisson"].per_row(torch.full_like(y, np.log(2)), y).mean()
    for other in (np.log(2) - 0.1, np.log(2) + 0.1):
        assert LOSSES["poisson"].per_row(torch.full_like(y, other), y).mean() > at_mean
    huge = torch.full((1, 3, 1), 100.0, dtype=torch.float64, requires_grad=True)
    loss = LOSSES["poisson"].per_row(huge, y)
    assert torch.isfinite(loss).all()
    torch.testing.assert_close(
        torch.autograd.grad(loss.sum(), huge)[0], LOSSES["poisson"].grad(huge.detach(), y)
    )


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_pinball_loss_is_least_at_the_quantile(level):
    y = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 1001, 1)))
    loss, best = QuantileLoss(level), float(np.quantile(y, level))
    at = [float(loss.per_row(torch.full_like(y, best + d), y).mean()) for d in (-0.1, 0.0, 0.1)]
    assert at[1] == min(at)


def test_an_ordinal_target_is_one_label_per_step_and_mistakes_count_by_levels():
    target = read_target(np.array([3, 1, 2, 3]), None, "ordinal")
    np.testing.assert_array_equal(target.values, [[1, 1], [0, 0], [1, 0], [1, 1]])
    np.testing.assert_array_equal(target.codes, [2, 0, 1, 2])
    right = np.where(target.values > 0, 1.0, -1.0)
    assert target.loss.measure(target, right, target.values) == {"mae": 0, "kappa": 1, "accuracy": 1}
    wrong = right.copy()
    wrong[0] = -1  # two levels away
    measured = target.loss.measure(target, wrong, target.values)
    assert measured["mae"] == 0.5
    from sklearn.metrics import cohen_kappa_score

    expected = cohen_kappa_score((wrong > 0).sum(1), target.codes, weights="quadratic")
    assert measured["kappa"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="y_test: level 7 does not occur"):
        target.encode(np.array([7]), "y_test")


def test_metrics_of_counts_and_quantiles_are_those_of_scikit_learn():
    from sklearn.metrics import d2_pinball_score, d2_tweedie_score, mean_pinball_loss, mean_poisson_deviance

    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, size=200)
    target = read_target(counts, None, "poisson")
    out = rng.normal(size=(200, 1))
    measured = target.loss.measure(target, out, target.encode(counts, "y"))
    rate = np.exp(out[:, 0]) * counts.mean()
    assert measured["deviance"] == pytest.approx(mean_poisson_deviance(counts, rate))
    assert measured["d2"] == pytest.approx(d2_tweedie_score(counts, rate, power=1))
    assert target.loss.score(out, target.values).mean == pytest.approx(measured["d2"], rel=1e-4)
    y = rng.normal(5, 3, size=200)
    target = read_target(y, None, "quantile", quantile=0.8)
    measured = target.loss.measure(target, out, target.encode(y, "y"))
    predicted = (out * target.scale + target.shift)[:, 0]
    assert measured["pinball"] == pytest.approx(mean_pinball_loss(y, predicted, alpha=0.8))
    assert measured["d2"] == pytest.approx(d2_pinball_score(y, predicted, alpha=0.8), abs=1e-3)


@pytest.mark.parametrize(
    ("task", "y", "message"),
    [
        ("poisson", [1, 2, -1], "y: task='poisson' needs counts of at least 0, got -1; use 'regression'"),
        ("poisson", [2, 2, 2], "y: every value is the same"),
        ("poisson", [[1, 2], [3, 4]], "y: task='poisson' needs one number per row, got 2 columns"),
        ("quantile", ["a", "b"], "y: holds text where numbers are needed"),
        ("ordinal", [1, 1, 1], "y: task='ordinal' needs 2 to 50 levels, got 1; use 'regression'"),
        ("ordinal", list(range(60)), "y: task='ordinal' needs 2 to 50 levels, got 60"),
    ],
)
def test_a_target_that_does_not_fit_its_task_is_refused(task, y, message):
    with pytest.raises(ValueError, match=message):
        read_target(np.array(y), None, task)


def test_the_median_of_a_target_of_ties_still_tells_rows_apart():
    y = np.r_[np.zeros(95), np.ones(5)]
    values = Target("quantile", y[:, None], 1, quantile=0.99).as_numbers()
    assert 0 < values.mean() < 1
