"""Models, losses and optimizers of the user from which nothing can be learned are refused, or made to work."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from tests.support.problems import linear_problem
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import seqatt
from seqatt.losses.table import LOSSES
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.torch_module import TorchModule

QUICK = {"epochs": 60}


def mlp(columns: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(columns, 16), nn.ReLU(), nn.Linear(16, outputs))


class Broadcast(nn.Module):
    """The squared error of outputs (B,) and targets (B, 1), which compares all pairs of rows."""

    def forward(self, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return ((out[:, 0] - y) ** 2).mean()


def test_a_loss_that_no_output_changes_is_refused():
    X, y = linear_problem("binary")
    with pytest.raises(ValueError, match="loss: its gradient with respect to the outputs is 0 in every row"):
        seqatt.select(X, y, 2, model=mlp, loss=lambda out, y: F.cross_entropy(out, y), **QUICK)


@pytest.mark.parametrize("loss", [Broadcast(), lambda out, y: (out[:, 0] - y) ** 2])
def test_a_loss_that_mixes_up_the_rows_is_refused(loss):
    X, y = linear_problem("regression")
    order = np.argsort(y)  # rows that are sorted by the target
    with pytest.raises(
        ValueError,
        match=r"loss: is the same when the targets are shuffled.*\(64, 1\) and the targets \(64, 1\)",
    ):
        seqatt.select(X[order], y[order], 2, model=mlp, loss=loss, **QUICK)


def test_classes_in_order_are_examined_too():
    X, y = linear_problem("binary")
    order = np.argsort(y)
    with pytest.raises(ValueError, match="loss: is the same when the targets are shuffled"):
        seqatt.select(X[order], y[order], 2, model=mlp, loss=Broadcast(), **QUICK)


@pytest.mark.parametrize(
    "loss",
    [
        nn.MSELoss(),
        nn.HuberLoss(reduction="none"),
        lambda out, y: F.binary_cross_entropy(torch.sigmoid(out), (y > 0).float()),
        lambda out, y: -torch.corrcoef(torch.cat([out, y], 1).T)[0, 1],
    ],
)
def test_losses_that_learn_are_accepted_and_say_what_they_get(loss):
    X, y = linear_problem("regression")
    selection = seqatt.select(X, 5 + 3 * y, 2, model=mlp, loss=loss, epochs=150)
    assert set(selection.features) == {"x1", "x4"}
    expected = f"(y - {5 + 3 * y.mean():.6g}) / {3 * y.std():.6g}"
    assert selection.notes == [f"The loss gets the target standardised: {expected}."]


def test_an_optimizer_of_other_parameters_is_refused():
    X, y = linear_problem("binary")
    net = mlp(8, 1)
    with pytest.raises(ValueError, match="optimizer: has none of the parameters that it is to train"):
        seqatt.select(X, y, 2, model=net, optimizer=lambda _: torch.optim.Adam(net.parameters()), **QUICK)


def test_a_script_module_is_refused():
    X, y = linear_problem("binary")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        scripted = torch.jit.script(mlp(8, 1))
    with pytest.raises(TypeError, match="model: a ScriptModule cannot be trained in copies"):
        seqatt.select(X, y, 2, model=scripted, **QUICK)


def test_a_module_for_other_columns_is_answered_with_a_function():
    X, y = linear_problem("binary")
    with pytest.raises(ValueError, match=r"pass a function \(columns, outputs\) that returns a module"):
        seqatt.evaluate(X, y, X, y, [1, 4], model=mlp(8, 1), seeds=[0])


class TokenNorm(nn.Module):
    """A vector per feature, normalised over its entries."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors, self.out = nn.Parameter(torch.randn(8, 6)), nn.Linear(48, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.layer_norm(x[:, :, None] * self.vectors, (6,)).flatten(1))


@pytest.mark.parametrize(
    ("module", "normalises"),
    [
        (lambda: mlp(8, 1), False),
        (lambda: nn.Linear(8, 1), False),
        (lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)), False),
        (lambda: nn.Sequential(nn.BatchNorm1d(8), mlp(8, 1)), True),
        (
            lambda: nn.Sequential(nn.LayerNorm(8), mlp(8, 1)),
            False,
        ),  # a weight still reduces the share of a column
        (lambda: nn.Sequential(mlp(8, 16), nn.ReLU(), mlp(16, 16), nn.ReLU(), mlp(16, 1), nn.ReLU()), False),
        (lambda: nn.Sequential(nn.GroupNorm(2, 8), mlp(8, 1)), True),
        (TokenNorm, True),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_normalisation_of_the_inputs_is_recognised(module, normalises, seed):
    torch.manual_seed(seed)
    X, y = linear_problem("binary", rows=64, seed=seed)
    model = TorchModule(module, LOSSES["binary"], 0, torch.optim.Adam, torch.device("cpu"))
    batch = Batch(
        torch.tensor(X, dtype=torch.float32)[None], torch.tensor(y, dtype=torch.float32)[None, :, None], None
    )
    before = {name: value.clone() for name, value in model.module.state_dict().items()}
    assert model.is_scale_invariant(batch) == normalises
    assert all(torch.equal(value, before[name]) for name, value in model.module.state_dict().items())


@pytest.mark.parametrize("norm", [lambda c: nn.GroupNorm(2, c), nn.LayerNorm, nn.BatchNorm1d])
def test_features_are_found_behind_a_norm(norm):
    X, y = linear_problem("binary", rows=1_000, features=20)
    selection = seqatt.select(X, y, 2, model=lambda c, o: nn.Sequential(norm(c), mlp(c, o)))
    assert set(selection.features) == {"x1", "x4"}


def test_losses_of_pairs_and_of_the_hardest_rows_are_accepted():
    """Few rows are positive, and of few rows none is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 8))
    y = (X[:, 1] - X[:, 4] > 3.2).astype(int)

    def pairs(out, target):
        positive, negative = out[target > 0.5], out[target < 0.5]
        if not len(positive):
            return out.sum() * 0
        return F.softplus(negative[None, :] - positive[:, None]).mean()

    def hardest(out, target):
        return (
            F.binary_cross_entropy_with_logits(out, target, reduction="none").flatten().topk(16).values.mean()
        )

    for loss in (pairs, hardest):
        seqatt.select(X, y, 2, model=mlp, loss=loss, epochs=5)


def test_a_shuffling_loader_that_is_read_batch_by_batch_is_warned_about():
    X, y = linear_problem("binary", rows=600)
    rows = TensorDataset(torch.tensor(X), torch.tensor(y))
    options = {"k": 1, "epochs": 5}
    with pytest.warns(UserWarning, match="X: this DataLoader shuffles its rows"):
        seqatt.select(DataLoader(rows, batch_size=50, shuffle=True), memory=0, **options)
    for loader, memory in (
        (DataLoader(rows, batch_size=50), 0),
        (DataLoader(rows, batch_size=50, shuffle=True), None),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message="epochs")
            seqatt.select(loader, memory=memory, **options)
