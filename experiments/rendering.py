"""From figures to Markdown. Nothing is computed here but means, deviations and their spelling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.paper import TITLES, Figure
from experiments.results_file import Results

TRIALS = 5
MISSING = "–"


def title(data: str) -> str:
    """A data set, in words."""
    name, _, kind = data.partition("/")
    if name == "mice_protein":
        return "Mice Protein, by mouse" if kind == "groups" else "Mice Protein, by row"
    return TITLES.get(name, name) + (f" ({kind})" if kind else "")


def base(data: str) -> str:
    """The name of the data set, whatever its split: what the paper's tables go by."""
    return data.partition("/")[0]


def shown(values: Sequence[float], *, digits: int = 3, usual: int = TRIALS) -> str:
    """Mean and standard deviation; the number of trials too where it is not the usual; a dash for none."""
    if not values:
        return MISSING
    mean, std = np.mean(values), np.std(values)
    text = f"{mean:.{digits}f} ± {std:.{digits}f}" if len(values) > 1 else f"{mean:.{digits}f}"
    count = "" if len(values) == usual else f" ({len(values)} trial{'s' * (len(values) > 1)})"
    return text + count


def reported(figure: Figure | float | None, *, digits: int = 3) -> str:
    """A figure of the paper."""
    if figure is None:
        return MISSING
    if isinstance(figure, tuple):
        return f"{figure[0]:.{digits}f} ± {figure[1]:.{digits}f}"
    return f"{figure:.{digits}f}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def chart(name: str, says: str) -> str:
    """A link to a chart that ``experiments.charts`` draws."""
    return f"![{says}](results/{name}.svg)"


def provenance(results: Results) -> str:
    """Where, when and of which commit the figures are."""
    told: dict[str, list[float]] = {}
    for cell in results.cells.values():
        run = results.runs[cell["run"]]
        about = f"{run['machine']}, {run['date']}, commit {run['commit']}, torch {run['torch']}"
        told.setdefault(about, []).append(cell["seconds"])
    lines = [f"{about}: {len(spent)} cells, {sum(spent):,.0f} s" for about, spent in told.items()]
    return f"<sub>{'; '.join(lines)}. File: `experiments/results/{results.path.name}`.</sub>"


def failures(results: Results) -> list[str]:
    """A paragraph on the cells that failed, if any did."""
    failed = [f"{key} ({cell['failed']})" for key, cell in results.cells.items() if "failed" in cell]
    return [f"Failed, and so a dash: {'; '.join(failed)}."] if failed else []


def section(heading: str, command: str, results: Results, *parts: str) -> str:
    """A chapter of the page, or the command that would fill it."""
    if not results.cells:
        return f"## {heading}\n\nNot run yet: `{command}`."
    return "\n\n".join([f"## {heading}", *parts, f"{provenance(results)} Again: `{command}`."])
