"""Options of every method about which features may be selected together, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seqatt.options import SELECTION, Options, option
from seqatt.validation import check_option_names, integer, number, show


def _kept(name: str, value: Any) -> Any:
    """Names, positions or a mask of features, or a ``Selection``; they are checked against the data."""
    if isinstance(value, set | frozenset):
        raise TypeError(f"{name}: a set has no order, in which the features come first; use a list")
    return _features(name, value)


def _features(name: str, value: Any) -> Any:
    """Names, positions or a mask of features, in any order; None and an empty list mean no features."""
    return () if value is None else tuple(value) if isinstance(value, list | set | frozenset) else value


def _quotas(name: str, value: Any) -> dict[Any, Any]:
    """{quota: {"features": ..., "least": ..., "most": ...}} with both bounds filled in; "most" may be None."""
    form = "{'lab': {'features': ['hdl', 'ldl'], 'least': 0, 'most': 1}}"
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: must be a dict such as {form}, got {show(value)}")
    quotas = {}
    for quota, bounds in value.items():
        if not isinstance(bounds, Mapping) or "features" not in bounds:
            raise TypeError(f"{name}: {show(quota)} must have 'features', as in {form}, got {show(bounds)}")
        check_option_names(f"{name}: {show(quota)}", bounds, ["features", "least", "most"])
        least = integer(0)(f"{name}: 'least' of {show(quota)}", bounds.get("least", 0))
        most = integer(0, optional=True)(f"{name}: 'most' of {show(quota)}", bounds.get("most"))
        if most is not None and most < least:
            raise ValueError(
                f"{name}: {show(quota)} needs at least {least} and allows at most {most} features; raise 'most'"
            )
        quotas[quota] = {"features": _listed(name, quota, bounds["features"]), "least": least, "most": most}
    return quotas


def _listed(name: str, key: Any, features: Any) -> list[Any]:
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        raise TypeError(f"{name}: the features of {show(key)} must be a list, got {show(features)}")
    return list(features)


def series_to_dict(name: str, value: Any) -> Any:
    """A Series of pandas as a dict from its index to its values; any other value as it is."""
    if not (hasattr(value, "to_dict") and hasattr(value, "index") and getattr(value, "ndim", 0) == 1):
        return value
    if not value.index.is_unique:
        twice = value.index[value.index.duplicated()].tolist()[0]
        raise ValueError(f"{name}: {show(twice)} appears twice in the index of the Series")
    return value.to_dict()


def _costs(name: str, value: Any) -> dict[Any, Any]:
    """{name: {"cost": ..., "features": ...}}, where the features of a plain {feature: cost} are None."""
    form = "{'mri': 500, 'blood test': {'cost': 40, 'features': ['hdl', 'ldl']}}"
    if value is None:
        return {}
    value = series_to_dict(name, value)
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: must be a dict such as {form}, got {type(value).__name__}")
    costs = {}
    for key, price in value.items():
        shared = isinstance(price, Mapping)
        if shared and not {"cost", "features"} <= set(price):
            raise TypeError(
                f"{name}: {show(key)} must have 'cost' and 'features', as in {form}, got {show(price)}"
            )
        if shared:
            check_option_names(f"{name}: {show(key)}", price, ["cost", "features"])
        cost = number(minimum=0)(f"{name}: that of {show(key)}", price["cost"] if shared else price)
        costs[key] = {"cost": cost, "features": _listed(name, key, price["features"]) if shared else None}
    return costs


@dataclass(frozen=True)
class ConstraintOptions(Options):
    """Which features may be selected, and how many of them."""

    keep: Any = option(
        (),
        _kept,
        "Features that are selected from the start, by name or as an earlier Selection; they are among the k, first "
        "and in this order. Methods that rank features add the best of their ranking, Sequential Attention those that "
        "are best beside them.",
        group=SELECTION,
    )
    forbid: Any = option(
        (),
        _features,
        "Features that may not be selected; they take no part in the training.",
        group=SELECTION,
    )
    candidates: Any = option(
        (),
        _features,
        "Features that may be selected, beside those of keep; by default all. The others take no part in the training.",
        group=SELECTION,
    )
    quotas: Mapping[Any, Mapping[str, Any]] | None = option(
        None,
        _quotas,
        "{name: {'features': [...], 'least': 0, 'most': 3}}: how many of these features are selected, at least and at "
        "most. A feature is in one quota at most.",
        group=SELECTION,
    )

    costs: Mapping[Any, Any] | None = option(
        None,
        _costs,
        "{feature: cost} or such a Series of pandas, and {name: {'cost': 40, 'features': [...]}} for what several "
        "features share, which is paid once; other features are free. With budget, cost_rate or both.",
        group=SELECTION,
    )
    budget: float | None = option(
        None,
        number(minimum=0, optional=True),
        "With costs, what the selected features may cost together; k is then the most features, and may be left out.",
        group=SELECTION,
    )
    cost_rate: float | None = option(
        None,
        number(above=0, optional=True),
        "With costs, how much a unit of cost must raise the metric (AUC, accuracy or R²), such as 0.0001; k is then "
        "the most features, and may be left out.",
        group=SELECTION,
    )

    def check_together(self) -> None:
        for name in ("budget", "cost_rate"):
            if getattr(self, name) is not None and not self.costs:
                raise ValueError(f"{name}: needs costs, such as costs={{'mri': 500}}")
        if self.costs and not self.has_budget:
            raise ValueError("costs: need a budget, such as budget=100, or a cost_rate")

    @property
    def has_budget(self) -> bool:
        """Whether features are selected by what they cost."""
        return self.budget is not None or self.cost_rate is not None

    @property
    def keeps(self) -> bool:
        """Whether features are given that must be selected."""
        return _is_given(self.keep)

    @property
    def excludes(self) -> bool:
        """Whether some features may not be selected."""
        return _is_given(self.forbid) or _is_given(self.candidates)

    @property
    def depends_on_k(self) -> bool:
        """Whether the features for a smaller k need not be the first of those for a larger one."""
        return self.keeps or bool(self.quotas) or self.has_budget


def _is_given(features: Any) -> bool:
    return not isinstance(features, tuple) or bool(features)
