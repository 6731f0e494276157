"""Backpropagation in ``MLPLayers`` against autograd: every activation, skip connections, inputs, dropout, slices."""

import pytest
import torch

from seqatt.losses.table import LOSSES
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.architecture import ACTIVATIONS, MLPShape
from seqatt.training.models.backpropagation import init_linear
from seqatt.training.models.layers import MLPLayers, split_batch
from seqatt.training.models.model import weighted_mean

CPU = torch.device("cpu")
MODELS, COLUMNS, EMBEDDED = 2, 7, 3  # the last columns are embeddings
TASKS = {"binary": 1, "multiclass": 4, "multilabel": 3, "regression": 2}
FUNCTIONS = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
}


def make_problem(shape: MLPShape, task: str, rows: int, *, skip: bool, weighted: bool):
    """Layers in double precision, a first matrix, inputs, targets and row weights."""
    generators = [torch.Generator().manual_seed(seed) for seed in range(MODELS)]
    layers = MLPLayers(shape, task, generators, CPU, skip=skip)
    width = shape.sizes[0][0] + (shape.outputs if skip else 0)
    first, _ = init_linear(width, shape.columns, generators)
    layers.reset_parameters(torch.randn(layers.biases[0].shape, generator=generators[0]))
    for tensors in (layers.matrices, layers.biases, layers.params, layers.grads, layers._bias_columns):
        tensors[:] = [tensor.double() for tensor in tensors]
    # The lists must go on sharing their tensors.
    layers.params = layers.matrices + layers.biases
    layers._bias_columns = [bias.unsqueeze(2) for bias in layers.biases]
    layers.first_grad = layers.first_grad.double()
    draw = torch.Generator().manual_seed(5)
    x = torch.randn(MODELS, rows, shape.columns, generator=draw, dtype=torch.float64)
    if task == "multiclass":
        y = torch.randint(shape.outputs, (MODELS, rows), generator=draw)
    else:
        y = torch.randn(MODELS, rows, shape.outputs, generator=draw, dtype=torch.float64)
        y = y if task == "regression" else (y > 0).double()
    w = torch.rand(MODELS, rows, generator=draw, dtype=torch.float64) + 0.5 if weighted else None
    return layers, first.double(), x, y, w


def autograd(layers: MLPLayers, task: str, function, first, x, y, w, *, skip: bool, factors=()):
    """The loss (T,) and the gradients of the first matrix, of the inputs, and of matrices and biases.

    ``factors`` are those of dropout, one tensor per hidden layer.
    """
    leaves = [t.clone().requires_grad_() for t in (first, x, *layers.matrices, *layers.biases)]
    first, x, *params = leaves
    matrices, biases = params[: len(layers.matrices)], params[len(layers.matrices) :]
    width = biases[0].shape[1]
    sums = first @ x.mT
    skipped = sums[:, width:]
    hidden = sums[:, :width] + biases[0].unsqueeze(2)
    for layer, (matrix, bias) in enumerate(zip(matrices, biases[1:], strict=True)):
        active = function(hidden) * factors[layer] if factors else function(hidden)
        hidden = matrix @ active + bias.unsqueeze(2)
    out = (hidden + skipped if skip else hidden).mT
    loss = weighted_mean(LOSSES[task].per_row(out, y), w)
    loss.sum().backward()
    return loss.detach(), [leaf.grad for leaf in leaves]


def assert_equals_autograd(activation, hidden, task, rows, *, skip=False, weighted=False, threads=1):
    shape = MLPShape(COLUMNS, hidden, TASKS[task], activation)
    layers, first, x, y, w = make_problem(shape, task, rows, skip=skip, weighted=weighted)
    expected_loss, (first_grad, x_grad, *grads) = autograd(
        layers, task, FUNCTIONS[activation], first, x, y, w, skip=skip
    )
    input_grads = None if skip else torch.empty(MODELS, rows, EMBEDDED, dtype=torch.float64)
    with torch.no_grad(), WorkerPool(threads) as layers.pool:
        batch = Batch(x, y, w)
        layers.gradients(first, batch, input_grads=input_grads)
        loss = layers.last_loss(batch)
    torch.testing.assert_close(loss, expected_loss)
    torch.testing.assert_close(layers.first_grad, first_grad)
    for grad, expected in zip(layers.grads, grads, strict=True):
        torch.testing.assert_close(grad, expected)
    if input_grads is not None:
        torch.testing.assert_close(input_grads, x_grad[:, :, -EMBEDDED:])


def test_every_activation_has_a_reference():
    assert set(FUNCTIONS) == set(ACTIVATIONS)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("hidden", [(), (5,), (6, 4, 3)])
@pytest.mark.parametrize("task", list(TASKS))
def test_gradients_and_those_of_embedded_inputs_are_autograds(activation, hidden, task):
    for weighted in (False, True):
        assert_equals_autograd(activation, hidden, task, 11, weighted=weighted)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("hidden", [(5,), (6, 4)])
def test_gradients_with_a_skip_connection_are_autograds(activation, hidden):
    assert_equals_autograd(activation, hidden, "multiclass", 11, skip=True, weighted=True)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_gradients_with_dropout_are_autograds_with_the_same_factors(activation, monkeypatch):
    shape = MLPShape(COLUMNS, (6, 4), 1, activation, dropout=0.3)
    layers, first, x, y, w = make_problem(shape, "binary", 11, skip=False, weighted=True)
    factors = [layers.draw_dropout(torch.empty(MODELS, width, 11)).double() for width in shape.hidden]
    _, (first_grad, _, *grads) = autograd(
        layers, "binary", FUNCTIONS[activation], first, x, y, w, skip=False, factors=factors
    )
    drawn = iter(factors)
    monkeypatch.setattr(layers, "draw_dropout", lambda like: next(drawn))
    with torch.no_grad():
        layers.gradients(first, Batch(x, y, w))
    for grad, expected in zip([layers.first_grad, *layers.grads], [first_grad, *grads], strict=True):
        torch.testing.assert_close(grad, expected)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("skip", [False, True])
def test_gradients_of_a_batch_in_slices_are_autograds(threads, skip):
    assert len(split_batch(2048, CPU)) == 4
    assert_equals_autograd("silu", (6, 4), "binary", 2048, skip=skip, weighted=True, threads=threads)
