"""How sure an answer is: what each feature adds, how often it was selected, false discoveries, chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seqatt.report.values import finite, show_name

if TYPE_CHECKING:
    from seqatt.selection import Selection

MAX_FREQUENCIES = 40  # features in the chart of frequencies
MAX_MEMBERS = 8  # names per cluster, and per list of features that a selected one stands in for


def importance_facts(selection: Selection) -> dict[str, Any] | None:
    """How much the loss on held-out rows increases without each selected feature, and what stands in for it."""
    measured = selection.importance
    if measured is None:
        return None
    facts = {name: measured.get(name) for name in ("loss", "rows", "networks")}
    stand_ins = measured.get("stand_ins") or []
    listed = [
        {
            "feature": show_name(name),
            "of": [{"feature": show_name(n), "value": finite(v)} for n, v in own[:MAX_MEMBERS]],
        }
        for name, own in zip(selection.features, stand_ins, strict=False)
        if own
    ]
    return facts | {"stand_ins": listed}


def importance_columns(selection: Selection) -> list[dict[str, Any]]:
    """Importance and its standard error of each selected feature; empty dicts where it was not measured."""
    measured = selection.importance
    if measured is None:
        return [{} for _ in selection.features]
    values, errors = measured.get("increases", []), measured.get("standard_errors", [])
    return [
        {"importance": finite(value), "importance_error": finite(error)}
        for value, error in zip(values, errors, strict=True)
    ]


def stability_facts(selection: Selection) -> dict[str, Any] | None:
    """How often each feature was selected over the repeats, and the clusters of features that replace each other."""
    stability = selection.stability
    if stability is None:
        return None
    frequency, selected = stability["frequency"], set(selection.indices.tolist())
    order = [*selection.indices.tolist()]
    order += sorted(
        (i for i, f in enumerate(frequency) if f > 0 and i not in selected), key=lambda i: -frequency[i]
    )
    cluster_of = {i: n for n, each in enumerate(stability.get("clusters", []), 1) for i in each["features"]}
    rows = [
        {
            "feature": show_name(selection.names[i]),
            "frequency": finite(frequency[i]),
            "selected": i in selected,
            "cluster": cluster_of.get(i),
        }
        for i in order[:MAX_FREQUENCIES]
    ]
    clusters = [
        {
            "features": [show_name(selection.names[i]) for i in each["features"][:MAX_MEMBERS]],
            "size": len(each["features"]),
            "frequency": finite(each["frequency"]),
        }
        for each in stability.get("clusters", [])
    ]
    kept = ("repeats", "rows", "bounded", "threshold", "false_choices", "false_choices_any")
    return {n: stability.get(n) for n in kept} | {
        "features": rows,
        "clusters": clusters,
        "not_shown": max(0, len(order) - MAX_FREQUENCIES),
    }


def stability_columns(selection: Selection) -> list[dict[str, Any]]:
    """The share of the repeats that selected each selected feature."""
    if selection.stability is None:
        return [{} for _ in selection.features]
    return [{"frequency": finite(selection.stability["frequency"][i])} for i in selection.indices.tolist()]


def discovery_facts(selection: Selection) -> dict[str, Any] | None:
    """The promised and the estimated share of false discoveries."""
    found = selection.false_discoveries
    return None if found is None else {n: v for n, v in found.items() if n != "statistics"}


def without_lists(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """Single values of a finding: what a report shows of one that it has no section for."""
    if found is None:
        return None
    return {n: v for n, v in found.items() if isinstance(v, str | int | float | bool | None)}
