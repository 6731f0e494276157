"""Evaluate many sets of features and seeds at once: their networks train together on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.api.evaluation.held_out_rows import NO_TEST_ROWS
from seqatt.api.evaluation.reading import EvaluationData
from seqatt.data.files.errors import UnreadableFile
from seqatt.data.tables.table_data import SparseColumns, TableData
from seqatt.training.backend.threads import training_threads
from seqatt.training.defaults import evaluation_steps, resolve_batch_size
from seqatt.training.evaluation.batches import Network
from seqatt.training.evaluation.train_networks import NetworkTraining, train_networks
from seqatt.training.options import TrainingOptions

PERCENT = 100  # what progress counts up to
DIVERGED = (
    "the training loss is no longer a finite number; try a smaller learning_rate, or look for extreme values "
    "in X and y"
)
AdvancePercent = Callable[[int], None]  # called with the percent done since its last call
Measured = TypeVar("Measured")
FeaturesAndSeed = tuple[NDArray[np.int64], int]


def trains_together(reading: EvaluationData, options: TrainingOptions, device: torch.device) -> bool:
    """Whether networks train in one tensor here: the built-in one, without dropout of hidden units, on a CPU."""
    data = reading.data
    dense = isinstance(data, TableData) and not isinstance(data.columns, SparseColumns)
    return dense and device.type == "cpu" and options.built_in and not options.dropout


def evaluate_networks(
    reading: EvaluationData,
    options: TrainingOptions,
    evaluated: Sequence[FeaturesAndSeed],
    advance: AdvancePercent,
    measure: Callable[[NDArray[np.float64], NDArray[Any]], Measured],
    share: float = 1.0,
) -> list[Measured | Exception]:
    """Train a network for each set of features and seed, and measure it on the test rows; or the error it had.

    ``measure`` gets the outputs and the targets of the test rows. ``share`` is that of the steps of a network of
    ``evaluate``. A result depends on its own features and seed alone.
    """
    data = reading.data
    assert isinstance(data, TableData)
    results: list[Measured | Exception] = [
        ValueError("X_train: every feature is constant; there is nothing to choose from")
    ] * len(evaluated)
    varying = [i for i, (features, _) in enumerate(evaluated) if not data.constant[features].all()]
    networks = [make_network(data, *evaluated[i]) for i in varying]
    batch_size = resolve_batch_size(data.rows, options.batch_size)
    steps = max(1, round(share * evaluation_steps(data.rows, batch_size, options.epochs)))
    training = NetworkTraining(options, batch_size, steps)
    outputs: list[list[NDArray[np.float64]]] = [[] for _ in networks]
    targets = []
    total, done = steps * len(networks), 0

    def count(new: int) -> None:
        nonlocal done
        before, done = done, done + new
        advance(PERCENT * done // total - PERCENT * before // total)

    with training_threads(0, torch.device("cpu")) as threads:
        trained = train_networks(data, networks, training, threads, count)
        for block in reading.test():
            for group in trained:
                predicted = group.predict(block.columns, block.codes)
                for position, block_outputs in zip(group.positions, predicted, strict=True):
                    outputs[position].append(block_outputs)
            targets.append(block.targets)
    if not targets:
        raise UnreadableFile(NO_TEST_ROWS)
    all_targets = np.concatenate(targets)
    for group in trained:
        for position, finite in zip(group.positions, group.finite(), strict=True):
            all_outputs = np.concatenate(outputs[position])
            measured = measure(all_outputs, all_targets) if finite else RuntimeError(DIVERGED)
            results[varying[position]] = measured
    return results


def make_network(data: TableData, features: NDArray[np.int64], seed: int) -> Network:
    """The network of a set of features, in the order of the table: the order of selection must not matter."""
    columns, coded = (np.flatnonzero(np.isin(of, features)) for of in (data.feature_of, data.coded_features))
    return Network(tuple(columns.tolist()), tuple(coded.tolist()), seed)
