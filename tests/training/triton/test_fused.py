"""The fused kernels against the plain operations, their reference implementation.

Without a GPU the kernels run in Triton's interpreter, if Triton is installed.
"""

import copy
import os

import numpy as np
import pytest
import torch

CUDA = torch.cuda.is_available()
if not CUDA:
    os.environ.setdefault("TRITON_INTERPRET", "1")
    # Triton 3.6's interpreter converts arrays of one element to scalars, which newer NumPy refuses.
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        pytest.skip("Triton's interpreter needs an older NumPy", allow_module_level=True)
pytest.importorskip("triton", reason="Triton is not installed")

import seqatt  # noqa: E402
from seqatt.algorithms.neural import sequential_attention  # noqa: E402
from seqatt.training import model_factory  # noqa: E402
from seqatt.training.gates.attention import AttentionGate  # noqa: E402
from seqatt.training.gates.masks import MASKS, SoftmaxMask  # noqa: E402
from seqatt.training.kernels import start_device  # noqa: E402
from seqatt.training.loaders.batch import IndexedBatch  # noqa: E402
from seqatt.training.loaders.input_dropout import InputDropout  # noqa: E402
from seqatt.training.models.architecture import MLPShape  # noqa: E402
from seqatt.training.models.embeddings import Embeddings  # noqa: E402
from seqatt.training.models.mlp import MLP  # noqa: E402
from seqatt.training.selection_state import SelectionState  # noqa: E402
from seqatt.training.triton import fused  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
DEVICE = torch.device("cuda" if CUDA else "cpu")
gpu = [pytest.mark.gpu, pytest.mark.skipif(not CUDA, reason="no CUDA device")]


class Table:
    """The part of a ``DeviceTable`` that an ``IndexedBatch`` uses."""

    def __init__(self, columns: int) -> None:
        self.x = torch.randn(50, columns, device=DEVICE)
        self.columns = columns

    def gather(self, index, out):
        return self.x[index]


def targets(task, trials, size, outputs):
    if task == "multiclass":
        return torch.randint(outputs, (trials, size), device=DEVICE)
    y = torch.randn(trials, size, outputs, device=DEVICE)
    return y if task == "regression" else (y > 0).float()


