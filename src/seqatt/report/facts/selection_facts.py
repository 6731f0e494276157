"""The facts of a selection: everything that its report shows, as plain lists, numbers and texts, ready for JSON.

The page, the notebook display and the plots show facts and compute nothing. A section appears if its facts are there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqatt.report.facts.confidence_facts import (
    discovery_facts,
    importance_columns,
    importance_facts,
    stability_columns,
    stability_facts,
    without_lists,
)
from seqatt.report.facts.constraint_facts import constraint_sentence, frontier_facts
from seqatt.report.facts.history_facts import history_facts
from seqatt.report.facts.sentences import next_steps, summarize
from seqatt.report.values import finite, plain_facts, show_name
from seqatt.selection_file import why_empty

if TYPE_CHECKING:
    from seqatt.selection import Selection

FACTS_FORMAT = 1
NOT_SELECTED = "no feature was selected"  # in a run that was stopped
MAX_FEATURES = 500  # rows of the table of features; the others are in selection.json
SETS = ("selected", "random", "all")  # of features that are evaluated, in this order
# Settings that a report shows elsewhere than among settings.
OWN_SECTIONS = ("command", "options", "rows", "classes", "task", "k", "columns", "skipped", "notes", "target")


def selection_facts(
    selection: Selection,
    *,
    evaluation: Any = None,
    data: dict[str, Any] | None = None,
    image_shape: Sequence[int] | None = None,
    target: str | None = None,
    column: str | None = None,
) -> dict[str, Any]:
    """All facts of a selection; ``data`` are those of its table (``data_facts``), ``evaluation`` is on test rows.

    ``target`` names the target for people; ``column`` is its column in the table, if it is one, by default that of the
    settings.
    """
    column = selection.settings.get("target") if column is None else column
    if target is None and column is not None:
        target = ", ".join(column.split(","))
    facts: dict[str, Any] = {
        "format": FACTS_FORMAT,
        "kind": "selection",
        "method": selection.method,
        "seed": selection.seed,
        "target": None if target is None else show_name(target),
        "selected": len(selection.features),
        "available": len(selection.names),
        "empty": None if selection.features else why_empty(selection) or NOT_SELECTED,
        "partial": selection.settings.get("partial"),
        "constraints": constraint_sentence(selection.settings, selection.features),
        "notes": selection.notes,
        "features": feature_rows(selection),
        "curve": selection.curve,
        "frontier": frontier_facts(selection),
        "evaluation": None if evaluation is None else evaluation_facts(evaluation),
        "history": history_facts(selection),
        "importance": importance_facts(selection),
        "stability": stability_facts(selection),
        "false_discoveries": discovery_facts(selection),
        "chance": without_lists(selection.chance),
        "image": None if image_shape is None else image_facts(selection, image_shape, data),
        "distributions": (data or {}).get("distributions"),
        "correlation": (data or {}).get("correlation"),
        "data": table_summary(selection, data),
        "settings": {n: v for n, v in selection.settings.items() if n not in OWN_SECTIONS},
        "environment": dict(selection.environment),
        "seconds": selection.seconds,
        "timings": dict(selection.timings),
        "command": selection.settings.get("command"),
        "code": selection_code(selection, column),
    }
    facts["summary"] = summarize(facts)
    facts["next"] = next_steps(facts)
    return plain_facts(facts)


def feature_rows(selection: Selection, limit: int | None = MAX_FEATURES) -> list[dict[str, Any]]:
    """One row per selected feature, in order: rank, name, score, and what was measured of each."""
    curve = selection.curve or {}
    metric_at = dict(zip(curve.get("sizes", []), curve.get("means", []), strict=False))
    rows: list[dict[str, Any]] = [
        {"rank": rank, "feature": show_name(name), "score": finite(score)}
        for rank, (name, score) in enumerate(zip(selection.features, selection.scores, strict=True), 1)
    ]
    for row, importance, frequency in zip(
        rows, importance_columns(selection), stability_columns(selection), strict=True
    ):
        row |= importance | frequency
        if curve:
            row["metric"] = finite(metric_at.get(row["rank"]))
    return rows[:limit]


def evaluation_facts(evaluation: Any) -> dict[str, Any]:
    """Metrics on test rows of the selected, random and all features.

    ``evaluation`` is an ``Evaluation`` of the selected features, several by name ("selected", "random", "all"), or the
    contents of evaluation.json.
    """
    sets = evaluation.get("holdout", evaluation) if isinstance(evaluation, Mapping) else evaluation
    if hasattr(sets, "metric"):
        sets = {"selected": sets}
    unknown = [name for name in sets if name not in SETS] if isinstance(sets, Mapping) else [evaluation]
    if unknown or not sets:
        raise ValueError(
            "evaluation: must be an Evaluation, or several by the names 'selected', 'random' and 'all', got "
            f"{unknown[0] if unknown else evaluation!r}"
        )
    made = [_evaluated_set(name, sets[name]) for name in SETS if name in sets]
    rows = evaluation.get("rows") if isinstance(evaluation, Mapping) and "holdout" in evaluation else None
    return {"rows": rows, "metrics": list(made[0]["values"]), "sets": made}


def _evaluated_set(name: str, result: Mapping[str, Any]) -> dict[str, Any]:
    metrics = {m: [finite(v) for v in result[m]] for m in result if m not in ("features", "seeds")}
    values = {}
    for metric, per_seed in metrics.items():
        known = [v for v in per_seed if v is not None]
        mean = sum(known) / len(known) if known else None
        sd = None if mean is None else math.sqrt(sum((v - mean) ** 2 for v in known) / len(known))
        values[metric] = {"mean": mean, "sd": sd, "values": per_seed}
    return {"name": name, "features": result.get("features"), "values": values}


def image_facts(selection: Selection, shape: Sequence[int], data: dict[str, Any] | None) -> dict[str, Any]:
    """Rank by pixel of the selected pixels; with a table also the mean of every pixel, from 0 to 1."""
    sizes = [int(size) for size in shape]
    if len(sizes) != 2 or min(sizes) < 1 or sizes[0] * sizes[1] != len(selection.input_names):
        raise ValueError(
            f"image_shape: must be the height and width of images of {len(selection.input_names)} pixels, "
            f"got {tuple(shape)}"
        )
    ranks = {
        str(column): rank
        for rank, index in enumerate(selection.indices.tolist(), 1)
        for column in selection.input_columns[index]
    }
    return {"shape": sizes, "ranks": ranks, "means": (data or {}).get("pixel_means")}


def table_summary(selection: Selection, data: dict[str, Any] | None) -> dict[str, Any]:
    """Facts about the data of a selection: rows, features, kind of target, files, and with a table its classes."""
    settings = selection.settings
    summary: dict[str, Any] = {
        "rows": settings.get("rows"),
        "features": len(selection.names),
        "input_columns": len(selection.input_names),
        "task": settings.get("task"),
        "classes": settings.get("classes"),
        "files": settings.get("files"),
        "reading": settings.get("reading"),
    }
    known = {name: value for name, value in summary.items() if value is not None}
    return known | ((data or {}).get("summary") or {})


def selection_code(selection: Selection, column: str | None) -> str:
    """Python code that repeats the selection on the same table; ``column`` is its target, if it is a column."""
    settings = selection.settings
    k = "auto" if selection.curve else settings.get("k", len(selection.features))
    if selection.false_discoveries is not None or selection.frontier is not None:
        k = settings.get("max_k")  # their number was found; k is the most that may be chosen
    given = {} if k is None else {"k": k}
    given |= {"method": selection.method, "seed": selection.seed}
    given |= {"device": selection.environment.get("device", "auto")} | settings.get("options", {})
    return call_code("select", given, column)


def call_code(function: str, given: Mapping[str, Any], column: str | None) -> str:
    """A call of a function of seqatt with a table and a target."""
    data = ["X", "y"] if column is None else ["X", f"target={column!r}"]
    if given.get("task") == "reconstruction":  # has no target
        data = ["X"]
    return f"seqatt.{function}({', '.join([*data, *(f'{n}={_literal(v)}' for n, v in given.items())])})"


def _literal(value: Any) -> str:
    """A value as Python code; what is code itself by its name."""
    if isinstance(value, dict) and list(value) == ["code"]:
        return str(value["code"])
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_literal(item)}" for name, item in value.items()) + "}"
    return repr(value)
