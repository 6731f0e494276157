"""Several ranks: they choose what one would, stay together when one fails, and are resumed together."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.unit.test_stream_checkpoints import kill

import seqatt
from seqatt.data.synthetic import click_log

QUICK = {"k": 3, "hidden": [8], "batch_size": 32, "log1p": True, "look": 500, "checkpoint_every": 0.03}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return click_log(tmp_path_factory.mktemp("clicks"), 3_001, rows_per_file=1_000)


def torchrun(*arguments: object, ranks: int = 2) -> list[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--standalone"]
    return [*run, "-m", "seqatt", "select", *map(str, arguments)]


def test_two_ranks_killed_at_any_moment_and_resumed_give_what_one_gives(log, tmp_path):
    found = kill(log, tmp_path, kills=3, ranks=2, options=QUICK)
    whole = found["whole"][0]
    assert 1 in found["ends"]  # who was left behind did not wait for ever
    assert found["whole"][1] == whole
    assert all(answer == [whole, whole] for answer in found["killed"])
    alone = seqatt.select(log.files, target="click", shards=2, **QUICK)
    assert alone.features == whole["features"]
    assert alone.scores == pytest.approx(whole["scores"], rel=1e-3)
    assert alone.ranking.tolist() == whole["ranking"]
    steps = [entry["steps"] for entry in alone.history]
    assert steps == [entry["steps"] for entry in whole["history"]]


def test_torchrun_works_as_it_stands(tmp_path):
    log = click_log(tmp_path / "clicks", 6_000, rows_per_file=2_000)
    out = tmp_path / "run"
    about = ["-t", "click", "-k", 2, "--hidden", 8, "--batch-size", 64, "--log1p", "all"]
    command = torchrun(*log.files, *about, "--out", out)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 of 39 features for click") == 1
    saved = seqatt.Selection.load(out / "selection.json")
    options = {"hidden": 8, "batch_size": 64, "log1p": True, "shards": 2}
    alone = seqatt.select(log.files, target="click", k=2, **options)
    assert saved.features == alone.features
    assert saved.settings["rows"] == 6_000
    assert saved.settings["shards"] == 2
    assert len(list((out / "checkpoint").glob("*.npz"))) == 1
