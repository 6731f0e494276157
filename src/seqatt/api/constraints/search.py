"""The search for the best set of features that a budget pays for.

Two greedy paths start from the features that are kept. One adds what gains most per unit of cost, the other what gains
most (Leskovec et al. 2007: the better of the two is never far from the best set, if gains diminish). What is added is a
feature, or all features of something that several share, because its first feature pays for the others. The best set
of both paths is then improved by exchanges of up to two features, or of all that share something, for as many others.
What an exchange brings is estimated from what each feature gains and loses by itself, and the most promising ones are
tried. Every set that is tried costs a few trainings, so a path tries only the features that may be the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

from seqatt.api.constraints.costs import Costs
from seqatt.training.selection_state import Quotas

Features = frozenset[int]
Move = tuple[int, ...]  # features that are added together
MARGIN = 0.01  # share of what the best set gains over none that counts as nothing: the cheaper set is chosen
PATIENCE = 3  # steps of a path without a better set after which it ends: one of a pair may be useless alone
ROUNDS = 4  # of exchanges, at most
PAIRED = 6  # most promising features, from which pairs are exchanged
EXCHANGES = 40  # that are tried in a round
TOGETHER = 20  # of these, the most promising first, until one is better
TRIED = 4  # moves of a path that are tried at a time: their networks train together


@dataclass
class BudgetSearch:
    """A search among sets of at most ``k`` features.

    ``score`` gives the scores of sets on held-out rows, and ``nothing`` is the score without features. A unit of cost
    must gain ``rate``: the worth of a set is its score minus ``rate`` times its cost.
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

    def __post_init__(self) -> None:
        self._bundles = [set(bundle) for bundle in self.costs.bundles()]

    def run(self, candidates: Sequence[int]) -> None:
        """Look for the best sets; ``candidates`` are in the order in which features of a bundle are added."""
        start = frozenset(self.kept)
        self._evaluate([start])
        for power in (1.0, 0.0):
            self._follow(start, candidates, power)
        for _ in range(ROUNDS):
            paid = self._paid(self.budget)
            if not paid:
                return
            best = max(paid, key=lambda s: (self._worth(s), -self.costs.total(s)))
            exchanges, before = self._exchanges(best, candidates), self._highest()
            for first in range(0, len(exchanges), TOGETHER):
                self._evaluate(exchanges[first : first + TOGETHER])
                if self._highest() > before:
                    break
            if self._highest() <= self._worth(best):
                return

    def _exchanges(self, best: Features, candidates: Sequence[int]) -> list[Features]:
        """The most promising sets that differ from the best in a few features; what is left is spent, too."""
        exchanged = [*sorted(best - set(self.kept)), *(f for f in candidates if f not in best)]
        # Some of these cannot be paid for, and only tell what they gain.
        self._evaluate([best ^ {f} for f in exchanged])
        change = {f: self.scores[best ^ {f}] - self.scores[best] for f in exchanged}
        exchanged.sort(key=lambda f: (-change[f], f))
        inside, outside = ([f for f in exchanged if (f in best) == is_in] for is_in in (True, False))
        per_cost = sorted(outside, key=lambda f: -change[f] / (1e-9 + self.costs.total([f])))
        into = {*self._subsets(outside), *self._subsets(per_cost)}
        estimates: dict[Features, float] = {}
        for out, added, rest in product([(), *combinations(inside, 1)], into, (outside, per_cost)):
            roomy = self._make_room(best - set(out), frozenset(added), change)
            reached = self._extend(self._extend(roomy, added), rest)
            estimate = self.scores[best] + sum(change[f] for f in reached ^ best)
            estimates[reached] = estimate - self.rate * self.costs.total(reached)
        return sorted(estimates, key=lambda s: (-estimates[s], sorted(s)))[:EXCHANGES]

    def _subsets(self, features: Sequence[int]) -> list[tuple[int, ...]]:
        """Candidate subsets to add: empty, single features, pairs of the ``PAIRED`` best, and whole bundles."""
        bundles = [tuple(f for f in features if f in bundle) for bundle in self._bundles]
        few = [(), *combinations(features, 1), *combinations(features[:PAIRED], 2)]
        return few + [bundle for bundle in bundles if len(bundle) > 2]

    def _make_room(self, selected: Features, added: Features, change: dict[int, float]) -> Features:
        """The set without what it loses least per cost, until the others can be added; ``change`` is without each."""
        while len(selected | added) > self.k or self.costs.total(selected | added) > self.budget:
            loose = selected.difference(self.kept)
            total = self.costs.total(selected | added)
            values: dict[Features, float] = {}
            for unit in [frozenset([f]) for f in loose] + [loose.intersection(b) for b in self._bundles]:
                saved = total - self.costs.total((selected - unit) | added)
                if unit and (saved > 0 or total <= self.budget):
                    values[unit] = -sum(change[f] for f in unit) / max(saved, 1e-9)
            if not values:
                break
            dropped: Features = min(values, key=lambda unit: values[unit])
            selected = selected - dropped
        return selected

    def walk(self, ranking: Sequence[int]) -> None:
        """Take the first features of a ranking that can be paid for, without a search."""
        self._evaluate([self._extend(frozenset(self.kept), ranking)])

    def best(self, budget: float) -> Features | None:
        """The cheapest and then smallest set within a hundredth of the best that this budget pays for; or None."""
        paid = self._paid(budget)
        if not paid:
            return None
        highest = max(map(self._worth, paid))
        enough = highest - MARGIN * max(0.0, highest - self.nothing)
        good = [s for s in paid if self._worth(s) >= enough]
        return min(good, key=lambda s: (self.costs.total(s), len(s), -self._worth(s), sorted(s)))

    def _follow(self, selected: Features, candidates: Sequence[int], power: float) -> None:
        """Add what gains most per cost to this power, until nothing can be paid or nothing was gained for a while.

        What a move gained when it was last tried bounds what it gains now, if gains diminish (Minoux 1978): moves are
        tried from the highest bound on, until one gains more than the bounds of all others.
        """
        moves: list[Move] = [(f,) for f in candidates]
        moves += [tuple(f for f in candidates if f in b) for b in self._bundles]
        gains = dict.fromkeys(moves, float("inf"))
        highest, waited = self._worth(selected), 0
        smallest = 1e-6 * max(1.0, float(self.costs.prices.sum()))
        reached: dict[Move, Features] = {}

        def value(move: Move) -> tuple[float, list[int]]:
            gain, extra = gains[move], self.costs.total(reached[move]) - self.costs.total(selected)
            per_cost = gain / max(extra, smallest) ** power if gain > 0 else gain
            return per_cost, [-f for f in sorted(reached[move])]

        while waited < PATIENCE:
            before = self._worth(selected)
            reached = {move: self._extend(selected, move) for move in moves}
            reached = {move: s for move, s in reached.items() if s != selected}
            if not reached:
                return

            untried = sorted(reached, key=value, reverse=True)
            tried: list[Move] = []
            while untried and not (tried and max(map(value, tried)) >= value(untried[0])):
                now, untried = untried[:TRIED], untried[TRIED:]
                self._evaluate([reached[move] for move in now])
                gains |= {move: self._worth(reached[move]) - before for move in now}
                tried += now
            selected = reached[max(tried, key=value)]
            better = self._worth(selected) > highest
            highest, waited = max(highest, self._worth(selected)), 0 if better else waited + 1

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
        taken = sorted(selected)
        k = len(taken) + max(1, self.quotas.lacking(taken))
        return bool(replace(self.quotas, k=k).takeable(taken)[feature])

    def _paid(self, budget: float) -> list[Features]:
        """The sets that were tried and are an answer for this budget."""
        small = [s for s in self.scores if len(s) <= self.k and self.costs.total(s) <= budget]
        return [s for s in small if self.quotas is None or self.quotas.are_met(sorted(s))]

    def _highest(self) -> float:
        return max(map(self._worth, self._paid(self.budget)))

    def _worth(self, features: Features) -> float:
        return self.scores[features] - self.rate * self.costs.total(features)

    def _evaluate(self, sets: Sequence[Features]) -> None:
        new = [s for s in dict.fromkeys(sets) if s not in self.scores]
        self.scores |= {s: self.nothing for s in new if not s}
        scored = [s for s in new if s]
        if scored:
            self.scores |= dict(zip(scored, self.score(scored), strict=True))
