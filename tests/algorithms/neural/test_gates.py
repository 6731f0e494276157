"""The gates of Sequential Attention's rivals against autograd, finite differences and plain training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from seqatt.algorithms.neural.batch_attention import BatchAttentionGate
from seqatt.algorithms.neural.cancel_out import CancelOutGate
from seqatt.algorithms.neural.deep_lasso import DeepLassoGate
from seqatt.algorithms.neural.first_layer import FirstLayerGate
from seqatt.algorithms.neural.group_lasso import GroupLassoGate
from seqatt.algorithms.neural.omp import OMPGate
from seqatt.algorithms.neural.stochastic_gates import StochasticGate
from seqatt.training.batch import Batch
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.models.architecture import MLPShape
from seqatt.training.models.mlp import ACTIVATIONS, MLP
from seqatt.training.models.torch_module import TorchModule, build_mlp
from seqatt.training.selection_state import SelectionState

CPU = torch.device("cpu")
OWNER = FeatureColumns(torch.tensor([0, 1, 1, 2, 3]), 4)  # feature 1 has two columns
PLAIN = FeatureColumns(torch.arange(5), 5)


def generators(models: int = 2) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in range(models)]


def make_model(activation: str = "relu", *, models: int = 2, hidden: tuple[int, ...] = (7,)) -> MLP:
    return MLP(MLPShape(5, hidden, 3, activation), "multiclass", generators(models), 1e-2, CPU)


def batch(models: int = 2, rows: int = 13, *, weighted: bool = False) -> Batch:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(models, rows, 5, generator=generator)
    y = torch.randint(3, (models, rows), generator=generator)
    w = torch.rand(models, rows, generator=generator) if weighted else None
    return Batch(x, y, w)


def state(features: int, models: int = 2, selected: tuple[int, ...] = ()) -> SelectionState:
    made = SelectionState(models, np.zeros(features, dtype=bool), CPU)
    scores = np.zeros((models, features))
    scores[:, list(selected)] = 1
    if selected:
        made.take(scores, len(selected))
    return made


def walk(model: MLP, gate: Gate, feature_of: FeatureColumns, chosen: SelectionState, steps: int = 30) -> None:
    """What a crew does."""
    with torch.no_grad():
        gate.load(steps)
        for _ in range(steps):
            given = batch()
            gate.observe(given, chosen)
            grad = gate.train_step(model, given, feature_of.to_columns(gate.weights))
            gate.update(feature_of.to_features(grad), chosen)


def plainly_trained(steps: int = 30) -> MLP:
    model = make_model()
    with torch.no_grad():
        for _ in range(steps):
            model.train_step(batch(), torch.ones(2, 5))
    return model


def insist_on_same_weights(one: MLP, other: MLP) -> None:
    for a, b in zip(one.weights + one.biases, other.weights + other.biases, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def first_gradient_of(adam: object, place: int = 0) -> Tensor:
    """The gradient of the only step taken so far, from Adam's first moment."""
    return adam.exp_avg[place] / 0.1


def test_a_lasso_without_penalty_is_plain_training():
    model = make_model()
    walk(model, GroupLassoGate(model, OWNER, torch.zeros(2), torch.ones(4), 1e-2), OWNER, state(4))
    insist_on_same_weights(model, plainly_trained())


def test_stochastic_gates_held_open_are_plain_training():
    model = make_model()
    gate = StochasticGate(4, torch.zeros(2), 0.5, 1e-2, generators())
    gate.means.fill_(10)
    walk(model, gate, OWNER, state(4))
    insist_on_same_weights(model, plainly_trained())


def test_a_proximal_step_shortens_what_is_not_chosen_and_turns_nothing():
    model = make_model()
    gate = GroupLassoGate(model, OWNER, torch.tensor([20.0, 200.0]) / 7**0.5, torch.ones(4), 1e-2)
    before, long = model.weights[0].clone(), gate.lengths()
    gate.update(torch.zeros(2, 4), state(4, selected=(2,)))
    after, short = model.weights[0], gate.lengths()
    torch.testing.assert_close(after[:, :, 3], before[:, :, 3], rtol=0, atol=0)
    for penalised in (0, 1, 3):
        bite = torch.tensor([0.2, 2.0])
        torch.testing.assert_close(short[:, penalised], (long[:, penalised] - bite).clamp_min(0))
    factors = OWNER.to_columns(short / long)
    torch.testing.assert_close(after, before * factors.unsqueeze(1))
    assert (short[1] == 0).sum() > 0


