"""The MLP written out in plain operations against the same network through autograd."""

import pytest
import torch

from seqatt.training.loaders.batch import Batch
from seqatt.training.models.architecture import ACTIVATIONS, MLPShape, build_mlp
from seqatt.training.models.embeddings import Embeddings
from seqatt.training.models.mlp import MLP
from seqatt.training.models.model import Model
from seqatt.training.models.torch_module import TorchModule

CPU = torch.device("cpu")


def pair(shape: MLPShape, task: str = "multiclass") -> tuple[MLP, TorchModule]:
    """The MLP and its reference implementation, with the same weights."""
    generator = torch.Generator().manual_seed(0)
    mlp = MLP(shape, task, [generator], 1e-2, CPU)
    reference = TorchModule(
        lambda: build_mlp(shape),
        task,
        0,
        lambda p: torch.optim.Adam(p, lr=1e-2),
        CPU,
        label_smoothing=shape.label_smoothing,
    )
    linears = [m for m in reference.module if isinstance(m, torch.nn.Linear)]
    with torch.no_grad():
        for linear, weight, bias in zip(linears, mlp.weights, mlp.biases, strict=True):
            outs, ins = linear.weight.shape
            linear.weight.copy_(weight[0, :outs, :ins])
            linear.bias.copy_(bias[0, :outs])
    return mlp, reference


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
    mlp, reference = pair(MLPShape(6, hidden, 3, activation))
    data = batch(weighted=weighted)
    gate = torch.tensor([[1.0, 0.3, 0.0, 1.0, 0.2, 0.5]])
    with torch.no_grad():
        for _ in range(20):
            torch.testing.assert_close(
                mlp.train_step(data, gate), reference.train_step(data, gate), rtol=1e-3, atol=1e-5
            )
            torch.testing.assert_close(mlp.last_loss(data), reference.last_loss(data), rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(
            mlp.predict(data.x, gate), reference.predict(data.x, gate), rtol=1e-3, atol=1e-4
        )


@pytest.mark.parametrize("weights", [[1.0] * 6, [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]])
def test_a_step_without_a_gate_changes_the_parameters_as_one_with_a_gate(weights):
    shape, data, gate = MLPShape(6, (5,), 3), batch(), torch.tensor([weights])
    ungated, gated = pair(shape)[0], pair(shape)[0]
    for _ in range(5):
        gated.train_step(data, gate)
        ungated.train_step(data, gate, gated=False, all_ones=0.0 not in weights)
    assert all(torch.equal(a, b) for a, b in zip(ungated.weights, gated.weights, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(ungated.biases, gated.biases, strict=True))


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_label_smoothing_agrees_with_autograd(task):
    outputs = {"binary": 1, "multiclass": 3, "multilabel": 2}[task]
    mlp, reference = pair(MLPShape(6, (5,), outputs, label_smoothing=0.2), task)
    data = batch()
    if task != "multiclass":
        data = Batch(data.x, (torch.rand(1, 11, outputs) > 0.5).float(), None)
    gate = torch.ones(1, 6)
    with torch.no_grad():
        for _ in range(20):
            torch.testing.assert_close(
                mlp.train_step(data, gate), reference.train_step(data, gate), rtol=1e-3, atol=1e-5
            )
        # Both evaluate without label smoothing.
        torch.testing.assert_close(mlp.loss(data, gate), reference.loss(data, gate), rtol=1e-3, atol=1e-5)
        plain, _ = pair(MLPShape(6, (5,), outputs), task)
        for _ in range(20):
            plain.train_step(data, gate)
        assert not torch.allclose(plain.predict(data.x, gate), mlp.predict(data.x, gate), atol=1e-3)


def test_the_loss_without_columns_is_the_loss_with_their_weights_at_zero():
    mlp, _ = pair(MLPShape(6, (5,), 3))
    data = batch()
    weights = torch.tensor([[1.0, 1.0, 0.0, 1.0, 1.0, 0.0]])
    columns = torch.tensor([[[0, 0], [3, 4]]])
    valid = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]])
    fast = mlp.losses_without(data, weights, columns, valid)
    plain = Model.losses_without(mlp, data, weights, columns, valid)
    without_0 = mlp.loss(data, torch.tensor([[0.0, 1, 0, 1, 1, 0]]))
    torch.testing.assert_close(fast, plain)
    torch.testing.assert_close(fast[:, 0], without_0)


def test_a_category_is_removed_by_its_mean_embedding():
    """Without a category, a network loses what differs between its values, not what they have in common."""
    shape = MLPShape(2 + 4, (5,), 3)
    embeddings = Embeddings([7], 4, 1, CPU)
    mlp = MLP(shape, "multiclass", [torch.Generator().manual_seed(0)], 1e-2, CPU, embeddings=embeddings)
    data = batch(2)
    codes = torch.arange(11)[None, :, None] % 7
    weights, columns, valid = torch.ones(1, 6), torch.tensor([[[2, 3, 4, 5]]]), torch.ones(1, 1, 4)
    embeddings.values[:] = torch.tensor([2.0, -1.0, 0.5, 3.0])
    same = mlp.embed(Batch(data.x, data.y, None, codes))
    torch.testing.assert_close(
        mlp.losses_without(same, weights, columns, valid)[:, 0], mlp.loss(same, weights)
    )
    embeddings.values.add_(torch.randn(7, 4, generator=torch.Generator().manual_seed(1)))
    differ = mlp.embed(Batch(data.x, data.y, None, codes))
    removed = mlp.losses_without(differ, weights, columns, valid)[:, 0]
    means = torch.cat([differ.x[:, :, :2], differ.x[:, :, 2:].mean(1, keepdim=True).expand(-1, 11, -1)], 2)
    torch.testing.assert_close(removed, mlp.loss(Batch(means, data.y, None), weights))
    w = torch.arange(11.0)[None] / 5
    mean = (w.unsqueeze(2) * differ.x).sum(1, keepdim=True)[:, :, 2:] / w.sum()
    means = torch.cat([differ.x[:, :, :2], mean.expand(-1, 11, -1)], 2)
    removed = mlp.losses_without(Batch(differ.x, data.y, w), weights, columns, valid)[:, 0]
    torch.testing.assert_close(removed, mlp.loss(Batch(means, data.y, w), weights))


def test_evaluation_changes_nothing():
    mlp, reference = pair(MLPShape(6, (5,), 3, dropout=0.5))
    data, ones = batch(), torch.ones(1, 6)
    for model in (mlp, reference):
        first = model.loss(data, ones)
        torch.testing.assert_close(model.loss(data, ones), first)


def test_dropout_of_a_model_does_not_depend_on_the_other_models():
    shape = MLPShape(6, (5,), 3, dropout=0.5)
    data = batch()

    def trained(seeds: list[int]) -> torch.Tensor:
        generators = [torch.Generator().manual_seed(s) for s in seeds]
        model = MLP(shape, "multiclass", generators, 1e-2, CPU)
        batches = Batch(data.x.expand(len(seeds), -1, -1), data.y.expand(len(seeds), -1), None)
        for _ in range(5):
            model.train_step(batches, torch.ones(len(seeds), 6))
        return model.weights[0]

    torch.testing.assert_close(trained([0, 1])[1], trained([1])[0])


def test_resetting_the_parameters_draws_new_weights():
    mlp, _ = pair(MLPShape(6, (5,), 3))
    before = mlp.weights[0].clone()
    mlp.reset_parameters()
    assert not torch.equal(before, mlp.weights[0])
