"""When a checkpoint is written, and that training continues from it exactly, without repeating finished trials."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from tests.support.problems import linear_problem
from torch import nn

import seqatt
from seqatt.algorithms.neural.attention_options import AttentionOptions
from seqatt.algorithms.neural.attention_plan import make_plan
from seqatt.algorithms.neural.sequential_attention import sequential_attention
from seqatt.algorithms.request import SelectionRequest
from seqatt.checkpoints.checkpointer import Checkpointer
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.checkpoints.run_description import check_same_run, describe_run
from seqatt.data.tables.table_data import read_table_data
from seqatt.training.loop import TrainingHook
from seqatt.training.schedule import Schedule
from seqatt.training.trainer import Trainer
from seqatt.training.trial_group import TrialGroup

QUICK = {"epochs": 10, "hidden": (8,)}


@pytest.mark.parametrize(("every", "due"), [(0.0, True), (1000.0, False)])
def test_a_checkpoint_is_due_once_its_interval_has_passed(every, due, tmp_path):
    options = CheckpointOptions(checkpoint=tmp_path, checkpoint_every=every)
    assert Checkpointer(options, writes=True).due() == due
    assert not Checkpointer(options, writes=False).due()  # of another rank
    assert not Checkpointer(CheckpointOptions(checkpoint_every=every), writes=True).due()


def test_a_run_that_is_finished_is_resumed_without_a_step(tmp_path, monkeypatch):
    X, y = linear_problem("binary", rows=80)
    first = seqatt.select_trials(X, y, 2, seeds=[0, 1], checkpoint=tmp_path, **QUICK)

    def train_chunk(*_: object) -> None:
        raise AssertionError("a finished trial was trained again")

    monkeypatch.setattr(Trainer, "train_chunk", train_chunk)
    again = seqatt.select_trials(X, y, 2, seeds=[0, 1], checkpoint=tmp_path, resume=True, **QUICK)
    for one, other in zip(first, again, strict=True):
        assert one.scores.tolist() == other.scores.tolist()
        assert one.history == other.history


@pytest.mark.parametrize("what", ["groups_of_rows", "time", "sparse rows"])
def test_a_checkpoint_of_other_groups_times_or_sparse_rows_is_refused(what, tmp_path, monkeypatch):
    X, y = linear_problem("binary", rows=80)
    units = np.repeat(np.arange(20), 4)
    if what == "sparse rows":
        monkeypatch.setattr("seqatt.data.tables.encoding.DENSE_CELLS", 0)
        # Pairs of rows have columns 0 and 1, then 2; or column 0, then 1 and 2.
        columns, ends = np.tile([0, 1, 2], 40), np.arange(0, 121, 3)
        tables = [csr_array((np.ones(120), columns, np.union1d(ends, ends[:-1] + first))) for first in (2, 1)]
        runs = [{"X": table, "scaling": "none"} for table in tables]
    else:
        runs = [{"X": X, what: units}, {"X": X, what: np.roll(units, 2)}]
    for options in runs:
        options |= {"y": y, "k": 1, "checkpoint": tmp_path, **QUICK}
    seqatt.select(**runs[0])
    seqatt.select(**runs[0], resume=True)
    with pytest.raises(ValueError, match="belongs to another run: the table has other"):
        seqatt.select(**runs[1], resume=True)


def make_module(columns: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(columns, 8), nn.ReLU(), nn.Linear(8, outputs))


def make_other(columns: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(columns, 8), nn.GELU(), nn.Linear(8, outputs))


make_other.__qualname__ = make_module.__qualname__  # as two lambdas have
LOSSES = [lambda out, y: (out - y).pow(2).mean(), lambda out, y: (out - y).pow(4).mean()]
OPTIMIZERS = [partial(torch.optim.SGD, lr=rate) for rate in (0.1, 0.2)]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("model", (make_module, make_other)),
        ("model", (make_module(8, 1), make_other(8, 1))),
        ("loss", LOSSES),
        ("optimizer", OPTIMIZERS),
    ],
)
def test_a_checkpoint_of_another_model_loss_or_optimizer_is_refused(name, values, tmp_path):
    X, y = linear_problem("regression", rows=80)
    options = {"model": make_module, "k": 1, "checkpoint": tmp_path, "epochs": 10}
    first = seqatt.select(X, y, **options | {name: values[0]})
    again = (
        make_module(8, 1) if isinstance(values[0], nn.Module) else values[0]
    )  # other weights, the same layers
    assert seqatt.select(X, y, **options | {name: again}, resume=True).history == first.history
    with pytest.raises(ValueError, match=f"belongs to another run: the code of {name} is another one"):
        seqatt.select(X, y, **options | {name: values[1]}, resume=True)


def test_code_has_the_same_digest_in_another_process():
    code = (
        "import torch\n"
        "from functools import partial\n"
        "from seqatt.checkpoints.code_digest import digest_code\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, columns, outputs):\n"
        "        super().__init__()\n"
        "        self.layer = torch.nn.Linear(columns, outputs)\n"
        "    def forward(self, x):\n"
        "        return self.layer(x) if {x.ndim} & {2, 3} and 'a' in {'a', 'b', 'c'} else x\n"
        "def again(n, rate=0.5):\n"
        "    return again(n - 1) if n else rate\n"
        "given = (Net, Net(3, 1), again, partial(torch.optim.Adam, lr=1e-3), torch.nn.MSELoss(), lambda x: x['a'])\n"
        "print([digest_code(each) for each in given])\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(set(eval(runs[0].stdout))) == 6, runs[0].stderr


def test_a_run_is_the_same_whether_its_target_is_a_column_or_given_apart(tmp_path):
    X, y = linear_problem("binary", rows=80)
    frame = pd.DataFrame(X).rename(columns=str)
    first = seqatt.select(frame, y, 2, checkpoint=tmp_path, **QUICK)
    named = {"target": "label", "checkpoint": tmp_path, "resume": True}
    again = seqatt.select(frame.assign(label=y), k=2, **named, **QUICK)
    assert again.history == first.history
    assert again.settings["target"] == "label"


def test_trials_that_were_finished_before_a_stop_are_not_trained_again(tmp_path, monkeypatch):
    X, y = linear_problem("binary", rows=80)
    expected = seqatt.select_trials(X, y, 2, seeds=[0, 1], **QUICK)
    train_chunk, steps = Trainer.train_chunk, []

    def stop_in_the_second_trial(trainer: Trainer, count: int) -> None:
        steps.append(count * trainer.models)
        if sum(steps) > members * expected[0].settings["steps"]:
            raise KeyboardInterrupt
        train_chunk(trainer, count)

    members = expected[0].settings["ensemble"]
    monkeypatch.setattr(Trainer, "train_chunk", stop_in_the_second_trial)
    with pytest.raises(KeyboardInterrupt):
        seqatt.select_trials(X, y, 2, seeds=[0, 1], checkpoint=tmp_path, **QUICK)

    def count_steps(trainer: Trainer, count: int) -> None:
        steps.append(count * trainer.models)
        train_chunk(trainer, count)

    steps.clear()
    monkeypatch.setattr(Trainer, "train_chunk", count_steps)
    resumed = seqatt.select_trials(X, y, 2, seeds=[0, 1], checkpoint=tmp_path, resume=True, **QUICK)
    assert 0 < sum(steps) <= members * expected[0].settings["steps"]
    assert [s.scores.tolist() for s in resumed] == [s.scores.tolist() for s in expected]


class SavingHook(TrainingHook):
    """Saves the state of the group after chunk number ``chunk``."""

    one_at_a_time = True

    def __init__(self, chunk: int) -> None:
        super().__init__()
        self.chunk, self.phase = chunk, -1
        self.state, self.arrays = "", {}

    def after_chunk(self, group: TrialGroup) -> None:
        self.chunk -= 1
        if self.chunk == 0:
            self.state, self.arrays = json.dumps(group.state_dict()), group.state_arrays()
            self.phase = group.phase


class LoadingHook(TrainingHook):
    """Lets a new group continue from a saved state."""

    one_at_a_time = True

    def __init__(self, saved: SavingHook) -> None:
        super().__init__()
        self._saved = saved

    def start(self, group: TrialGroup, number: int, schedule: Schedule) -> None:
        group.load(json.loads(self._saved.state), self._saved.arrays, schedule)


@pytest.mark.parametrize("chunk", [1, 2, 4, 9, 16, 22, 24])
def test_a_group_continues_from_any_chunk_as_if_it_had_not_stopped(chunk):
    """In the warm-up, in phases that select and in phases that drop: order, losses, scores and ranks are the same."""
    data = read_table_data(*linear_problem("multiclass", rows=100))
    options = AttentionOptions(recipe="paper", surplus=2.0, epochs=300, batch_size=20, hidden=(8,))

    def run(hook: TrainingHook) -> dict:
        request = SelectionRequest(data, 2, [3], options, torch.device("cpu"), hook=hook)
        (trace,) = sequential_attention(request, make_plan(request), lambda steps: None)
        plain = trace.to_dict()
        for phase in plain["phases"]:
            del phase["seconds"]
        return plain

    saved = SavingHook(chunk)
    expected = run(saved)
    assert saved.phase >= 0, "there are fewer chunks"
    assert run(LoadingHook(saved)) == expected


def test_a_checkpoint_of_a_table_is_for_the_type_of_device_that_wrote_it(tmp_path):
    data = read_table_data(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2)
    saved, current = (
        describe_run(data, "sequential_attention", 2, [0], {}, device) for device in ("cuda", "cpu")
    )
    with pytest.raises(ValueError, match="another run: device was 'cuda' and is 'cpu'"):
        check_same_run(saved, current, tmp_path)
