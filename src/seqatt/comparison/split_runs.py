"""The runs on one split: each method selects, and all that was selected is evaluated together.

A table is encoded once per split. A method whose selections are nested runs once for all k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from seqatt.algorithms.registry import get_method
from seqatt.api.evaluation.evaluator import Evaluator, FeatureSet
from seqatt.api.evaluation.networks import AdvancePercent
from seqatt.api.evaluation.result import Evaluation
from seqatt.api.read_data import Reading, are_files, categories_for, read_table
from seqatt.api.run import Run
from seqatt.api.select import select
from seqatt.api.select_options import make_options
from seqatt.comparison.arguments import split_method
from seqatt.comparison.runs import ALL, ComparisonRun
from seqatt.comparison.setup import ComparisonSetup
from seqatt.data.tables.options import Categories
from seqatt.data.tables.table_data import TableData
from seqatt.progress import Advance, Timings
from seqatt.selection import Selection
from seqatt.training.backend.device import resolve_device
from seqatt.training.kernels import start_device
from seqatt.training.options import TrainingOptions


class Selected(NamedTuple):
    """The selection of a run, or the error of one that has none; None without an error is every feature."""

    method: str
    k: int
    selection: Selection | None = None
    error: Exception | None = None


class SplitRuns:
    """The runs of one seed, on its training rows and test rows."""

    def __init__(self, setup: ComparisonSetup, seed: int) -> None:
        self._setup, self._seed = setup, seed
        self._train, test = setup.split(seed)
        self._device = setup.settings["device"]
        self._options = setup.data_options | self._train.options
        of_evaluation = {name: value for name, value in self._options.items() if name != "groups"}
        self._evaluator = Evaluator(*self._train[:2], *test[:2], self._device, of_evaluation)
        self._tables: dict[tuple[Categories, bool], TableData] = {}

    def select(self, method: str, ks: Sequence[int], advance: Advance) -> Iterator[Selected]:
        """The selections of a method for every k; an error for one k does not affect the others."""
        if method == ALL:
            yield from (Selected(method, k) for k in ks)
            return
        files, (registered, given) = are_files(self._train.X), self._method(method)
        depends_on_k = make_options(registered, given, files=files).answer.depends_on_k
        if len(ks) > 1 and get_method(registered).nested and not files and not depends_on_k:
            try:
                selections = self._select_table(method, ks, advance)
            except Exception:  # may be that of the largest k: each is tried by itself
                pass
            else:
                yield from (
                    Selected(method, k, selection) for k, selection in zip(ks, selections, strict=True)
                )
                return
        yield from (self._select_one(method, k, advance) for k in ks)

    def _method(self, name: str) -> tuple[str, dict[str, Any]]:
        """The method that a name stands for, and all its options."""
        method, own = split_method(name, self._setup.options)
        return method, self._options | own

    def _select_one(self, method: str, k: int, advance: Advance) -> Selected:
        try:
            if not are_files(self._train.X):
                return Selected(method, k, self._select_table(method, [k], advance)[0])
            registered, options = self._method(method)
            X, y = self._train[:2]
            selection = select(X, y, k, method=registered, seed=self._seed, device=self._device, **options)
            return Selected(method, k, selection)
        except Exception as error:  # whatever a method raises, the others are still worth running
            return Selected(method, k, error=error)

    def _select_table(self, method: str, ks: Sequence[int], advance: Advance) -> list[Selection]:
        """One run for the largest k, whose first features are the selections for the others."""
        name, options = self._method(method)
        registered, checked = get_method(name), make_options(name, options)
        device = resolve_device(self._device)
        if isinstance(checked.method, TrainingOptions):
            start_device(device)
        kind = categories_for(registered, checked.method.own_inputs), checked.method.model is None
        if kind not in self._tables:
            X, y = self._train[:2]
            self._tables[kind] = read_table(X, y, checked.data, kind[0], by_name=kind[1])
        run = Run(registered, [self._seed], checked, device, Timings())
        with run.open(Reading(self._tables[kind]), max(ks), advance) as (select_features, _):
            (trace,) = select_features()
        return [run.finish([trace.first(k)])[0] for k in ks]

    def evaluate(self, selected: Sequence[Selected], advance: AdvancePercent) -> list[ComparisonRun]:
        """The finished runs."""
        sets = [FeatureSet(run.selection, [self._seed]) for run in selected if run.error is None]
        results = iter(self._evaluator.evaluate(sets, advance) if sets else [])
        return [self._make_run(run, next(results) if run.error is None else run.error) for run in selected]

    def _make_run(self, selected: Selected, result: Evaluation | Exception) -> ComparisonRun:
        selection = selected.selection
        features = [] if selection is None else [str(name) for name in selection.features]
        seconds = 0.0 if selection is None else selection.seconds
        run = ComparisonRun(selected.method, selected.k, self._seed, features, seconds=seconds)
        if isinstance(result, Exception):
            return replace(run, error=_one_line(result))
        metrics = {name: float(result[name][0]) for name in result}
        defined = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        return replace(run, metrics=defined)


def _one_line(error: Exception) -> str:
    """Type and message of an error in one line, at most 300 characters."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__
