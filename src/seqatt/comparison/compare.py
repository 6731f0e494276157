"""``compare``: run every method on the same rows and save every run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Unpack

from seqatt.api.evaluation.networks import PERCENT
from seqatt.api.read_data import choose_target
from seqatt.api.select_options import DataOptions
from seqatt.comparison.comparison import FILE, Comparison, load_runs
from seqatt.comparison.runs import ComparisonRun, run_keys
from seqatt.comparison.setup import ComparisonSetup, prepare
from seqatt.comparison.split_runs import Selected, SplitRuns
from seqatt.data.tables.groups import Groups
from seqatt.progress import NO_DETAILS, Advance, Details, progress_bar
from seqatt.version import describe_environment

MAX_WAITING_SECONDS = 10.0  # of selections before they are evaluated: then their runs are saved


def compare(
    X: Any,
    y: Any = None,
    k: int | float | Sequence[int | float] | None = None,
    *,
    target: str | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | Sequence[int] = range(5),
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
    **data_options: Unpack[DataOptions],
) -> Comparison:
    """Compare feature selection methods by the test score of a network on the selected features.

    For every seed the rows are split into training and test rows. Each method selects features on the
    training rows for each ``k``; a network with the fixed settings of ``evaluate`` is trained on the selected
    features and scored on the test rows. An error of one method is recorded, and the other methods continue. After
    Ctrl-C, what was selected is evaluated, and the finished runs are returned.

    Parameters
    ----------
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features), or files
        The table or the files, as in ``select``. Files that fit in memory are compared as the table they make. Of
        others, every run selects and evaluates batch by batch, or on a sample if its method needs a table.
    y : array of shape (n_samples,) or (n_samples, n_targets), or str
        The target, as in ``select``, or the name of its column. ``target`` also takes that name.
    k : int, float or sequence of them
        Number of features to select, or a fraction of all features.
    methods : sequence of str, default None
        Names from ``methods()``, or names of settings in ``options``; "all" adds a reference with all features. None
        uses a default set.
    seeds : int or sequence of int, default range(5)
        Or how many from 0 on. Each seed determines one split, one selection and the training of one network.
    options : dict, default None
        Options per method, ``{method: {option: value}}``, as in ``select``. Another setting of a method has a name
        of its own, which is among the methods: ``{"paper": {"method": "sequential_attention", "recipe": "paper"}}``.
    test_size : float or int, default 0.25
        Share or number of test rows. Of files that do not fit in memory every n-th row of each row group is a test row,
        with n = ``round(1 / test_size)``; the seed decides which is the first.
    stratify : bool, default None
        Whether the splits keep the class proportions. None stratifies binary and multiclass targets, unless
        ``split_groups`` is given.
    split_groups : array of shape (n_samples,) or name of a column, default None
        Group of each row, such as a patient or a day. Rows of one group are all training or all test rows;
        the share of groups that is drawn equals the share of rows that ``test_size`` is. ``groups_of_rows`` does
        this for all rows that are held out, also within a selection.
    X_test, y_test : as X and y, default None
        Test rows to use instead of splits. Columns of data frames and files are matched by name, and have the types of
        those of X; there may be others. If y is a name, ``y_test`` is not needed.
    metric : str, default None
        Test metric to report, one of those that ``evaluate`` gives for the task; None is the first of these.
    device : str, default "auto"
        "auto", "cpu" or "cuda", as in ``select``.
    progress : bool, default False
        Whether to show a progress bar.
    out : path, default None
        Directory for ``comparison.json``, which is written whenever runs are finished. A repeated call continues from
        that file, and may add methods, k and seeds.
    task, sample_weight, class_weight, groups : default None
        As in ``select``, for all methods. Weights are used in training; test rows have equal weights.
    missing_indicator : bool, default False
        As in ``select``, for all methods.
    max_categories : int, default 64
        As in ``select``, for all methods.
    **data_options
        ``groups_of_rows``, ``time``, ``quantile``, ``ignore``, ``column_types``, ``log1p`` and ``negatives_kept``, and
        of files ``memory``, ``delimiter``, ``decimal``, ``schema_rows``, ``shuffle_rows``, ``hash_buckets``, ``shards``
        and ``on_bad_file``, as in ``select``.

    Returns
    -------
    comparison : Comparison
        The runs, with methods for tables, conclusions and charts.

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
    Nadeau, Bengio: Inference for the Generalization Error, Machine Learning 52, 2003: the corrected t-test
    for differences over splits that share rows.
    """
    if k is None:
        raise TypeError("k: the number of features to select is needed, such as k=10")
    y = choose_target(y, target)
    options_of_data = dict(data_options) | {
        "task": task,
        "sample_weight": sample_weight,
        "class_weight": class_weight,
        "groups": groups,
        "missing_indicator": missing_indicator,
        "max_categories": max_categories,
    }
    setup = prepare(
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
        data_options=options_of_data,
    )
    out_dir = None if out is None else Path(out)
    runs = [] if out_dir is None else load_runs(out_dir, setup.settings)
    return _run_missing(setup, runs, out_dir, progress)


def _run_missing(
    setup: ComparisonSetup, runs: list[ComparisonRun], out_dir: Path | None, progress: bool
) -> Comparison:
    """Append the runs that are not in ``runs`` yet; the comparison shares that list."""
    settings = setup.settings
    comparison = Comparison(runs, settings, describe_environment(settings["device"]))
    done = {run.key for run in runs}
    requested = run_keys(*(settings[name] for name in ("methods", "k", "seeds", "features")))
    remaining = [key for key in requested if key not in done]
    if out_dir is not None:
        _check_writable(comparison, out_dir)

    def finish(new: list[ComparisonRun]) -> None:
        known = {run.key for run in runs}  # Ctrl-C may come between the two
        runs.extend(run for run in new if run.key not in known)
        if new and out_dir is not None:
            comparison.save(out_dir / FILE)

    try:
        with progress_bar("Comparing", 2 * len(requested), shown=progress) as advance:
            advance(2 * (len(requested) - len(remaining)))
            for seed, keys in groupby(remaining, lambda key: key[2]):
                _run_split(SplitRuns(setup, seed), list(keys), finish, advance)
    except KeyboardInterrupt:
        if not runs:
            raise
    return comparison


def _run_split(
    split: SplitRuns,
    keys: list[tuple[str, int, int]],
    finish: Callable[[list[ComparisonRun]], None],
    advance: Advance,
) -> None:
    """Make the runs of one seed. After Ctrl-C, what is selected by then is evaluated too."""
    waiting: list[Selected] = []
    seed = keys[0][2]

    def evaluate() -> None:
        selected = list(waiting)
        if not selected:
            return
        shown = done = 0

        def count(percent: int) -> None:
            nonlocal shown, done
            done += percent
            steps = len(selected) * done // PERCENT - shown
            shown += steps
            advance(steps, f"evaluating {len(selected)} selections, seed {seed}", details=NO_DETAILS)

        count(0)
        finish(split.evaluate(selected, count))
        waiting.clear()
        advance(len(selected) - shown)

    started = time.monotonic()
    try:
        for method, same in groupby(keys, lambda key: key[0]):
            ks = [k for _, k, _ in same]
            run = f"{method}, k = {', '.join(map(str, ks))}, seed {seed}"
            for selected in split.select(method, ks, _show_share(run, advance)):
                waiting.append(selected)
                advance(1)
                if time.monotonic() - started > MAX_WAITING_SECONDS:
                    evaluate()
                    started = time.monotonic()
        evaluate()
    except KeyboardInterrupt:
        evaluate()  # seconds, for selections that may have taken longer; a second Ctrl-C gives up
        raise


def _show_share(run: str, advance: Advance) -> Advance:
    """The progress of one selection, as percent in the title of the bar that counts runs."""
    done, expected = 0.0, 0
    advance(0, run, details=NO_DETAILS)

    def show(
        steps: float, title: str | None = None, total: int | None = None, details: Details | None = None
    ) -> None:
        nonlocal done, expected
        done, expected = (0, total) if total is not None else (done + steps, expected)
        if expected:
            advance(0, f"{run}: {min(done / expected, 1):.0%}", details=details)

    return show


def _check_writable(comparison: Comparison, out_dir: Path) -> None:
    """Save the comparison once before the first run, so that an error does not come hours later."""
    try:
        comparison.save(out_dir / FILE)
    except OSError as error:
        raise ValueError(f"out: cannot write to {out_dir} ({error.strerror})") from None
