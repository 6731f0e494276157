"""``evaluate_files``: train a network on selected features from files and measure it on other files."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.api.evaluate import Evaluation, compute_metrics
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
from seqatt.training.backend.device import resolve_device
from seqatt.training.backend.threads import training_threads
from seqatt.training.defaults import resolve_stream_batch_size
from seqatt.validation import check_option_names, check_seeds


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
    """Train a network on the selected features of files and report its metrics on other files.

    This is ``evaluate`` for files. Only the selected columns are read: the training files once per pass, the
    test files once. Standardisation, categories and weights are fitted on the training files.

    Parameters
    ----------
    train, test : paths, patterns, folders or lists of these, with the same columns.
    target : str, the column to predict.
    features : Selection, names or positions of features, or None for all of them.
    seeds : sequence of int, default 0 to 4. One network is trained per seed.
    device : str, default "auto". Where to train.
    progress : bool, default False. Show a progress bar on the terminal.
    options : ``passes``, ``batch_size``, ``learning_rate``, ``hidden``, ``activation``, ``embedding_dim``
        and the other options of ``select`` for files: docs/streaming.md.

    Examples
    --------
    >>> import tempfile
    >>> import seqatt
    >>> from seqatt.datasets.synthetic import click_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = click_log(folder, 8_000, rows_per_file=6_000)
    ...     train, test = log.files
    ...     result = seqatt.evaluate_files(train, test, "click", log.planted, seeds=[0], hidden=(16,))
    >>> bool(result["auc"][0] > 0.6)
    True
    """
    check_option_names("evaluate_files", options, [f.name for f in fields(StreamEvaluationOptions)])
    checked = StreamEvaluationOptions(**options)
    seeds = check_seeds(seeds)
    torch_device = resolve_device(device)
    skip = checked.on_bad_file == "skip"
    files = open_files(train, "train", skip=skip)
    checked = _ignore_unselected(files, target, features, checked)
    data = read_file_data(files, target, checked, checked.hash_buckets)
    test_data = _read_test_data(data, open_files(test, "test", skip=skip))
    size = _batch_size(checked, data.expected_rows)
    per_seed = []
    rows = len(seeds) * round(checked.passes * data.expected_rows + test_data.expected_rows)
    with progress_bar("Evaluation", rows, shown=progress) as advance:
        for seed in seeds:
            network = _train(data, checked, size, seed, torch_device, advance)
            outputs, targets = _predict(test_data, network, torch_device, skip, advance)
            per_seed.append(compute_metrics(data.target, outputs, targets))
    values = {name: np.array([metrics[name] for metrics in per_seed]) for name in per_seed[0]}
    return Evaluation(values, seeds)


def _ignore_unselected(
    files: FileSet, target: Any, features: Any, options: StreamEvaluationOptions
) -> StreamEvaluationOptions:
    """The options, with all unselected features in ``ignore`` and absent from the other options."""
    if features is None:
        return options
    no_features = (target, options.sample_weight, *options.ignore)
    names = [name for name in files.types if name not in no_features]
    positions = find_positions(
        features, names, named=True, kind="feature", argument="features", table="the training files"
    )
    if not positions:
        raise ValueError("features: at least one is needed")
    selected = {names[position] for position in positions}
    unselected = [name for name in names if name not in selected]
    log1p = options.log1p
    if not isinstance(log1p, bool):
        log1p = tuple(name for name in log1p if name in selected)
    column_types = {name: kind for name, kind in options.column_types.items() if name not in unselected}
    embedding_dim = options.embedding_dim
    if isinstance(embedding_dim, Mapping):
        embedding_dim = {name: width for name, width in embedding_dim.items() if name not in unselected}
    return replace(
        options,
        ignore=(*options.ignore, *unselected),
        log1p=log1p,
        column_types=column_types,
        embedding_dim=embedding_dim,
    )


def _read_test_data(data: FileData, files: FileSet) -> FileData:
    """The test files with the schema of the training files, but without sample weights."""
    types = {name: kind for name, kind in data.types.items() if name != data.target_column.weight}
    for name, kind in types.items():
        if name not in files.types:
            raise ValueError(f"test: column {name!r} is missing, which the training files have")
        if not compatible(files.types[name], kind):
            raise ValueError(
                f"test: column {name!r} holds {describe_type(files.types[name])}, but {describe_type(kind)} in "
                "the training files"
            )
    rows_per_byte = data.expected_rows / max(1, data.files.size)
    expected = float(files.rows or rows_per_byte * files.size)
    return replace(
        data,
        files=files,
        types=types,
        target_column=replace(data.target_column, weight=None),
        expected_rows=expected,
    )


def _train(
    data: FileData,
    options: StreamEvaluationOptions,
    size: int,
    seed: int,
    device: torch.device,
    advance: Any,
) -> EmbeddingMLP:
    """Train one network; its learning rates follow half a cosine to 0."""
    seen = 0
    with training_threads(size * data.features * options.hidden[0], device):
        network = EmbeddingMLP(
            data,
            options.hidden,
            options.activation,
            options.learning_rate,
            options.embedding_dim,
            seed,
            device,
        )
        all_features = torch.ones(data.features, device=device)
        for batch in make_loader(data, options, size, seed, passes=options.passes):
            rows = batch.rows
            done = min(1.0, seen / (options.passes * batch.expected_rows))
            network.scale_learning_rate((1 + math.cos(math.pi * done)) / 2)
            x = network.gather_inputs(to_device(rows.numbers, device), to_device(rows.codes, device))
            target, weights = to_device(rows.target, device), to_device(rows.weights, device)
            network.train_step(x, target, weights, all_features)
            seen += rows.count
            advance(rows.count)
    return network


@torch.no_grad()
def _predict(
    data: FileData, network: EmbeddingMLP, device: torch.device, skip: bool, advance: Any
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Outputs and targets of all test rows; nothing else is kept of a row."""
    all_features = torch.ones(data.features, device=device)
    outputs, targets = [], []
    for rows in prefetch(_read_rows(data, skip), PREFETCHED_BLOCKS):
        x = network.gather_inputs(to_device(rows.numbers, device), to_device(rows.codes, device))
        outputs.append(network.outputs(x, all_features).float().cpu().numpy())
        targets.append(rows.target)
        advance(rows.count)
    if not targets:
        raise UnreadableFile(
            f"test: no row of {data.files.row_groups[0].path} or any other file could be read"
        )
    target = np.concatenate(targets)
    if data.target.task == "regression":
        assert data.target.scale is not None
        assert data.target.shift is not None
        target = target * data.target.scale + data.target.shift
    columns = target if data.target.task == "multiclass" else target[:, None]
    return np.concatenate(outputs).astype(np.float64), columns


def _read_rows(data: FileData, skip: bool) -> Iterator[EncodedRows]:
    """All rows, block by block; with ``skip`` a row group that cannot be read is left out with a warning."""
    for row_group in data.files.row_groups:
        try:
            for rows, _ in data.read(row_group):
                yield rows
        except ValueError as error:
            if not skip:
                raise
            warnings.warn(f"{error}; the rest of it was skipped", SkippedData, stacklevel=2)


def _batch_size(options: StreamEvaluationOptions, expected: float) -> int:
    """Rows per step: the option, or the default for ``expected`` rows; few steps give a warning."""
    rows = options.passes * expected
    size = resolve_stream_batch_size(rows, options.batch_size)
    if rows / size < FEW_STEPS:
        warnings.warn(
            f"the network is trained for about {rows / size:.0f} steps; more passes over the rows make its "
            "metrics more reliable",
            stacklevel=3,
        )
    return size
