"""How good are the chosen features? Retrain on them alone, from files, and look at other files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.neural.asked import find_asked
from seqatt.neural.engine import pick_device
from seqatt.neural.evaluate import Evaluation, metrics_of
from seqatt.neural.options import check_seeds, insist_on_known
from seqatt.neural.threads import threads_for
from seqatt.progress import progress_bar
from seqatt.selection import Selection
from seqatt.stream.ahead import AHEAD, read_ahead
from seqatt.stream.files import open_files
from seqatt.stream.kinds import compatible, words
from seqatt.stream.network import Network
from seqatt.stream.options import JudgingOnFiles
from seqatt.stream.rows import Rows
from seqatt.stream.source import Stream, read_stream
from seqatt.stream.walk import batches_of, send

STEPS = 400  # of a training, at least, where the rows allow it
SMALLEST, LARGEST = 64, 4096  # rows in a batch


def evaluate_files(
    train: Any,
    test: Any,
    target: str,
    features: Selection | Sequence[int | str] | None = None,
    *,
    seeds: Sequence[int] = range(5),
    device: str = "auto",
    progress: bool = False,
    **options: Any,
) -> Evaluation:
    """Train a network on the chosen features of files alone and report its metrics on other files.

    What ``evaluate`` is to tables. Only the chosen columns are read, the training files once a pass, the
    test files once; everything that is fitted is fitted on the training files.

    Parameters
    ----------
    train, test : paths, patterns, folders or lists of these, with the same columns.
    target : the column to predict.
    features : Selection, names or positions of features, or None for all of them.
    seeds, device, progress : one seed a network; where to train; a bar on the terminal.
    options : ``passes``, ``batch_size``, ``learning_rate``, ``hidden``, ``activation``, ``embedding`` and
        what else ``select`` can be told about files: docs/streaming.md.

    Examples
    --------
    >>> import tempfile
    >>> import seqatt
    >>> from seqatt.data.synthetic import click_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = click_log(folder, 8_000, rows_per_file=6_000)
    ...     train, test = log.files
    ...     judged = seqatt.evaluate_files(train, test, "click", log.planted, seeds=[0], hidden=(16,))
    >>> bool(judged["auc"][0] > 0.6)
    True
    """
    insist_on_known("evaluate_files", options, [f.name for f in fields(JudgingOnFiles)])
    made = JudgingOnFiles(**options)
    seeds = check_seeds(seeds)
    picked = pick_device(device)
    stream = read_stream(train, target, _without_others(train, target, features, made), made.buckets)
    other = _like(stream, test)
    per_seed = []
    rows = len(seeds) * round(made.passes * stream.expected + other.expected)
    with progress_bar("Evaluation", rows, shown=progress) as advance:
        for seed in seeds:
            network = _train(stream, made, seed, picked, advance)
            out, truth = _predict(other, network, picked, advance)
            per_seed.append(metrics_of(stream.target, out, truth))
    values = {name: np.array([metrics[name] for metrics in per_seed]) for name in per_seed[0]}
    return Evaluation(values, seeds)


def _without_others(train: Any, target: Any, features: Any, options: JudgingOnFiles) -> JudgingOnFiles:
    """The options, with every feature ignored that was not chosen."""
    if features is None:
        return options
    apart = (target, options.sample_weight, *options.ignore)
    names = [name for name in open_files(train, "train").types if name not in apart]
    places = find_asked(
        features, names, named=True, kind="feature", argument="features", table="the training files"
    )
    if not places:
        raise ValueError("features: at least one is needed")
    kept = {names[place] for place in places}
    left = [name for name in names if name not in kept]
    log1p = options.log1p if isinstance(options.log1p, bool) else tuple(n for n in options.log1p if n in kept)
    kinds = {name: kind for name, kind in options.kinds.items() if name not in left}
    return replace(options, ignore=(*options.ignore, *left), log1p=log1p, kinds=kinds)


def _like(stream: Stream, test: Any) -> Stream:
    """The test files, read as the training files are."""
    files = open_files(test, "test")
    for name, kind in stream.types.items():
        if name not in files.types:
            raise ValueError(f"test: column {name!r} is missing, which the training files have")
        if not compatible(files.types[name], kind):
            raise ValueError(
                f"test: column {name!r} holds {words(files.types[name])}, but {words(kind)} in the training "
                "files"
            )
    per_byte = stream.expected / max(1, stream.files.size)
    return replace(stream, files=files, expected=float(files.rows or per_byte * files.size))


def _train(stream: Stream, options: JudgingOnFiles, seed: int, device: torch.device, advance: Any) -> Network:
    """One network, its rates falling along a cosine: the last rows polish what the first ones shaped."""
    size = options.batch_size or _batch_size(options.passes * stream.expected)
    seen = 0
    with threads_for(size * stream.features * options.hidden[0], device):
        network = Network(
            stream, options.hidden, options.activation, options.learning_rate, options.embedding, seed, device
        )
        everything = torch.ones(stream.features, device=device)
        for batch in batches_of(stream, options, size, seed):
            rows = batch.rows
            done = min(1.0, seen / (options.passes * batch.expected))
            network.set_rate((1 + math.cos(math.pi * done)) / 2)
            x = network.open(send(rows.numbers, device), send(rows.places, device))
            network.train(x, send(rows.target, device), send(rows.weights, device), everything)
            seen += rows.count
            advance(rows.count)
    return network


@torch.no_grad()
def _predict(
    stream: Stream, network: Network, device: torch.device, advance: Any
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Outputs and targets of all test rows: two numbers a row are all that is kept."""
    everything = torch.ones(stream.features, device=device)
    out, truth = [], []
    for rows in read_ahead(_each(stream), AHEAD):
        x = network.open(send(rows.numbers, device), send(rows.places, device))
        out.append(network.outputs(x, everything).float().cpu().numpy())
        truth.append(rows.target)
        advance(rows.count)
    target = np.concatenate(truth)
    if stream.target.task == "regression":
        assert stream.target.scale is not None
        assert stream.target.shift is not None
        target = target * stream.target.scale + stream.target.shift
    columns = target if stream.target.task == "multiclass" else target[:, None]
    return np.concatenate(out).astype(np.float64), columns


def _each(stream: Stream) -> Iterator[Rows]:
    for part in stream.files.parts:
        for rows, _ in stream.read(part):
            yield rows


def _batch_size(rows: float) -> int:
    """The power of two that gives a training some hundreds of steps."""
    return int(min(max(SMALLEST, 1 << max(0, int(rows / STEPS)).bit_length() >> 1), LARGEST))