@pytest.mark.parametrize(
    ("task", "outputs", "activation", "hidden", "weighted", "with_dropout"),
    [
        ("multiclass", 7, "relu", 19, False, False),
        ("multiclass", 7, "relu", 19, False, True),
        ("multiclass", 7, "gelu", 67, True, False),
        ("binary", 1, "tanh", 5, False, False),
        ("multilabel", 3, "silu", 40, True, True),
        ("regression", 2, "relu", 100, False, False),
    ],
)
def test_steps_agree_with_the_plain_operations(task, outputs, activation, hidden, weighted, with_dropout):
    torch.manual_seed(0)
    trials, size, columns = 2, 21, 37
    label_smoothing = 0.1 if weighted and task != "regression" else 0.0
    shape = MLPShape(columns, (hidden,), outputs, activation, label_smoothing=label_smoothing)

    def make(kind):
        return kind(shape, task, [torch.Generator().manual_seed(t) for t in range(trials)], 1e-2, DEVICE)

    plain, fast = make(MLP), make(fused.FusedMLP)
    gates = [
        kind(trials, columns, SoftmaxMask(0.7), 1e-2, DEVICE)
        for kind in (AttentionGate, fused.FusedAttention)
    ]
    state = SelectionState(trials, np.zeros(columns, dtype=bool), DEVICE)
    state.take(np.random.default_rng(0).random((trials, columns)), 3)
    table = Table(columns)
    dropout = InputDropout(0.4, size * columns, DEVICE) if with_dropout else None
    for gate in gates:
        gate.refresh(state)
    for _ in range(4):
        index = torch.randint(50, (trials, size), device=DEVICE)
        w = torch.rand(trials, size, device=DEVICE) if weighted else None
        offsets = torch.randint(1000, (trials,), device=DEVICE)
        batch = IndexedBatch(table, index, targets(task, trials, size, outputs), w, None, dropout, offsets)
        grads = [
            model.train_step(batch, gate.weights) for model, gate in zip((plain, fast), gates, strict=True)
        ]
        torch.testing.assert_close(grads[1], grads[0], rtol=1e-3, atol=1e-6)
        torch.testing.assert_close(fast.last_loss(batch), plain.last_loss(batch), rtol=1e-4, atol=1e-6)
        for gate, grad in zip(gates, grads, strict=True):
            gate.update(grad, state)
        torch.testing.assert_close(gates[1].weights, gates[0].weights, rtol=1e-4, atol=1e-6)
    for one, other in zip(fast.weights + fast.biases, plain.weights + plain.biases, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("width", [3, 4, 8])
def test_steps_of_embeddings_agree_with_the_plain_operations(width):
    """One category has the same value in all rows; its segment is longer than what a kernel adds at a time."""
    draw = torch.Generator().manual_seed(0)
    sizes, models, rows = (1, 40, 900), 2, 300
    plain, fast = (kind(sizes, width, models, DEVICE) for kind in (Embeddings, fused.FusedEmbeddings))
    for embeddings in (plain, fast):
        embeddings.reset_parameters([torch.Generator().manual_seed(seed) for seed in range(models)])
    for _ in range(3):
        codes = torch.stack([torch.randint(size, (models, rows), generator=draw) for size in sizes], 2).int()
        grad = torch.randn(models, rows, 3 * width, generator=draw).to(DEVICE) / rows
        for embeddings in (plain, fast):
            embeddings.lookup(codes.to(DEVICE))
            grads = embeddings.merge(embeddings._looked_up, grad.reshape(-1, width))
            embeddings.grads = grads[0], grads[1] * rows
            embeddings.step()
        torch.testing.assert_close(fast.squares, plain.squares, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(fast.values, plain.values, rtol=1e-4, atol=1e-5)


def test_the_decay_of_the_first_layer_and_the_sum_of_its_gradients_agree_with_the_plain_operations():
    torch.manual_seed(0)
    trials, size, columns = 2, 21, 37
    shape = MLPShape(columns, (19,), 7)

    def make(kind):
        return kind(
            shape, "multiclass", [torch.Generator().manual_seed(t) for t in range(trials)], 1e-2, DEVICE
        )

    plain, fast = make(MLP), make(fused.FusedMLP)
    decay, weights = torch.rand(trials, columns, device=DEVICE), torch.rand(trials, columns, device=DEVICE)
    for model in (plain, fast):
        model.first_layer_decay = decay
        model.first_layer_gradients = torch.zeros_like(model.weights[0])
    table = Table(columns)
    for _ in range(4):
        index = torch.randint(50, (trials, size), device=DEVICE)
        batch = IndexedBatch(table, index, targets("multiclass", trials, size, 7), None)
        for model in (plain, fast):
            model.train_step(batch, weights)
    for one, other in zip(fast.weights + fast.biases, plain.weights + plain.biases, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(fast.first_layer_gradients, plain.first_layer_gradients, rtol=1e-3, atol=1e-5)
    assert plain.first_layer_gradients.abs().max() > 0.01


def test_a_reset_also_resets_the_bias_corrections():
    state = SelectionState(1, np.zeros(5, dtype=bool), DEVICE)
    gate = fused.FusedAttention(1, 5, SoftmaxMask(), 1e-2, DEVICE)
    new = copy.deepcopy(gate)
    grad = torch.tensor([[1.0, -1, 0.5, 0, 2]], device=DEVICE)
    for _ in range(5):
        gate.update(grad, state)
    gate.reset()
    for one in (gate, new):
        one.update(grad, state)
    assert torch.equal(gate.logits, new.logits)


def test_kernels_support_one_hidden_layer_and_the_softmax_mask_up_to_a_size():
    assert fused.supports_mlp(MLPShape(784, (67,), 10), "multiclass")
    assert not fused.supports_mlp(MLPShape(784, (67, 30), 10), "multiclass")
    assert not fused.supports_mlp(MLPShape(784, (67,), 10, dropout=0.1), "multiclass")
    assert not fused.supports_mlp(MLPShape(50_000, (67,), 10), "multiclass")
    assert not fused.supports_mlp(MLPShape(784, (67,), 1000), "multiclass")
    assert not fused.supports_mlp(MLPShape(784, (67,), 1), "poisson")
    assert fused.supports_gate(SoftmaxMask(), 784)
    assert not fused.supports_gate(MASKS["l1"], 784)


def test_kernels_that_fail_are_replaced_by_plain_operations_with_a_warning(monkeypatch):
    shape = MLPShape(12, (9,), 3)
    assert fused.mlp_works(shape, "multiclass", DEVICE)
    assert fused.mlp_works(shape, "regression", DEVICE)
    assert fused.gate_works(DEVICE)
    fused.mlp_works.cache_clear()
    monkeypatch.setattr(fused, "first_layer_sums", None)
    with pytest.warns(UserWarning, match="plain operations instead of GPU kernels"):
        assert not fused.mlp_works(shape, "multiclass", DEVICE)
    fused.mlp_works.cache_clear()


def problem(rows=1500, features=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features)).astype(np.float32)
    y = X[:, :6] @ rng.normal(size=(6, 4)) + 0.3 * rng.normal(size=(rows, 4))
    return X, y.argmax(1)


class TestOnAGPU:
    pytestmark = gpu

    @pytest.mark.parametrize(
        "options", [{}, {"hidden": (20, 10)}, {"mask": "l2_normalised"}, {"dropout": 0.1}]
    )
    def test_the_selections_are_those_of_a_cpu(self, options):
        X, y = problem()
        on_gpu = seqatt.select_trials(X, y, 6, seeds=range(3), device="cuda", **options)
        on_cpu = seqatt.select_trials(X, y, 6, seeds=range(3), device="cpu", **options)
        assert [set(s.indices) for s in on_gpu] == [set(s.indices) for s in on_cpu]

    def test_the_selections_are_those_of_the_plain_operations(self, monkeypatch):
        X, y = problem()
        fast = seqatt.select_trials(X, y, 6, seeds=range(3), device="cuda")
        for module in (model_factory, sequential_attention):  # which then get the kernels of a CPU: none
            monkeypatch.setattr(module, "start_device", lambda device: start_device(torch.device("cpu")))
        plain = seqatt.select_trials(X, y, 6, seeds=range(3), device="cuda")
        assert [s.indices.tolist() for s in fast] == [s.indices.tolist() for s in plain]

    def test_a_trial_is_bit_for_bit_the_same_alone_and_with_others(self):
        X, y = problem()
        together = seqatt.select_trials(X, y, 6, seeds=range(7), device="cuda")
        alone = seqatt.select(X, y, 6, seed=4, device="cuda")
        assert [e["scores"] for e in alone.history] == [e["scores"] for e in together[4].history]

    def test_steps_replayed_from_a_cuda_graph_are_the_same(self, monkeypatch):
        X, y = problem()
        replayed = seqatt.select(X, y, 6, device="cuda")
        monkeypatch.setattr(MLP, "graph_capturable", property(lambda s: False, lambda s, v: None))
        stepped = seqatt.select(X, y, 6, device="cuda")
        assert [e["scores"] for e in replayed.history] == [e["scores"] for e in stepped.history]

    def test_weighted_rows_and_every_task(self):
        X, y = problem()
        two = np.stack([X[:, 0] > 0, X[:, 1] > 0], 1).astype(int)
        weights = np.linspace(0.5, 1.5, len(X))
        for target, k in ((y, 6), (y > 1, 6), (X[:, 0] + X[:, 1], 2), (two, 2)):
            on_gpu = seqatt.select(X, target, k, device="cuda", sample_weight=weights)
            on_cpu = seqatt.select(X, target, k, device="cpu", sample_weight=weights)
            assert set(on_gpu.indices) == set(on_cpu.indices)

    def test_targets_of_several_columns_in_any_layout(self):
        X, _ = problem(rows=200)
        y = np.asfortranarray(np.stack([X[:, 0], X[:, 1] + X[:, 2]], 1))
        for options in ({}, {"hidden": (7,)}):
            one = seqatt.select(X, y, 3, device="cuda", **options)
            assert set(one.indices) == {0, 1, 2}

    def test_a_batch_as_large_as_the_table(self):
        X, y = problem(rows=200)
        one = seqatt.select(X, y, 3, device="cuda", batch_size=200)
        assert set(one.indices) == set(seqatt.select(X, y, 3, device="cpu", batch_size=200).indices)
