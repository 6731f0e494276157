"""The functions people call: ``select`` and ``select_trials``."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seqatt.algorithms.registry import METHODS, SelectionRequest
from seqatt.data.tables.table_data import read_table_data, resolve_k
from seqatt.selection import Selection, Trace, TrainingDiverged, describe_environment, make_selection
from seqatt.training.backend.device import start_device
from seqatt.training.loop import Diverged, resolve_device
from seqatt.training.options import TrainingOptions, check_seeds, insist_on_known

__all__ = [
    "TrainingDiverged",
    "are_files",
    "make_options",
    "plain",
    "record_table",
    "select",
    "select_trials",
]

TABLE_OPTIONS = (
    "sample_weight",
    "class_weight",
    "groups",
    "task",
    "missing_indicator",
    "max_categories",
)


def select(
    X: Any,
    y: Any = None,
    k: int | float | None = None,
    *,
    target: str | None = None,
    method: str = "sequential_attention",
    seed: int = 0,
    device: str = "auto",
    progress: bool = False,
    **options: Any,
) -> Selection:
    """Choose the ``k`` features of ``X`` that serve a neural network for ``y`` best.

    Sequential Attention trains a network. Feature i enters scaled by ``a_i``: 1 if already chosen,
    else ``exp(w_i) / sum_j exp(w_j)`` over the unchosen, with trained logits w. At the end of each
    phase the unchosen feature with the largest logit is chosen and the logits start afresh.

    Parameters
    ----------
    X : array, DataFrame (pandas, polars, Arrow) or sparse matrix, one row an example; or files (a path, a
        pattern such as "clicks/*.parquet", a folder, a list), which are read once, a batch at a time, with
        options of their own: docs/streaming.md.
    y : target; classes (of any type), numbers, or several columns of either 0/1 or numbers.
    target : with files, the column to predict.
    k : how many features, or which fraction of them (a float up to 1).
    method : one of ``seqatt.methods()``; ``seqatt methods`` on the command line says what each does, and
        docs/methods.md what else it can be told. The options below are Sequential Attention's, as far as
        nothing else is said.
    seed, device, progress : one seed gives one answer; "auto" is CUDA where there is one; a bar on the
        terminal.
    epochs, batch_size, learning_rate : training length and pace; by default the length follows the
        size of the table (see the guide).
    hidden, activation, dropout, batch_norm : the built-in MLP.
    input_dropout : share of inputs left out at random in training; by default the square root of
        columns / rows where that is 0.15 or more, 0.6 at most; none for fewer than 32 rows.
    label_smoothing : share of a label that is given to all classes alike in training.
    model, loss, optimizer : your own nn.Module (or a function ``(columns, outputs) -> nn.Module``),
        loss ``(outputs, targets)`` and optimizer ``parameters -> torch.optim.Optimizer``.
    mask : softmax, l1, l2, l1_normalised or l2_normalised; ``temperature`` is the softmax's.
    ensemble : models whose evidence is pooled before each choice; they share the training budget, and
        each is judged on rows it has not seen. Scores are then means of standardised logits; with 1, and no
        evidence, the logits themselves. By default 4, and 1 for your own model, for tables of fewer than 32
        rows and for ``one_pass=False``. On files each sees all rows, and there are 4, 2 or 1, the fewer the
        more rows there are. 1 is the paper's.
    surplus : how many times k features are chosen before the least useful are dropped again; by default 2.
        1 is the paper's.
    features_per_phase : how many are chosen at the end of a phase; by default 1 without a surplus, with
        one of 2 two, and more where that would be over 50 phases.
    warmup : share of training before the first phase, on all features at full weight.
    replacement : rounds that drop the least useful tenth of the chosen features and choose again,
        within the same budget; by default one for every three features, 5 at most.
    weight_decay : pull, at every step, of the first-layer weights of unselected features towards zero
        (Definition 3.1's penalty), in the built-in network and in modules that start with a Linear
        layer; by default 3 / rows, 0.1 at most.
    evidence : how far what a feature says about the target by itself, tested against chance, counts beside
        the logits, in powers of ten of the false discovery rate; by default ``10 sqrt(2 log(columns) /
        rows)``, from 2 to 4, and 0 for fewer than 32 rows and for ``one_pass=False``. What a feature falls
        short of it counts up to three times if it has nothing to do with those chosen. 0 is the paper's.
    squash : train on asinh of the standardised numbers, so that far-out values are no lever to fit single
        rows; by default where there are more columns than rows, but not for your own model, for a linear
        one (``hidden=()``) or for ``one_pass=False``. False is the paper's.
    one_pass : False is Algorithm 1 as printed, a fresh model in full for every choice.
    reset_model : in one pass, start each phase from fresh model weights too.
    sample_weight, class_weight : weights of rows, and of classes ("balanced" or a dict).
    groups : ``{name: columns}`` to be chosen together, as one feature.
    task : binary, multiclass, multilabel or regression, where ``y`` does not tell.
    missing_indicator, max_categories : add a column that marks missing values; categories kept.
    parameterisation : of ``method="linear_attention"``, linear or softmax.
    bins, lazy : of "cmim"; neighbors, n_jobs : of "mutual_information"; trees, n_jobs : of "forest";
        library, iterations, learning_rate, n_jobs : of "boosting".
    hierarchy : of ``method="lassonet"``, its M: how far a feature may enter the hidden layer for its skip.
    folds : of ``method="greedy"``, how many fifths of the rows are held out, one after the other.
    reconstruct, temperatures : of ``method="concrete_autoencoder"``, learn to give back the table instead
        of the target; the first and the last temperature.
    penalty : of methods that have one, its strength; by default chosen on rows kept aside. ``sigma`` is the
        noise of stochastic_gates, ``attention_width`` the attending network's of batch_attention.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import seqatt
    >>> data = load_breast_cancer(as_frame=True)
    >>> selection = seqatt.select(data.data, data.target, k=3, epochs=20)
    >>> len(selection.features)
    3

    References
    ----------
    Yasuda, Bateni, Chen, Fahrbach, Fu, Mirrokni: Sequential Attention for Feature Selection, ICLR 2023.
    """
    return select_trials(
        X, y, k, target=target, seeds=[seed], method=method, device=device, progress=progress, **options
    )[0]


def select_trials(
    X: Any,
    y: Any = None,
    k: int | float | None = None,
    *,
    target: str | None = None,
    seeds: Sequence[int] = range(5),
    method: str = "sequential_attention",
    device: str = "auto",
    progress: bool = False,
    **options: Any,
) -> list[Selection]:
    """``select`` with several seeds, trained together: trial i is what ``seed=seeds[i]`` gives alone."""
    if k is None:
        raise TypeError("k: say how many features to choose")
    if are_files(X):
        from seqatt.streaming.select_files import select_files  # readers of files are loaded for files alone

        return select_files(
            X,
            y if target is None else target,
            k,
            seeds=check_seeds(seeds),
            method=method,
            device=resolve_device(device),
            progress=progress,
            options=options,
        )
    if target is not None:
        raise TypeError("target: names a column of files; a table in memory has its target in y")
    made = make_options(method, options)
    seeds = check_seeds(seeds)
    picked = resolve_device(device)
    if isinstance(made, TrainingOptions):
        start_device(picked)
    about_table = {name: options[name] for name in TABLE_OPTIONS if name in options}
    own_model = getattr(made, "model", None) is not None
    source = read_table_data(X, y, by_name=not own_model, **about_table)
    job = SelectionRequest(
        source, resolve_k(k, source.features), seeds, made, picked, progress, record_table(about_table)
    )
    started = time.perf_counter()
    try:
        traces, resolved = METHODS[method].run(job)
    except Diverged as error:
        # A surplus that was not dropped yet is no part of the answer.
        cut = [
            dataclasses.replace(t, order=t.order[: job.k], rest=t.order[job.k :] + t.rest)
            for t in error.traces
        ]
        found = _selections(job, method, cut, error.settings, started)
        raise TrainingDiverged(str(error), found) from None
    return _selections(job, method, traces, resolved, started)


def are_files(X: Any) -> bool:
    """Whether someone means files: a path, a pattern, a folder, or a list of these."""
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(x, str | os.PathLike) for x in X)


def _selections(
    job: SelectionRequest, method: str, traces: list[Trace], resolved: dict[str, Any], started: float
) -> list[Selection]:
    seconds = time.perf_counter() - started
    about = {
        "k": job.k,
        "task": job.source.target.task,
        "rows": job.source.rows,
        **job.about_table,
        **resolved,
    }
    environment = describe_environment(str(job.device))
    return [
        make_selection(
            job.source,
            trace,
            method=method,
            seed=seed,
            settings=about | trace.settings,
            environment=environment,
            seconds=seconds,
        )
        for seed, trace in zip(job.seeds, traces, strict=True)
    ]


def record_table(about_table: dict[str, Any]) -> dict[str, Any]:
    """What was said about the table, as JSON can hold it; row weights only as a fact."""
    told = {"sample_weight": about_table.get("sample_weight") is not None}
    for name in TABLE_OPTIONS:
        if name not in ("sample_weight", "task") and about_table.get(name) is not None:
            told[name] = plain(about_table[name])
    return told


def plain(value: Any) -> Any:
    """Lists, dicts and Python's own numbers, as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=repr)  # a set's own order is another in every process
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def make_options(method: str, options: dict[str, Any]) -> Any:
    """The options of a method, checked; those about the table are left to ``read_source``."""
    if method not in METHODS:
        raise ValueError(f"method: unknown {method!r}; use one of {', '.join(METHODS)}")
    kind = METHODS[method].options
    own = [field.name for field in dataclasses.fields(kind)]
    insist_on_known(method, options, own, TABLE_OPTIONS)
    return kind(**{name: value for name, value in options.items() if name in own})
