"""What one method did with one k and one seed: the unit that is run, written down and never run twice."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

ALL = "all"  # no method: every feature, to see what choosing costs


@dataclass(frozen=True)
class ComparisonRun:
    """The features chosen, test metrics by name (None where undefined), and the error in one line, if any.

    ``seconds`` are the selection's, without reading the table and without judging. A cell
    whose judging failed has features and no metrics.
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
    """A cell from JSON, every part of it checked."""
    cell = ComparisonRun(**raw)
    metrics = [value for value in cell.metrics.values() if value is not None]
    whole = [type(cell.k), type(cell.seed)] == [int, int]
    text = all(isinstance(v, str) for v in (cell.method, *cell.features, *cell.metrics, cell.error or ""))
    numbers = all(isinstance(v, int | float) for v in (cell.seconds, *metrics))
    if not (whole and text and numbers and isinstance(cell.features, list)):
        raise ValueError(f"a cell of {cell.method!r} is damaged")
    return cell


def run_keys(methods: list[str], ks: list[int], seeds: list[int], every: int) -> list[tuple[str, int, int]]:
    """What is to be run. Seeds go first: stopped early, all methods have seen the same rows."""
    return [
        (method, k, seed) for seed in seeds for method in methods for k in ([every] if method == ALL else ks)
    ]
