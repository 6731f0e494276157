"""Importance of the selected features on held-out rows, and rejected features that are correlated with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.data.tables.table_data import TableData, take_features, take_rows
from seqatt.trace import Trace
from seqatt.training.backend.threads import single_thread, training_threads
from seqatt.training.defaults import ENSEMBLE_SIZE, evaluation_steps, resolve_batch_size
from seqatt.training.group_factory import TrainingSetup, make_trial_groups
from seqatt.training.loop import train
from seqatt.training.model_factory import largest_product
from seqatt.training.schedule import retraining
from seqatt.training.screening.row_sample import RowSample, draw_sample

MAX_ROWS = 4096  # from which correlations are computed
STAND_INS = 3  # per feature, at most
MIN_CORRELATION = 0.5  # of a stand-in
CHANCE = 4.0  # standard deviations of a correlation by chance that a stand-in exceeds


def measure_importance(data: TableData, order: Sequence[int], seed: int) -> dict[str, Any]:
    """How much each of these features adds to networks that train on them alone, as in ``Trace``.

    Each network holds out a fifth of the rows of its own, as the members of an ensemble do. They train on a CPU: they
    are small, and so are most methods that need this.
    """
    from seqatt.api.evaluation.reading import resolve_options  # here, because it needs pyarrow

    device = torch.device("cpu")
    features = np.sort(np.array(order))
    selected = take_features(data, features)
    options = resolve_options(selected, {})
    batch_size = resolve_batch_size(selected.rows, None, ENSEMBLE_SIZE)
    steps = evaluation_steps(selected.rows, batch_size, None) // 2  # features are only compared
    *trained, last = retraining(steps)
    setup = TrainingSetup(
        batch_size=batch_size,
        steps=steps,
        members=ENSEMBLE_SIZE,
        kept=tuple(range(len(features))),
        input_dropout=options.input_dropout or 0.0,
        rescale=False,
    )
    with training_threads(largest_product(selected, options, batch_size), device) as threads:
        groups = make_trial_groups(selected, [seed], options, device, setup)
        (trace,) = train(groups, (*trained, replace(last, measures=True)), threads=threads)
    assert trace.importance is not None
    return trace.importance | {"features": [int(features[f]) for f in trace.importance["features"]]}


def add_stand_ins(data: TableData, traces: Sequence[Trace], device: torch.device) -> None:
    """Note in the importance of each trace which rejected features are related most to each selected one."""
    measured = [trace for trace in traces if trace.importance is not None]
    if measured:
        if data.rows > MAX_ROWS:
            data = take_rows(data, np.sort(np.random.default_rng(0).permutation(data.rows)[:MAX_ROWS]))
        orders = [trace.importance["features"] for trace in measured if trace.importance is not None]
        found = find_stand_ins(draw_sample(data, device=device), orders)
        for trace, stand_ins in zip(measured, found, strict=True):
            assert trace.importance is not None
            trace.importance["stand_ins"] = stand_ins


def find_stand_ins(sample: RowSample, orders: Sequence[Sequence[int]]) -> list[list[list[tuple[int, float]]]]:
    """For each feature of each selection up to three rejected ones of the largest correlation with it, largest first.

    The correlation of features of several columns is the largest one of their columns, by absolute value.
    """
    data, feature_of = sample.data, sample.data.feature_of
    floor = max(MIN_CORRELATION, CHANCE / np.sqrt(max(1.0, sample.effective_rows)))
    selected_columns = np.flatnonzero(
        np.isin(feature_of, [feature for selected in orders for feature in selected])
    )
    with single_thread():  # its many products are small
        correlations = _correlations(sample, selected_columns)
    starts = np.flatnonzero(np.diff(feature_of, prepend=-1))  # the columns of a feature are adjacent
    present = feature_of[starts]
    highest, lowest = (f.reduceat(correlations, starts, axis=0) for f in (np.maximum, np.minimum))
    largest = np.where(highest >= -lowest, highest, lowest)

    def stand_ins(feature: int, selected: Sequence[int]) -> list[tuple[int, float]]:
        columns = largest[:, feature_of[selected_columns] == feature]
        if not columns.shape[1]:
            return []
        strongest = columns[np.arange(len(columns)), np.abs(columns).argmax(1)]
        rejected = ~(data.constant[present] | np.isin(present, selected))
        strength = np.where(rejected, np.abs(strongest), 0.0)
        best = np.argsort(-strength, kind="stable")[:STAND_INS]
        return [(int(present[i]), round(float(strongest[i]), 4)) for i in best if strength[i] >= floor]

    return [[stand_ins(feature, selected) for feature in selected] for selected in orders]


def _correlations(sample: RowSample, columns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Correlations (c, m) of all columns with those numbered ``columns``."""
    norms = np.sqrt(sample.moments[0])
    products = sample.inner_products(sample.centred_columns(columns))
    scale = np.outer(norms, norms[columns])
    return np.asarray(np.divide(products, scale, out=np.zeros_like(products), where=scale > 0))
