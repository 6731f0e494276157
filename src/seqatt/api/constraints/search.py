"""The search for the best set of features that a budget pays for.

Two greedy paths start from the features that are kept. One adds what gains most per unit of cost, the other what gains
most (Leskovec et al. 2007: the better of the two is never far from the best set, if gains diminish). What is added is a
feature, or all features of something that several share, because its first feature pays for the others. The best set
of both paths is then improved by leaving out single features and by exchanging them for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from seqatt.api.constraints.costs import Costs
from seqatt.training.selection_state import Quotas

Features = frozenset[int]
MARGIN = (
    0.01  # share of what the best set gains over none that counts as nothing: then the cheaper set is better
)
PATIENCE = (
    3  # steps of a path without a better set after which it ends: one of two features may be useless alone
)
SWAPPED_OUT = 5  # features that are exchanged: those without which the score falls least
ROUNDS = 3  # of exchanges, at most


@dataclass
class BudgetSearch:
    """Sets of at most ``k`` features, of which ``score`` says how good they are on held-out rows; ``nothing`` is none.

    ``rate`` is what a unit of cost must gain, and the worth of a set its score minus that.
    """

    score: Callable[[Sequence[Features]], Sequence[float]]
    costs: Costs
    budget: float
    rate: float
    k: int
    kept: tuple[int, ...]
    quotas: Quotas | None
    nothing: float
    scores: dict[Features, float] = field(default_factory=dict)

    def run(self, candidates: Sequence[int]) -> None:
        """Look for the best sets; ``candidates`` are in the order in which features of a bundle are added."""
        start = frozenset(self.kept)
        self._evaluate([start])
        for power in (1.0, 0.0):
            self._follow(start, candidates, power)
        best = self.best(self.budget)
        for _ in range(ROUNDS):
            if best is None:
                return
            drops = [best - {f} for f in sorted(best - start)]
            self._evaluate(drops)
            drops.sort(key=lambda s: -self._worth(s))
            swaps = [self._extend(s, [f]) for s in drops[:SWAPPED_OUT] for f in candidates if f not in best]
            self._evaluate(swaps)
            before, best = best, self.best(self.budget)
            if best == before:
                return

    def walk(self, ranking: Sequence[int]) -> None:
        """Take the first features of a ranking that can be paid for, without a search."""
        self._evaluate([self._extend(frozenset(self.kept), ranking)])

    def best(self, budget: float) -> Features | None:
        """The cheapest and then smallest set within a hundredth of the best that this budget pays for; or None."""
        paid = [s for s in self.scores if self.costs.total(s) <= budget and self._lacking(s) == 0]
        if not paid:
            return None
        highest = max(map(self._worth, paid))
        enough = highest - MARGIN * max(0.0, highest - self.nothing)
        good = [s for s in paid if self._worth(s) >= enough]
        return min(good, key=lambda s: (self.costs.total(s), len(s), -self._worth(s), sorted(s)))

    def _follow(self, selected: Features, candidates: Sequence[int], power: float) -> None:
        """Add what gains most per cost to this power, until nothing can be paid or nothing was gained for a while."""
        highest, waited = self._worth(selected), 0
        while waited < PATIENCE:
            moves = [[f] for f in candidates] + [[f for f in candidates if f in own] for own in self._bundles]
            reached = list(dict.fromkeys(self._extend(selected, each) for each in moves))
            reached = [s for s in reached if s != selected]
            if not reached:
                return
            self._evaluate(reached)
            before, paid = self._worth(selected), self.costs.total(selected)

            def value(s: Features, before: float = before, paid: float = paid) -> tuple[float, list[int]]:
                gain, extra = self._worth(s) - before, self.costs.total(s) - paid
                smallest = 1e-6 * max(1.0, float(self.costs.prices.sum()))
                return (gain / max(extra, smallest) ** power if gain > 0 else gain, [-f for f in sorted(s)])

            selected = max(reached, key=value)
            better = self._worth(selected) > highest
            highest, waited = max(highest, self._worth(selected)), 0 if better else waited + 1

    @property
    def _bundles(self) -> list[set[int]]:
        return [set(own) for own in self.costs.bundles()]

    def _extend(self, selected: Features, features: Iterable[int]) -> Features:
        """The set with those of the features added that k, the quotas and the budget allow."""
        for feature in features:
            larger = selected | {feature}
            if feature in selected or len(larger) > self.k or self.costs.total(larger) > self.budget:
                continue
            if self._allows(selected, feature):
                selected = larger
        return selected

    def _allows(self, selected: Features, feature: int) -> bool:
        """Whether quotas allow a feature next: what they lack comes first."""
        if self.quotas is None:
            return True
        own = sorted(selected)
        return bool(replace(self.quotas, k=len(own) + max(1, self._lacking(selected))).takeable(own)[feature])

    def _lacking(self, selected: Features) -> int:
        return 0 if self.quotas is None else self.quotas.lacking(sorted(selected))

    def _worth(self, features: Features) -> float:
        return self.scores[features] - self.rate * self.costs.total(features)

    def _evaluate(self, sets: Sequence[Features]) -> None:
        new = [s for s in dict.fromkeys(sets) if s not in self.scores]
        self.scores |= {s: self.nothing for s in new if not s}
        scored = [s for s in new if s]
        if scored:
            self.scores |= dict(zip(scored, self.score(scored), strict=True))
