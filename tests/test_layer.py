"""The ``SequentialAttention`` layer in a plain PyTorch training loop."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.multiprocessing as mp
from tests.support.problems import linear_problem
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel

from seqatt import SequentialAttention
from seqatt.training.gates.masks import MASKS


def data() -> tuple[torch.Tensor, torch.Tensor]:
    X, y = linear_problem("binary")
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None]


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def train(attention: SequentialAttention, steps: int, wrap=lambda module: module, **adam) -> nn.Module:
    torch.manual_seed(0)
    return train_model(wrap(nn.Sequential(attention, network())), attention, steps, **adam)


def train_model(model: nn.Module, attention: SequentialAttention, steps: int, **adam) -> nn.Module:
    x, y = data()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, **adam)
    for _ in range(steps):
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()
        attention.advance()
    return model


@pytest.mark.parametrize("mask", ["softmax", "l1_normalised", "l2_normalised"])
def test_it_selects_the_informative_features(mask):
    attention = SequentialAttention(8, k=2, total_steps=400, mask=mask)
    train(attention, 400)
    assert set(attention.selected) == {1, 4}
    assert attention.finished


@pytest.mark.parametrize("mask", list(MASKS))
@pytest.mark.parametrize("features_per_phase", [1, 2, 3])
def test_exactly_k_features_are_selected(mask, features_per_phase):
    attention = SequentialAttention(8, k=5, total_steps=61, mask=mask, features_per_phase=features_per_phase)
    train(attention, 61)
    assert len(set(attention.selected)) == 5


def test_weights_are_zero_or_one_in_eval_and_a_softmax_in_training():
    attention = SequentialAttention(8, k=4, total_steps=100)
    assert attention.weights.tolist() == [1] * 8  # warm-up
    assert attention.eval().weights.tolist() == [1] * 8
    attention.train()
    train(attention, 60)
    soft = attention.weights
    assert (soft[attention.selected] == 1).all()
    others = [i for i in range(8) if i not in attention.selected]
    torch.testing.assert_close(soft[others].sum(), torch.tensor(1.0))
    attention.eval()
    assert set(attention.weights.tolist()) == {0, 1}
    assert attention.weights.sum() == len(attention.selected)


@pytest.mark.parametrize("steps", [0, 5, 20])  # before, in and after the warm-up, without a selection
def test_everything_passes_in_eval_before_the_first_selection(steps):
    attention = SequentialAttention(8, k=4, total_steps=100)
    train(attention, steps)
    x = data()[0]
    assert not attention.selected
    torch.testing.assert_close(attention.eval()(x), x)


@pytest.mark.parametrize("blend_rows", [False, True])
def test_only_what_is_selected_passes_in_eval_from_the_first_selection_on(blend_rows):
    attention = SequentialAttention(8, k=4, total_steps=100, blend_rows=blend_rows)
    train(attention, 60)
    x = data()[0]
    expected = torch.zeros_like(x)
    expected[:, attention.selected] = x[:, attention.selected]
    assert 0 < len(attention.selected) < 4
    torch.testing.assert_close(attention.eval()(x), expected)


def test_unselected_features_have_weight_zero_once_k_are_selected():
    attention = SequentialAttention(8, k=2, total_steps=50)
    train(attention, 60)
    assert attention.weights.sum() == 2


def test_evaluation_changes_no_state():
    attention = SequentialAttention(8, k=2, total_steps=50)
    train(attention, 30)
    before = copy.deepcopy(attention.state_dict())
    attention.eval()
    attention(data()[0])
    for name, value in attention.state_dict().items():
        torch.testing.assert_close(value, before[name])


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
def test_the_optimizer_state_of_the_logits_is_removed_when_they_are_reset(kind):
    attention = SequentialAttention(8, k=2, total_steps=30, warmup=0)
    model = nn.Sequential(attention, network())
    options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
    optimizer = kind(model.parameters(), lr=1e-2, **options)
    x, y = data()
    for _ in range(15):
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()
        assert optimizer.state[attention.logits]
        attention.advance()
    assert len(attention.selected) == 1
    assert attention.logits not in optimizer.state
    assert model[1][0].weight in optimizer.state
    assert (attention.logits == 0).all()


def test_a_state_dict_restores_the_selection_and_the_step():
    full = SequentialAttention(8, k=3, total_steps=90)
    train(full, 50)
    copied = SequentialAttention(8, k=3, total_steps=90)
    copied.load_state_dict(full.state_dict())
    assert copied.selected == full.selected
    assert copied.blend_rows is full.blend_rows is False
    torch.testing.assert_close(copied.weights, full.weights)
    train(copied, 40)
    assert copied.finished


def test_a_feature_can_have_several_columns():
    x, y = data()
    wide = x.repeat_interleave(2, 1)
    attention = SequentialAttention(8, k=2, total_steps=300, groups=torch.arange(8).repeat_interleave(2))
    torch.manual_seed(0)
    model = nn.Sequential(attention, nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(300):
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(model(wide), y).backward()
        optimizer.step()
        attention.advance()
    assert set(attention.selected) == {1, 4}


def test_mixed_precision_keeps_the_inputs_type():
    attention = SequentialAttention(8, k=2, total_steps=50)
    x = data()[0].bfloat16()
    assert attention(x).dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = attention(data()[0])
    assert torch.isfinite(out).all()


def test_integer_inputs_are_scaled_too():
    attention = SequentialAttention(4, k=1, total_steps=10, warmup=0)
    torch.testing.assert_close(attention(torch.full((2, 4), 8)), torch.full((2, 4), 2.0))


@pytest.mark.parametrize("blend_rows", [False, True])
def test_torch_compile_compiles_once_per_mode_and_not_once_per_step(blend_rows):
    compiles = []

    def backend(graph, inputs):
        compiles.append(1)
        return graph.forward

    torch._dynamo.reset()
    attention = SequentialAttention(8, k=4, total_steps=80, blend_rows=blend_rows)
    train(attention, 80, wrap=lambda module: torch.compile(module, backend=backend, fullgraph=True))
    assert len(attention.selected) == 4
    assert len(compiles) <= 4  # warm-up, attention, finished, and one to spare


def _rank(rank: int, port: int, results) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
    )
    torch.manual_seed(rank)
    x, y = data()
    rows = slice(rank * 150, (rank + 1) * 150)
    attention = SequentialAttention(8, k=3, total_steps=120)
    model = DistributedDataParallel(nn.Sequential(attention, network()))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(125):
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(model(x[rows]), y[rows]).backward()
        optimizer.step()
        attention.advance()
    results[rank] = attention.selected
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_every_rank_of_a_distributed_model_selects_the_same_features():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with mp.get_context("spawn").Manager() as manager:
        results = manager.dict()
        mp.spawn(_rank, (port, results), nprocs=2)
        assert results[0] == results[1]
        assert {1, 4} <= set(results[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k: must be a whole number of at least 1"),
        ({"k": 2.0}, "k: must be a whole number"),
        ({"k": 9}, "k: must be from 1"),
        ({"k": 4, "total_steps": 3}, "total_steps: 3 is too few; .* Use at least 4,"),
        (
            {"num_features": 60, "k": 50, "total_steps": 52},
            "52 is too few; after 5 steps of warm-up 47 are left for 50 phases.* Use at least 56,",
        ),
        ({"total_steps": 10.5}, "total_steps: must be a whole number"),
        ({"dim": 0}, "dim: must be a dimension of the input other than 0"),
        ({"features_per_phase": 3}, "features_per_phase: must be from 1 to k=2"),
        ({"mask": "l9"}, "mask: unknown"),
        ({"groups": [0, 1]}, "groups: must contain every feature"),
    ],
)
def test_an_error_names_the_invalid_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        SequentialAttention(**({"num_features": 8, "k": 2, "total_steps": 100} | arguments))


def test_the_smallest_total_steps_that_the_error_names_suffices():
    for k, warmup in [(50, 0.1), (7, 0.33), (1, 0.9), (13, 0)]:
        with pytest.raises(ValueError, match="Use at least") as error:
            SequentialAttention(60, k, total_steps=max(1, k - 1) if k > 1 else 1, warmup=warmup)
        needed = int(str(error.value).split("Use at least ")[1].split(",")[0])
        SequentialAttention(60, k, needed, warmup=warmup)
        if needed > 1:
            with pytest.raises(ValueError, match="too few"):
                SequentialAttention(60, k, needed - 1, warmup=warmup)


def test_gradients_may_be_accumulated_over_several_batches():
    attention = SequentialAttention(8, k=2, total_steps=200)
    torch.manual_seed(0)
    x, y = data()
    model = nn.Sequential(attention, network())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(200):
        optimizer.zero_grad()
        for rows in (slice(0, 100), slice(100, 200), slice(200, 300)):
            binary_cross_entropy_with_logits(model(x[rows]), y[rows]).backward()
        optimizer.step()
        attention.advance()
    assert set(attention.selected) == {1, 4}


def train_layer(layer: SequentialAttention, steps: int, relevant: list[int]) -> None:
    """Regression on some of the features, which a linear model learns behind the layer."""
    torch.manual_seed(0)
    features = len(layer.logits)
    model = torch.nn.Linear(features, 1)
    groups = [{"params": model.parameters()}, {"params": layer.parameters(), "lr": 0.05}]
    optimizer = torch.optim.Adam(groups, lr=0.01)
    for _ in range(steps):
        x = torch.randn(64, features)
        loss = (model(layer(x))[:, 0] - x[:, relevant].sum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        layer.advance()


def test_kept_features_are_selected_from_the_start_and_forbidden_ones_never():
    layer = SequentialAttention(8, 3, 300, keep=[7], forbid=[1, 2], blend_rows=False)
    assert layer.selected == [7]
    assert layer.weights[[1, 2]].tolist() == [0, 0]
    assert layer.eval().weights.tolist() == [1, 0, 0, 1, 1, 1, 1, 1]
    train_layer(layer.train(), 100, [1, 4, 5])
    assert layer.weights[[1, 2, 7]].tolist() == [0, 0, 1]
    again = SequentialAttention(8, 3, 300, keep=[7], forbid=[1, 2], blend_rows=False)
    again.load_state_dict(layer.state_dict())
    for each in (layer, again):
        train_layer(each, 200, [1, 4, 5])
        assert each.selected[0] == 7
        assert set(each.selected[1:]) == {4, 5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": [8]}, "keep: must be a whole number of at most 7, got 8"),
        ({"keep": [1, 1]}, "keep: must not name a feature twice"),
        ({"keep": [1], "forbid": [1]}, "forbid: feature 1 is in keep too"),
        ({"keep": [1, 2, 3]}, "keep: has 3 features, so that none is left to select for k=3"),
        ({"forbid": range(6)}, r"k: must be from 1 to 2 \(8 features without 6 forbidden\), got 3"),
        ({"keep": [1], "features_per_phase": 3}, "features_per_phase: must be from 1 to 2, as many as are"),
    ],
)
def test_contradictory_constraints_of_a_layer_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SequentialAttention(8, 3, 300, **options)


def test_the_number_of_steps_may_be_set_when_training_starts():
    later = SequentialAttention(8, k=2)
    assert later.total_steps is None
    with pytest.raises(RuntimeError, match="total_steps: is not set"):
        later(torch.zeros(3, 8))
    assert later.eval()(torch.ones(3, 8)).sum() == 24
    later.train().set_total_steps(400)
    train(later, 400)
    at_once = SequentialAttention(8, k=2, total_steps=400)
    train(at_once, 400)
    assert later.selected == at_once.selected
    with pytest.raises(RuntimeError, match="cannot be set after 400 steps"):
        later.set_total_steps(500)


def test_a_layer_without_a_number_of_steps_continues_a_saved_selection():
    attention = SequentialAttention(8, k=2, total_steps=400)
    train(attention, 250)
    loaded = SequentialAttention(8, k=2)
    loaded.load_state_dict(attention.state_dict())
    assert (loaded.total_steps, loaded.selected) == (400, attention.selected)


def test_an_average_of_weights_selects_what_its_buffers_say():
    """A copy made before training, whose buffers are overwritten as ``AveragedModel`` does."""
    attention = SequentialAttention(8, k=2, total_steps=200)
    model = nn.Sequential(attention, network())
    average = torch.optim.swa_utils.AveragedModel(model)
    train_model(model, attention, 200)
    average.update_parameters(model)
    copied = average.eval().module[0]
    assert copied.finished
    assert copied.weights.nonzero().flatten().tolist() == sorted(attention.selected)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"mask": "l1"}, "mask"),
        ({"temperature": 0.5}, "mask"),
        ({"forbid": [1]}, "forbid"),
        ({"groups": [0, *range(8)]}, "groups"),
    ],
)
def test_a_state_is_refused_by_a_layer_with_other_arguments(other, named):
    attention = SequentialAttention(8, k=2, total_steps=200)
    train(attention, 100)
    with pytest.raises(RuntimeError, match=rf"{named}.*: the saved layer had another"):
        SequentialAttention(8, k=2, total_steps=200, **other).load_state_dict(attention.state_dict())
    train(attention, 100)
    finished = SequentialAttention(8, k=2, total_steps=200, **other)
    if named == "mask":  # which no longer matters
        finished.load_state_dict(attention.state_dict())
        assert finished.selected == attention.selected
    else:
        with pytest.raises(RuntimeError, match=named):
            finished.load_state_dict(attention.state_dict())


def test_a_layer_that_nothing_trains_is_not_said_to_be_compiled():
    attention = SequentialAttention(8, k=2, total_steps=20)
    model = nn.Sequential(attention, network())
    attention.eval()
    with pytest.warns(UserWarning, match="all features have the same score") as caught:
        train_model(model, attention, 20)
    assert not any("compiled" in str(each.message) for each in caught)


def test_a_single_row_and_a_missing_number_of_steps_are_named():
    attention = SequentialAttention(8, k=2, total_steps=20)
    with pytest.raises(
        ValueError, match=r"x: has shape \(8,\); its first dimension is the batch, so use x\[None\]"
    ):
        attention(torch.zeros(8))
    for call in ("advance", "finish"):
        with pytest.raises(RuntimeError, match="total_steps"):
            getattr(SequentialAttention(8, k=2), call)()
    with pytest.raises(TypeError, match="keep: must be a list of numbers of features, got 3"):
        SequentialAttention(8, k=2, total_steps=20, keep=3)
