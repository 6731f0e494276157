"""``compare``: every method on the same rows, each cell run once and written down."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqatt.api.evaluate import evaluate
from seqatt.api.select import select
from seqatt.comparison.comparison import Comparison
from seqatt.comparison.runs import ALL, ComparisonRun, run_keys
from seqatt.comparison.setup import ComparisonSetup, SplitData, prepare
from seqatt.comparison.storage import FILE, open_folder
from seqatt.data.tables.table_data import Groups
from seqatt.progress import progress_bar
from seqatt.selection import describe_environment


def compare(
    X: Any,
    y: Any,
    k: int | float | Sequence[int | float],
    *,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] = range(5),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    test_size: float | int = 0.25,
    stratify: bool | None = None,
    split_groups: Any = None,
    X_test: Any = None,
    y_test: Any = None,
    metric: str | None = None,
    device: str = "auto",
    progress: bool = False,
    out: str | os.PathLike[str] | None = None,
    task: str | None = None,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    groups: Groups | None = None,
    missing_indicator: bool = False,
    max_categories: int = 64,
) -> Comparison:
    """Compare ways to choose features on your own data, by how a network does with them on unseen rows.

    Every seed draws its own test rows. On the others each method chooses, for each ``k`` afresh, and
    ``evaluate``'s fixed recipe trains a network on the chosen features alone; the test rows judge it. A
    method that fails is reported and the others go on. Ctrl-C returns what was finished.

    Parameters
    ----------
    X, y : as in ``select``.
    k : how many features, or which fraction of them; one or several.
    methods : names from ``methods()``; "all" adds every feature as a reference. By default the usual ones.
    seeds : each is a split, a selection and a network.
    options : ``{method: {option: value}}``, as ``select`` takes them.
    test_size, stratify : share (or number) of rows to test on; classes are stratified unless False.
    split_groups : one value a row (a patient, a day): rows with the same value stay on one side. As large a
        share of the groups is drawn as ``test_size`` is of the rows.
    X_test, y_test : test rows of your own, instead of splits; columns of the same names and kinds as X.
    metric : accuracy, auc, log_loss, r2 or rmse; by default the first that the target has.
    device, progress : as in ``select``.
    out : folder for ``comparison.json``, written after every run; the same call goes on where it stopped,
        and methods, k and seeds may be added.
    task, sample_weight, class_weight, groups, missing_indicator, max_categories : as in ``select``, the
        same for every method. Weights count in training; test rows count alike.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import seqatt
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> comparison = seqatt.compare(X, y, k=4, methods=["linear_omp", "random"], seeds=range(2))
    >>> comparison.best()
    'linear_omp'

    References
    ----------
    Nadeau, Bengio: Inference for the Generalization Error, Machine Learning 52, 2003: how differences over
    splits that share rows are judged.
    """
    about_table = {
        "task": task,
        "sample_weight": sample_weight,
        "class_weight": class_weight,
        "groups": groups,
        "missing_indicator": missing_indicator,
        "max_categories": max_categories,
    }
    contest = prepare(
        X,
        y,
        k,
        methods=methods,
        seeds=seeds,
        options=options,
        test=(X_test, y_test),
        test_size=test_size,
        stratify=stratify,
        split_groups=split_groups,
        metric=metric,
        device=device,
        about_table=about_table,
    )
    folder = None if out is None else Path(out)
    cells = [] if folder is None else open_folder(folder, contest.settings)
    return _run(contest, cells, folder, progress)


def _run(
    contest: ComparisonSetup, cells: list[ComparisonRun], folder: Path | None, progress: bool
) -> Comparison:
    """Add the cells that are not there yet; the comparison grows with ``cells``."""
    settings = contest.settings
    comparison = Comparison(cells, settings, describe_environment(settings["device"]))
    done = {cell.key for cell in cells}
    wanted = run_keys(*(settings[name] for name in ("methods", "k", "seeds", "features")))
    todo = [key for key in wanted if key not in done]
    seed, rows = -1, None
    if folder is not None:
        _insist_on_writing(comparison, folder)
    try:
        with progress_bar("Comparing", len(wanted), shown=progress) as advance:
            advance(len(wanted) - len(todo))
            for key in todo:
                if rows is None or key[2] != seed:
                    seed, rows = key[2], contest.rows(key[2])
                advance(0, f"{key[0]}, k = {key[1]}, seed {seed}")
                cells.append(_run_cell(contest, key, *rows))
                if folder is not None:
                    comparison.save(folder / FILE)
                advance(1)
    except KeyboardInterrupt:
        if not cells:
            raise
    return comparison


def _insist_on_writing(comparison: Comparison, folder: Path) -> None:
    """Before hours of work."""
    try:
        comparison.save(folder / FILE)
    except OSError as error:
        raise ValueError(f"out: cannot write to {folder} ({error.strerror})") from None


def _run_cell(
    contest: ComparisonSetup, key: tuple[str, int, int], train: SplitData, test: SplitData
) -> ComparisonRun:
    method, k, seed = key
    shared = contest.about_table | {"sample_weight": train.weights, "device": contest.settings["device"]}
    features: list[str] = []
    seconds, chosen = 0.0, None
    try:
        if method != ALL:
            own = contest.options.get(method, {})
            chosen = select(train.table, train.labels, k, method=method, seed=seed, **shared, **own)
            features, seconds = chosen.features, chosen.seconds
        shared.pop("groups")
        result = evaluate(train.table, train.labels, test.table, test.labels, chosen, seeds=[seed], **shared)
    except Exception as error:  # whatever a method raises, the others are still worth running
        return ComparisonRun(method, k, seed, features, seconds=seconds, error=_one_line(error))
    metrics = {name: float(result[name][0]) for name in result}
    known = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
    return ComparisonRun(method, k, seed, features, known, seconds)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__
