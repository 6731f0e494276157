"""The statistics of a comparison, computed from its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from seqatt.comparison.runs import ALL, ComparisonRun
from seqatt.display_text import LOWER_IS_BETTER

ROUNDING = 1e-12  # relative to a score; 0.9 - 0.8 and 0.8 - 0.7 differ by less


def scores(runs: Iterable[ComparisonRun], method: str, k: int, metric: str) -> dict[int, float]:
    """The metric by seed, for the runs in which it is defined."""
    by_seed = {run.seed: run.metrics.get(metric) for run in runs if (run.method, run.k) == (method, k)}
    return {seed: value for seed, value in by_seed.items() if value is not None}


def summary_row(runs: Sequence[ComparisonRun], method: str, k: int, metric: str) -> dict[str, Any]:
    """The row of one method and k; None for undefined values, such as the deviation of one run."""
    runs = [run for run in runs if (run.method, run.k) == (method, k)]
    done = [run for run in runs if run.error is None]
    failed = [run for run in runs if run.error is not None]
    values = list(scores(runs, method, k, metric).values())
    return {
        "method": method,
        "k": k,
        "metric": metric,
        "mean": float(np.mean(values)) if values else None,
        "sd": standard_deviation(values),
        "runs": len(done),
        "seconds": None if method == ALL or not done else float(np.mean([run.seconds for run in done])),
        "stability": None if method == ALL else stability([run.features for run in done]),
        "error": failed[0].error if failed else None,
    }


def standard_deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation (n - 1); None for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def stability(sets: Sequence[Iterable[str]]) -> float | None:
    """The mean Jaccard index over pairs of sets: 1 for equal sets, 0 for disjoint ones."""
    pairs = [(set(a), set(b)) for a, b in combinations(sets, 2)]
    return float(np.mean([len(a & b) / len(a | b) for a, b in pairs])) if pairs else None


def comparable_seeds(runs: Iterable[ComparisonRun], methods: Sequence[str], k: int) -> list[int]:
    """The seeds over which the methods are compared at ``k``, in order.

    These are the seeds that all methods have run with. If runs are missing, they are the seeds that as many methods as
    possible have in common; the other methods have none of them.
    """
    ran: dict[int, set[str]] = {}
    for run in runs:
        if run.k == k and run.method in methods:
            ran.setdefault(run.seed, set()).add(run.method)
    most = max(map(len, ran.values()), default=0)
    largest = [names for names in ran.values() if len(names) == most]
    shared = [[seed for seed in ran if ran[seed] == names] for names in largest]
    longest: list[int] = max(shared, key=len, default=[])
    return sorted(longest)


def find_best(runs: Sequence[ComparisonRun], methods: Sequence[str], k: int, metric: str) -> str | None:
    """The method with the best mean among those that have scores of the most seeds, which are the same seeds.

    Of several equal ones it is the first; None if no run has a score.
    """
    by_method = {method: scores(runs, method, k, metric) for method in methods}
    most = max(map(len, by_method.values()), default=0)
    if not most:
        return None
    groups: dict[frozenset[int], list[str]] = {}
    for method, values in by_method.items():
        if len(values) == most:
            groups.setdefault(frozenset(values), []).append(method)
    candidates = max(groups.values(), key=len)
    sign = -1 if metric in LOWER_IS_BETTER else 1
    return max(candidates, key=lambda method: sign * float(np.mean(list(by_method[method].values()))))


def difference(
    runs: Sequence[ComparisonRun], best: str, other: str, k: int, metric: str, *, overlap: float
) -> dict[str, Any]:
    """The paired difference between ``best`` and ``other``, over the seeds that both have.

    ``within_sd``: the mean difference is at most one standard deviation of the differences. ``significant``: it
    passes the t-test (two-sided, 5%) corrected for splits that share rows. The corrected variance of
    the mean is (1 / n + ``overlap``) times the variance of a difference, for n differences, with overlap =
    test rows / training rows (Nadeau and Bengio, 2003). ``near``: within_sd and not significant. All three are None
    for a single run. ``significant`` is also None if all differences are equal, because a sample deviation of 0
    leaves the true one unknown.
    """
    sign = -1 if metric in LOWER_IS_BETTER else 1
    best_scores, other_scores = scores(runs, best, k, metric), scores(runs, other, k, metric)
    ahead = [sign * (best_scores[seed] - other_scores[seed]) for seed in best_scores if seed in other_scores]
    sd = standard_deviation(ahead)
    mean = float(np.mean(ahead)) if ahead else None
    within, significant, near = None, None, None
    if mean is not None and sd is not None:
        rounding = ROUNDING * max(map(abs, [*best_scores.values(), *other_scores.values()]))
        sd = 0.0 if sd <= rounding else sd
        mean = 0.0 if abs(mean) <= rounding else mean
        within = mean <= sd
        significant = mean > sd * significance_threshold(len(ahead), overlap) if sd else None
        near = within and not significant
    return {
        "method": other,
        "k": k,
        "ahead": mean,
        "sd": sd,
        "wins": sum(a > 0 for a in ahead),
        "runs": len(ahead),
        "within_sd": within,
        "significant": significant,
        "near": near,
    }


def significance_threshold(n: int, overlap: float) -> float:
    """Standard deviations that the mean of n differences must exceed (corrected t-test, two-sided, 5%)."""
    return float(stats.t.ppf(0.975, n - 1) * np.sqrt(1 / n + overlap))
