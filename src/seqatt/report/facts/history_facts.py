"""How the scores of selected features and runners-up moved through the phases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from seqatt.report.values import show_name

if TYPE_CHECKING:
    from seqatt.selection import Selection

MAX_SELECTED, MAX_RUNNERS_UP = 24, 6  # rows
MAX_PHASES = 48  # columns; of more phases, those in between are left out


def history_facts(selection: Selection) -> dict[str, Any] | None:
    """Scores by feature and phase, from 0 (the lowest score of the phase) to 1 (the highest); None without scores.

    A feature has no score in phases in which it is selected. "marks" are the phases at whose end a feature was
    selected ("+") or dropped ("-"), by their position.
    """
    phases = [_plain_phase(number, entry) for number, entry in enumerate(selection.history, 1)]
    scored = [phase for phase in phases if phase["scores"]]
    if len(scored) < 2:
        return None
    active = [phase for phase in phases if phase["scores"] or phase["taken"] or phase["dropped"]]
    shown, groups = _thin_out(active)
    ranked = [str(selection.names[i]) for i in selection.ranking.argsort()]
    k = len(selection.features)
    rows = [_row(name, shown, groups, True) for name in ranked[: min(k, MAX_SELECTED)]]
    rows += [_row(name, shown, groups, False) for name in ranked[k : k + MAX_RUNNERS_UP]]
    rows = [row for row in rows if row["selected"] or any(v is not None for v in row["values"])]
    losses = [{"phase": phase["phase"], "loss": phase["loss"]} for phase in phases if phase["loss"]]
    return {
        "phases": [phase["phase"] for phase in shown],
        "all_phases": len(phases),
        "rows": rows,
        "losses": losses,
        "not_shown": max(0, k - MAX_SELECTED),
    }


def _plain_phase(number: int, entry: dict[str, Any]) -> dict[str, Any]:
    scores = {str(name): float(score) for name, score in (entry.get("scores") or {}).items()}
    finite = {name: score for name, score in scores.items() if math.isfinite(score)}
    low, high = min(finite.values(), default=0.0), max(finite.values(), default=0.0)
    relative = {name: (s - low) / (high - low) if high > low else 1.0 for name, s in finite.items()}
    return {
        "phase": number,
        "loss": entry.get("loss"),
        "taken": [str(name) for name in entry.get("taken", [])],
        "dropped": [str(name) for name in entry.get("dropped", [])],
        "scores": relative,
    }


def _thin_out(phases: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """At most MAX_PHASES phases, and with each the ones since the one before, whose marks it gets."""
    step = -(-len(phases) // MAX_PHASES)
    groups = [phases[start : start + step] for start in range(0, len(phases), step)]
    return [group[-1] for group in groups], groups


def _row(
    name: str, shown: list[dict[str, Any]], groups: list[list[dict[str, Any]]], selected: bool
) -> dict[str, Any]:
    values = [phase["scores"].get(name) for phase in shown]
    marks = {}
    for position, group in enumerate(groups):
        for phase in group:
            if name in phase["taken"]:
                marks[str(position)] = "+"
            if name in phase["dropped"]:
                marks[str(position)] = "-"
    rounded = [None if value is None else round(value, 3) for value in values]
    return {"feature": show_name(name), "selected": selected, "values": rounded, "marks": marks}
