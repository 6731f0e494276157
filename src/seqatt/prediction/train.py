"""Train the networks of a model by the recipe of ``evaluate``, and calibrate them on rows that they did not see."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from seqatt.api.confidence.folds import divide_rows
from seqatt.api.evaluation_data import resolve_options
from seqatt.api.evaluation_networks import DIVERGED, make_network
from seqatt.data.tables.encoding import Encoder
from seqatt.data.tables.table_data import TableData, take_rows
from seqatt.data.tables.target import Target
from seqatt.prediction.module import PredictionModule
from seqatt.training.backend.threads import WorkerPool, training_threads
from seqatt.training.defaults import evaluation_steps, resolve_batch_size
from seqatt.training.evaluation.networks import NetworkParameters
from seqatt.training.evaluation.train_networks import NetworkTraining, train_networks

NETWORKS = 5  # each trains on all rows but a fifth of its own
MIN_ROWS = 20  # from which on rows are held out: fewer would say nothing about the confidence of a network
MAX_LOG_SCALE = 4.0  # the factor of logits is between exp(-4) and exp(4)

Floats = NDArray[np.float64]
EMPTY = np.zeros(0)
NO_COLUMNS = Encoder([], [], EMPTY, EMPTY, [], EMPTY, EMPTY, {}, {}, EMPTY.astype(np.int64), EMPTY > 0, EMPTY)


def train_module(
    data: TableData, given: dict[str, Any], seed: int, advance: Callable[[int], None]
) -> PredictionModule:
    """Train ``NETWORKS`` networks on a dense table; ``given`` are options of the network.

    Each holds out a fifth of the rows. Logits are multiplied by the factor (an inverse temperature) that gives the
    held-out rows the smallest log loss. ``advance`` is called with 1 per trained network.
    """
    everything = np.arange(data.rows)
    held_out = [everything[:0]] * NETWORKS if data.rows < MIN_ROWS else divide_rows(data, seed, NETWORKS)
    seeds = np.random.SeedSequence([seed, NETWORKS]).generate_state(NETWORKS).tolist()
    with training_threads(0, torch.device("cpu")) as threads, WorkerPool(min(threads, NETWORKS)) as pool:
        trained = pool.run(
            [
                partial(_train, data, rows, given, own, advance)
                for rows, own in zip(held_out, seeds, strict=True)
            ]
        )
    target = data.target
    scale, shift = _output_units(target)
    if target.task != "regression" and len(held_out[0]):
        logits = np.empty((data.rows, target.outputs))
        for rows, (_, outputs) in zip(held_out, trained, strict=True):
            logits[rows] = outputs
        scale = scale * calibrate(target, logits, data.weights)
    networks = [parameters for parameters, _ in trained]
    activation = resolve_options(data, given).activation
    return PredictionModule(data.encoder, networks, target.task, activation, scale, shift)


def constant_module(data: TableData) -> PredictionModule:
    """A module without inputs, where no feature was selected: the share of each class, or the mean."""
    target = data.target
    weights = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    values = target.values
    if target.task == "multiclass":
        shares = np.bincount(values, weights, target.outputs) / weights.sum()
        outputs = np.log(shares)
    else:
        means = weights @ values.astype(np.float64) / weights.sum()
        smallest = 1 / (data.rows + 2)
        shares = np.clip(means, smallest, 1 - smallest)
        outputs = means if target.task == "regression" else np.log(shares / (1 - shares))
    network = NetworkParameters([torch.zeros(target.outputs, 0)], [torch.tensor(outputs)], [])
    return PredictionModule(NO_COLUMNS, [network], target.task, "relu", *_output_units(target))


def _output_units(target: Target) -> tuple[Floats, Floats]:
    """What the outputs of a network are multiplied by, and what is added to them then."""
    if target.scale is None or target.shift is None:
        return np.ones(target.outputs), np.zeros(target.outputs)
    return target.scale, target.shift


def _train(
    data: TableData,
    held_out: NDArray[np.int64],
    given: dict[str, Any],
    seed: int,
    advance: Callable[[int], None],
) -> tuple[NetworkParameters, Floats]:
    """The parameters of one network, and its outputs for the rows that it did not train on."""
    rows = take_rows(data, np.setdiff1d(np.arange(data.rows), held_out))
    options = resolve_options(rows, given)
    batch_size = resolve_batch_size(rows.rows, options.batch_size)
    training = NetworkTraining(options, batch_size, evaluation_steps(rows.rows, batch_size, options.epochs))
    network = make_network(data, np.arange(data.features), seed)
    (group,) = train_networks(rows, [network], training, 1, lambda steps: None)
    if not group.finite()[0]:
        raise RuntimeError(DIVERGED)
    advance(1)
    assert isinstance(data.columns, np.ndarray)
    empty = np.empty((0, data.target.outputs))
    outputs = group.predict(data.columns[held_out], data.codes[held_out])[0] if len(held_out) else empty
    return group.parameters()[0], outputs


def calibrate(target: Target, logits: Floats, weights: NDArray[np.float32] | None) -> float:
    """The factor of the logits (rows, outputs) of held-out rows with which their log loss is smallest.

    A label counts as right with the probability 1 - 1 / (rows + 2), as in Platt's scaling (1999), so that networks
    which are right about all held-out rows do not become certain.
    """
    rows = len(logits)
    doubt = 1 / (rows + 2)
    if target.task == "multiclass":
        truth = np.full(logits.shape, doubt / (target.outputs - 1))
        truth[np.arange(rows), target.values] = 1 - doubt
    else:
        truth = doubt + target.values * (1 - 2 * doubt)

    def loss(log_scale: float) -> float:
        scaled = logits * np.exp(log_scale)
        # Log of the sum of exponentials of the classes; a logit of its own stands against zero.
        total = (
            np.logaddexp.reduce(scaled, 1) if target.task == "multiclass" else np.logaddexp(0, scaled).sum(1)
        )
        return float(np.average(total - (truth * scaled).sum(1), weights=weights))

    return float(np.exp(minimize_scalar(loss, bounds=(-MAX_LOG_SCALE, MAX_LOG_SCALE), method="bounded").x))
