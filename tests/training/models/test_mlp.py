"""The written-out MLP against the same network through autograd."""

import pytest
import torch

from seqatt.training.batch import Batch
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp import ACTIVATIONS, MLP
from seqatt.training.models.model import Model
from seqatt.training.models.torch_module import TorchModule, build_mlp

CPU = torch.device("cpu")


def pair(shape: MLPShape, task: str = "multiclass") -> tuple[MLP, TorchModule]:
    """Both bodies with the same weights."""
    generator = torch.Generator().manual_seed(0)
    stacked = MLP(shape, task, [generator], 1e-2, CPU)
    separate = TorchModule(
        lambda: build_mlp(shape),
        task,
        0,
        lambda p: torch.optim.Adam(p, lr=1e-2),
        CPU,
        smoothing=shape.smoothing,
    )
    linears = [m for m in separate.module if isinstance(m, torch.nn.Linear)]
    with torch.no_grad():
        for linear, weight, bias in zip(linears, stacked.weights, stacked.biases, strict=True):
            outs, ins = linear.weight.shape
            linear.weight.copy_(weight[0, :outs, :ins])
            linear.bias.copy_(bias[0, :outs])
    return stacked, separate


def batch(columns: int = 6, rows: int = 11, *, weighted: bool = False) -> Batch:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(1, rows, columns, generator=generator)
    y = torch.randint(3, (1, rows), generator=generator)
    w = torch.rand(1, rows, generator=generator) if weighted else None
    return Batch(x, y, w)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("hidden", [(), (5,), (17, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_training_agrees_with_autograd(activation, hidden, weighted):
    stacked, separate = pair(MLPShape(6, hidden, 3, activation))
    given = batch(weighted=weighted)
    gate = torch.tensor([[1.0, 0.3, 0.0, 1.0, 0.2, 0.5]])
    with torch.no_grad():
        for _ in range(20):
            torch.testing.assert_close(
                stacked.train(given, gate), separate.train(given, gate), rtol=1e-3, atol=1e-5
            )
            torch.testing.assert_close(
                stacked.last_loss(given), separate.last_loss(given), rtol=1e-3, atol=1e-5
            )
        torch.testing.assert_close(
            stacked.predict(given.x, gate), separate.predict(given.x, gate), rtol=1e-3, atol=1e-4
        )


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_smoothed_labels_are_learnt_as_autograd_learns_them(task):
    outputs = {"binary": 1, "multiclass": 3, "multilabel": 2}[task]
    stacked, separate = pair(MLPShape(6, (5,), outputs, smoothing=0.2), task)
    given = batch()
    if task != "multiclass":
        given = Batch(given.x, (torch.rand(1, 11, outputs) > 0.5).float(), None)
    gate = torch.ones(1, 6)
    with torch.no_grad():
        for _ in range(20):
            torch.testing.assert_close(
                stacked.train(given, gate), separate.train(given, gate), rtol=1e-3, atol=1e-5
            )
        # Judged by the labels as they are, both of them.
        torch.testing.assert_close(
            stacked.loss(given, gate), separate.loss(given, gate), rtol=1e-3, atol=1e-5
        )
        plain, _ = pair(MLPShape(6, (5,), outputs), task)
        for _ in range(20):
            plain.train(given, gate)
        assert not torch.allclose(plain.predict(given.x, gate), stacked.predict(given.x, gate), atol=1e-3)


def test_padded_units_stay_silent():
    stacked, _ = pair(MLPShape(6, (5,), 3))
    for _ in range(10):
        stacked.train(batch(), torch.ones(1, 6))
    assert (stacked.weights[0][0, 5:] == 0).all()
    assert (stacked.weights[1][0, :, 5:] == 0).all()


def test_silencing_columns_is_setting_their_weights_to_zero():
    stacked, _ = pair(MLPShape(6, (5,), 3))
    given = batch()
    weights = torch.tensor([[1.0, 1.0, 0.0, 1.0, 1.0, 0.0]])
    columns = torch.tensor([[[0, 0], [3, 4]]])
    live = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]])
    fast = stacked.losses_without(given, weights, columns, live)
    plain = Model.losses_without(stacked, given, weights, columns, live)
    without_0 = stacked.loss(given, torch.tensor([[0.0, 1, 0, 1, 1, 0]]))
    torch.testing.assert_close(fast, plain)
    torch.testing.assert_close(fast[:, 0], without_0)


def test_evaluation_changes_nothing():
    stacked, separate = pair(MLPShape(6, (5,), 3, dropout=0.5))
    given, ones = batch(), torch.ones(1, 6)
    for body in (stacked, separate):
        first = body.loss(given, ones)
        torch.testing.assert_close(body.loss(given, ones), first)


def test_dropout_is_drawn_trial_by_trial():
    shape = MLPShape(6, (5,), 3, dropout=0.5)
    given = batch()

    def trained(seeds: list[int]) -> torch.Tensor:
        generators = [torch.Generator().manual_seed(s) for s in seeds]
        body = MLP(shape, "multiclass", generators, 1e-2, CPU)
        many = Batch(given.x.expand(len(seeds), -1, -1), given.y.expand(len(seeds), -1), None)
        for _ in range(5):
            body.train(many, torch.ones(len(seeds), 6))
        return body.weights[0]

    torch.testing.assert_close(trained([0, 1])[1], trained([1])[0])


def test_restart_gives_fresh_weights():
    stacked, _ = pair(MLPShape(6, (5,), 3))
    before = stacked.weights[0].clone()
    stacked.restart()
    assert not torch.equal(before, stacked.weights[0])
