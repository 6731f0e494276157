"""Checkpoints: a run that was killed ends as if it had not been; what cannot be gone on from is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seqatt.data.synthetic import click_log

QUICK = {"k": 3, "hidden": [8], "batch_size": 64, "log1p": True, "look": 500, "checkpoint_every": 0.01}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return click_log(tmp_path_factory.mktemp("clicks"), 3_000, rows_per_file=1_000)


def kill(log, scratch: Path, **case) -> dict:
    told = {
        "files": [str(p) for p in log.files],
        "scratch": str(scratch),
        "ranks": 1,
        "options": QUICK,
    } | case
    script = Path(__file__).parent / "mortal.py"
    done = subprocess.run(
        [sys.executable, script, json.dumps(told)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_run_killed_at_any_moment_and_resumed_gives_the_same_answer_to_the_last_bit(log, tmp_path):
    found = kill(log, tmp_path, lives=4, options=QUICK | {"passes": 2, "buffer": 512})
    print(found["seconds"], found["kills"])
    assert found["kills"] >= 8
    assert all(answer == found["whole"] for answer in found["killed"])
