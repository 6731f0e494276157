"""Average ranks of methods over data sets, and tests of their differences.

The Friedman test and Nemenyi's critical difference, after J. Demšar: Statistical comparisons of classifiers
over multiple data sets, JMLR 2006.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.05  # significance level of Nemenyi's test
LINE_WIDTH = 110


@dataclass(frozen=True)
class Ranking:
    """Average ranks over ``blocks`` data sets, best first; 1 is the best rank."""

    ranks: dict[str, float]
    blocks: int
    p_value: float  # of the Friedman test
    critical_difference: float  # smaller differences of average ranks are not significant (Nemenyi)
    incomplete: tuple[str, ...] = ()  # methods that lack a score on some block and so have no rank

    def indistinct_groups(self) -> list[tuple[str, ...]]:
        """Maximal sequences of methods whose average ranks do not differ significantly."""
        names = list(self.ranks)
        groups: list[tuple[str, ...]] = []
        for first, name in enumerate(names):
            last = max(i for i in range(first, len(names)) if self._close(name, names[i]))
            group = tuple(names[first : last + 1])
            if len(group) > 1 and not any(set(group) <= set(other) for other in groups):
                groups.append(group)
        return groups

    def _close(self, one: str, other: str) -> bool:
        return abs(self.ranks[one] - self.ranks[other]) < self.critical_difference


def rank(scores: Mapping[str, Mapping[str, float]]) -> Ranking | None:
    """Methods ranked within each block (data set), averaged over blocks; higher scores are better.

    ``scores[block][method]``. Ranks need every method on every block: blocks with scores of fewer than half
    of the methods are left out, then methods that lack a score on one of the other blocks. None if fewer than
    two blocks or three methods remain.
    """
    methods = list(dict.fromkeys(method for block in scores.values() for method in block))
    blocks = [block for block in scores.values() if 2 * len(block) >= len(methods)]
    incomplete = tuple(method for method in methods if not all(method in block for block in blocks))
    methods = [method for method in methods if method not in incomplete]
    if len(blocks) < 2 or len(methods) < 3:
        return None
    table = np.array([[block[method] for method in methods] for block in blocks])
    average = stats.rankdata(-table, axis=1).mean(0)
    order = np.argsort(average, kind="stable")
    ranks = {methods[i]: float(average[i]) for i in order}
    difference = critical_difference(len(methods), len(blocks))
    return Ranking(ranks, len(blocks), friedman(table), difference, incomplete)


def friedman(table: np.ndarray) -> float:
    """The p-value of the Friedman test on scores of shape (blocks, methods); 1 if all scores are tied."""
    if (np.ptp(table, axis=1) == 0).all():
        return 1.0
    return float(stats.friedmanchisquare(*table.T).pvalue)


def critical_difference(methods: int, blocks: int, level: float = LEVEL) -> float:
    """Nemenyi's critical difference of average ranks: smaller differences are not significant."""
    q = stats.studentized_range.ppf(1 - level, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def describe(ranking: Ranking) -> str:
    """The p-value and the critical difference in a paragraph."""
    p = "p < 0.001" if ranking.p_value < 0.001 else f"p = {ranking.p_value:.3f}"
    text = (
        f"{len(ranking.ranks)} methods on {ranking.blocks} tables: the Friedman test gives {p}. Average ranks "
        f"that differ by less than {ranking.critical_difference:.2f} do not differ significantly (Nemenyi's "
        "test at 5 %)."
    )
    if ranking.incomplete:
        names = ", ".join(f"`{name}`" for name in ranking.incomplete)
        text += f" Not ranked, because some trials are missing: {names}."
    return textwrap.fill(text, LINE_WIDTH)


def complete_means(trials: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Mean scores of the methods that have the full number of trials: as many as any other method has."""
    full_count = max(map(len, trials.values()), default=0)
    complete = {name: values for name, values in trials.items() if full_count and len(values) == full_count}
    return {name: float(np.mean(values)) for name, values in complete.items()}
