"""What an option says about the training is done by the training: resets, input dropout, weight decay, row weights."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from tests.support.problems import linear_problem
from torch import nn

import seqatt
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.attention_plan import make_plan
from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.gates.attention import AttentionGate
from seqatt.training.gates.masks import SoftmaxMask
from seqatt.training.group_factory import make_trial_groups
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.loaders.stream import StreamLoader
from seqatt.training.schedule import Phase
from seqatt.training.trainer import Trainer

CPU = torch.device("cpu")
OWN_MODEL = {
    "model": lambda columns, outputs: nn.Sequential(nn.Linear(columns, 16), nn.Tanh(), nn.Linear(16, outputs))
}
MODELS = [{"hidden": (16,)}, OWN_MODEL]


def make_trainer(X, y, seed: int = 0, **options) -> Trainer:
    """The only trainer of a selection by the paper's recipe."""
    data = read_table_data(X, y)
    request = SelectionRequest(data, 1, [seed], AttentionOptions(recipe="paper", **options), CPU)

    def make_gate(model, members):
        return AttentionGate(len(members), data.features, SoftmaxMask(), 3e-3, CPU)

    ((trainer,),) = (
        group.trainers
        for group in make_trial_groups(
            data, [seed], request.options, CPU, make_plan(request).setup, make_gate
        )
    )
    return trainer


def train_phase(trainer: Trainer, phase: Phase) -> float:
    """Train for one phase; returns its mean loss."""
    with torch.no_grad():
        trainer.start_phase(phase)
        for _ in range(phase.steps // 8):
            trainer.train_chunk(8)
        return float(trainer.mean_losses()[0])


# Resets


def losses_of_phases(**options) -> list[float]:
    """The mean training losses of four phases that select one feature each."""
    X, y = linear_problem("regression", rows=200)
    selection = seqatt.select(X, y, 4, warmup=0, batch_size=200, **options)
    return [entry["loss"] for entry in selection.history]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "reset",
    [{"recipe": "algorithm_1", "epochs": 40}, {"recipe": "paper", "reset_model": True, "epochs": 160}],
)
def test_a_phase_of_a_new_model_starts_at_the_loss_of_a_new_model(model, reset):
    """Forty steps are too few to fit the target: phases of a model that trains on have ever smaller losses."""
    fresh = losses_of_phases(**reset, **model)
    continued = losses_of_phases(recipe="paper", epochs=160, **model)
    assert continued[3] < 0.05
    assert min(fresh) > 0.4


@pytest.mark.parametrize("model", MODELS)
def test_a_reset_forgets_the_weights_and_the_optimizers_moments(model):
    X, y = linear_problem("regression", rows=200)
    trainer = make_trainer(X, y, **model)
    first_phase = Phase(40, take=1, reset_model=True)
    train_phase(trainer, first_phase)
    trainer.scores()
    trained = trainer.model.first_layer().clone()
    with torch.no_grad():
        trainer.start_phase(first_phase)
    fresh = trainer.model.first_layer()
    assert fresh.abs().max() <= 1 / np.sqrt(8)  # as torch.nn.Linear draws them
    assert not torch.equal(fresh, trained)
    before = fresh.clone()
    with torch.no_grad():
        trainer.train_chunk(1)
    step = (trainer.model.first_layer() - before).abs().max()
    assert step == pytest.approx(3e-3, rel=0.05)  # Adam's first step from zero moments is the learning rate


def test_a_model_that_is_not_reset_trains_on():
    trainer = make_trainer(*linear_problem("regression", rows=200))
    train_phase(trainer, Phase(40, take=1))
    trained = trainer.model.first_layer().clone()
    trainer.start_phase(Phase(40, take=1))
    assert torch.equal(trainer.model.first_layer(), trained)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("factor", [1.0, 0.1])
def test_a_phase_trains_at_its_share_of_the_learning_rate(model, factor):
    trainer = make_trainer(*linear_problem("regression", rows=200), **model)
    with torch.no_grad():
        trainer.start_phase(Phase(8, sees="all", reset_model=True, lr_factor=factor))
        before = trainer.model.first_layer().clone()
        trainer.train_chunk(1)
    step = (trainer.model.first_layer() - before).abs().max()
    assert step == pytest.approx(factor * 3e-3, rel=0.05)


# Input dropout


class SeenInputs(nn.Module):
    """A linear model that keeps the inputs it was trained on."""

    def __init__(self, columns: int, outputs: int, seen: list[torch.Tensor]) -> None:
        super().__init__()
        self.layer, self.seen = nn.Linear(columns, outputs), seen

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.seen.append(x.detach().clone())
        return self.layer(x)


