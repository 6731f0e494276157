"""``select`` and ``select_trials``: select features with any method, once or once per seed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Any, Unpack

from seqatt.algorithms.answer_options import check_method
from seqatt.algorithms.registry import get_method
from seqatt.api.read_data import Reading, are_batches, are_files, choose_target, read_table
from seqatt.api.run import Run, categories_for, make_options, stream_encoding_for
from seqatt.api.select_options import SelectOptions, describe_options
from seqatt.distributed.process_group import ProcessGroup, device_of_rank
from seqatt.options import fill_in_options
from seqatt.progress import Timings, progress_bar
from seqatt.selection import Selection, TrainingDiverged
from seqatt.training.backend.device import resolve_device
from seqatt.training.kernels import start_device
from seqatt.training.options import TrainingOptions
from seqatt.validation import check_seeds

__all__ = ["TrainingDiverged", "make_options", "select", "select_trials"]


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
        iterable of batches (features, target) with a length, is read likewise.
    y : array-like of shape (rows,) or (rows, outputs), or str
        Target: classes of any type, numbers, or several columns of either 0/1 or numbers; or the name of a column.
    k : int, float or "auto"
        Number of features; a float up to 1 is a fraction of them; "auto" finds out how many are needed. With ``fdr``
        it is the most that may be chosen, and None is no bound.
    target : str, optional
        The name of the column of a data frame or of files to predict, in place of ``y``.
    method : str, default "sequential_attention"
        One of ``seqatt.methods()``; docs/methods.md describes each.
    seed : int, default 0
        The same seed gives the same result.
    device : str, default "auto"
        "auto" is CUDA where there is one, else "cpu".
    progress : bool, default False
        Show a progress bar on the terminal or in a notebook. The logger "seqatt" logs progress at level INFO.
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
        X, y, k, target=target, seeds=[seed], method=method, device=device, progress=progress, **options
    )[0]


select.__doc__ = fill_in_options(select.__doc__, describe_options())


def select_trials(
    X: Any,
    y: Any = None,
    k: int | float | str | None = None,
    *,
    target: str | None = None,
    seeds: Sequence[int] = range(5),
    method: str = "sequential_attention",
    device: str = "auto",
    progress: bool = False,
    **options: Unpack[SelectOptions],
) -> list[Selection]:
    """``select`` with several seeds, trained together: result i is the same as that of ``select(seed=seeds[i])``."""
    if k is None and options.get("fdr") is None:
        raise TypeError("k: the number of features to select is needed, such as k=10")
    timings = Timings()
    seeds = check_seeds(seeds)
    registered = get_method(method)
    given: dict[str, Any] = dict(options)
    if y is None and target is None and are_batches(X):
        from seqatt.data.files.batches import TARGET, WEIGHTS, open_batches

        X, target = open_batches(X), TARGET
        given |= {"sample_weight": WEIGHTS} if WEIGHTS in X.types else {}
    files = are_files(X)
    checked = make_options(method, given, files=files)
    auto = checked.answer.check_k(k)
    if checked.answer.fdr is not None:
        from seqatt.api.knockoffs.discoveries import (
            check_arguments,  # here, because only it needs scipy.linalg
        )

        check_arguments(checked.answer, k, getattr(checked.method, "model", None))
    if auto:
        check_method(registered)
    # Each seed has its own k, its own halves of the rows or its own knockoffs.
    if len(seeds) > 1 and (auto or checked.answer.repeats or checked.answer.fdr):
        alone: dict[str, Any] = {
            "target": target,
            "method": method,
            "device": device,
            "progress": progress,
            **options,
        }
        return [select_trials(X, y, k, seeds=[seed], **alone)[0] for seed in seeds]
    resolved_device = resolve_device(device)
    if isinstance(checked.method, TrainingOptions):
        start_device(resolved_device)
    y = choose_target(y, target, files=files)
    own_model = getattr(checked.method, "model", None) is not None
    categories = categories_for(registered, own_model)
    run = Run(
        registered, seeds, checked, device_of_rank(resolved_device) if files else resolved_device, timings
    )
    with ExitStack() as stack:
        if files:
            run.ranks = stack.enter_context(
                closing(ProcessGroup(run.device, checked.checkpoints.rank_timeout))
            )
        shown = progress and run.ranks.rank == 0
        advance = stack.enter_context(progress_bar("Reading" if files else "Preparing", None, shown=shown))
        if files:
            from seqatt.api.read_files import read_files  # here, because only files need pyarrow

            def when_read() -> None:
                timings.end("read")
                advance(0, "Preparing")

            reading = read_files(
                X,
                y,
                run.file_options,
                categories,
                encoding=stream_encoding_for(registered, own_model),
                ranks=run.ranks,
                by_name=not own_model,
                seed=seeds[0],
                when_read=when_read,
            )
        else:
            arguments = ("X", "y" if target is None else "target")
            table = read_table(X, y, checked.data, categories, by_name=not own_model, arguments=arguments)
            reading = Reading(table)
        select_features, request, plan = stack.enter_context(run.open(reading, k, advance))
        traces = select_features(request, plan, request.hook.advance)
        return run.finish(run.examine(request, traces, advance))
    raise AssertionError("a run ends with a result or an error")
