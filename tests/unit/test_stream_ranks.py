"""Several ranks: they choose what one would, stay together when one fails, and are resumed together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.unit.test_stream_checkpoints import kill

import seqatt
from seqatt.data.synthetic import click_log

QUICK = {"k": 3, "hidden": [8], "batch_size": 32, "log1p": True, "look": 500, "checkpoint_every": 0.01}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return click_log(tmp_path_factory.mktemp("clicks"), 3_001, rows_per_file=1_000)


def torchrun(*arguments: object, ranks: int = 2) -> list[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--standalone"]
    return [*run, "-m", "seqatt", "select", *map(str, arguments)]


def test_two_ranks_killed_at_any_moment_and_resumed_give_what_one_gives(log, tmp_path):
    found = kill(log, tmp_path, lives=2, ranks=2, options=QUICK)
    whole = found["whole"][0]
    assert found["kills"] >= 2
    assert found["whole"][1] == whole
    assert all(answer == [whole, whole] for answer in found["killed"])
    alone = seqatt.select(log.files, target="click", shards=2, **QUICK)
    assert alone.features == whole["features"]
    assert alone.scores == pytest.approx(whole["scores"], rel=1e-3)
    assert alone.ranking.tolist() == whole["ranking"]
    steps = [entry["steps"] for entry in alone.history]
    assert steps == [entry["steps"] for entry in whole["history"]]


def ranks_of(agent: int) -> dict[str, int]:
    """The processes that torchrun started, by rank."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "environ").read_bytes().split(b"\0")
            parent = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        variables = dict(word.decode(errors="replace").partition("=")[::2] for word in words)
        if parent == agent and "LOCAL_RANK" in variables:
            found[variables["LOCAL_RANK"]] = int(place.name)
    return found


def test_torchrun_works_as_it_stands_and_a_rank_that_dies_ends_the_others_until_resumed(tmp_path):
    log = click_log(tmp_path / "clicks", 12_000, rows_per_file=4_000)
    out = tmp_path / "run"
    about = ["-t", "click", "-k", 3, "--hidden", 8, "--batch-size", 64, "--log1p", "all"]
    command = torchrun(*log.files, *about, "--out", out, "--checkpoint-every", 0.1)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        while not list((out / "checkpoint").glob("*.npz")):
            assert running.poll() is None
            time.sleep(0.01)
        os.kill(ranks_of(running.pid)["1"], signal.SIGKILL)
        _, said = running.communicate(timeout=60)
    assert running.returncode != 0
    assert "error: ranks: rank 0 of 2 cannot reach another rank" in said
    assert not (out / "selection.json").exists()
    command = torchrun(*log.files, *about, "--out", out, "--resume")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("3 of 39 features for click") == 1
    saved = seqatt.Selection.load(out / "selection.json")
    options = {"hidden": 8, "batch_size": 64, "log1p": True, "shards": 2}
    alone = seqatt.select(log.files, target="click", k=3, **options)
    assert saved.features == alone.features
    assert saved.settings["rows"] == 12_000
    assert saved.settings["shards"] == 2