def inputs_seen(X, y, **options) -> torch.Tensor:
    """The inputs of the warm-up, in which the gate has no part."""
    seen: list[torch.Tensor] = []
    seqatt.select(
        X, y, 2, recipe="paper", warmup=0.9, epochs=20, model=lambda c, o: SeenInputs(c, o, seen), **options
    )
    return torch.cat(seen[5 : len(seen) // 2])


@pytest.mark.parametrize("batch_size", [50, 400])
def test_training_drops_the_requested_share_of_inputs_and_scales_the_others_up(batch_size):
    X = np.where(np.random.default_rng(0).random((400, 8)) < 0.5, -1.0, 1.0)
    y = (X[:, 0] > 0).astype(int)
    whole = inputs_seen(X, y, batch_size=batch_size)
    dropped = inputs_seen(X, y, batch_size=batch_size, input_dropout=0.3)
    assert (whole == 0).float().mean() == 0
    assert (dropped == 0).float().mean() == pytest.approx(0.3, abs=0.03)
    assert dropped.abs().max() == pytest.approx(float(whole.abs().max()) / 0.7, rel=1e-4)


def test_inputs_that_are_dropped_differ_between_steps():
    X = np.where(np.random.default_rng(0).random((400, 8)) < 0.5, -1.0, 1.0)
    dropped = inputs_seen(X, (X[:, 0] > 0).astype(int), batch_size=400, input_dropout=0.3)
    first, second = dropped[:400] == 0, dropped[400:800] == 0
    assert (first != second).float().mean() == pytest.approx(2 * 0.3 * 0.7, abs=0.05)


@pytest.mark.parametrize("batch_size", [50, 400])
def test_the_built_in_network_gets_the_dropped_inputs(batch_size):
    X, y = linear_problem("binary", rows=400)
    trainer = make_trainer(X, y, input_dropout=0.3, batch_size=batch_size)
    trainer._loader.load(4)
    shares = [(trainer._loader.batch(i).x == 0).float().mean() for i in range(4)]
    assert np.mean(shares) == pytest.approx(0.3, abs=0.05)
    losses = [
        train_phase(make_trainer(X, y, input_dropout=rate, batch_size=batch_size), Phase(1600, sees="all"))
        for rate in (0.0, 0.5)
    ]
    assert losses[1] > 2 * losses[0]  # half of the inputs do not tell the class


def test_codes_of_categories_are_dropped_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice([f"t{i}" for i in range(40)], 1200), "x": rng.normal(size=1200)})
    data = read_table_data(frame, rng.integers(0, 2, 1200), categories="mixed")
    assert data.codes.shape[1] == 1
    options = AttentionOptions(recipe="paper", input_dropout=0.4, batch_size=300)
    request = SelectionRequest(data, 1, [0], options, CPU)
    (group,) = make_trial_groups(data, [0], options, CPU, make_plan(request).setup)
    loader = group.trainers[0]._loader
    loader.load(4)
    rare = (data.codes == 0).mean()
    shares = [(loader.batch(i).codes == 0).float().mean() for i in range(4)]
    assert np.mean(shares) == pytest.approx(rare + 0.4 * (1 - rare), abs=0.08)


