"""What a standings allows to be said, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqatt.comparison.results_table import ResultsTable
from seqatt.comparison.runs import ALL
from seqatt.comparison.statistics import LOWER_IS_BETTER

WORDS = {"auc": "AUC", "r2": "R²", "rmse": "RMSE", "log_loss": "log loss"}


def conclude(standings: ResultsTable) -> str:
    """A line for each k, and one for all features where they were asked for."""
    lines = [_at(standings, k) for k in standings.k]
    return "\n".join(line for line in [*lines, _beside_all(standings)] if line)


def name(metric: str) -> str:
    """A metric, in words."""
    return WORDS.get(metric, metric)


def figure(value: float, metric: str) -> str:
    """Three decimals; four digits for what has the target's units."""
    return f"{value:,.4g}" if metric == "rmse" else f"{value:.3f}"


def _at(standings: ResultsTable, k: int) -> str:
    best, metric = standings.best(k), standings.metric
    if best is None:
        done = any(cell.error is None for cell in standings.cells if cell.k == k and cell.method != ALL)
        why = f"{name(metric)} is undefined in every run" if done else "no method got to a result"
        return f"k = {k}: {why}."
    mean = next(r["mean"] for r in standings.table() if (r["method"], r["k"]) == (best, k))
    score = f"({name(metric)} {figure(mean, metric)})"
    others = standings.differences(k)
    known = [d for d in others if d["within_sd"] is not None]
    if not others:
        return f"k = {k}: {best} {score}, with nothing to compare it with."
    if not known:
        level = [d["method"] for d in others if d["ahead"] == 0]
        first = f"{_listed([best, *level])} are level" if level else f"{best} comes first"
        return f"k = {k}: {first} {score}, but one run cannot tell; use more seeds."
    near = [d["method"] for d in known if d["near"]]
    behind = [d for d in known if not d["near"]]
    unsure = [d for d in behind if not d["clear"]]
    if not near and not unsure:
        text = f"k = {k}: {best} is best {score}, {_ahead(behind[0], metric)}."
    elif not near:
        text = f"k = {k}: {best} has the best mean {score}, {_ahead(unsure[0], metric)}; "
        unknown = "the spread is unknown, so chance is not ruled out"
        chance = f"chance can do that in {unsure[0]['runs']} runs"
        text += f"{chance if unsure[0]['sd'] else unknown}."
    else:
        text = f"k = {k}: {best} has the best mean {score}; "
        text += f"{_listed(near)} {_are(near)} within one standard deviation of it."
        if behind:
            apart = figure(behind[0]["ahead"], metric)
            text += f" Of the rest {behind[0]['method']} is nearest, {apart} behind."
    if best == "random" or "random" in near:
        how = "first" if best == "random" else "that near"
        text += f" With random features {how}, it is not shown that choosing helps."
    return text


def _ahead(behind: dict[str, Any], metric: str) -> str:
    apart, wins = figure(behind["ahead"], metric), f"better in {behind['wins']} of {behind['runs']} runs"
    text = f"ahead of {behind['method']} by {apart}: {wins}"
    if not behind["sd"]:
        return f"{text}, always by the same"
    return f"{text}, {behind['ahead'] / behind['sd']:.1f} standard deviations of the difference"


def _beside_all(standings: ResultsTable) -> str:
    whole = next((r for r in standings.table() if r["method"] == ALL), None)
    if whole is None or whole["mean"] is None:
        return ""
    metric, most = standings.metric, standings.k[-1]
    text = f"All {whole['k']} features: {name(metric)} {figure(whole['mean'], metric)}"
    best = standings.best(most)
    if best is None:
        return f"{text}."
    mean = next(r["mean"] for r in standings.table() if (r["method"], r["k"]) == (best, most))
    better = (whole["mean"] - mean) * (-1 if metric in LOWER_IS_BETTER else 1)
    apart = figure(abs(better), metric)
    if float(apart.replace(",", "")) == 0:
        return f"{text}, no better and no worse than the best choice of {most}."
    return f"{text}, {apart} {'better' if better > 0 else 'worse'} than the best choice of {most}."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
