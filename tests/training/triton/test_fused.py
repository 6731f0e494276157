"""The fused kernels say what the plain operations say.

Where there is no GPU the kernels run in Triton's interpreter, if Triton is installed.
"""

import copy
import os

import numpy as np
import pytest
import torch

CUDA = torch.cuda.is_available()
if not CUDA:
    os.environ.setdefault("TRITON_INTERPRET", "1")
    # Triton 3.6's interpreter turns arrays of one number into numbers, which newer NumPy refuses.
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        pytest.skip("Triton's interpreter needs an older NumPy", allow_module_level=True)
pytest.importorskip("triton", reason="Triton is not installed")

import seqatt  # noqa: E402
from seqatt.training import build as groups  # noqa: E402
from seqatt.training.backend.device import start_device  # noqa: E402
from seqatt.training.batch import IndexedBatch  # noqa: E402
from seqatt.training.gates.attention import AttentionGate  # noqa: E402
from seqatt.training.input_dropout import InputDropout  # noqa: E402
from seqatt.training.masks import MASKS, SoftmaxMask  # noqa: E402
from seqatt.training.models.architecture import MLPShape  # noqa: E402
from seqatt.training.models.mlp import MLP  # noqa: E402
from seqatt.training.selection_state import SelectionState  # noqa: E402
from seqatt.training.triton import fused  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
DEVICE = torch.device("cuda" if CUDA else "cpu")
gpu = [pytest.mark.gpu, pytest.mark.skipif(not CUDA, reason="no CUDA device")]


class Table:
    """Rows enough to pick from."""

    def __init__(self, columns: int) -> None:
        self.x = torch.randn(50, columns, device=DEVICE)

    def open(self, index, room):
        return self.x[index]


def targets(task, trials, size, outputs):
    if task == "multiclass":
        return torch.randint(outputs, (trials, size), device=DEVICE)
    y = torch.randn(trials, size, outputs, device=DEVICE)
    return y if task == "regression" else (y > 0).float()