def test_files_are_trained_on_with_input_dropout(tmp_path):
    X = np.where(np.random.default_rng(0).random((2000, 8)) < 0.5, -1.0, 1.0)
    frame = pd.DataFrame(X).add_prefix("x").assign(y=(X[:, 0] > 0).astype(int))
    frame.to_parquet(tmp_path / "rows.parquet")
    seen: list[torch.Tensor] = []
    seqatt.select(
        tmp_path / "rows.parquet",
        target="y",
        k=2,
        memory=0,
        recipe="paper",
        warmup=0.8,
        batch_size=100,
        epochs=4,
        input_dropout=0.3,
        model=lambda c, o: SeenInputs(c, o, seen),
    )
    dropped = [inputs == 0 for inputs in seen[2 : len(seen) // 2]]
    assert torch.cat(dropped).float().mean() == pytest.approx(0.3, abs=0.03)
    changed = [(one != other).float().mean() for one, other in pairwise(dropped) if one.shape == other.shape]
    assert np.mean(changed) == pytest.approx(2 * 0.3 * 0.7, abs=0.05)  # other inputs in every step


# Rows held out


def test_each_member_that_trains_on_files_is_evaluated_on_rows_of_its_own():
    table = DeviceTable(torch.zeros(10, 2), torch.zeros(10, 1), None)
    stream = SimpleNamespace(batch_size=4)
    generators = [torch.Generator() for _ in range(3)]
    loader = StreamLoader(stream, generators, None, table, parts=[0, 1, 2], part_count=3)
    index = torch.cat([batch.index for batch in loader.validation_batches(100)], 1)
    own = [set(rows.tolist()) for rows in index]
    assert [len(rows) for rows in own] == [3, 3, 3]
    assert len(set.union(*own)) == 9


# Weight decay


@pytest.mark.parametrize(("rows", "decay"), [(12, 0.1), (200, 0.015), (3000, 0.001)])
def test_the_weights_of_unselected_features_decay_by_default_by_3_per_row(rows, decay):
    X, y = linear_problem("binary", rows=rows)
    settings = seqatt.select(X, y, 2, epochs=1, hidden=(4,)).settings
    assert settings["weight_decay"] == pytest.approx(decay)


@pytest.mark.parametrize("model", MODELS)
def test_only_the_first_layer_weights_of_unselected_features_decay(model):
    X, y = linear_problem("regression", rows=200)
    norms = []
    for weight_decay in (0.0, 0.05):
        trainer = make_trainer(X, y, weight_decay=weight_decay, **model)
        trainer._state.selected[0, 1] = 1
        trainer._state.blocked[0, 1] = -torch.inf
        train_phase(trainer, Phase(160, take=1))
        norms.append(trainer.model.first_layer()[0].norm(dim=0))
    without, decayed = norms
    unselected = [0, 2, 3, 5, 6, 7]  # feature 4 matters, and so its weights grow against the decay
    assert (decayed[unselected] < 0.5 * without[unselected]).all()
    assert decayed[1] > 0.8 * without[1]


def test_weights_do_not_decay_while_all_features_are_seen():
    X, y = linear_problem("regression", rows=200)
    layers = []
    for weight_decay in (0.0, 0.05):
        trainer = make_trainer(X, y, weight_decay=weight_decay)
        train_phase(trainer, Phase(40, sees="all"))
        layers.append(trainer.model.first_layer().clone())
    assert torch.equal(*layers)


# Row weights


def two_populations(rows: int = 480) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Feature 2 decides in three quarters of the rows, feature 5 in the others, which have all the weight."""
    X = np.random.default_rng(0).normal(size=(rows, 8))
    heavy = np.arange(rows) % 4 == 0
    return X, np.where(heavy, X[:, 5], X[:, 2]), np.where(heavy, 1.0, 1e-4)


@pytest.mark.parametrize("kind", ["regression", "classes"])
@pytest.mark.parametrize("batch_size", [60, 480])
@pytest.mark.parametrize("model", MODELS)
def test_training_follows_the_rows_that_have_the_weight(kind, batch_size, model):
    """By the paper's recipe, so that no test before the training can see the weights."""
    X, signal, weights = two_populations()
    y = signal if kind == "regression" else (signal > 0).astype(int)
    epochs = 60 if batch_size == 60 else 400
    options = {"recipe": "paper", "batch_size": batch_size, "epochs": epochs, "learning_rate": 0.01, **model}
    assert seqatt.select(X, y, 1, **options).indices.tolist() == [2]
    assert seqatt.select(X, y, 1, sample_weight=weights, **options).indices.tolist() == [5]


@pytest.mark.parametrize("ensemble", [1, 3])
def test_a_surplus_is_dropped_by_the_loss_of_the_rows_that_have_the_weight(ensemble):
    """On the other rows, the models predict better without the feature that they have learnt."""
    X, signal, weights = two_populations()
    options = {"recipe": "paper", "batch_size": 60, "epochs": 60 * ensemble, "learning_rate": 0.01}
    selection = seqatt.select(X, signal, 1, surplus=3, ensemble=ensemble, sample_weight=weights, **options)
    dropped = [name for entry in selection.history for name in entry["dropped"]]
    assert len(dropped) == 2
    assert selection.indices.tolist() == [5]


def test_training_on_files_follows_the_rows_that_have_the_weight(tmp_path):
    X, signal, weights = two_populations(2000)
    frame = pd.DataFrame(X).add_prefix("x").assign(y=signal, w=weights)
    frame.to_parquet(tmp_path / "rows.parquet")
    options = {"recipe": "paper", "memory": 0, "batch_size": 50, "epochs": 8, "learning_rate": 0.01}
    path = tmp_path / "rows.parquet"
    assert seqatt.select(path, target="y", k=1, ignore=("w",), **options).features == ["x2"]
    assert seqatt.select(path, target="y", k=1, sample_weight="w", **options).features == ["x5"]


def test_the_weights_of_classes_are_those_of_their_rows():
    X, y = linear_problem("binary", rows=240)
    weights = np.where(y == 1, 3.0, 1.0)
    options = {"recipe": "paper", "epochs": 20, "batch_size": 60}
    by_class = seqatt.select(X, y, 3, class_weight={0: 1, 1: 3}, **options)
    by_row = seqatt.select(X, y, 3, sample_weight=weights, **options)
    unweighted = seqatt.select(X, y, 3, **options)
    np.testing.assert_allclose(by_class.scores, by_row.scores, rtol=1e-4)
    assert not np.allclose(by_class.scores, unweighted.scores, rtol=1e-3)
