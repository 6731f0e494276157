"""On the paper's six data sets, Sequential Attention beats random features with a fraction of its budget."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from experiments.paper import TITLES
from experiments.runs import Run
from experiments.trials import run_trials

import seqatt

TRAINING_ROWS = 100_000  # rows seen during the selection; two to eight times as many by default


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", list(TITLES))
def test_better_than_random_features(name):
    entry = seqatt.datasets.info(name)
    if not (Path(os.environ.get("SEQATT_DATA_DIR", "nowhere")) / entry.file).is_file():
        pytest.skip(f"{entry.file} is not in the folder named by SEQATT_DATA_DIR")
    seeds = (0,)
    attention = run_trials(Run(name, "short", seeds, {"k": 10, "epochs": TRAINING_ROWS / entry.rows[0]}))
    random = run_trials(Run(name, "random", seeds, {"k": 10, "method": "random"}))
    assert np.min(attention["accuracy"]) > np.max(random["accuracy"])
