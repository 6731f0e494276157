"""One run of a comparison: one method with one k and one seed. Runs are saved and never repeated."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

ALL = "all"  # not a method: all features, as a reference


@dataclass(frozen=True)
class ComparisonRun:
    """The result of one run.

    ``metrics`` are test metrics by name, None if undefined. ``seconds`` is the time of the selection, without the
    evaluation and, on a table, without reading it; a method that ranks the features once for every k has the time of
    that ranking in each of its runs. ``error`` is one line, None if there was no error; a run whose evaluation failed
    has features and no metrics.
    """

    method: str
    k: int
    seed: int
    features: list[str] = field(default_factory=list)
    metrics: dict[str, float | None] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None

    @property
    def key(self) -> tuple[str, int, int]:
        return self.method, self.k, self.seed

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_run(raw: Any) -> ComparisonRun:
    """A run from JSON, with the type of every field checked."""
    run = ComparisonRun(**raw)
    metrics = [value for value in run.metrics.values() if value is not None]
    integers = [type(run.k), type(run.seed)] == [int, int]
    strings = all(isinstance(v, str) for v in (run.method, *run.features, *run.metrics, run.error or ""))
    numbers = all(isinstance(v, int | float) for v in (run.seconds, *metrics))
    if not (integers and strings and numbers and isinstance(run.features, list)):
        raise ValueError(f"a run of {run.method!r} has a field of the wrong type")
    return run


def run_keys(
    methods: list[str], ks: list[int], seeds: list[int], features: int
) -> list[tuple[str, int, int]]:
    """(method, k, seed) of all runs; ``features`` is the k of ``ALL``.

    The outer loop is over seeds, so that an interrupted comparison has the same splits for all methods.
    """
    return [
        (method, k, seed)
        for seed in seeds
        for method in methods
        for k in ([features] if method == ALL else ks)
    ]
