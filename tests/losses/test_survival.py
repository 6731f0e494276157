"""The Cox loss against its definition, and what a survival target may look like."""

import numpy as np
import pandas as pd
import pytest
import torch

import seqatt
from seqatt.data.tables.target import read_target
from seqatt.losses.table import LOSSES
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.layers import MLPLayers

COX = LOSSES["survival"]


def batch(rows=60, models=2, seed=0, weighted=True):
    """Outputs and targets with ties, a third of them censored."""
    rng = np.random.default_rng(seed)
    time = rng.integers(0, rows // 3, (models, rows))
    event = rng.random((models, rows)) < 0.67
    weight = rng.uniform(0.5, 2, (models, rows)) if weighted else np.ones((models, rows))
    out = torch.from_numpy(rng.normal(size=(models, rows, 1)))
    return out, torch.from_numpy(np.stack([time, event, weight], axis=2).astype(np.float64))


def by_definition(out, y):
    """The loss of each row of one model."""
    losses = torch.zeros(len(out), dtype=out.dtype)
    for i, (time, event, _) in enumerate(y):
        risk = y[:, 0] >= time
        if event:
            mean = (y[risk, 2] * out[risk, 0].exp()).sum() / y[risk, 2].sum()
            losses[i] = mean.log() - out[i, 0]
    return losses


def test_the_loss_is_the_partial_likelihood_with_ties_by_breslow():
    out, y = batch()
    expected = torch.stack([by_definition(out[t], y[t]) for t in range(2)])
    torch.testing.assert_close(COX.per_row(out, y), expected)
    assert COX.per_row(torch.ones_like(out), y).abs().max() < 1e-12


def test_the_gradient_times_the_weight_of_a_row_is_that_of_the_weighted_loss():
    out, y = batch()
    out.requires_grad_()
    (expected,) = torch.autograd.grad((COX.per_row(out, y) * y[:, :, 2]).sum(), out)
    torch.testing.assert_close(COX.grad(out.detach(), y) * y[:, :, 2:], expected)


def test_a_batch_that_other_losses_divide_is_not_divided():
    _, y = batch(rows=1200, models=1)
    layers = MLPLayers(
        MLPShape(4, (5,), 1), "survival", [torch.Generator().manual_seed(0)], torch.device("cpu")
    )
    layers.reset_parameters(torch.zeros(1, 5))
    x, first = torch.randn(1, 1200, 4), torch.randn(1, 5, 4)
    layers.gradients(first, Batch(x, y.float(), y[:, :, 2].float()))
    first.requires_grad_()
    hidden = torch.relu(first @ x.mT + layers.biases[0].unsqueeze(2))
    predicted = (layers.matrices[0] @ hidden + layers.biases[1].unsqueeze(2)).mT
    loss = (COX.per_row(predicted, y.float()) * y[:, :, 2].float()).mean()
    torch.testing.assert_close(layers.first_grad, torch.autograd.grad(loss, first)[0], rtol=1e-3, atol=1e-6)


def test_outputs_of_any_size_have_finite_gradients():
    out, y = batch(weighted=False)
    for size in (1e3, -1e3):
        assert torch.isfinite(COX.grad(out * size, y)).all()


def test_numbers_for_other_methods_are_martingale_residuals():
    target = read_target(np.array([[3.0, 1], [1, 1], [2, 0], [5, 1]]), None, "survival")
    hazard = np.cumsum([1 / 4, 0, 1 / 2, 1])  # at times 1, 2, 3, 5
    expected = [1 - hazard[2], 1 - hazard[0], -hazard[1], 1 - hazard[3]]
    np.testing.assert_allclose(target.as_numbers()[:, 0], expected)


def test_the_concordance_index_counts_pairs_that_can_be_compared():
    y = np.array([[1.0, 1], [2, 0], [3, 1], [4, 0]])
    risk = np.array([[3.0], [9.0], [1.0], [2.0]])
    # Comparable: 0 before 1, 2, 3 (one wrong of three); 2 before 3 (wrong).
    assert COX.measure(None, risk, y) == {"concordance": 0.5}
    assert COX.measure(None, -np.arange(4.0)[:, None], y) == {"concordance": 1.0}
    assert COX.measure(None, np.zeros((4, 1)), y) == {"concordance": 0.5}


def test_the_standard_error_of_the_concordance_is_that_of_other_samples():
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(200):
        risk = rng.normal(size=150)
        time, limit = rng.exponential(np.exp(-risk)), rng.exponential(1.0, 150)
        y = np.stack([np.minimum(time, limit), time <= limit], axis=1)
        scores.append(COX.score(risk[:, None], y))
    means, errors = np.array(scores).T
    assert errors.mean() == pytest.approx(means.std(), rel=0.2)


def survival_problem(seed, rows=500):
    """Features 0, 1 and 2 decide about the event, features 3 and 4 about censoring, which hides seven events in ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 20))
    time = 10 * rng.weibull(1.5, rows) * np.exp(-0.8 * X[:, 0] + 0.8 * X[:, 1] - 0.5 * X[:, 2])
    limit = rng.exponential(3.2, rows) * np.exp(-0.9 * X[:, 3] - 0.9 * X[:, 4])
    return X, np.minimum(time, limit), time <= limit


def test_planted_features_are_found_where_the_observed_time_shows_those_of_censoring():
    X, time, event = survival_problem(0)
    assert event.mean() < 0.4
    found = seqatt.select(X, np.stack([time, event], axis=1), 3, task="survival")
    assert sorted(found.indices) == [0, 1, 2]
    assert found.settings["task"] == "survival"
    assert all(increase > 0 for increase in found.importance["increases"])
    assert {3, 4} <= set(seqatt.select(X, np.log(time), 3).indices.tolist())


@pytest.mark.parametrize("method", ["omp", "lassonet", "linear_omp", "f_test"])
def test_other_methods_find_them_too(method):
    X, time, event = survival_problem(1, rows=900)
    found = seqatt.select(X, np.stack([time, event], axis=1), 3, task="survival", method=method)
    assert sorted(found.indices) == [0, 1, 2]
    assert ("stand_in" in found.settings) == (method in ("linear_omp", "f_test"))


def test_a_network_of_your_own_is_trained_with_the_loss():
    X, time, event = survival_problem(0)

    def make(columns, outputs):
        return torch.nn.Sequential(
            torch.nn.Linear(columns, 32), torch.nn.ReLU(), torch.nn.Linear(32, outputs)
        )

    found = seqatt.select(X, np.stack([time, event], axis=1), 3, task="survival", epochs=40, model=make)
    assert sorted(found.indices) == [0, 1, 2]


def test_all_forms_of_a_survival_target_are_the_same():
    X, time, event = survival_problem(2, rows=120)
    structured = np.array(list(zip(event, time, strict=True)), dtype=[("event", "?"), ("time", "<f8")])
    frame = pd.DataFrame(X).rename(columns=str).assign(weeks=time, died=event)
    y = pd.DataFrame({"weeks": time, "died": event})
    few = {"k": 2, "epochs": 5}
    expected = seqatt.select(X, np.stack([time, event], axis=1), task="survival", **few)
    for same in (
        seqatt.select(X, structured, **few),
        seqatt.select(X, y, task="survival", **few),
        seqatt.select(X, y[["died", "weeks"]], task="survival", **few),
    ):
        assert same.indices.tolist() == expected.indices.tolist()
        np.testing.assert_array_equal(same.scores, expected.scores)
    named = seqatt.select(frame, target="weeks,died", task="survival", **few)
    assert not {"weeks", "died"} & set(named.names)
    fitted = seqatt.SequentialAttentionSelector(2, epochs=5).fit(X, structured)
    assert fitted.selection_.indices.tolist() == expected.indices.tolist()


def test_an_evaluation_of_one_seed_is_that_beside_others_and_k_is_found():
    X, time, event = survival_problem(3, rows=300)
    y = np.stack([time, event], axis=1)
    rows = X[:200], y[:200], X[200:], y[200:], [0, 1, 2]
    several = seqatt.evaluate(*rows, task="survival", seeds=[0, 1, 2], epochs=30)
    alone = seqatt.evaluate(*rows, task="survival", seeds=[1], epochs=30)
    assert several["concordance"][1] == alone["concordance"][0] > 0.7
    found = seqatt.select(X, y, k="auto", max_k=4, task="survival", epochs=30)
    assert found.curve["metric"] == "concordance"
    assert found.curve["no_features"] == 0.5


def test_two_columns_that_may_be_a_survival_target_are_warned_about():
    with pytest.warns(UserWarning, match="pass task='survival' if they are times and events"):
        read_target(np.array([[1.5, 1], [2.5, 0]]), None)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, 2.0], "needs two columns, the time and whether the event occurred"),
        ([[1.0, 2.0], [3.0, 4.0]], "neither column is of 0 and 1"),
        ([[1.5, 0], [2.5, 0]], "every row is censored"),
        ([[1.5, 1], [1.5, 0]], "every time is the same"),
    ],
)
def test_a_survival_target_that_cannot_be_used_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        read_target(np.array(y), None, "survival")


def test_negative_times_are_refused():
    X, time, event = survival_problem(2, rows=120)
    time[3] = -2.5
    for y in (np.stack([time, event], axis=1), np.stack([event, time], axis=1)):
        with pytest.raises(ValueError, match=r"y: times must be 0 or more, got -2.5; pass how long"):
            seqatt.select(X, y, 2, task="survival", method="f_test")
