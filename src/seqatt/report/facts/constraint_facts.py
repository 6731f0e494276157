"""What was asked for beside the number of features: features that are kept or excluded, quotas, costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqatt.report.values import count, show_name

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
        own = [str(feature) for feature in quota["features"]]
        bounds = [f"at least {quota['least']}"] if quota["least"] else []
        bounds += [f"at most {quota['most']}"] if quota["most"] is not None else []
        chosen = f"{len(selected.intersection(own))} of {count(len(own), 'feature')}"
        parts.append(f"Quota {show_name(name)}: {', '.join([chosen, *bounds])}.")
    return " ".join(parts)
