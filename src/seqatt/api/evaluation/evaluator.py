"""``Evaluator``: evaluates many sets of features on the same training and test rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from seqatt.api.evaluation.evaluate import evaluate
from seqatt.api.evaluation.networks import (
    PERCENT,
    AdvancePercent,
    FeaturesAndSeed,
    evaluate_networks,
    trains_together,
)
from seqatt.api.evaluation.reading import (
    EvaluationData,
    read_options,
    read_tables,
    resolve_options,
)
from seqatt.api.evaluation.result import Evaluation, make_evaluation
from seqatt.api.read_data import are_files
from seqatt.losses.loss import Metrics
from seqatt.training.backend.device import resolve_device
from seqatt.training.options import TrainingOptions


class FeatureSet(NamedTuple):
    """Columns, as ``evaluate`` takes them as ``indices``, and the seeds of their networks."""

    indices: Any
    seeds: Sequence[int]


class Evaluator:
    """``evaluate`` for many sets of features: a table is encoded once, and the networks train together.

    Where they cannot (an accelerator, files, a large sparse table), the sets are evaluated one after another. All
    columns of a table are encoded, whatever the sets, so that a result does not depend on the other sets.
    """

    def __init__(
        self, X_train: Any, y_train: Any, X_test: Any, y_test: Any, device: str, options: dict[str, Any]
    ) -> None:
        """``options`` are options of ``evaluate``."""
        self._rows, self._device, self._options = (X_train, y_train, X_test, y_test), device, options
        self._read: tuple[EvaluationData, TrainingOptions] | None = None

    def evaluate(self, sets: Sequence[FeatureSet], advance: AdvancePercent) -> list[Evaluation | Exception]:
        """The evaluation of each set, or the error it had."""
        torch_device = resolve_device(self._device)
        try:
            if torch_device.type != "cpu" or are_files(self._rows[0]):
                return self._one_by_one(sets, advance)
            if self._read is None:
                self._read = self._read_all_columns()
            if not trains_together(*self._read, torch_device):
                return self._one_by_one(sets, advance)
            return _evaluate_together(*self._read, sets, advance)
        except Exception as error:  # what is wrong with the rows is wrong for every set
            return [error] * len(sets)

    def _read_all_columns(self) -> tuple[EvaluationData, TrainingOptions]:
        given, data_options = read_options(self._options, {}, files=False)
        reading = read_tables(*self._rows, None, data_options, "mixed")
        return reading, resolve_options(reading.data, given)

    def _one_by_one(
        self, sets: Sequence[FeatureSet], advance: AdvancePercent
    ) -> list[Evaluation | Exception]:
        results: list[Evaluation | Exception] = []
        for number, (indices, seeds) in enumerate(sets, 1):
            try:
                results.append(
                    evaluate(*self._rows, indices, seeds=seeds, device=self._device, **self._options)
                )
            except Exception as error:  # the other sets may still be evaluated
                results.append(error)
            advance(PERCENT * number // len(sets) - PERCENT * (number - 1) // len(sets))
        return results


def _evaluate_together(
    reading: EvaluationData, options: TrainingOptions, sets: Sequence[FeatureSet], advance: AdvancePercent
) -> list[Evaluation | Exception]:
    evaluated: list[FeaturesAndSeed] = []
    for indices, seeds in sets:
        features = reading.find_features(indices)
        evaluated += [(features, seed) for seed in seeds]
    measure = partial(reading.data.target.loss.measure, reading.data.target)
    results = iter(evaluate_networks(reading, options, evaluated, advance, measure))
    return [_gather(results, seeds) for _, seeds in sets]


def _gather(results: Iterator[Metrics | Exception], seeds: Sequence[int]) -> Evaluation | Exception:
    """The next results, one per seed, as an evaluation, or the error of one of them."""
    try:
        return make_evaluation([next(results) for _ in seeds], seeds)
    except Exception as error:
        return error
