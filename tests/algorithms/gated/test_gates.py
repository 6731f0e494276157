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
from seqatt.algorithms.gated.entry_prune import EntryPruneGate
from seqatt.algorithms.gated.first_layer import FirstLayerGate
from seqatt.algorithms.gated.group_lasso import GroupLassoGate
from seqatt.algorithms.gated.gumbel_gates import GumbelGate
from seqatt.algorithms.gated.omp import OMPGate
from seqatt.algorithms.gated.stochastic_gates import StochasticGate
from seqatt.training.backend.adam import Adam
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.gates.gate import Gate
from seqatt.training.loaders.batch import Batch
from seqatt.training.models.architecture import MLPShape, build_mlp
from seqatt.training.models.mlp import ACTIVATIONS, MLP
from seqatt.training.models.torch_module import TorchModule
from seqatt.training.reducer import Reducer
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
    train(
        model, GroupLassoGate(model, COLUMNS, torch.zeros(2), torch.ones(4), None, Reducer()), make_state(4)
    )
    assert_same_weights(model, trained_without_a_gate())


def test_stochastic_gates_that_stay_open_are_plain_training():
    model = make_model()
    gate = StochasticGate(4, torch.zeros(2), 0.5, 1e-2, generators())
    gate.means.fill_(10)
    train(model, gate, make_state(4))
    assert_same_weights(model, trained_without_a_gate())


def group_lasso(layer: Tensor, selected: Tensor, strengths: Tensor) -> Tensor:
    """The group LASSO of one model, written out: a sum over unselected features of the norms of their weights."""
    columns = ([0], [1, 2], [3], [4])
    norms = torch.stack([layer[:, some].norm() for some in columns])  # torch's gradient at zero is zero
    return (strengths * (1 - selected) * norms).sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["built-in", "module"])
def test_the_gradient_of_the_group_lasso_joins_that_of_the_loss_as_computed_by_autograd(kind, weighted):
    """Feature 1 has two columns and two input columns, feature 2 is selected, feature 3 has weights of zero."""
    model: MLP | TorchModule
    if kind == "built-in":
        model = make_model(models=1)
    else:
        shape = MLPShape(5, (7,), 3, "relu")
        make_optimizer = lambda params: torch.optim.SGD(params, lr=0.0)  # noqa: E731
        model = TorchModule(lambda: build_mlp(shape), "multiclass", 0, make_optimizer, CPU)
    model.first_layer()[:, :, 4] = 0
    scale = torch.tensor([1.0, 2.0, 1.0, 1.0]).sqrt()
    gate = GroupLassoGate(model, COLUMNS, torch.tensor([0.3]), scale, None, Reducer())
    batch, state = make_batch(models=1, weighted=weighted), make_state(4, models=1, selected=(2,))
    with torch.no_grad():
        expected_loss = model.first_layer_gradient(batch, torch.ones(1, 5))[0].clone()
    layer = model.first_layer()[0].clone().requires_grad_()
    penalty = group_lasso(layer, state.selected[0], 0.3 * scale)
    expected = expected_loss + torch.autograd.grad(penalty, layer)[0]
    with torch.no_grad():
        gate.observe(batch, state)
        model.train_step(batch, torch.ones(1, 5))
    gradient = first_gradient(model._adam)[0] if isinstance(model, MLP) else model.module[0].weight.grad
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(gradient[:, 3:], expected_loss[:, 3:], rtol=1e-4, atol=1e-6)
    assert (gradient - expected_loss)[:, 1:3].norm().item() == pytest.approx(0.3 * 2**0.5, rel=1e-4)


def test_the_group_lasso_ends_with_its_phase():
    """The network that judges the selected features trains without a penalty."""
    model = make_model()
    gate = GroupLassoGate(model, COLUMNS, torch.ones(2), torch.ones(4), None, Reducer())
    gate.observe(make_batch(), make_state(4))
    assert (model.first_layer_decay > 0).all()
    gate.reset()
    assert (model.first_layer_decay == 0).all()


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
    gate = BatchAttentionGate(COLUMNS, 6, 1e-2, generators(), CPU, Reducer())
    state = SelectionState(2, np.array([False, False, True, False]), CPU)
    gate.observe(make_batch(), state)
    torch.testing.assert_close(gate.weights.sum(1), torch.ones(2))
    assert gate.weights[:, 2].tolist() == [0, 0]
    gate.score_rows([make_batch(), make_batch(rows=5)], state)
    torch.testing.assert_close(gate.scores().sum(1), torch.ones(2))


