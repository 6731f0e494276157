"""Ranks of methods over data sets, and which differences could be chance.

The Friedman test and Nemenyi's critical difference, after J. Demšar: Statistical comparisons of classifiers
over multiple data sets, JMLR 2006.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.05


@dataclass(frozen=True)
class Ranking:
    """Average ranks, best first; 1 is best. ``apart`` is the difference that chance alone rarely makes."""

    ranks: dict[str, float]
    blocks: int
    p_value: float
    apart: float
    absent: tuple[str, ...] = ()  # not on every table

    def alike(self) -> list[tuple[str, ...]]:
        """Runs of methods that are not told apart, the longest of each."""
        names = list(self.ranks)
        runs: list[tuple[str, ...]] = []
        for first, name in enumerate(names):
            last = max(i for i in range(first, len(names)) if self._near(name, names[i]))
            run = tuple(names[first : last + 1])
            if len(run) > 1 and not any(set(run) <= set(other) for other in runs):
                runs.append(run)
        return runs

    def _near(self, one: str, other: str) -> bool:
        return abs(self.ranks[one] - self.ranks[other]) < self.apart


def rank(scores: Mapping[str, Mapping[str, float]]) -> Ranking | None:
    """Methods ranked within each block (a data set), averaged over blocks; higher scores are better.

    ``scores[block][method]``. Ranks need every method on every block: blocks that fewer than half of the
    methods finished are left out, then methods that miss one of the others. None where fewer than two
    blocks or three methods are left.
    """
    methods = list(dict.fromkeys(method for block in scores.values() for method in block))
    blocks = [block for block in scores.values() if 2 * len(block) >= len(methods)]
    absent = tuple(method for method in methods if not all(method in block for block in blocks))
    methods = [method for method in methods if method not in absent]
    if len(blocks) < 2 or len(methods) < 3:
        return None
    table = np.array([[block[method] for method in methods] for block in blocks])
    average = stats.rankdata(-table, axis=1).mean(0)
    order = np.argsort(average, kind="stable")
    ranks = {methods[i]: float(average[i]) for i in order}
    apart = critical_difference(len(methods), len(blocks))
    return Ranking(ranks, len(blocks), friedman(table), apart, absent)


def friedman(table: np.ndarray) -> float:
    """How probable ranks this uneven are if all methods (columns) were equally good; ties everywhere: 1."""
    if (np.ptp(table, axis=1) == 0).all():
        return 1.0
    return float(stats.friedmanchisquare(*table.T).pvalue)


def critical_difference(methods: int, blocks: int, level: float = LEVEL) -> float:
    """Nemenyi: average ranks of two methods that differ by less may do so by chance."""
    q = stats.studentized_range.ppf(1 - level, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def describe(ranking: Ranking) -> str:
    """The test and the difference, in words."""
    p = "p < 0.001" if ranking.p_value < 0.001 else f"p = {ranking.p_value:.3f}"
    absent = ", ".join(f"`{name}`" for name in ranking.absent)
    words = (
        f"{len(ranking.ranks)} methods on {ranking.blocks} tables: the Friedman test gives {p}. Average "
        f"ranks that differ by less than {ranking.apart:.2f} are not told apart (Nemenyi, 5 %)."
    )
    return f"{words} Not ranked, for lack of some trials: {absent}." if absent else words


def means(trials: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean of every method that has as many trials on a table as any."""
    most = max(map(len, trials.values()), default=0)
    full = {method: values for method, values in trials.items() if most and len(values) == most}
    return {method: float(np.mean(values)) for method, values in full.items()}
