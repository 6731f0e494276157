"""The gates of the baselines against autograd, finite differences and plain training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from seqatt.algorithms.gated.batch_attention import BatchAttentionGate
from seqatt.algorithms.gated.cancel_out import CancelOutGate
from seqatt.algorithms.gated.deep_lasso import DeepLassoGate
from seqatt.algorithms.gated.first_layer import FirstLayerGate
from seqatt.algorithms.gated.group_lasso import GroupLassoGate
from seqatt.algorithms.gated.omp import OMPGate
from seqatt.algorithms.gated.stochastic_gates import StochasticGate
from seqatt.training.backend.adam import Adam
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp import ACTIVATIONS, MLP
from seqatt.training.models.module_mlp import build_mlp
from seqatt.training.models.torch_module import TorchModule
from seqatt.training.selection_state import SelectionState

CPU = torch.device("cpu")
COLUMNS = FeatureColumns(torch.tensor([0, 1, 1, 2, 3]), 4)  # feature 1 has two columns
ONE_COLUMN_EACH = FeatureColumns(torch.arange(5), 5)


def generators(models: int = 2) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in range(models)]


def make_model(activation: str = "relu", *, models: int = 2, hidden: tuple[int, ...] = (7,)) -> MLP:
    return MLP(MLPShape(5, hidden, 3, activation), "multiclass", generators(models), 1e-2, CPU)


def make_batch(models: int = 2, rows: int = 13, *, weighted: bool = False) -> Batch:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(models, rows, 5, generator=generator)
    y = torch.randint(3, (models, rows), generator=generator)
    w = torch.rand(models, rows, generator=generator) if weighted else None
    return Batch(x, y, w)


def make_state(features: int, models: int = 2, selected: tuple[int, ...] = ()) -> SelectionState:
    state = SelectionState(models, np.zeros(features, dtype=bool), CPU)
    scores = np.zeros((models, features))
    scores[:, list(selected)] = 1
    if selected:
        state.take(scores, len(selected))
    return state


def train(model: MLP, gate: Gate, state: SelectionState, steps: int = 30) -> None:
    """Train as a trainer does in an "attended" phase."""
    with torch.no_grad():
        gate.draw(steps)
        for _ in range(steps):
            batch = make_batch()
            gate.observe(batch, state)
            grad = model.train_step(batch, COLUMNS.to_columns(gate.weights))
            gate.update(COLUMNS.to_features(grad), state)


def trained_without_a_gate(steps: int = 30) -> MLP:
    model = make_model()
    with torch.no_grad():
        for _ in range(steps):
            model.train_step(make_batch(), torch.ones(2, 5))
    return model


def assert_same_weights(one: MLP, other: MLP) -> None:
    for a, b in zip(one.weights + one.biases, other.weights + other.biases, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def first_gradient(adam: Adam, i: int = 0) -> Tensor:
    """The gradient of parameter ``i`` in Adam's only step so far, from its first moment."""
    return adam.exp_avg[i] / 0.1


def test_group_lasso_without_a_penalty_is_plain_training():
    model = make_model()
    train(model, GroupLassoGate(model, COLUMNS, torch.zeros(2), torch.ones(4), 1e-2), make_state(4))
    assert_same_weights(model, trained_without_a_gate())


def test_stochastic_gates_that_stay_open_are_plain_training():
    model = make_model()
    gate = StochasticGate(4, torch.zeros(2), 0.5, 1e-2, generators())
    gate.means.fill_(10)
    train(model, gate, make_state(4))
    assert_same_weights(model, trained_without_a_gate())