def test_a_feature_of_several_table_columns_is_penalised_by_the_root_of_their_number():
    model = make_model()
    gate = GroupLassoGate(model, OWNER, torch.ones(2), torch.tensor([1.0, 2.0, 1.0, 1.0]), 1e-2)
    long = gate.lengths()
    gate.update(torch.zeros(2, 4), state(4))
    lost = long - gate.lengths()
    torch.testing.assert_close(lost[:, 1], 2 * lost[:, 0], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("hidden", [(), (7,), (7, 4)])
def test_a_pursuit_scores_by_the_gradient_that_autograd_finds(hidden, weighted):
    model, given, chosen = make_model(hidden=hidden), batch(weighted=weighted), state(4, selected=(1,))
    gate = OMPGate(model, OWNER, torch.ones(4))
    gate.score_rows([given, given], chosen)
    for t in range(2):
        first = (model.weights[0][t] * OWNER.to_columns(chosen.selected)[t]).requires_grad_()
        flow = given.x[t] @ first.T + model.biases[0][t]
        for weight, bias in zip(model.weights[1:], model.biases[1:], strict=True):
            flow = torch.relu(flow) @ weight[t].T + bias[t]
        rows = F.cross_entropy(flow, given.y[t], reduction="none")
        loss = (rows if given.w is None else rows * given.w[t]).mean()
        (gradient,) = torch.autograd.grad(loss, first)
        lengths = OWNER.to_features(gradient.square().sum(0)[None]).sqrt()[0]
        torch.testing.assert_close(gate.scores()[t], lengths, rtol=1e-4, atol=1e-6)


def test_a_module_gives_the_first_layers_gradient_that_the_written_out_network_gives():
    stacked, given = make_model(models=1), batch(models=1)
    module = TorchModule(
        lambda: build_mlp(MLPShape(5, (7,), 3)), "multiclass", 0, lambda p: torch.optim.Adam(p, lr=1e-2), CPU
    )
    linears = [m for m in module.module if isinstance(m, torch.nn.Linear)]
    for linear, weight, bias in zip(linears, stacked.weights, stacked.biases, strict=True):
        linear.weight.data.copy_(weight[0])
        linear.bias.data.copy_(bias[0])
    blocked = torch.tensor([[1.0, 0, 0, 1, 0]])
    own = linears[0].weight.clone()
    torch.testing.assert_close(
        module.first_layer_gradient(given, blocked), stacked.first_layer_gradient(given, blocked)
    )
    torch.testing.assert_close(linears[0].weight, own, rtol=0, atol=0)
    torch.testing.assert_close(
        module.input_gradients(given, blocked), stacked.input_gradients(given, blocked)
    )
    gates = [DeepLassoGate(one, PLAIN, torch.tensor([0.3])) for one in (stacked, module)]
    for _ in range(10):
        for one, gate in zip((stacked, module), gates, strict=True):
            one.train_step_with_penalty(given, torch.ones(1, 5), gate.penalise)
        torch.testing.assert_close(stacked.last_loss(given), module.last_loss(given), rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(linears[0].weight, stacked.weights[0][0], rtol=1e-3, atol=1e-4)


def test_batch_attention_sums_to_one_and_leaves_out_what_is_closed():
    gate = BatchAttentionGate(OWNER, 6, 1e-2, generators(), CPU)
    chosen = SelectionState(2, np.array([False, False, True, False]), CPU)
    gate.observe(batch(), chosen)
    torch.testing.assert_close(gate.weights.sum(1), torch.ones(2))
    assert gate.weights[:, 2].tolist() == [0, 0]
    gate.score_rows([batch(), batch(rows=5)], chosen)
    torch.testing.assert_close(gate.scores().sum(1), torch.ones(2))


def test_batch_attention_learns_by_the_gradient_that_autograd_finds():
    gate, given, chosen = BatchAttentionGate(OWNER, 6, 1e-2, generators(), CPU), batch(), state(4)
    pulled = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
    params = [p.clone().requires_grad_() for p in (*gate.layers, *gate.biases)]
    active = torch.tanh(given.x @ params[0].mT + params[2].unsqueeze(1))
    logits = (active @ params[1].mT + params[3].unsqueeze(1)).mean(1)
    weights = torch.softmax(logits, 1)
    gate.observe(given, chosen)
    torch.testing.assert_close(gate.weights, weights.detach())
    gate.update(pulled, chosen)
    wanted = torch.autograd.grad((weights * pulled).sum(), params)
    for place, grad in enumerate(wanted):
        torch.testing.assert_close(first_gradient_of(gate._adam, place), grad, rtol=1e-4, atol=1e-6)


def test_stochastic_gates_learn_by_the_gradient_that_autograd_finds():
    penalty = torch.tensor([0.1, 2.0])
    gate, chosen = StochasticGate(4, penalty, 0.5, 1e-2, generators()), state(4)
    gate.means.copy_(torch.tensor([[0.1, 0.9, -0.4, 0.5], [0.5, 1.4, 0.2, 0.0]]))
    gate.load(1)
    gate.observe(batch(), chosen)
    means = gate.means.clone().requires_grad_()
    noise = gate._noise[0]
    pulled = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
    weights = (means + 0.5 * noise).clamp(0, 1)
    torch.testing.assert_close(gate.weights, weights.detach())
    opened = torch.distributions.Normal(0.0, 1.0).cdf(means / 0.5).sum(1)
    (wanted,) = torch.autograd.grad((weights * pulled).sum() + (penalty * opened).sum(), means)
    gate.update(pulled, chosen)
    torch.testing.assert_close(first_gradient_of(gate._adam), wanted, rtol=1e-4, atol=1e-6)


def test_stochastic_gates_draw_the_same_noise_in_whatever_portions():
    gates = [StochasticGate(4, torch.zeros(2), 0.5, 1e-2, generators()) for _ in range(2)]
    drawn: list[list[Tensor]] = [[], []]
    for gate, portions, seen in zip(gates, ([64, 64, 22], [8, 8, 64, 64, 6]), drawn, strict=True):
        for steps in portions:
            gate.load(steps)
            seen.extend(gate._noise[:steps].clone())
    torch.testing.assert_close(torch.stack(drawn[0]), torch.stack(drawn[1]), rtol=0, atol=0)


def test_cancel_out_learns_by_the_gradient_that_autograd_finds():
    penalty = torch.tensor([0.1, 2.0])
    gate, chosen = CancelOutGate(4, penalty, 1e-2), state(4)
    gate.logits.copy_(torch.tensor([[0.1, 3.0, -2.0, 0.5], [4.0, 4.0, 1.0, 0.0]]))
    gate.refresh(chosen)
    logits = gate.logits.clone().requires_grad_()
    weights = torch.sigmoid(logits)
    pulled = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
    added = penalty * (weights.sum(1) - logits.var(1))
    (wanted,) = torch.autograd.grad((weights * pulled).sum() + added.sum(), logits)
    gate.update(pulled, chosen)
    torch.testing.assert_close(first_gradient_of(gate._adam), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_deep_lassos_gradient_agrees_with_finite_differences(activation):
    model, given = make_model(activation), batch()
    gate = DeepLassoGate(model, OWNER, torch.tensor([0.5, 0.2]))
    everything = torch.ones(2, 5)

    def objective() -> Tensor:
        return model.loss(given, everything) + gate.penalise(model.input_gradients(given, everything))

    wanted = []
    with torch.no_grad():
        for place in [(0, 2, 1), (0, 6, 4), (0, 0, 0)]:
            sides = []
            for push in (1e-2, -1e-2):
                model.weights[0][:, place[1], place[2]] += push
                sides.append(objective())
                model.weights[0][:, place[1], place[2]] -= push
            wanted.append((sides[0] - sides[1]) / 2e-2)
        model.train_step_with_penalty(given, everything, gate.penalise)
    found = model._weight_grads[0]
    for place, slope in zip([(2, 1), (6, 4), (0, 0)], wanted, strict=True):
        torch.testing.assert_close(found[:, place[0], place[1]], slope, rtol=2e-2, atol=2e-4)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_deep_lasso_without_penalty_is_plain_training(activation):
    one, other = make_model(activation), make_model(activation)
    gate = DeepLassoGate(one, OWNER, torch.zeros(2))
    with torch.no_grad():
        for _ in range(10):
            one.train_step_with_penalty(batch(), torch.ones(2, 5), gate.penalise)
            other.train_step(batch(), torch.ones(2, 5))
    for a, b in zip(one.weights, other.weights, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_deep_lasso_scores_by_the_gradient_of_rows_losses():
    model, given = make_model(), batch()
    gate = DeepLassoGate(model, OWNER, torch.zeros(2))
    gate.score_rows([given], state(4))
    gradients = model.input_gradients(given, torch.ones(2, 5))
    row = given.x[1, 4].clone().requires_grad_()
    flow = torch.relu(model.weights[0][1] @ row + model.biases[0][1])
    out = model.weights[1][1] @ flow + model.biases[1][1]
    (wanted,) = torch.autograd.grad(F.cross_entropy(out, given.y[1, 4]), row)
    torch.testing.assert_close(gradients[1, 4], wanted, rtol=1e-4, atol=1e-6)
    assert gate.scores()[0, 3].item() == pytest.approx(gradients[0, :, 4].square().mean().sqrt().item())


def test_contributions_to_the_first_layer_are_shares_of_every_unit():
    model, given = make_model(), batch()
    gate = FirstLayerGate(model, OWNER)
    gate.score_rows([given], state(4))
    torch.testing.assert_close(gate.scores().sum(1), torch.full((2,), 7.0))
    reach = given.x[0].abs().mean(0) * model.weights[0][0].abs()
    assert gate.scores()[0, 0].item() == pytest.approx((reach[:, 0] / reach.sum(1)).sum().item(), rel=1e-5)
