"""Which features may be selected: names that a user gives become features of the data, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from seqatt.algorithms.answer_options import AnswerOptions, check_method
from seqatt.algorithms.registry import Method
from seqatt.api.constraints.costs import Costs, find_costs
from seqatt.api.lookup import find_features
from seqatt.data.tables.table_data import TableData, take_features
from seqatt.options import to_json
from seqatt.training.selection_state import Quotas
from seqatt.validation import show

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData


@dataclass(frozen=True)
class Constraints:
    """``data`` has the features that may be selected, ``kept`` are those that must be, ``quotas`` bounds of sets.

    Features are numbers in ``data``. ``excluded`` is how many features of the user's table are not in it.
    """

    data: TableData | FileData
    kept: tuple[int, ...]
    quotas: dict[Any, tuple[list[int], int, int | None]]
    excluded: int
    settings: dict[str, Any]
    costs: Costs | None = None

    def bound(self, k: int) -> Quotas | None:
        """The quotas of a selection of k features; None without any. Raises if k cannot be met."""
        fewest, most = self.sizes()
        if not fewest <= k <= most:
            raise ValueError(self._why_not(k, fewest, most))
        if not self.quotas:
            return None
        quota_of = np.full(self.data.features, len(self.quotas))
        for number, (features, _, _) in enumerate(self.quotas.values()):
            quota_of[features] = number
        bounds = [
            (least, len(features) if most is None else most) for features, least, most in self.quotas.values()
        ]
        least, most_of = np.array([*bounds, (0, self.data.features)]).T
        return Quotas(quota_of, least, most_of, k)

    def only(self, features: Sequence[int]) -> Constraints:
        """Constraints under which exactly these features, the kept ones included, are selected."""
        numbers = np.array(sorted(features))
        kept = tuple(int(np.searchsorted(numbers, f)) for f in self.kept)
        excluded = self.excluded + self.data.features - len(numbers)
        return Constraints(_take(self.data, numbers), kept[: len(numbers) - 1], {}, excluded, self.settings)

    def check_budget(self, budget: float | None) -> None:
        """Refuse a budget that does not pay for what must be selected, or for anything."""
        if self.costs is None or budget is None:
            return
        needed = self.costs.total(self.kept)
        if needed > budget:
            raise ValueError(
                f"budget: {budget:g} does not pay for the features of keep, which cost {needed:g} "
                f"({self.costs.explain(self.kept)})"
            )
        varying = np.flatnonzero(~self.data.constant).tolist()
        least = min(self.costs.total([*self.kept, f]) for f in varying)
        if least > budget:
            raise ValueError(f"budget: {budget:g} pays for no feature; the cheapest costs {least - needed:g}")

    def sizes(self) -> tuple[int, int]:
        """The fewest and the most features that can be selected."""
        needed, allowed = self._needed(), self._allowed()
        return max(1, sum(needed.values())), sum(allowed.values())

    def _needed(self) -> dict[str, int]:
        """The terms of the smallest possible number of features, by their description."""
        kept = set(self.kept)
        needed = {
            f"{show(name)} needs {max(least, len(kept & set(features)))}": max(
                least, len(kept & set(features))
            )
            for name, (features, least, _) in self.quotas.items()
        }
        free = kept - self._in_quotas()
        return needed | ({f"keep has {len(free)}{' others' if needed else ''}": len(free)} if free else {})

    def _allowed(self) -> dict[str, int]:
        """The terms of the largest possible number of features, by their description."""
        allowed = {}
        for name, (features, _, most) in self.quotas.items():
            count = len(features) if most is None else min(most, len(features))
            allowed[f"{show(name)} allows {count}"] = count
        free = self.data.features - len(self._in_quotas())
        return allowed | {f"{free} are in no quota" if allowed else f"{free} may be selected": free}

    def _in_quotas(self) -> set[int]:
        return {feature for features, _, _ in self.quotas.values() for feature in features}

    def _why_not(self, k: int, fewest: int, most: int) -> str:
        if k > most:
            why = " and ".join(self._allowed()) if self.quotas else f"{self.excluded} are excluded"
            return (
                f"k: {k} features requested, but at most {most} can be selected ({why}); use at most {most}, or allow "
                "more"
            )
        needed = " and ".join(self._needed())
        return f"k: {k} is less than the {fewest} features that are needed ({needed}); use at least {fewest}"


def find_constraints(
    data: TableData | FileData, answer: AnswerOptions, method: Method, options: Any
) -> Constraints:
    """The constraints of a selection on these data; what contradicts itself or names no feature is refused."""
    if answer.keeps:
        check_method(method, "keep:")
    constraints = _find(data, answer)
    constraints.check_budget(answer.budget)
    if isinstance(options.model, nn.Module) and (constraints.excluded or constraints.costs):
        fewer = (
            f"{constraints.excluded} features may not be selected"
            if constraints.excluded
            else "costs leave fewer"
        )
        raise ValueError(
            f"model: the module was made for all columns, and {fewer}; give a function (columns, outputs) that makes "
            f"the model, or leave out {'forbid and candidates' if constraints.excluded else 'costs'}"
        )
    return constraints


def _find(data: TableData | FileData, answer: AnswerOptions) -> Constraints:
    kept = find_features(data, answer.keep, "keep", named=True, prefer_names=True) if answer.keeps else []
    settings: dict[str, Any] = {"keep": kept} if kept else {}
    allowed = np.ones(data.features, dtype=bool)
    if answer.excludes:
        candidates, forbidden = (
            find_features(data, features, name, named=True, prefer_names=True)
            for name, features in (("candidates", answer.candidates), ("forbid", answer.forbid))
        )
        # A mask without True, or an empty Selection.
        if not candidates and (not isinstance(answer.candidates, tuple) or answer.candidates):
            raise ValueError("candidates: has no feature; leave it out if all may be selected")
        both = [feature for feature in forbidden if feature in kept]
        if both:
            name = show(data.given_names[both[0]])
            raise ValueError(f"forbid: {name} is in keep too; leave it out of one of them")
        if candidates:
            allowed[:] = False
            allowed[candidates + kept] = True
        allowed[forbidden] = False
        settings |= {n: f for n, f in (("forbid", forbidden), ("candidates", candidates)) if f}
        if not allowed.any() or data.constant[allowed].all():
            listed = " and ".join(n for n in ("candidates", "forbid") if n in settings)
            what = "no feature" if not allowed.any() else "only constant features"
            raise ValueError(f"{listed}: leave {what} of {data.features} to select; exclude fewer")
    all_quotas = _find_quotas(data, answer.quotas or {}, kept, allowed)
    named: dict[str, Any] = {name: _names(data, features) for name, features in settings.items()}
    if answer.quotas:
        named["quotas"] = {
            str(name): {"features": _names(data, features), "least": least, "most": most}
            for name, (features, least, most) in all_quotas.items()
        }
    costs = None
    if answer.costs:
        costs, named["costs"] = find_costs(data, answer.costs)
        limits = {"budget": answer.budget, "cost_rate": answer.cost_rate}
        named |= {name: value for name, value in limits.items() if value is not None}
    if allowed.all():
        return Constraints(data, tuple(kept), all_quotas, 0, named, costs)
    numbers = np.flatnonzero(allowed)
    costs = None if costs is None else costs.take(numbers)
    number_of = np.cumsum(allowed) - 1
    quotas = {
        name: ([int(number_of[f]) for f in features if allowed[f]], least, most)
        for name, (features, least, most) in all_quotas.items()
    }
    kept = [int(number_of[f]) for f in kept]
    return Constraints(_take(data, numbers), tuple(kept), quotas, int((~allowed).sum()), named, costs)


def _find_quotas(
    data: TableData | FileData,
    given: Mapping[Any, Mapping[str, Any]],
    kept: Sequence[int],
    allowed: NDArray[np.bool_],
) -> dict[Any, tuple[list[int], int, int | None]]:
    """The features and the bounds of each quota; each quota is checked."""
    quota_of: dict[int, Any] = {}
    quotas = {}
    for name, quota in given.items():
        features, least, most = (
            find_features(data, quota["features"], "quotas", named=True, prefer_names=True),
            quota["least"],
            quota["most"],
        )
        for feature in features:
            if feature in quota_of:
                raise ValueError(
                    f"quotas: {show(data.given_names[feature])} is in both {show(quota_of[feature])} and {show(name)}; "
                    "a feature is in one quota at most"
                )
            quota_of[feature] = name
        possible = sum(bool(allowed[f]) for f in features)
        if least > possible:
            excluded = (
                f", {len(features) - possible} of which are excluded" if possible < len(features) else ""
            )
            raise ValueError(
                f"quotas: {show(name)} needs at least {least} of {len(features)} features{excluded}; lower 'least'"
            )
        kept_here = sum(f in kept for f in features)
        if most is not None and kept_here > most:
            raise ValueError(
                f"keep: has {kept_here} features of the quota {show(name)}, which allows at most {most}"
            )
        quotas[name] = (features, least, most)
    return quotas


def _names(data: TableData | FileData, features: Sequence[int]) -> Any:
    return to_json([data.given_names[f] for f in features])


def _take(data: TableData | FileData, features: NDArray[np.int64]) -> TableData | FileData:
    return take_features(data, features) if isinstance(data, TableData) else data.take_features(features)
