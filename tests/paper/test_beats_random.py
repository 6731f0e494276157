"""On the paper's six data sets, Sequential Attention beats random features on a fraction of its budget."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from experiments.paper import TITLES
from experiments.running import Cell
from experiments.trials import run_trials

import seqatt

VISITS = 100_000  # of rows while choosing; the defaults take from two to eight times as many


@pytest.mark.data
@pytest.mark.parametrize("name", list(TITLES))
def test_better_than_random_features(name):
    entry = seqatt.datasets.info(name)
    if not (Path(os.environ.get("SEQATT_DATA_DIR", "nowhere")) / entry.file).is_file():
        pytest.skip(f"{entry.file} is not in the folder named by SEQATT_DATA_DIR")
    seeds = (0,)
    chosen = run_trials(Cell(name, "short", seeds, {"k": 10, "epochs": VISITS / entry.rows[0]}))
    by_lot = run_trials(Cell(name, "random", seeds, {"k": 10, "method": "random"}))
    assert np.min(chosen["accuracy"]) > np.max(by_lot["accuracy"])
