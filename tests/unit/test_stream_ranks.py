"""Several ranks: they choose what one would, stay together when one fails, and are resumed together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import seqatt
from seqatt.data.synthetic import click_log
from tests.unit.test_stream_checkpoints import kill

QUICK = {"k": 3, "hidden": [8], "batch_size": 32, "log1p": True, "look": 500, "checkpoint_every": 0.01}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return click_log(tmp_path_factory.mktemp("clicks"), 3_001, rows_per_file=1_000)


def torchrun(*arguments: object, ranks: int = 2) -> list[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", "0"]
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
