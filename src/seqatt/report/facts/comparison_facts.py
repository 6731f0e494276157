"""The facts of a comparison: its table, its conclusion, and the metric of every method against k."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from seqatt.report.facts.selection_facts import FACTS_FORMAT, call_code
from seqatt.report.values import LOWER_IS_BETTER, finite, plain_facts, show_name

if TYPE_CHECKING:
    from seqatt.comparison.comparison import Comparison

ALL, RANDOM = "all", "random"  # references: all features, and random ones
MAX_FEATURES = 30  # rows of the table of features by method
OWN_SECTIONS = (
    "methods",
    "k",
    "seeds",
    "metric",
    "rows",
    "features",
    "task",
    "classes",
    "options",
    "command",
)


def comparison_facts(comparison: Comparison, *, target: str | None = None) -> dict[str, Any]:
    """All facts of a comparison."""
    settings = comparison.settings
    rows = comparison.table()
    behind = {(k, each["method"]): each for k in comparison.k for each in comparison.differences(k)}
    best = {k: comparison.best(k) for k in comparison.k}
    table = [
        row
        | {
            "best": row["method"] != ALL and best.get(row["k"]) == row["method"],
            "behind": behind.get((row["k"], row["method"]), {}).get("ahead"),
            "near": behind.get((row["k"], row["method"]), {}).get("near"),
        }
        for row in rows
    ]
    methods = [method for method in settings["methods"] if method != ALL]
    lines = [
        {"method": method, "reference": method == RANDOM, "points": _points(rows, method)}
        for method in methods
    ]
    everything = next((row for row in rows if row["method"] == ALL and row["mean"] is not None), None)
    names = ("rows", "features", "task", "classes")
    facts = {
        "format": FACTS_FORMAT,
        "kind": "comparison",
        "target": None if target is None else show_name(target),
        "methods": methods,
        "k": comparison.k,
        "seeds": settings["seeds"],
        "metric": comparison.metric,
        "lower_is_better": comparison.metric in LOWER_IS_BETTER,
        "conclusion": comparison.conclusion().split("\n"),
        "notes": comparison.notes(),
        "table": table,
        "lines": [each for each in lines if each["points"]],
        "all": everything,
        "features": _features(comparison, methods),
        "data": {name: settings[name] for name in names if settings.get(name) is not None},
        "settings": {n: v for n, v in settings.items() if n not in OWN_SECTIONS and not isinstance(v, dict)},
        "environment": dict(comparison.environment),
        "timings": {},
        "command": settings.get("command"),
        "code": comparison_code(settings),
    }
    return plain_facts(facts)


def _points(rows: list[dict[str, Any]], method: str) -> list[dict[str, Any]]:
    found = [row for row in rows if row["method"] == method and finite(row["mean"]) is not None]
    return [{name: row[name] for name in ("k", "mean", "sd", "runs")} for row in found]


def _features(comparison: Comparison, methods: list[str]) -> dict[str, Any] | None:
    """How often each method selected a feature, over the seeds of the largest k; the most frequent features."""
    k = comparison.k[-1]
    runs = [run for run in comparison.runs if run.k == k and run.error is None and run.method in methods]
    shown = [method for method in methods if method != RANDOM]
    per_method = {m: [set(run.features) for run in runs if run.method == m] for m in shown}
    per_method = {method: sets for method, sets in per_method.items() if sets}
    shares: Counter[str] = Counter()
    for sets in per_method.values():
        for features in sets:
            shares.update({name: 1 / len(sets) for name in features})
    if len(per_method) < 2:
        return None
    names = sorted(shares, key=lambda name: (-shares[name], name))[:MAX_FEATURES]
    return {
        "k": k,
        "methods": list(per_method),
        "rows": [
            {
                "feature": show_name(name),
                "shares": [sum(name in f for f in sets) / len(sets) for sets in per_method.values()],
            }
            for name in names
        ],
    }


def comparison_code(settings: dict[str, Any]) -> str:
    """Python code that repeats the comparison on the same table."""
    options = {method: own for method, own in settings.get("options", {}).items() if own}
    given: dict[str, Any] = {"k": settings["k"], "methods": settings["methods"]}
    given |= {"seeds": settings["seeds"], "metric": settings["metric"], "options": options}
    size = settings["test"].get("size")
    given |= {"test_size": size} if size is not None else {}
    given = {name: value for name, value in given.items() if value not in (None, {})}
    text = call_code("compare", given, None)
    return text if size is not None else f"{text[:-1]}, X_test=X_test, y_test=y_test)"
