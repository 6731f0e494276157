"""How good are the chosen features? Retrain on them alone, from files, and look at other files."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.api.evaluate import Evaluation, metrics_of
from seqatt.api.lookup import find_positions
from seqatt.data.files.column_types import compatible, describe_type
from seqatt.data.files.errors import SkippedData
from seqatt.data.files.file_data import FileData, read_file_data
from seqatt.data.files.file_set import FileSet, open_files
from seqatt.data.files.loader import make_loader
from seqatt.data.files.prefetch import PREFETCHED_BLOCKS, prefetch
from seqatt.data.files.rows import EncodedRows
from seqatt.data.tables.whole_file import UnreadableFile
from seqatt.progress import progress_bar
from seqatt.selection import Selection
from seqatt.streaming.network import EmbeddingMLP
from seqatt.streaming.options import StreamEvaluationOptions
from seqatt.streaming.trial import FEW_STEPS, to_device
from seqatt.training.backend.threads import training_threads
from seqatt.training.loop import resolve_device
from seqatt.training.options import check_seeds, insist_on_known

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
    >>> from seqatt.datasets.synthetic import click_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = click_log(folder, 8_000, rows_per_file=6_000)
    ...     train, test = log.files
    ...     judged = seqatt.evaluate_files(train, test, "click", log.planted, seeds=[0], hidden=(16,))
    >>> bool(judged["auc"][0] > 0.6)
    True
    """
    insist_on_known("evaluate_files", options, [f.name for f in fields(StreamEvaluationOptions)])
    made = StreamEvaluationOptions(**options)
    seeds = check_seeds(seeds)
    picked = resolve_device(device)
    skip = made.on_bad_file == "skip"
    files = open_files(train, "train", skip=skip)
    made = _without_others(files, target, features, made)
    stream = read_file_data(files, target, made, made.buckets)
    other = _like(stream, open_files(test, "test", skip=skip))
    size = _batch_size(made, stream.expected)
    per_seed = []
    rows = len(seeds) * round(made.passes * stream.expected + other.expected)
    with progress_bar("Evaluation", rows, shown=progress) as advance:
        for seed in seeds:
            network = _train(stream, made, size, seed, picked, advance)
            out, truth = _predict(other, network, picked, skip, advance)
            per_seed.append(metrics_of(stream.target, out, truth))
    values = {name: np.array([metrics[name] for metrics in per_seed]) for name in per_seed[0]}
    return Evaluation(values, seeds)


def _without_others(
    files: FileSet, target: Any, features: Any, options: StreamEvaluationOptions
) -> StreamEvaluationOptions:
    """The options, with every feature ignored that was not chosen."""
    if features is None:
        return options
    apart = (target, options.sample_weight, *options.ignore)
    names = [name for name in files.types if name not in apart]
    places = find_positions(
        features, names, named=True, kind="feature", argument="features", table="the training files"
    )
    if not places:
        raise ValueError("features: at least one is needed")
    kept = {names[place] for place in places}
    left = [name for name in names if name not in kept]
    log1p = options.log1p if isinstance(options.log1p, bool) else tuple(n for n in options.log1p if n in kept)
    kinds = {name: kind for name, kind in options.kinds.items() if name not in left}
    embedding = options.embedding
    if isinstance(embedding, Mapping):
        embedding = {name: width for name, width in embedding.items() if name not in left}
    return replace(options, ignore=(*options.ignore, *left), log1p=log1p, kinds=kinds, embedding=embedding)


def _like(stream: FileData, files: FileSet) -> FileData:
    """The test files, read as the training files are, but for weights: their rows count alike."""
    types = {name: kind for name, kind in stream.types.items() if name != stream.labels.weight}
    for name, kind in types.items():
        if name not in files.types:
            raise ValueError(f"test: column {name!r} is missing, which the training files have")
        if not compatible(files.types[name], kind):
            raise ValueError(
                f"test: column {name!r} holds {describe_type(files.types[name])}, but {describe_type(kind)} in the training "
                "files"
            )
    per_byte = stream.expected / max(1, stream.files.size)
    expected = float(files.rows or per_byte * files.size)
    return replace(
        stream, files=files, types=types, labels=replace(stream.labels, weight=None), expected=expected
    )


def _train(
    stream: FileData,
    options: StreamEvaluationOptions,
    size: int,
    seed: int,
    device: torch.device,
    advance: Any,
) -> EmbeddingMLP:
    """One network, its rates falling along a cosine: the last rows polish what the first ones shaped."""
    seen = 0
    with training_threads(size * stream.features * options.hidden[0], device):
        network = EmbeddingMLP(
            stream, options.hidden, options.activation, options.learning_rate, options.embedding, seed, device
        )
        everything = torch.ones(stream.features, device=device)
        for batch in make_loader(stream, options, size, seed, passes=options.passes):
            rows = batch.rows
            done = min(1.0, seen / (options.passes * batch.expected))
            network.set_rate((1 + math.cos(math.pi * done)) / 2)
            x = network.open(to_device(rows.numbers, device), to_device(rows.places, device))
            network.train(x, to_device(rows.target, device), to_device(rows.weights, device), everything)
            seen += rows.count
            advance(rows.count)
    return network


@torch.no_grad()
def _predict(
    stream: FileData, network: EmbeddingMLP, device: torch.device, skip: bool, advance: Any
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Outputs and targets of all test rows: two numbers a row are all that is kept."""
    everything = torch.ones(stream.features, device=device)
    out, truth = [], []
    for rows in prefetch(_each(stream, skip), PREFETCHED_BLOCKS):
        x = network.open(to_device(rows.numbers, device), to_device(rows.places, device))
        out.append(network.outputs(x, everything).float().cpu().numpy())
        truth.append(rows.target)
        advance(rows.count)
    if not truth:
        raise UnreadableFile(f"test: no row of {stream.files.parts[0].path} or any other file could be read")
    target = np.concatenate(truth)
    if stream.target.task == "regression":
        assert stream.target.scale is not None
        assert stream.target.shift is not None
        target = target * stream.target.scale + stream.target.shift
    columns = target if stream.target.task == "multiclass" else target[:, None]
    return np.concatenate(out).astype(np.float64), columns


def _each(stream: FileData, skip: bool) -> Iterator[EncodedRows]:
    for part in stream.files.parts:
        try:
            for rows, _ in stream.read(part):
                yield rows
        except ValueError as error:
            if not skip:
                raise
            warnings.warn(f"{error}; the rest of it was skipped", SkippedData, stacklevel=2)


def _batch_size(options: StreamEvaluationOptions, expected: float) -> int:
    """What the user says, else the power of two that gives a training some hundreds of steps."""
    rows = options.passes * expected
    size = options.batch_size or int(
        min(max(SMALLEST, 1 << max(0, int(rows / STEPS)).bit_length() >> 1), LARGEST)
    )
    if rows / size < FEW_STEPS:
        warnings.warn(
            f"the network is trained for about {rows / size:.0f} steps; more passes over the rows make its "
            "metrics surer",
            stacklevel=3,
        )
    return size