@pytest.mark.parametrize(
    ("task", "outputs", "activation", "hidden", "weighted", "noisy"),
    [
        ("multiclass", 7, "relu", 19, False, False),
        ("multiclass", 7, "relu", 19, False, True),
        ("multiclass", 7, "gelu", 67, True, False),
        ("binary", 1, "tanh", 5, False, False),
        ("multilabel", 3, "silu", 40, True, True),
        ("regression", 2, "relu", 100, False, False),
    ],
)
def test_steps_agree_with_the_plain_ones(task, outputs, activation, hidden, weighted, noisy):
    torch.manual_seed(0)
    trials, size, columns = 2, 21, 37
    smoothing = 0.1 if weighted and task != "regression" else 0.0
    shape = MLPShape(columns, (hidden,), outputs, activation, smoothing=smoothing)

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
    noise = InputDropout(0.4, size * columns, DEVICE) if noisy else None
    for gate in gates:
        gate.refresh(state)
    for _ in range(4):
        index = torch.randint(50, (trials, size), device=DEVICE)
        w = torch.rand(trials, size, device=DEVICE) if weighted else None
        places = torch.randint(1000, (trials,), device=DEVICE)
        batch = IndexedBatch(table, index, targets(task, trials, size, outputs), w, None, noise, places)
        grads = [model.train(batch, gate.weights) for model, gate in zip((plain, fast), gates, strict=True)]
        torch.testing.assert_close(grads[1], grads[0], rtol=1e-3, atol=1e-6)
        torch.testing.assert_close(fast.last_loss(batch), plain.last_loss(batch), rtol=1e-4, atol=1e-6)
        for gate, grad in zip(gates, grads, strict=True):
            gate.update(grad, state)
        torch.testing.assert_close(gates[1].weights, gates[0].weights, rtol=1e-4, atol=1e-6)
    for one, other in zip(fast.weights + fast.biases, plain.weights + plain.biases, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_forgetting_starts_the_bias_corrections_afresh():
    state = SelectionState(1, np.zeros(5, dtype=bool), DEVICE)
    gate = fused.FusedAttention(1, 5, SoftmaxMask(), 1e-2, DEVICE)
    fresh = copy.deepcopy(gate)
    grad = torch.tensor([[1.0, -1, 0.5, 0, 2]], device=DEVICE)
    for _ in range(5):
        gate.update(grad, state)
    gate.reset()
    for one in (gate, fresh):
        one.update(grad, state)
    assert torch.equal(gate.logits, fresh.logits)


def test_what_the_kernels_cannot_do_is_left_to_the_plain_operations():
    assert fused.supports_mlp(MLPShape(784, (67,), 10))
    assert not fused.supports_mlp(MLPShape(784, (67, 30), 10))
    assert not fused.supports_mlp(MLPShape(784, (67,), 10, dropout=0.1))
    assert not fused.supports_mlp(MLPShape(50_000, (67,), 10))
    assert not fused.supports_mlp(MLPShape(784, (67,), 1000))
    assert fused.supports_gate(SoftmaxMask(), 784)
    assert not fused.supports_gate(MASKS["l1"], 784)


def test_kernels_are_tried_out_and_done_without_where_they_fail(monkeypatch):
    shape = MLPShape(12, (9,), 3)
    assert fused.mlp_works(shape, "multiclass", DEVICE)
    assert fused.mlp_works(shape, "regression", DEVICE)
    assert fused.gate_works(DEVICE)
    fused.mlp_works.cache_clear()
    monkeypatch.setattr(fused, "first_product", None)
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
    def test_the_choices_are_those_of_a_cpu(self, options):
        X, y = problem()
        on_gpu = seqatt.select_trials(X, y, 6, seeds=range(3), device="cuda", **options)
        on_cpu = seqatt.select_trials(X, y, 6, seeds=range(3), device="cpu", **options)
        assert [set(s.indices) for s in on_gpu] == [set(s.indices) for s in on_cpu]

    def test_the_choices_are_those_of_the_plain_operations(self, monkeypatch):
        X, y = problem()
        fast = seqatt.select_trials(X, y, 6, seeds=range(3), device="cuda")
        monkeypatch.setattr(
            groups, "waking", lambda device: start_device(torch.device("cpu"))
        )  # no kernels there
        plain = seqatt.select_trials(X, y, 6, seeds=range(3), device="cuda")
        assert [s.indices.tolist() for s in fast] == [s.indices.tolist() for s in plain]

    def test_a_trial_is_bit_for_bit_the_same_alone_and_in_company(self):
        X, y = problem()
        together = seqatt.select_trials(X, y, 6, seeds=range(7), device="cuda")
        alone = seqatt.select(X, y, 6, seed=4, device="cuda")
        assert [e["scores"] for e in alone.history] == [e["scores"] for e in together[4].history]

    def test_recorded_steps_are_the_steps_themselves(self, monkeypatch):
        X, y = problem()
        recorded = seqatt.select(X, y, 6, device="cuda")
        monkeypatch.setattr(MLP, "captured", property(lambda s: False, lambda s, v: None), raising=False)
        stepped = seqatt.select(X, y, 6, device="cuda")
        assert [e["scores"] for e in recorded.history] == [e["scores"] for e in stepped.history]

    def test_weighted_rows_and_every_task(self):
        X, y = problem()
        two = np.stack([X[:, 0] > 0, X[:, 1] > 0], 1).astype(int)
        weights = np.linspace(0.5, 1.5, len(X))
        for target, k in ((y, 6), (y > 1, 6), (X[:, 0] + X[:, 1], 2), (two, 2)):
            chosen = seqatt.select(X, target, k, device="cuda", sample_weight=weights)
            on_cpu = seqatt.select(X, target, k, device="cpu", sample_weight=weights)
            assert set(chosen.indices) == set(on_cpu.indices)

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
