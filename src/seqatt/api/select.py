"""``select`` and ``select_trials``: select features with any method, once or once per seed."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any, Unpack

from seqatt.algorithms.registry import SelectionRequest, get_method
from seqatt.api.select_options import SelectOptions, describe_options
from seqatt.data.tables.options import TableOptions
from seqatt.data.tables.table_data import read_table_data, resolve_k
from seqatt.options import Options, fill_in_options, names_of
from seqatt.progress import progress_bar
from seqatt.selection import Selection, TrainingDiverged, describe_environment, make_selection
from seqatt.training.backend.device import resolve_device
from seqatt.training.kernels import start_device
from seqatt.training.loop import Diverged
from seqatt.training.options import TrainingOptions
from seqatt.validation import check_option_names, check_seeds

__all__ = ["TrainingDiverged", "are_files", "make_options", "select", "select_trials"]

TABLE_OPTIONS = names_of(TableOptions)


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
    **options: Unpack[SelectOptions],
) -> Selection:
    """Select the ``k`` features of ``X`` that are most useful to a neural network that predicts ``y``.

    Sequential Attention trains a network. Feature i enters scaled by ``a_i``: 1 if it is selected, else
    ``exp(w_i) / sum_j exp(w_j)`` over the unselected features, with trained logits w. At the end of each phase the
    unselected feature with the largest logit is selected, and the logits are reset. Other methods: ``method``.

    Parameters
    ----------
    X : array, DataFrame (pandas, polars, Arrow) or sparse matrix of shape (rows, columns); or files
        Files are a path, a pattern such as "clicks/*.parquet", a folder, a URL, or a list of these. They are read a
        batch at a time: docs/streaming.md.
    y : array-like of shape (rows,) or (rows, outputs)
        Target: classes of any type, numbers, or several columns of either 0/1 or numbers.
    k : int or float
        Number of features; a float up to 1 is a fraction of them.
    target : str, optional
        With files, the name of the column to predict.
    method : str, default "sequential_attention"
        One of ``seqatt.methods()``; docs/methods.md describes each.
    seed : int, default 0
        The same seed gives the same result.
    device : str, default "auto"
        "auto" is CUDA where there is one, else "cpu".
    progress : bool, default False
        Show a progress bar on the terminal.
    **options
        Options of the table and of the method, by name; those of files are in docs/streaming.md.

        {options}

    Returns
    -------
    Selection
        The features in the order of selection, with their scores, the scores of every phase and the settings.

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


select.__doc__ = fill_in_options(select.__doc__, describe_options())


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
    **options: Unpack[SelectOptions],
) -> list[Selection]:
    """``select`` with several seeds, trained together: result i is the same as that of ``select(seed=seeds[i])``."""
    if k is None:
        raise TypeError("k: the number of features to select is needed, such as k=10")
    seeds = check_seeds(seeds)
    if are_files(X):
        from seqatt.streaming.select_files import (
            select_files,
        )  # here, because only files need pyarrow's readers

        return select_files(
            X,
            y if target is None else target,
            k,
            seeds=seeds,
            method=method,
            device=resolve_device(device),
            progress=progress,
            options=dict(options),
        )
    if target is not None:
        raise TypeError("target: names a column of files; for a table in memory, pass the target as y")
    registered = get_method(method)
    method_options, table_options = make_options(method, dict(options))
    resolved_device = resolve_device(device)
    if isinstance(method_options, TrainingOptions):
        start_device(resolved_device)
    own_model = getattr(method_options, "model", None) is not None
    given = {name: getattr(table_options, name) for name in TABLE_OPTIONS}
    data = read_table_data(X, y, by_name=not own_model, **given)
    request = SelectionRequest(data, resolve_k(k, data.features), seeds, method_options, resolved_device)
    plan = registered.plan(request)
    started = time.perf_counter()
    try:
        with progress_bar(registered.title, plan.steps, shown=progress) as advance:
            traces = registered.select(request, plan, advance)
        diverged = None
    except Diverged as error:
        # Of a surplus that was not removed yet, only the first k features are part of the result.
        traces = [
            dataclasses.replace(t, order=t.order[: request.k], rest=t.order[request.k :] + t.rest)
            for t in error.traces
        ]
        diverged = error
    seconds = time.perf_counter() - started
    facts = {"k": request.k, "task": data.target.task, "rows": data.rows}
    settings = facts | table_options.to_settings() | plan.settings
    environment = describe_environment(str(resolved_device))
    selections = [
        make_selection(
            data,
            trace,
            method=method,
            seed=seed,
            settings=settings | trace.settings,
            environment=environment,
            seconds=seconds,
        )
        for seed, trace in zip(seeds, traces, strict=True)
    ]
    if diverged is not None:
        raise TrainingDiverged(str(diverged), selections) from None
    return selections


def are_files(X: Any) -> bool:
    """Whether ``X`` names files: a path, a pattern, a folder, a URL, or a list of these."""
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(x, str | os.PathLike) for x in X)


def make_options(method: str, options: dict[str, Any]) -> tuple[Options, TableOptions]:
    """The options of a method and those of the table, checked; an unknown option is an error."""
    options_class = get_method(method).options
    own = names_of(options_class)
    check_option_names(method, options, own, TABLE_OPTIONS)
    about_method = {name: value for name, value in options.items() if name in own}
    about_table = {name: value for name, value in options.items() if name in TABLE_OPTIONS}
    return options_class(**about_method), TableOptions(**about_table)
