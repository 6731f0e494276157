"""Files with held-out rows: how they are split, and how a selection is evaluated on the rows held out.

The evaluation shows the selected features beside as many random ones and beside all features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from seqatt.algorithms.registry import get_method
from seqatt.api.evaluation.evaluator import Evaluator, FeatureSet
from seqatt.api.evaluation.networks import PERCENT
from seqatt.api.evaluation.result import raise_errors
from seqatt.api.read_data import TABLE_OPTIONS, are_files, categories_for
from seqatt.api.read_files import memory_budget
from seqatt.api.select import select_trials
from seqatt.data.files.file_columns import FileColumns, open_columns
from seqatt.data.files.options import FileOptions
from seqatt.data.tables.row_units import RowUnits, read_row_units
from seqatt.distributed.process_group import world_size
from seqatt.options import names_of
from seqatt.progress import progress_bar
from seqatt.selection import Selection

RANDOM_BYTES = 1 << 24  # of files, to see which features are constant before some are drawn


class OpenedFiles(NamedTuple):
    """Files before their rows are read, the bytes of the table they make, and whether that fits in memory."""

    columns: FileColumns
    options: FileOptions
    table_bytes: int
    fit: bool


def open_for(method: str, paths: list[str], target: str | None, options: FileOptions) -> OpenedFiles:
    """Open files, and decide as ``select`` does whether the method gets a table."""
    columns = open_columns(paths, target, options)
    categories = categories_for(get_method(method))
    needed = columns.table_bytes(categories, options.max_categories)
    return OpenedFiles(columns, options, needed, needed <= memory_budget(options, world_size()))


class HeldOut(NamedTuple):
    """Training rows and test rows, each as X and y of ``select``, what the test rows are, and how they were read."""

    train: tuple[Any, Any]
    test: tuple[Any, Any]
    description: str
    facts: dict[str, Any]


def hold_out(opened: OpenedFiles, holdout: float, seed: int) -> HeldOut:
    """Hold out a share of the rows: drawn, if the files fit in memory, else at equal distances."""
    if not opened.fit:
        return _hold_out_of_files(opened.columns, holdout, seed)
    X, y = opened.columns.read_table(opened.options)
    named = isinstance(y, str)
    group, time = (
        None if name is None else X.column(name)
        for name in (opened.options.groups_of_rows, opened.options.time)
    )
    if group is None and opened.options.task == "ranking" and hasattr(y, "column_names"):
        group = y.column(y.num_columns - 1)  # the rows of a query are a group
    units = read_row_units(group, time, X.num_rows)
    rows = split_rows(X.column(y) if named else X if y is None else y, holdout, seed, units)
    train, test = ((X.take(side), y if named or y is None else y.take(side)) for side in rows)
    count = opened.columns.files.count
    facts = {"files": count, "table_bytes": opened.table_bytes, "reading": "memory"}
    return HeldOut(train, test, f"{len(rows[1]):,} held-out rows", facts)


def _hold_out_of_files(columns: FileColumns, holdout: float, seed: int) -> HeldOut:
    """Hold out every n-th row, where n is the inverse of ``holdout``, rounded: one half, one third, ... of the rows."""
    remedy = "raise --memory to read them into memory"
    if len(columns.targets) != 1:
        raise ValueError(f"--holdout: files read batch by batch have one target; {remedy}")
    step = round(1 / holdout)
    if step < 2:
        raise ValueError(f"--holdout: must be at most 0.5 for files read batch by batch, or {remedy}")
    train, test = columns.files.split(step, seed % step)
    target = columns.targets[0]
    return HeldOut((train, target), (test, target), f"one in {step} rows, held out", {})


def split_rows(y: Any, holdout: float, seed: int, units: RowUnits | None = None) -> tuple[Any, Any]:
    """Row numbers to train on and to test on; every class has the same share of both, within a row.

    Of rows that are not to be divided, the latest ones or those of random groups are test rows.
    """
    # Not scikit-learn's train_test_split: its import takes as long as reading 100,000 rows.
    rng, count = np.random.default_rng(seed), int(np.ceil(holdout * len(y)))
    rows = rng.permutation(len(y))
    labels = None if hasattr(y, "column_names") else np.array([str(v) for v in y.to_pylist()])
    classes = labels if labels is not None and _looks_like_classes(labels) else None
    if classes is not None:
        rows = rows[np.argsort(classes[rows], kind="stable")]
    is_test = np.zeros(len(rows), dtype=bool)
    if units is None:
        # At equal distances, so that classes, whose rows are adjacent, are divided alike.
        is_test[rows[((np.arange(count) + rng.random()) * len(rows) / count).astype(np.int64)]] = True
    else:
        is_test[units.draw(holdout, rng)[1]] = True
    if classes is not None:
        is_test &= np.isin(classes, classes[~is_test])  # a class without training rows cannot be evaluated
    if not 0 < is_test.sum() < len(rows):
        raise ValueError(f"--holdout: {len(rows)} rows are too few to hold out {holdout:.0%} of them")
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def _looks_like_classes(labels: Any) -> bool:
    """Whether labels repeat, as classes do."""
    return len(set(labels.tolist())) <= len(labels) / 2


def evaluate_holdout(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    selection: Selection,
    device: str,
    options: dict[str, Any],
) -> dict[str, dict[str, Any]]:
    """Metrics on the test rows with the selected features, with as many random ones, and with all features."""
    files = are_files(X)
    used = set(names_of(FileOptions) if files else TABLE_OPTIONS)
    shared = {name: value for name, value in options.items() if name in used}
    k = len(selection.indices)
    little = {"memory": RANDOM_BYTES} if files else {}
    random_selections = select_trials(
        X, y, k, method="random", seeds=range(5), device=device, **shared | little
    )
    sets = [FeatureSet(selection, range(5)), FeatureSet(None, range(5))]
    sets += [FeatureSet(draw, [draw.seed]) for draw in random_selections]
    evaluator = Evaluator(X, y, X_test, y_test, device, shared)
    with progress_bar("Testing", PERCENT, shown=True) as advance:
        selected, everything, *random_results = raise_errors(evaluator.evaluate(sets, advance))
    scores = {
        name: {m: list(result[m]) for m in result}
        for name, result in (("selected", selected), ("all", everything))
    }
    scores["random"] = {m: [float(r[m][0]) for r in random_results] for m in random_results[0]}
    sizes = {"selected": k, "random": k, "all": len(selection.names)}
    return {name: {"features": size, **scores[name]} for name, size in sizes.items()}


def nan_to_none(value: Any) -> Any:
    """Replace NaN, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {name: nan_to_none(item) for name, item in value.items()}
    if isinstance(value, list):
        return [nan_to_none(item) for item in value]
    return None if value != value else value