def test_batch_attention_learns_from_the_gradient_computed_by_autograd():
    gate, batch, state = (
        BatchAttentionGate(COLUMNS, 6, 1e-2, generators(), CPU, Reducer()),
        make_batch(),
        make_state(4),
    )
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
    """Weights of embeddings ten times as large decay ten times as fast and score ten times as high; numbers do not."""

    class FirstLayer:
        first_layer_decay: Tensor | None = None

        def first_layer(self) -> Tensor:
            return torch.ones(1, 8, 3)

    columns, model = FeatureColumns(torch.arange(3), 3), FirstLayer()
    embedded = torch.tensor([1.0, 1.0, 0.0])
    gate = GroupLassoGate(model, columns, torch.ones(1), torch.ones(3), embedded, Reducer())
    state = SelectionState(1, np.zeros(3, dtype=bool), CPU)
    x = torch.tensor([1.0, 10.0, 10.0]) * torch.ones(1, 16, 3)
    for _ in range(400):
        gate.observe(Batch(x, torch.zeros(16), None), state)
    assert model.first_layer_decay is not None
    decay, scores = model.first_layer_decay[0], gate.scores()[0]
    assert (decay / decay[0]).tolist() == pytest.approx([1, 10, 1], rel=1e-3)
    assert (scores / scores[0]).tolist() == pytest.approx([1, 10, 1], rel=0.05)


def test_gumbel_gates_are_sigmoids_of_logits_and_noise_at_a_falling_temperature():
    gate = GumbelGate(4, torch.full((2,), 0.1), (2.0, 0.5), 100, 1e-3, generators())
    gate.logits.normal_(generator=torch.Generator().manual_seed(5))
    drawn = []
    for _ in range(50):  # in chunks of two steps
        gate.draw(2)
        for _ in range(2):
            noise = gate._noise[gate._step].clone()
            gate.observe(make_batch(), make_state(4))
            drawn.append(noise)
            temperature = 2.0 * 0.25 ** ((len(drawn) - 1) / 99)
            torch.testing.assert_close(gate.weights, torch.sigmoid((gate.logits + noise) / temperature))
    noise = torch.stack(drawn)
    assert noise.mean().item() == pytest.approx(0.577, abs=0.1)  # of a standard Gumbel distribution
    assert noise.std().item() == pytest.approx(1.283, abs=0.15)
    assert not torch.equal(noise[:, 0], noise[:, 1])


def test_the_gradient_of_gumbel_gates_is_that_of_autograd_with_a_penalty_on_the_sum_of_weights():
    gate = GumbelGate(4, torch.tensor([0.1, 0.7]), (2.0, 0.5), 10, 1e-3, generators())
    gate.draw(1)
    noise = gate._noise[0].clone()
    gate.observe(make_batch(), make_state(4))
    grad = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))
    logits = gate.logits.clone().requires_grad_()
    weights = torch.sigmoid((logits + noise) / 2.0)
    loss = (weights * grad).sum() + (torch.tensor([0.1, 0.7])[:, None] * weights).sum()
    gate.update(grad, make_state(4))
    torch.testing.assert_close(first_gradient(gate._adam), torch.autograd.grad(loss, logits)[0])


def entry_prune(model: MLP, **options) -> EntryPruneGate:
    defaults = {"k": 1, "candidate_share": 0.5, "rotation_steps": 3, "scale": torch.ones(4)}
    gate = EntryPruneGate(model, COLUMNS, **(defaults | options), generators=generators())
    gate.refresh(make_state(4))
    return gate


def test_entry_prune_judges_candidates_by_the_summed_gradients_of_their_first_layer_weights():
    model = make_model()
    gate, state = entry_prune(model, candidate_share=1.0), make_state(4)
    assert (gate.weights == 1).all()
    sums = torch.zeros_like(model.weights[0])
    with torch.no_grad():
        for _ in range(3):
            batch = make_batch()
            sums += model.first_layer_gradient(batch, COLUMNS.to_columns(gate.weights))
            gate.update(model.train_step(batch, COLUMNS.to_columns(gate.weights)), state)
    sizes = COLUMNS.to_features(sums.square().reshape(14, 5)).sqrt().view(2, 7, 4).sum(1)
    expected = (sizes - sizes.mean(1, keepdim=True)) / sizes.std(1, keepdim=True, correction=0)
    kept = gate.scores() > -500
    assert kept.sum(1).tolist() == [1, 1]
    assert torch.equal(gate.scores().argmax(1), sizes.argmax(1))
    torch.testing.assert_close(gate.scores()[kept], expected.max(1).values, rtol=1e-4, atol=1e-5)


