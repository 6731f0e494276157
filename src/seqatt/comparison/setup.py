"""The setup of a comparison: arguments checked, defaults resolved and rows split, before any run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqatt.api.read_data import are_files
from seqatt.comparison.arguments import (
    check_data_options,
    check_distinct_seeds,
    check_ks,
    check_methods,
    check_options,
    default_methods,
)
from seqatt.comparison.file_rows import read_file_rows
from seqatt.comparison.table_rows import RunRows, SplitRequest, read_table_rows
from seqatt.options import to_json
from seqatt.training.backend.device import resolve_device
from seqatt.training.defaults import EVALUATION_MAX_STEPS, EVALUATION_MIN_STEPS
from seqatt.validation import choice
from seqatt.version import __version__


@dataclass(frozen=True)
class ComparisonSetup:
    """The rows and the settings of a comparison.

    ``split`` gives the training and the test rows of a seed. ``options`` are those of each method, "method" among them
    where the name is that of a setting; ``data_options`` are those of all methods, and ``settings`` is saved with the
    results.
    """

    split: Callable[[int], tuple[RunRows, RunRows]]
    options: dict[str, dict[str, Any]]
    data_options: dict[str, Any]
    settings: dict[str, Any]


def prepare(
    X: Any,
    y: Any,
    k: Any,
    *,
    methods: Sequence[str] | None,
    seeds: int | Sequence[int],
    options: Mapping[str, Mapping[str, Any]] | None,
    test: tuple[Any, Any],
    test_size: float | int,
    stratify: bool | None,
    split_groups: Any,
    metric: str | None,
    device: str,
    data_options: dict[str, Any],
) -> ComparisonSetup:
    """Check all arguments of ``compare``; invalid ones raise here, before any run."""
    files = are_files(X)
    requested = None if methods is None else check_methods(methods, options)
    seeds = check_distinct_seeds(seeds)
    device = str(resolve_device(device))
    check_data_options(data_options, files=files)
    request = SplitRequest(test, test_size, stratify, split_groups, seeds)
    rows = (read_file_rows if files else read_table_rows)(X, y, data_options, request)
    names = default_methods(rows.data) if requested is None else requested
    checked_options = check_options(options, names, files=are_files(rows.split(seeds[0])[0].X))
    task, features = rows.data.target.task, rows.data.features
    classes, metrics = rows.data.target.classes, rows.data.target.loss.metrics
    ks = check_ks(k, features)
    metric = choice(metrics)("metric", metric or metrics[0])
    settings = {
        "methods": names,
        "k": ks,
        "seeds": seeds,
        "options": checked_options,
        "metric": metric,
        "task": task,
        "classes": None if classes is None else len(classes),
        "features": features,
        "device": device,
        "seqatt": __version__,
        "evaluation_steps": [EVALUATION_MIN_STEPS, EVALUATION_MAX_STEPS],
        **rows.settings,
    }
    recorded = json.loads(json.dumps(to_json(settings), default=_describe_code))
    return ComparisonSetup(rows.split, checked_options, rows.options, recorded)


def _describe_code(value: Any) -> dict[str, str]:
    """The name of a module or function, which JSON cannot represent."""
    return {"code": getattr(value, "__qualname__", type(value).__qualname__)}
