"""``select`` and ``select_trials``: select features with any method, once or once per seed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Unpack

from seqatt.algorithms.answer_options import check_method, needs_k
from seqatt.algorithms.registry import get_method
from seqatt.api.select_options import SelectOptions, describe_options, make_options
from seqatt.callbacks.callback import Callback, check_callbacks
from seqatt.data.files.options import FileOptions
from seqatt.options import fill_in_options
from seqatt.progress import Timings, progress_bar
from seqatt.training.options import TrainingOptions
from seqatt.validation import check_seeds

if TYPE_CHECKING:
    from seqatt.selection import Selection


def select(
    X: Any,
    y: Any = None,
    k: int | float | str | None = None,
    *,
    target: str | None = None,
    method: str = "sequential_attention",
    seed: int = 0,
    device: str = "auto",
    progress: bool = False,
    callbacks: Sequence[Callback] = (),
    **options: Unpack[SelectOptions],
) -> Selection:
    """Select the ``k`` features of ``X`` that are most useful to a neural network that predicts ``y``.

    Sequential Attention trains a network. Feature i enters scaled by ``a_i``: 1 if it is selected, else
    ``exp(w_i) / sum_j exp(w_j)`` over the unselected features, with trained logits w. At the end of each phase the
    unselected feature with the largest logit is selected, and the logits are reset. Other methods: ``method``.

    Parameters
    ----------
    X : array, DataFrame (pandas, polars, Arrow) or sparse matrix of shape (rows, columns); or files
        Files are a path, a pattern such as ``"clicks/*.parquet"``, a folder, a URL, or a list of these. They are read
        into memory if they fit, else batch by batch: docs/streaming.md. A ``torch.utils.data.DataLoader``, or any
        iterable of batches (features, target) with a length, is read likewise. So are a polars LazyFrame, a DuckDB
        relation, and Datasets and record-batch readers of Arrow: docs/how_to/data_sources.md.
    y : array-like of shape (rows,) or (rows, outputs), or str
        Target: classes of any type, numbers, or several columns of either 0/1 or numbers; or the name of a column.
    k : int, float or "auto"
        Number of features; a float up to 1 is a fraction of them; "auto" finds out how many are needed. With ``fdr``
        or ``costs`` it is the most that may be chosen, and None is no bound.
    target : str, optional
        The name of the column of a data frame or of files to predict, in place of ``y``.
    method : str, default "sequential_attention"
        One of ``seqatt.methods()``; docs/methods.md describes each.
    seed : int, default 0
        The same seed gives the same result.
    device : str, default "auto"
        "auto" is CUDA where there is one, else "cpu".
    progress : bool, default False
        Show on the terminal or in a notebook how far it is, and what is selected so far. The logger "seqatt" logs
        it at level INFO.
    callbacks : sequence of Callback, default ()
        Called while it runs; they may stop it, and never change what is selected: docs/how_to/callbacks.md.
    **options
        Options of the table and of the method, by name; those of files are in docs/streaming.md.

        {options}

    Returns
    -------
    Selection
        The features, those most useful first, with their scores, the scores of every phase and the settings.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import seqatt
    >>> data = load_breast_cancer(as_frame=True)
    >>> selection = seqatt.select(data.data, data.target, k=3)
    >>> len(selection.features)
    3

    References
    ----------
    Yasuda, Bateni, Chen, Fahrbach, Fu, Mirrokni: Sequential Attention for Feature Selection, ICLR 2023.
    """
    if "seeds" in options:
        raise TypeError("select has no option 'seeds'; did you mean 'seed'? Call it once per seed")
    return select_trials(
        X,
        y,
        k,
        target=target,
        seeds=[seed],
        method=method,
        device=device,
        progress=progress,
        callbacks=callbacks,
        **options,
    )[0]


select.__doc__ = fill_in_options(select.__doc__, describe_options())


def select_trials(
    X: Any,
    y: Any = None,
    k: int | float | str | None = None,
    *,
    target: str | None = None,
    seeds: int | Sequence[int] = range(5),
    method: str = "sequential_attention",
    device: str = "auto",
    progress: bool = False,
    callbacks: Sequence[Callback] = (),
    **options: Unpack[SelectOptions],
) -> list[Selection]:
    """``select`` with several seeds, trained together: result i is the same as that of ``select(seed=seeds[i])``.

    ``seeds`` may also be how many of them, from 0 on. With callbacks, seeds are selected one after another.
    """
    timings, first = Timings(), "torch" not in sys.modules
    # Here, so that the seconds of a first selection are all that its call takes.
    from seqatt.api import read_data
    from seqatt.training.backend.device import resolve_device
    from seqatt.training.kernels import start_device

    if first:
        timings.end("import")
    watching = check_callbacks(callbacks)
    if k is None and needs_k(options):
        raise TypeError("k: the number of features to select is needed, such as k=10")
    seeds = check_seeds(seeds)
    registered = get_method(method)
    given: dict[str, Any] = dict(options)
    as_given = X, target
    batches = y is None and target is None and read_data.are_batches(X)
    if batches:
        from seqatt.data.files.streams import TARGET, WEIGHTS, open_batches

        X, target = open_batches(X), TARGET
        given |= {"sample_weight": WEIGHTS} if WEIGHTS in X.types else {}
    files = read_data.are_files(X)
    checked = make_options(method, given, files=files)
    auto = checked.answer.check_k(k)
    if checked.answer.fdr is not None:
        # Here, because only it needs scipy.linalg.
        from seqatt.api.knockoffs.discoveries import check_arguments

        check_arguments(checked.answer, k, checked.method.model)
    if auto:
        check_method(registered)
    answer = checked.answer
    if len(seeds) > 1 and watching and checked.checkpoints.checkpoint is not None:
        raise ValueError(
            "callbacks: with a checkpoint they need a single seed; call select once per seed, each with a folder"
        )
    if files:
        from seqatt.api.read_files import open_rows, read_files  # here, because only files need pyarrow

        assert isinstance(checked.data, FileOptions)
        X = open_rows(X, read_data.choose_target(y, target, files=True), checked.data)
    # Each seed has its own k, halves of the rows, knockoffs, search within a budget, or calls of callbacks.
    if len(seeds) > 1 and (auto or answer.repeats or answer.fdr or answer.has_budget or watching):
        X, target = as_given if batches else (X, target)  # queries are read once
        alone: dict[str, Any] = {
            "target": target,
            "method": method,
            "device": device,
            "progress": progress,
            "callbacks": callbacks,
            **options,
        }
        return [select_trials(X, y, k, seeds=[seed], **alone)[0] for seed in seeds]
    resolved_device = resolve_device(device)
    if isinstance(checked.method, TrainingOptions):
        start_device(resolved_device)
    timings.end("read" if files else "prepare")
    # A GPU starts while the rest is imported and the table is read.
    from seqatt.api.run import Run
    from seqatt.callbacks.monitor import Monitor
    from seqatt.distributed.process_group import ProcessGroup, device_of_rank

    if first:
        timings.end("import")
    y = read_data.choose_target(y, target, files=files)
    own_inputs, by_name = checked.method.own_inputs, checked.method.model is None
    categories = read_data.categories_for(registered, own_inputs)
    run = Run(
        registered, seeds, checked, device_of_rank(resolved_device) if files else resolved_device, timings
    )
    with ExitStack() as stack:
        if files:
            run.ranks = stack.enter_context(
                closing(ProcessGroup(run.device, checked.checkpoints.rank_timeout))
            )
        shown = progress and run.ranks.rank == 0
        called = watching if run.ranks.rank == 0 else ()
        run.monitor = Monitor(called, method, seeds[0], alone=run.ranks.size == 1)
        stack.enter_context(run.watched())
        advance = stack.enter_context(progress_bar("Reading" if files else "Preparing", None, shown=shown))
        if files:

            def when_read() -> None:
                timings.end("read")
                advance(0, "Preparing")

            reading = read_files(
                X,
                y,
                run.file_options,
                categories,
                encoding=read_data.stream_encoding_for(registered, own_inputs),
                ranks=run.ranks,
                by_name=by_name,
                seed=seeds[0],
                when_read=when_read,
            )
        else:
            arguments = ("X", "y" if target is None else "target")
            table = read_data.read_table(X, y, checked.data, categories, by_name=by_name, arguments=arguments)
            reading = read_data.Reading(table)
        if isinstance(y, str) and not batches:  # the targets of batches have no name
            reading.facts["target"] = y
        reading = reading.with_latest_rows()
        select_features, request = stack.enter_context(run.open(reading, k, advance))
        run.finish(run.examine(request, select_features()))
    return run.selections
