"""Train the networks of a model by the recipe of ``evaluate``, and calibrate them on rows that they did not see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from seqatt.api.confidence.folds import divide_rows
from seqatt.api.evaluation.networks import DIVERGED, make_network
from seqatt.api.evaluation.reading import resolve_options
from seqatt.data.tables.encoding import Encoder
from seqatt.data.tables.table_data import TableData, take_rows
from seqatt.data.tables.target import Target
from seqatt.prediction.module import PredictionModule
from seqatt.training.backend.threads import WorkerPool, training_threads
from seqatt.training.defaults import evaluation_steps, resolve_batch_size
from seqatt.training.evaluation.networks import NetworkParameters
from seqatt.training.evaluation.train_networks import NetworkTraining, train_networks

NETWORKS = 5  # each trains on all rows but a fifth of its own
MIN_ROWS = 20  # from which on rows are held out: the estimate from fewer rows would be too noisy
SHARES = (1.0, 1 / 4, 1 / 16)  # of the steps of ``evaluate``: small noisy tables are memorised by more
MAX_LOG_SCALE = 4.0  # the factor of logits is between exp(-4) and exp(4)

Floats = NDArray[np.float64]
EMPTY = np.zeros(0)
NO_COLUMNS = Encoder([], [], EMPTY, EMPTY, [], EMPTY, EMPTY, {}, {}, EMPTY.astype(np.int64), EMPTY > 0, EMPTY)


class TrainedNetworks(NamedTuple):
    """Networks, the factor of their outputs, and the loss of rows that they did not train on."""

    networks: list[NetworkParameters]
    factor: Floats
    loss: float


def train_module(
    data: TableData, given: dict[str, Any], seed: int, advance: Callable[[int], None]
) -> PredictionModule:
    """Train ``NETWORKS`` networks on a dense table; ``given`` are options of the network.

    Each holds out a fifth of the rows. Outputs are multiplied by the factor that gives the held-out rows the smallest
    loss, and of several numbers of steps the one with the smallest loss is used. ``advance`` is called with 1 per
    trained network.
    """
    held_out = [np.arange(0)] * NETWORKS if data.rows < MIN_ROWS else divide_rows(data, seed, NETWORKS)
    seeds = np.random.SeedSequence([seed, NETWORKS]).generate_state(NETWORKS).tolist()
    with training_threads(0, torch.device("cpu")) as threads, WorkerPool(min(threads, NETWORKS)) as pool:

        def train_all(share: float) -> TrainedNetworks:
            trained = pool.run(
                [
                    partial(_train, data, rows, given, own, share, advance)
                    for rows, own in zip(held_out, seeds, strict=True)
                ]
            )
            networks = [parameters for parameters, _ in trained]
            if not len(held_out[0]):
                return TrainedNetworks(networks, np.ones(data.target.outputs), 0.0)
            outputs = np.empty((data.rows, data.target.outputs))
            for rows, (_, own) in zip(held_out, trained, strict=True):
                outputs[rows] = own
            return TrainedNetworks(networks, *calibrate(data.target, outputs, data.weights))

        best = min((train_all(share) for share in SHARES), key=lambda trained: trained.loss)
    scale, shift = _output_units(data.target)
    return PredictionModule(
        data, best.networks, resolve_options(data, given).activation, scale * best.factor, shift
    )


def constant_module(data: TableData) -> PredictionModule:
    """A module without inputs, where no feature was selected: the share of each class, or the mean."""
    target = data.target
    weights = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    if target.task == "multiclass":
        outputs = np.log(np.bincount(target.values, weights, target.outputs) / weights.sum())
    else:
        means = weights @ target.values.astype(np.float64) / weights.sum()
        smallest = 1 / (data.rows + 2)
        shares = np.clip(means, smallest, 1 - smallest)
        outputs = means if target.task == "regression" else np.log(shares / (1 - shares))
    network = NetworkParameters([torch.zeros(target.outputs, 0)], [torch.tensor(outputs)], [])
    nothing = replace(data, encoder=NO_COLUMNS, columns=np.empty((data.rows, 0), dtype=np.float32))
    return PredictionModule(nothing, [network], "relu", *_output_units(target))


def _output_units(target: Target) -> tuple[Floats, Floats]:
    """Scale and shift that turn the outputs of a network into units of the target."""
    if target.scale is None or target.shift is None:
        return np.ones(target.outputs), np.zeros(target.outputs)
    return target.scale, target.shift


def _train(
    data: TableData,
    held_out: NDArray[np.int64],
    given: dict[str, Any],
    seed: int,
    share: float,
    advance: Callable[[int], None],
) -> tuple[NetworkParameters, Floats]:
    """The parameters of one network, and its outputs for the rows that it did not train on."""
    rows = take_rows(data, np.setdiff1d(np.arange(data.rows), held_out))
    options = resolve_options(rows, given)
    batch_size = resolve_batch_size(rows.rows, None)
    steps = max(1, round(share * evaluation_steps(rows.rows, batch_size, None)))
    network = make_network(data, np.arange(data.features), seed)
    (group,) = train_networks(
        rows, [network], NetworkTraining(options, batch_size, steps), 1, lambda steps: None
    )
    if not group.finite()[0]:
        raise RuntimeError(DIVERGED)
    advance(1)
    assert isinstance(data.columns, np.ndarray)
    assert isinstance(rows.columns, np.ndarray)
    outputs = np.empty((0, data.target.outputs))
    if len(held_out):
        inputs = np.clip(data.columns[held_out], rows.columns.min(0), rows.columns.max(0))
        outputs = group.predict(inputs, data.codes[held_out])[0]
    return group.parameters()[0], outputs


def calibrate(target: Target, outputs: Floats, weights: NDArray[np.float32] | None) -> tuple[Floats, float]:
    """The factor of the outputs (rows, outputs) of held-out rows with which their loss is smallest, and that loss.

    For classes it is an inverse temperature. A label counts as right with the probability 1 - 1 / (rows + 2), as in
    Platt's scaling (1999), so that networks which are right about all held-out rows do not become certain. For numbers
    it is the slope of the least-squares line through the mean, from 0 to 1.
    """
    rows = len(outputs)
    if target.task == "regression":
        w = np.ones((rows, 1)) if weights is None else weights[:, None].astype(np.float64)
        squares = (w * outputs**2).sum(0)
        slope = np.clip((w * outputs * target.values).sum(0) / np.where(squares > 0, squares, 1), 0, 1)
        return slope, float((w * (slope * outputs - target.values) ** 2).mean())
    doubt = 1 / (rows + 2)
    if target.task == "multiclass":
        truth = np.full(outputs.shape, doubt / (target.outputs - 1))
        truth[np.arange(rows), target.values] = 1 - doubt
    else:
        truth = doubt + target.values * (1 - 2 * doubt)

    def loss(log_factor: float) -> float:
        logits = outputs * np.exp(log_factor)
        # Log of the sum of exponentials of the classes; a logit of its own stands against zero.
        total = (
            np.logaddexp.reduce(logits, 1) if target.task == "multiclass" else np.logaddexp(0, logits).sum(1)
        )
        return float(np.average(total - (truth * logits).sum(1), weights=weights))

    found = minimize_scalar(loss, bounds=(-MAX_LOG_SCALE, MAX_LOG_SCALE), method="bounded")
    return np.full(target.outputs, np.exp(found.x)), float(found.fun)
