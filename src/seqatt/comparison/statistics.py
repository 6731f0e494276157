"""The statistics of a comparison, from its cells alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from seqatt.comparison.runs import ALL, ComparisonRun

LOWER_IS_BETTER = ("log_loss", "rmse")
ROUNDING = 1e-12  # of a score: 0.9 - 0.8 and 0.8 - 0.7 differ by less
METRICS = {
    "binary": ("accuracy", "auc", "log_loss"),
    "multiclass": ("accuracy",),
    "multilabel": ("accuracy",),
    "regression": ("r2", "rmse"),
}


def scores(cells: Iterable[ComparisonRun], method: str, k: int, metric: str) -> dict[int, float]:
    """The metric by seed, of the cells that have one."""
    found = {c.seed: c.metrics.get(metric) for c in cells if (c.method, c.k) == (method, k)}
    return {seed: value for seed, value in found.items() if value is not None}


def row(cells: Sequence[ComparisonRun], method: str, k: int, metric: str) -> dict[str, Any]:
    """One method at one k; None stands for what cannot be known, such as the spread of one run."""
    own = [c for c in cells if (c.method, c.k) == (method, k)]
    done = [c for c in own if c.error is None]
    values = list(scores(own, method, k, metric).values())
    failed = [c for c in own if c.error is not None]
    return {
        "method": method,
        "k": k,
        "metric": metric,
        "mean": float(np.mean(values)) if values else None,
        "sd": spread(values),
        "runs": len(done),
        "seconds": None if method == ALL or not done else float(np.mean([c.seconds for c in done])),
        "stability": None if method == ALL else stability([c.features for c in done]),
        "error": failed[0].error if failed else None,
    }


def spread(values: Sequence[float]) -> float | None:
    """The sample standard deviation (n - 1)."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def stability(sets: Sequence[Iterable[str]]) -> float | None:
    """The mean Jaccard index over pairs of chosen sets: 1 always the same, 0 nothing in common."""
    pairs = [(set(a), set(b)) for a, b in combinations(sets, 2)]
    return float(np.mean([len(a & b) / len(a | b) for a, b in pairs])) if pairs else None


def find_best(rows: Sequence[dict[str, Any]], metric: str) -> str | None:
    """The method with the best mean among those with the most runs; the first of equals."""
    runs = max((r["runs"] for r in rows if r["mean"] is not None), default=0)
    candidates = [r for r in rows if r["mean"] is not None and r["runs"] == runs]
    if not candidates:
        return None
    sign = -1 if metric in LOWER_IS_BETTER else 1
    return str(max(candidates, key=lambda r: sign * r["mean"])["method"])


def difference(
    cells: Sequence[ComparisonRun], best: str, other: str, k: int, metric: str, *, overlap: float
) -> dict[str, Any]:
    """How far ``best`` is ahead of ``other`` on the seeds both have: the same rows, so differences pair up.

    ``within_sd``: ahead by at most one standard deviation of the differences. ``clear``: by more than chance
    gives once in twenty times, by the t-test corrected for splits that share rows, whose variance of the
    mean is (1 / runs + ``overlap``) times that of a difference, with overlap = test rows / training rows
    (Nadeau and Bengio, 2003). ``near``: within_sd and not clear. All are None where one run cannot tell, and
    ``clear`` also where every difference is the same: a spread of 0 is luck, not certainty.
    """
    sign = -1 if metric in LOWER_IS_BETTER else 1
    ours, theirs = scores(cells, best, k, metric), scores(cells, other, k, metric)
    ahead = [sign * (ours[seed] - theirs[seed]) for seed in ours if seed in theirs]
    runs, sd = len(ahead), spread(ahead)
    mean = float(np.mean(ahead)) if ahead else None
    within, clear, near = None, None, None
    if mean is not None and sd is not None:
        rounding = ROUNDING * max(map(abs, [*ours.values(), *theirs.values()]))
        sd = 0.0 if sd <= rounding else sd
        mean = 0.0 if abs(mean) <= rounding else mean
        within, clear = mean <= sd, mean > sd * chance(runs, overlap) if sd else None
        near = within and not clear
    return {
        "method": other,
        "k": k,
        "ahead": mean,
        "sd": sd,
        "wins": sum(a > 0 for a in ahead),
        "runs": runs,
        "within_sd": within,
        "clear": clear,
        "near": near,
    }


def chance(runs: int, overlap: float) -> float:
    """How many standard deviations a mean difference must exceed to be clear (two-sided, 5%)."""
    return float(stats.t.ppf(0.975, runs - 1) * np.sqrt(1 / runs + overlap))
