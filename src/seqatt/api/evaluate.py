"""``evaluate``: train a network on selected features alone and measure it on test rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from seqatt.api.evaluation import Evaluation, compute_metrics
from seqatt.api.evaluation_rows import RowBlocks, predict, read_test_files, read_test_table
from seqatt.api.lookup import find_positions
from seqatt.api.read_data import EMBEDDED, ONE_HOT, are_batches, are_files, read_table
from seqatt.api.read_files import make_source, read_files
from seqatt.api.select_options import DataOptions
from seqatt.api.selected_columns import ignore_unselected, only_columns
from seqatt.column_names import plain_name
from seqatt.data.files.file_columns import split_target
from seqatt.data.files.file_data import FileData
from seqatt.data.files.file_set import open_files
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.column_roles import read_columns
from seqatt.data.tables.consistency import check_same_columns
from seqatt.data.tables.containers import InputTable
from seqatt.data.tables.options import Categories, TableOptions
from seqatt.data.tables.table_data import TableData
from seqatt.distributed.process_group import SINGLE_PROCESS
from seqatt.options import names_of
from seqatt.progress import progress_bar
from seqatt.selection import Selection
from seqatt.training.backend.device import resolve_device
from seqatt.training.backend.threads import training_threads
from seqatt.training.build import StreamSource, TrainingSetup, make_trial_groups
from seqatt.training.defaults import (
    evaluation_learning_rate,
    evaluation_noise,
    evaluation_steps,
    resolve_batch_size,
    resolve_stream_budget,
)
from seqatt.training.loop import TrainingHook, train
from seqatt.training.model_factory import largest_product
from seqatt.training.options import TrainingOptions
from seqatt.training.schedule import cosine_schedule
from seqatt.training.trial_group import TrialGroup
from seqatt.validation import check_option_names, check_seeds

__all__ = ["EvaluateOptions", "Evaluation", "evaluate"]


class EvaluateOptions(DataOptions, total=False):
    """Options of ``evaluate`` for editors and type checkers; tests/test_options.py compares the names."""

    epochs: float | None
    batch_size: int | None
    learning_rate: float
    activation: str
    dropout: float
    input_dropout: float | None
    label_smoothing: float
    batch_norm: bool
    embedding_dim: int | None
    model: nn.Module | Callable[[int, int], nn.Module] | None
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None
    optimizer: Callable[[Any], torch.optim.Optimizer] | None


def evaluate(
    X_train: Any,
    y_train: Any = None,
    X_test: Any = None,
    y_test: Any = None,
    indices: Selection | Sequence[int | str] | None = None,
    *,
    target: str | None = None,
    hidden: Sequence[int] = (67,),
    seeds: Sequence[int] = range(5),
    device: str = "auto",
    progress: bool = False,
    task: str | None = None,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    missing_indicator: bool = False,
    max_categories: int = 64,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Train a network on the selected features alone and report its metrics on the test rows.

    One network is trained per seed, all of them together. Standardisation, categories and weights are fitted on the
    training rows. Metrics: accuracy for classes (for two classes also AUC and log loss, for several labels the share
    of correct labels), R² and RMSE for numbers.

    Parameters
    ----------
    X_train, X_test : tables or files, as in ``select``
        Training rows and test rows, with the same columns. Of files, only the selected columns are read; files that do
        not fit in memory are read batch by batch.
    y_train, y_test : targets, as in ``select``, or the name of the column to predict
        With a name, ``y_test`` is not needed.
    indices : Selection, sequence of int, str or bool, or None, default None
        The selected columns: a selection, positions, names or a mask; None is all columns.
    target : str, optional
        The name of the column to predict, in place of ``y_train`` and ``y_test``.
    hidden : sequence of int, default (67,)
        Widths of the hidden layers.
    seeds : sequence of int, default 0 to 4
        One network per seed.
    device : str, default "auto"
        "auto" is CUDA where there is one, else "cpu".
    progress : bool, default False
        Show a progress bar on the terminal or in a notebook.
    task, sample_weight, class_weight, missing_indicator, max_categories :
        As in ``select``. Weights apply to training rows only.
    **options
        ``epochs``, ``batch_size``, ``learning_rate``, ``activation``, ``dropout``, ``input_dropout``,
        ``label_smoothing``, ``batch_norm``, ``embedding_dim``, ``model``, ``loss`` and ``optimizer``, and the options
        about columns and files, as in ``select``; docs/guide.md has their defaults in an evaluation.

    Returns
    -------
    Evaluation
        Metrics by name, one value per seed.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import seqatt
    >>> X, y = load_wine(return_X_y=True)
    >>> result = seqatt.evaluate(X[::2], y[::2], X[1::2], y[1::2], [0, 6, 9], seeds=[0])
    >>> bool(result["accuracy"][0] > 0.8)
    True
    """
    seeds = check_seeds(seeds)
    if X_test is None:
        raise TypeError("X_test: test rows are needed, such as X_test=test")
    if target is not None:
        if y_train is not None or y_test is not None:
            raise TypeError("target: names the column to predict; pass either target or y_train and y_test")
        y_train = target if isinstance(target, str) else str(plain_name(target))
    for argument, X in (("X_train", X_train), ("X_test", X_test)):
        if are_batches(X):
            raise TypeError(
                f"{argument}: must be a table or files; gather the batches of a DataLoader into arrays"
            )
    about_data = {
        "task": task,
        "sample_weight": sample_weight,
        "class_weight": class_weight,
        "missing_indicator": missing_indicator,
        "max_categories": max_categories,
    }
    given, data_options = _read_options({**options, "hidden": hidden}, about_data, files=are_files(X_train))
    torch_device = resolve_device(device)
    own_model = given.get("model") is not None
    categories: Categories = "one_hot" if own_model else "mixed"
    if are_files(X_train):
        assert isinstance(data_options, FileOptions)
        data, test, source = _read_files(X_train, y_train, X_test, y_test, indices, data_options, categories)
    else:
        data, test = _read_tables(X_train, y_train, X_test, y_test, indices, data_options, categories)
        source = None
    checked = TrainingOptions(
        **_default_options(data, given) | {name: value for name, value in given.items() if value is not None}
    )
    batch_size, passes = resolve_batch_size(data.rows, checked.batch_size), 1
    steps = evaluation_steps(data.rows, batch_size, checked.epochs)
    if source is not None:
        batch_size, passes, steps = resolve_stream_budget(data.rows, steps, 1, checked.batch_size)
    dropout = checked.input_dropout or 0.0
    setup = TrainingSetup(batch_size, steps, passes, input_dropout=dropout, rescale=False)
    with (
        training_threads(largest_product(data, checked, batch_size), torch_device) as threads,
        progress_bar("Evaluation", steps, shown=progress) as advance,
    ):
        groups = make_trial_groups(data, seeds, checked, torch_device, setup, source=source)
        trained = groups if isinstance(groups, list) else []
        trainable = groups if isinstance(groups, list) else _keep(groups, trained)
        train(trainable, cosine_schedule(steps), TrainingHook(advance), threads)
        outputs, targets = predict(trained, test, torch_device)
    per_seed = [compute_metrics(data.target, out, targets) for out in outputs]
    values = {name: np.array([metrics[name] for metrics in per_seed]) for name in per_seed[0]}
    return Evaluation(values, seeds)