def test_a_proximal_step_shortens_unselected_weights_and_keeps_their_direction():
    model = make_model()
    gate = GroupLassoGate(model, COLUMNS, torch.tensor([20.0, 200.0]) / 7**0.5, torch.ones(4), 1e-2)
    weights_before, norms_before = model.weights[0].clone(), gate.norms()
    gate.update(torch.zeros(2, 4), make_state(4, selected=(2,)))
    weights, norms = model.weights[0], gate.norms()
    torch.testing.assert_close(weights[:, :, 3], weights_before[:, :, 3], rtol=0, atol=0)
    for unselected in (0, 1, 3):
        shrinkage = torch.tensor([0.2, 2.0])
        torch.testing.assert_close(
            norms[:, unselected], (norms_before[:, unselected] - shrinkage).clamp_min(0)
        )
    factors = COLUMNS.to_columns(norms / norms_before)
    torch.testing.assert_close(weights, weights_before * factors.unsqueeze(1))
    assert (norms[1] == 0).sum() > 0


def test_the_penalty_of_a_feature_grows_with_the_root_of_its_number_of_table_columns():
    model = make_model()
    gate = GroupLassoGate(model, COLUMNS, torch.ones(2), torch.tensor([1.0, 2.0, 1.0, 1.0]), 1e-2)
    before = gate.norms()
    gate.update(torch.zeros(2, 4), make_state(4))
    shrinkage = before - gate.norms()
    torch.testing.assert_close(shrinkage[:, 1], 2 * shrinkage[:, 0], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("hidden", [(), (7,), (7, 4)])
def test_omp_scores_are_norms_of_the_gradient_computed_by_autograd(hidden, weighted):
    model, batch = make_model(hidden=hidden), make_batch(weighted=weighted)
    state = make_state(4, selected=(1,))
    gate = OMPGate(model, COLUMNS, torch.ones(4))
    gate.score_rows([batch, batch], state)
    for t in range(2):
        first_layer = (model.weights[0][t] * COLUMNS.to_columns(state.selected)[t]).requires_grad_()
        out = batch.x[t] @ first_layer.T + model.biases[0][t]
        for weight, bias in zip(model.weights[1:], model.biases[1:], strict=True):
            out = torch.relu(out) @ weight[t].T + bias[t]
        losses = F.cross_entropy(out, batch.y[t], reduction="none")
        loss = (losses if batch.w is None else losses * batch.w[t]).mean()
        (gradient,) = torch.autograd.grad(loss, first_layer)
        norms = COLUMNS.to_features(gradient.square().sum(0)[None]).sqrt()[0]
        torch.testing.assert_close(gate.scores()[t], norms, rtol=1e-4, atol=1e-6)


def test_a_torch_module_has_the_gradients_of_the_built_in_network():
    built_in, batch = make_model(models=1), make_batch(models=1)
    module = TorchModule(
        lambda: build_mlp(MLPShape(5, (7,), 3)), "multiclass", 0, lambda p: torch.optim.Adam(p, lr=1e-2), CPU
    )
    linears = [m for m in module.module if isinstance(m, torch.nn.Linear)]
    for linear, weight, bias in zip(linears, built_in.weights, built_in.biases, strict=True):
        linear.weight.data.copy_(weight[0])
        linear.bias.data.copy_(bias[0])
    weights = torch.tensor([[1.0, 0, 0, 1, 0]])
    before = linears[0].weight.clone()
    torch.testing.assert_close(
        module.first_layer_gradient(batch, weights), built_in.first_layer_gradient(batch, weights)
    )
    torch.testing.assert_close(linears[0].weight, before, rtol=0, atol=0)
    torch.testing.assert_close(
        module.input_gradients(batch, weights), built_in.input_gradients(batch, weights)
    )
    models = (built_in, module)
    gates = [DeepLassoGate(model, ONE_COLUMN_EACH, torch.tensor([0.3])) for model in models]
    for _ in range(10):
        for model, gate in zip(models, gates, strict=True):
            model.train_step_with_penalty(batch, torch.ones(1, 5), gate.gradient_penalty)
        torch.testing.assert_close(built_in.last_loss(batch), module.last_loss(batch), rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(linears[0].weight, built_in.weights[0][0], rtol=1e-3, atol=1e-4)


def test_batch_attention_sums_to_one_and_gives_constant_features_no_weight():
    gate = BatchAttentionGate(COLUMNS, 6, 1e-2, generators(), CPU)
    state = SelectionState(2, np.array([False, False, True, False]), CPU)
    gate.observe(make_batch(), state)
    torch.testing.assert_close(gate.weights.sum(1), torch.ones(2))
    assert gate.weights[:, 2].tolist() == [0, 0]
    gate.score_rows([make_batch(), make_batch(rows=5)], state)
    torch.testing.assert_close(gate.scores().sum(1), torch.ones(2))


def test_batch_attention_learns_from_the_gradient_computed_by_autograd():
    gate, batch, state = BatchAttentionGate(COLUMNS, 6, 1e-2, generators(), CPU), make_batch(), make_state(4)
    weights_grad = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
    params = [p.clone().requires_grad_() for p in (*gate.layers, *gate.biases)]
    hidden = torch.tanh(batch.x @ params[0].mT + params[2].unsqueeze(1))
    logits = (hidden @ params[1].mT + params[3].unsqueeze(1)).mean(1)
    weights = torch.softmax(logits, 1)
    gate.observe(batch, state)
    torch.testing.assert_close(gate.weights, weights.detach())
    gate.update(weights_grad, state)
    expected = torch.autograd.grad((weights * weights_grad).sum(), params)
    for i, grad in enumerate(expected):
        torch.testing.assert_close(first_gradient(gate._adam, i), grad, rtol=1e-4, atol=1e-6)


def test_stochastic_gates_learn_from_the_gradient_computed_by_autograd():
    penalty = torch.tensor([0.1, 2.0])
    gate, state = StochasticGate(4, penalty, 0.5, 1e-2, generators()), make_state(4)
    gate.means.copy_(torch.tensor([[0.1, 0.9, -0.4, 0.5], [0.5, 1.4, 0.2, 0.0]]))
    gate.draw(1)
    gate.observe(make_batch(), state)
    means = gate.means.clone().requires_grad_()
    noise = gate._noise[0]
    weights_grad = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
    weights = (means + 0.5 * noise).clamp(0, 1)
    torch.testing.assert_close(gate.weights, weights.detach())
    open_gates = torch.distributions.Normal(0.0, 1.0).cdf(means / 0.5).sum(1)
    (expected,) = torch.autograd.grad((weights * weights_grad).sum() + (penalty * open_gates).sum(), means)
    gate.update(weights_grad, state)
    torch.testing.assert_close(first_gradient(gate._adam), expected, rtol=1e-4, atol=1e-6)


def test_the_noise_of_stochastic_gates_does_not_depend_on_the_size_of_chunks():
    gates = [StochasticGate(4, torch.zeros(2), 0.5, 1e-2, generators()) for _ in range(2)]
    drawn: list[list[Tensor]] = [[], []]
    for gate, chunks, noise in zip(gates, ([64, 64, 22], [8, 8, 64, 64, 6]), drawn, strict=True):
        for steps in chunks:
            gate.draw(steps)
            noise.extend(gate._noise[:steps].clone())
    torch.testing.assert_close(torch.stack(drawn[0]), torch.stack(drawn[1]), rtol=0, atol=0)


def test_cancel_out_learns_from_the_gradient_computed_by_autograd():
    penalty = torch.tensor([0.1, 2.0])
    gate, state = CancelOutGate(4, penalty, 1e-2), make_state(4)
    gate.logits.copy_(torch.tensor([[0.1, 3.0, -2.0, 0.5], [4.0, 4.0, 1.0, 0.0]]))
    gate.refresh(state)
    logits = gate.logits.clone().requires_grad_()
    weights = torch.sigmoid(logits)
    weights_grad = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
    penalties = penalty * (weights.sum(1) - logits.var(1))
    (expected,) = torch.autograd.grad((weights * weights_grad).sum() + penalties.sum(), logits)
    gate.update(weights_grad, state)
    torch.testing.assert_close(first_gradient(gate._adam), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_the_gradient_of_deep_lasso_agrees_with_finite_differences(activation):
    model, batch = make_model(activation), make_batch()
    gate = DeepLassoGate(model, COLUMNS, torch.tensor([0.5, 0.2]))
    all_columns = torch.ones(2, 5)
    cells = [(2, 1), (6, 4), (0, 0)]  # hidden unit and column

    def objective() -> Tensor:
        gradients = model.input_gradients(batch, all_columns)
        return model.loss(batch, all_columns) + gate.gradient_penalty(gradients)

    expected = []
    with torch.no_grad():
        for unit, column in cells:
            values = []
            for difference in (1e-2, -1e-2):
                model.weights[0][:, unit, column] += difference
                values.append(objective())
                model.weights[0][:, unit, column] -= difference
            expected.append((values[0] - values[1]) / 2e-2)
        model.train_step_with_penalty(batch, all_columns, gate.gradient_penalty)
    grads = model.layers.first_grad
    for (unit, column), slope in zip(cells, expected, strict=True):
        torch.testing.assert_close(grads[:, unit, column], slope, rtol=2e-2, atol=2e-4)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_deep_lasso_without_a_penalty_is_plain_training(activation):
    penalised, plain = make_model(activation), make_model(activation)
    gate = DeepLassoGate(penalised, COLUMNS, torch.zeros(2))
    with torch.no_grad():
        for _ in range(10):
            penalised.train_step_with_penalty(make_batch(), torch.ones(2, 5), gate.gradient_penalty)
            plain.train_step(make_batch(), torch.ones(2, 5))
    for a, b in zip(penalised.weights, plain.weights, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_deep_lasso_scores_are_input_gradients_of_each_rows_loss():
    model, batch = make_model(), make_batch()
    gate = DeepLassoGate(model, COLUMNS, torch.zeros(2))
    gate.score_rows([batch], make_state(4))
    gradients = model.input_gradients(batch, torch.ones(2, 5))
    row = batch.x[1, 4].clone().requires_grad_()
    hidden = torch.relu(model.weights[0][1] @ row + model.biases[0][1])
    out = model.weights[1][1] @ hidden + model.biases[1][1]
    (expected,) = torch.autograd.grad(F.cross_entropy(out, batch.y[1, 4]), row)
    torch.testing.assert_close(gradients[1, 4], expected, rtol=1e-4, atol=1e-6)
    assert gate.scores()[0, 3].item() == pytest.approx(gradients[0, :, 4].square().mean().sqrt().item())


def test_first_layer_scores_are_shares_of_each_hidden_units_input():
    model, batch = make_model(), make_batch()
    gate = FirstLayerGate(model, COLUMNS)
    gate.score_rows([batch], make_state(4))
    torch.testing.assert_close(gate.scores().sum(1), torch.full((2,), 7.0))
    contributions = batch.x[0].abs().mean(0) * model.weights[0][0].abs()
    expected = (contributions[:, 0] / contributions.sum(1)).sum().item()
    assert gate.scores()[0, 0].item() == pytest.approx(expected, rel=1e-5)


def test_large_embeddings_do_not_evade_the_penalty_of_a_group_lasso():
    """Weights of inputs ten times as large shrink ten times as fast and score ten times as high."""

    class FirstLayer:
        def __init__(self) -> None:
            self.weights = torch.ones(1, 8, 2)

        def first_layer(self) -> torch.Tensor:
            return self.weights

        def scale_first_layer(self, factors: torch.Tensor) -> None:
            self.weights *= factors.unsqueeze(1)

    columns = FeatureColumns(torch.arange(2), 2)
    gate = GroupLassoGate(FirstLayer(), columns, torch.ones(1), torch.ones(2), 1e-3, embedded=True)
    state = SelectionState(1, np.zeros(2, dtype=bool), torch.device("cpu"))
    x = torch.tensor([1.0, 10.0]) * torch.ones(1, 16, 2)
    for _ in range(400):
        gate.observe(Batch(x, torch.zeros(16), None), state)
    before = gate.norms()[0]
    gate.update(torch.zeros(1, 2), state)
    shrinkage = before - gate.norms()[0]
    assert (shrinkage[1] / shrinkage[0]).item() == pytest.approx(10, rel=1e-3)
    assert (gate.scores()[0, 1] / gate.scores()[0, 0]).item() == pytest.approx(10, rel=0.05)
