"""Markdown from recorded figures. Only means, standard deviations and sums are computed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.paper import TITLES, MeanStd
from experiments.results_file import Results

TRIALS = 5
MISSING = "–"


def data_title(data: str) -> str:
    """The title of a data set, with its kind of split."""
    name, _, kind = data.partition("/")
    if name == "mice_protein":
        return "Mice Protein, by mouse" if kind == "groups" else "Mice Protein, by row"
    return TITLES.get(name, name) + (f" ({kind})" if kind else "")


def base_name(data: str) -> str:
    """The name of a data set without its kind of split: the key in the paper's tables."""
    return data.partition("/")[0]


def format_trials(values: Sequence[float], *, digits: int = 3, expected: int = TRIALS) -> str:
    """Mean and standard deviation over trials; a dash for none.

    The number of trials is added where it is not the expected one.
    """
    if not values:
        return MISSING
    mean, std = np.mean(values), np.std(values)
    text = f"{mean:.{digits}f} ± {std:.{digits}f}" if len(values) > 1 else f"{mean:.{digits}f}"
    count = "" if len(values) == expected else f" ({len(values)} trial{'s' * (len(values) > 1)})"
    return text + count


def format_reported(figure: MeanStd | float | None, *, digits: int = 3) -> str:
    """A figure of the paper, with its standard deviation if it has one."""
    if figure is None:
        return MISSING
    if isinstance(figure, tuple):
        return f"{figure[0]:.{digits}f} ± {figure[1]:.{digits}f}"
    return f"{figure:.{digits}f}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def chart_link(name: str, description: str) -> str:
    """A link to the chart that the experiment of this name draws."""
    return f"![{description}](results/{name}.svg)"


def provenance(results: Results) -> str:
    """One line per machine, date, commit and torch version: number of runs and seconds."""
    seconds: dict[str, list[float]] = {}
    again: dict[str, int] = {}
    for run in results.runs.values():
        label = _describe(results.environments[run["environment"]])
        seconds.setdefault(label, []).append(run["seconds"])
        if "evaluated" in run:
            label = _describe(results.environments[run["evaluated"]])
            again[label] = again.get(label, 0) + 1
    lines = ";\n".join(
        [
            f"{label}: {len(spent)} run{'s' * (len(spent) > 1)}, {sum(spent):,.0f} s"
            for label, spent in seconds.items()
        ]
        + [f"features of {count} of these runs evaluated again: {label}" for label, count in again.items()]
    )
    return f"<sub>{lines}.\nFile: `experiments/results/{results.path.name}`.</sub>"


def _describe(environment: dict[str, Any]) -> str:
    machine, date, commit, torch = (environment[name] for name in ("machine", "date", "commit", "torch"))
    return f"{machine}, {date}, commit {commit}, torch {torch}"


def failures(results: Results) -> list[str]:
    """A paragraph that lists the failed runs; no paragraph if there are none."""
    failed = ";\n".join(f"{key} ({run['failed']})" for key, run in results.runs.items() if "failed" in run)
    return [f"Failed runs, shown as a dash: {failed}."] if failed else []


def section(heading: str, command: str, results: Results, *parts: str) -> str:
    """A section of the page; without results, the command that produces them."""
    if not results.runs:
        return f"## {heading}\n\nNot run yet: `{command}`."
    return "\n\n".join([f"## {heading}", *parts, f"{provenance(results)} To repeat: `{command}`."])