def _keep(groups: Iterable[TrialGroup], kept: list[TrialGroup]) -> Iterator[TrialGroup]:
    """The groups, each of which is also appended to ``kept``."""
    for group in groups:
        kept.append(group)
        yield group


def _read_options(
    given: dict[str, Any], about_data: dict[str, Any], *, files: bool
) -> tuple[dict[str, Any], TableOptions]:
    """The given options of training, and all options of the data, checked before any work."""
    data_class = FileOptions if files else TableOptions
    of_training = names_of(TrainingOptions)
    of_data = [name for name in names_of(data_class) if name != "groups"]
    check_option_names("evaluate", given, of_training, of_data)
    training = {name: value for name, value in given.items() if name in of_training}
    TrainingOptions(**training)
    others = {name: value for name, value in given.items() if name not in of_training}
    return training, data_class(**about_data | others)


def _default_options(data: TableData | FileData, given: dict[str, Any]) -> dict[str, Any]:
    """Defaults that follow the data and differ from those of ``select``; the same for every selection."""
    noise = evaluation_noise(data.rows)
    defaults = {"learning_rate": evaluation_learning_rate(data.rows), "input_dropout": noise}
    # Not with two classes: smoothed labels would spoil the probabilities that log loss measures.
    if data.target.task == "multiclass" and given.get("loss") is None:
        defaults["label_smoothing"] = noise
    return defaults


def _read_tables(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    indices: Any,
    options: TableOptions,
    categories: Categories,
) -> tuple[TableData, RowBlocks]:
    """The selected columns of the training rows and of the test rows."""
    arguments = "X_train", "y_train"
    roles = read_columns(
        X_train, y_train, options.sample_weight, options.ignore, options.column_types, arguments
    )
    y_test = y_train if y_test is None and isinstance(y_train, str) else y_test
    test = read_test_table(X_test, y_test, options, y_train if isinstance(y_train, str) else None)
    columns = sorted(_find_columns(roles.table, indices))  # the order of selection must not matter
    check_same_columns(roles.table, test.table, ("X_train", "X_test"))
    train_table = roles.table.select(columns)
    names = set(train_table.names)
    options = replace(
        options,
        sample_weight=roles.sample_weight,
        ignore=(),
        column_types={},
        log1p=only_columns(options.log1p, names),
    )
    data = read_table(train_table, roles.y, options, categories, by_name=False, arguments=arguments)
    return data, test.select(columns, data)


def _find_columns(table: InputTable, indices: Selection | Sequence[int | str] | None) -> list[int]:
    if indices is None:
        return list(range(len(table.names)))
    columns = find_positions(
        indices,
        table.names,
        named=table.named,
        kind="column",
        argument="indices",
        table="X_train",
        given_names=[table.given_names.get(name, name) for name in table.names],
    )
    if not columns:
        raise ValueError("indices: at least one feature is needed")
    return columns


def _read_files(
    X_train: Any,
    target: Any,
    X_test: Any,
    y_test: Any,
    indices: Any,
    options: FileOptions,
    categories: Categories,
) -> tuple[TableData | FileData, RowBlocks, StreamSource | None]:
    """The selected columns of the training files, as a table if that fits in memory, and those of the test files."""
    if not are_files(X_test):
        raise TypeError("X_test: must be files, as X_train is")
    if y_test is not None and not (isinstance(y_test, str) and y_test == target):
        raise TypeError("y_test: is not for files; y_train names the column of both")
    skip = options.on_bad_file == "skip"
    files = open_files(X_train, "X_train", skip=skip, delimiter=options.delimiter)
    targets = split_target(files, target)
    options = ignore_unselected(files, targets, indices, options)
    encoding = ONE_HOT if categories == "one_hot" else EMBEDDED
    reading = read_files(
        files, target, options, categories, encoding=encoding, ranks=SINGLE_PROCESS, by_name=False
    )
    test_files = open_files(X_test, "X_test", skip=skip, delimiter=options.delimiter)
    data, source = reading.data, None
    if isinstance(data, FileData):
        data, source = make_source(data, options, SINGLE_PROCESS, hold_out=False)
    return data, read_test_files(data, test_files, targets, files, options), source
