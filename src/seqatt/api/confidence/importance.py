"""What each selected feature adds, where the method itself held no rows out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from seqatt.api.evaluation_data import resolve_options
from seqatt.data.tables.table_data import TableData, take_features
from seqatt.training.backend.threads import training_threads
from seqatt.training.build import TrainingSetup, make_trial_groups
from seqatt.training.defaults import ENSEMBLE_SIZE, evaluation_steps, resolve_batch_size
from seqatt.training.loop import train
from seqatt.training.model_factory import largest_product
from seqatt.training.schedule import retraining


def measure_importance(data: TableData, order: Sequence[int], seed: int) -> dict[str, Any]:
    """How much each of these features adds to networks that train on them alone, as in ``Trace``.

    Each network holds out a fifth of the rows of its own, as the members of an ensemble do. They train on a CPU: they
    are small, and so are most methods that need this.
    """
    device = torch.device("cpu")
    features = np.sort(np.array(order))
    own = take_features(data, features)
    options = resolve_options(own, {})
    batch_size = resolve_batch_size(own.rows, None, ENSEMBLE_SIZE)
    steps = evaluation_steps(own.rows, batch_size, None) // 2  # features are only compared
    *trained, last = retraining(steps)
    setup = TrainingSetup(
        batch_size=batch_size,
        steps=steps,
        members=ENSEMBLE_SIZE,
        kept=tuple(range(len(features))),
        input_dropout=options.input_dropout or 0.0,
        rescale=False,
    )
    with training_threads(largest_product(own, options, batch_size), device) as threads:
        groups = make_trial_groups(own, [seed], options, device, setup)
        (trace,) = train(groups, (*trained, replace(last, measures=True)), threads=threads)
    assert trace.importance is not None
    return trace.importance | {"features": [int(features[f]) for f in trace.importance["features"]]}
