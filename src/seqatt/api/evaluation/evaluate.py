"""``evaluate``: train a network on selected features alone and measure it on test rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np
import torch
from torch import nn

from seqatt.api.evaluation.held_out_rows import predict
from seqatt.api.evaluation.networks import PERCENT, evaluate_networks, trains_together
from seqatt.api.evaluation.reading import (
    EvaluationData,
    read_evaluation_files,
    read_options,
    read_tables,
    resolve_options,
)
from seqatt.api.evaluation.result import Evaluation, make_evaluation
from seqatt.api.read_data import are_batches, are_files
from seqatt.api.select_options import DataOptions
from seqatt.callbacks.monitor import Monitor, Part
from seqatt.column_names import plain_name
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.options import Categories
from seqatt.losses.loss import Metrics
from seqatt.progress import progress_bar
from seqatt.selection import Selection
from seqatt.training.backend.device import resolve_device
from seqatt.training.backend.threads import training_threads
from seqatt.training.defaults import evaluation_steps, resolve_batch_size, resolve_stream_budget
from seqatt.training.group_factory import TrainingSetup, make_trial_groups
from seqatt.training.loop import TrainingHook, train
from seqatt.training.model_factory import largest_product
from seqatt.training.options import TrainingOptions
from seqatt.training.schedule import cosine_schedule
from seqatt.training.trial_group import TrialGroup
from seqatt.validation import check_seeds


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
    inputs: Literal["columns", "raw"]
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
    seeds: int | Sequence[int] = range(5),
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
        Training rows and test rows. Columns of data frames and files are matched by name: test rows need the selected
        ones, and may have others, in any order. Of files, only the selected columns are read; files that do not fit in
        memory are read batch by batch.
    y_train, y_test : targets, as in ``select``, or the name of the column to predict
        With a name, ``y_test`` is not needed.
    indices : Selection, sequence of int, str or bool, or None, default None
        The selected columns: a selection, positions, names or a mask; None is all columns.
    target : str, optional
        The name of the column to predict, in place of ``y_train`` and ``y_test``.
    hidden : sequence of int, default (67,)
        Widths of the hidden layers.
    seeds : int or sequence of int, default 0 to 4; a number is how many from 0 on
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
        about columns and files, as in ``select``; docs/how_to/trusting_the_answer.md has the recipe.

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
    given, data_options = read_options({**options, "hidden": hidden}, about_data, files=are_files(X_train))
    torch_device = resolve_device(device)
    categories: Categories = "mixed"
    if given.get("batch_norm") or any(given.get(code) is not None for code in ("model", "loss", "optimizer")):
        categories = "codes" if given.get("inputs") == "raw" else "one_hot"
    by_name = given.get("model") is None  # a user's own network gets the columns in their order
    # The selected features predict all columns.
    reconstruct = task == "reconstruction"
    rows = X_train, y_train, X_test, y_test, None if reconstruct else indices
    if are_files(X_train):
        assert isinstance(data_options, FileOptions)
        reading = read_evaluation_files(*rows, data_options, categories, by_name=by_name)
    else:
        reading = read_tables(*rows, data_options, categories, by_name=by_name)
    checked = resolve_options(reading.data, given)
    features = np.arange(reading.data.features)
    if reconstruct:
        torch_device = torch.device("cpu")
        if not trains_together(reading, checked, torch_device):
            raise ValueError(
                "task: 'reconstruction' is evaluated by the built-in network without dropout; leave model, loss, "
                "optimizer, batch_norm and dropout out"
            )
        features = reading.find_features(indices)
    if trains_together(reading, checked, torch_device):
        with progress_bar("Evaluation", PERCENT, shown=progress) as advance:
            evaluated = [(features, seed) for seed in seeds]
            measure = partial(reading.data.target.loss.measure, reading.data.target)
            results = evaluate_networks(reading, checked, evaluated, advance, measure)
        return make_evaluation(results, seeds)
    return make_evaluation(_train_trial_groups(reading, checked, seeds, torch_device, progress), seeds)


def _train_trial_groups(
    reading: EvaluationData, options: TrainingOptions, seeds: list[int], device: torch.device, progress: bool
) -> list[Metrics]:
    """Metrics per seed of a user's own model, on an accelerator, or on files that are read batch by batch."""
    data, test, source = reading.data, reading.test, reading.source
    batch_size, passes = resolve_batch_size(data.rows, options.batch_size), 1
    steps = evaluation_steps(data.rows, batch_size, options.epochs)
    if source is not None:
        batch_size, passes, steps = resolve_stream_budget(data.rows, steps, 1, options.batch_size)
    dropout = options.input_dropout or 0.0
    setup = TrainingSetup(batch_size, steps, passes, input_dropout=dropout, rescale=False)
    with (
        training_threads(
            largest_product(data, options, batch_size), device, own_model=options.model is not None
        ) as threads,
        progress_bar("Evaluation", steps, shown=progress) as advance,
    ):
        groups = make_trial_groups(data, seeds, options, device, setup, source=source)
        trained = groups if isinstance(groups, list) else []
        trainable = groups if isinstance(groups, list) else _keep(groups, trained)
        train(trainable, cosine_schedule(steps), TrainingHook(Part(Monitor(bar=advance))), threads)
        outputs, targets = predict(trained, test, device)
    return [data.target.loss.measure(data.target, out, targets) for out in outputs]


def _keep(groups: Iterable[TrialGroup], kept: list[TrialGroup]) -> Iterator[TrialGroup]:
    """Yield the groups, and append each to ``kept``."""
    for group in groups:
        kept.append(group)
        yield group
