"""The conclusion of a comparison in words, limited to what its statistics support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqatt.comparison.results_table import ResultsTable
from seqatt.comparison.runs import ALL
from seqatt.display_text import LOWER_IS_BETTER, metric_name


def conclude(results: ResultsTable) -> str:
    """One line per k, and one for all features if they were compared."""
    lines = [_conclude_k(results, k) + _limits(results, k) for k in results.k]
    return "\n".join(line for line in [*lines, _conclude_all_features(results)] if line)


def join_names(names: Sequence[str]) -> str:
    """Names as in a sentence: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def name_seeds(seeds: Sequence[int]) -> str:
    """Seeds as in a sentence: "seeds 0, 1 and 2"."""
    return f"seed{'s' if len(seeds) > 1 else ''} {join_names([str(seed) for seed in seeds])}"


def format_score(value: float, metric: str) -> str:
    """Three decimals; four significant digits for metrics in units of the target."""
    return f"{value:,.4g}" if metric == "rmse" else f"{value:.3f}"


def _conclude_k(results: ResultsTable, k: int) -> str:
    best, metric = results.best(k), results.metric
    if best is None:
        runs = [run for run in results.runs if run.k == k and run.method != ALL]
        reason = "every run failed" if runs else "no run was made"
        if any(run.error is None for run in runs):
            reason = f"{metric_name(metric)} is undefined in every run"
        return f"k = {k}: {reason}."
    mean = next(r["mean"] for r in results.table() if (r["method"], r["k"]) == (best, k))
    score = f"({metric_name(metric)} {format_score(mean, metric)})"
    others = results.differences(k)
    known = [d for d in others if d["within_sd"] is not None]
    if not others:
        return f"k = {k}: {best} {score}, with nothing to compare it with."
    if not known:
        level = [d["method"] for d in others if d["ahead"] == 0]
        first = f"{join_names([best, *level])} are level" if level else f"{best} comes first"
        return f"k = {k}: {first} {score}, but one run cannot tell; use more seeds."
    near = [d["method"] for d in known if d["near"]]
    behind = [d for d in known if not d["near"]]
    unsure = [d for d in behind if not d["significant"]]
    if not near and not unsure:
        text = f"k = {k}: {best} is best {score}, {_margin(behind[0], metric)}."
    elif not near:
        text = f"k = {k}: {best} has the best mean {score}, {_margin(unsure[0], metric)}"
        unknown = "; the spread is unknown, so chance is not ruled out"
        text += f", which may be chance in {unsure[0]['runs']} runs." if unsure[0]["sd"] else f"{unknown}."
    else:
        text = f"k = {k}: {best} has the best mean {score}; "
        text += f"{join_names(near)} {'is' if len(near) == 1 else 'are'} within one standard deviation of it."
        if behind:
            difference = format_score(behind[0]["ahead"], metric)
            text += f" Of the rest {behind[0]['method']} is nearest, {difference} behind."
    if best == "random":
        text += " No method has a better mean than random features, so it is not shown that selection helps."
    elif "random" in near:
        text += " Random features are not significantly worse, so it is not shown that selection helps."
    return text


def _limits(results: ResultsTable, k: int) -> str:
    """Sentence on the runs that an interrupted comparison lacks at ``k``; empty if none is missing."""
    missing = [key for key in results.missing_runs() if key[1] == k and key[0] != ALL]
    seeds = results.compared_seeds(k)
    if not missing or not seeds:
        return ""
    absent = [
        method
        for method in dict.fromkeys(key[0] for key in missing)
        if not any(run.method == method and run.k == k and run.seed in seeds for run in results.runs)
    ]
    text = f" Interrupted: compared over {len(seeds)} of {len(results.settings['seeds'])} seeds"
    if absent:
        text += f", without {join_names(absent)}"
    return f"{text}."


def _margin(other: dict[str, Any], metric: str) -> str:
    """By how much the best method is ahead of another one."""
    wins = f"better in {other['wins']} of {other['runs']} runs"
    text = f"ahead of {other['method']} by {format_score(other['ahead'], metric)}: {wins}"
    if not other["sd"]:
        return f"{text}, by the same amount in every run"
    return f"{text}, {other['ahead'] / other['sd']:.1f} standard deviations of the difference"


def _conclude_all_features(results: ResultsTable) -> str:
    all_row = next((r for r in results.table() if r["method"] == ALL), None)
    if all_row is None or all_row["mean"] is None:
        return ""
    metric, k = results.metric, results.k[-1]
    text = f"All {all_row['k']} features: {metric_name(metric)} {format_score(all_row['mean'], metric)}"
    best = results.best(k)
    if best is None:
        return f"{text}."
    mean = next(r["mean"] for r in results.table() if (r["method"], r["k"]) == (best, k))
    better = (all_row["mean"] - mean) * (-1 if metric in LOWER_IS_BETTER else 1)
    difference = format_score(abs(better), metric)
    if float(difference.replace(",", "")) == 0:
        return f"{text}, no better and no worse than the best selection of {k}."
    return f"{text}, {difference} {'better' if better > 0 else 'worse'} than the best selection of {k}."