def test_entry_prune_has_at_least_ten_candidates_or_all_features():
    def present(features: int, share: float) -> list[float]:
        columns = FeatureColumns(torch.arange(features), features)
        model = MLP(MLPShape(features, (7,), 3), "multiclass", generators(), 1e-2, CPU)
        gate = EntryPruneGate(model, columns, 2, share, 3, torch.ones(features), generators())
        gate.refresh(make_state(features))
        return gate.weights.sum(1).tolist()

    assert present(102, 0.2) == [22, 22]
    assert present(30, 0.2) == [12, 12]
    assert present(9, 0.2) == [9, 9]


def test_entry_prune_keeps_k_features_and_lets_new_candidates_enter_with_weights_of_zero(monkeypatch):
    monkeypatch.setattr("seqatt.algorithms.gated.entry_prune.MIN_CANDIDATES", 1)
    model = make_model()
    gate, state = entry_prune(model), make_state(4)
    seen = torch.zeros(2, 4)
    for _ in range(30):
        assert gate.weights.sum(1).tolist() == [3, 3]  # one kept, and half of the three others, rounded up
        present = gate.weights.clone()
        with torch.no_grad():
            for _ in range(3):
                assert torch.equal(gate.weights, present)
                gate.update(model.train_step(make_batch(), COLUMNS.to_columns(gate.weights)), state)
        kept = gate.scores() > -500
        assert kept.sum(1).tolist() == [1, 1]
        assert (present[kept] == 1).all()  # only features in the network can be kept
        entered = (gate.weights > 0) & ~kept
        norms = COLUMNS.to_features(model.weights[0].square().sum(1))
        assert (norms[entered] == 0).all()
        assert (norms[kept] > 0).all()
        assert (model.first_layer_gradients == 0).all()
        seen += entered
    assert (seen > 0).all()


def test_constant_features_never_enter_the_network_of_entry_prune():
    """Of 40 features every other one is constant; the others are drawn as if the constant ones were not there."""
    constant = np.arange(40) % 2 == 1
    columns = FeatureColumns(torch.arange(40), 40)
    generator = torch.Generator().manual_seed(3)
    batch = Batch(
        torch.randn(2, 13, 40, generator=generator), torch.randint(3, (2, 13), generator=generator), None
    )
    for k, present in ((3, 13), (20, 20), (30, 20)):  # kept, and ten candidates or all features that are left
        model = MLP(MLPShape(40, (7,), 3), "multiclass", generators(), 1e-2, CPU)
        gate = EntryPruneGate(model, columns, k, 0.2, 1, torch.ones(40), generators())
        state = SelectionState(2, constant, CPU)
        gate.refresh(state)
        for _ in range(20):
            assert gate.weights.sum(1).tolist() == [present, present]
            assert not gate.weights[:, constant].any()
            with torch.no_grad():
                gate.update(model.train_step(batch, columns.to_columns(gate.weights)), state)


def test_a_feature_that_entry_prune_keeps_is_not_judged_again():
    model = make_model()
    gate, state = entry_prune(model, candidate_share=1.0), make_state(4)
    train(model, gate, state, steps=3)
    kept = gate.scores() > -500
    before = gate.scores()[kept].clone()
    model.first_layer_gradients.copy_(COLUMNS.to_columns(kept.float()).unsqueeze(1) * 1e3)
    gate._rotate(state)
    after = gate.scores()[kept]
    torch.testing.assert_close(torch.where(after > -500, after, after + 1000), before)


def test_noise_does_not_depend_on_the_size_of_chunks():
    def noise(chunks: list[int]) -> list[Tensor]:
        gate = GumbelGate(4, torch.zeros(2), (1.0, 1.0), 10, 1e-3, generators())
        steps = []
        for chunk in chunks:
            gate.draw(chunk)
            steps += [gate.next_noise().clone() for _ in range(chunk)]
        return steps

    for one, other in zip(noise([64, 64, 2]), noise([50, 7, 60, 13]), strict=True):
        assert torch.equal(one, other)
