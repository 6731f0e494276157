"""Facts about constraints: features that are kept or excluded, quotas, costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seqatt.report.values import count, metric_name, score, show_name

if TYPE_CHECKING:
    from seqatt.selection import Selection

MAX_NAMED = 5  # features that are named; of more, their number is said


def constraint_sentence(settings: dict[str, Any], features: Sequence[Any]) -> str:
    """The constraints in the settings of a selection, and how many of these selected features a quota has; or ""."""
    parts = []
    for name, title in (("keep", "Kept"), ("forbid", "Forbidden"), ("candidates", "Candidates")):
        listed = settings.get(name) or []
        if listed:
            few = len(listed) == 1 or (name == "keep" and len(listed) <= MAX_NAMED)
            shown = ", ".join(map(show_name, listed)) if few else count(len(listed), "feature")
            parts.append(f"{title}: {shown}.")
    selected = {str(name) for name in features}
    for name, quota in (settings.get("quotas") or {}).items():
        members = [str(feature) for feature in quota["features"]]
        bounds = [f"at least {quota['least']}"] if quota["least"] else []
        bounds += [f"at most {quota['most']}"] if quota["most"] is not None else []
        chosen = f"{len(selected.intersection(members))} of {count(len(members), 'feature')}"
        parts.append(f"Quota {show_name(name)}: {', '.join([chosen, *bounds])}.")
    return " ".join(parts)


def frontier_facts(selection: Selection) -> dict[str, Any] | None:
    """Metric against cost, and what is paid for: of each price the features that need it, selected ones first."""
    frontier = selection.frontier
    if frontier is None:
        return None
    settings, selected = selection.settings, {str(name) for name in selection.features}
    paid = [
        {
            "name": show_name(name),
            "cost": price["cost"],
            "features": [show_name(f) for f in price["features"] if str(f) in selected],
        }
        for name, price in settings.get("costs", {}).items()
        if selected.intersection(map(str, price["features"]))
    ]
    limits = {name: settings.get(name) for name in ("budget", "cost_rate")}
    return frontier | limits | {"paid": sorted(paid, key=lambda each: -each["cost"])}


def frontier_sentence(frontier: dict[str, Any]) -> str:
    """A sentence on the cost and the score of the selected features, beside all features."""
    metric, at = metric_name(frontier["metric"]), frontier["costs"].index(frontier["cost"])
    budget = "" if frontier.get("budget") is None else f" of {frontier['budget']:,g}"
    return (
        f"Cost: {frontier['cost']:,g}{budget}; for that, {metric} {score(frontier['means'][at])} is reached in "
        f"cross-validation. All features cost {frontier['all_cost']:,g} and reach "
        f"{score(frontier['all_features'])}."
    )
