"""Every method at k = 50 on the paper's six data sets (the rivals' columns of its small-scale table)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.contenders import CONTENDERS, contenders
from experiments.paper_rivals import ACCURACY_OF
from experiments.rank_chart import CHART_SAYS, draw_ranking
from experiments.ranking import Ranking, describe, means, rank
from experiments.rendering import MISSING, chart, failures, reported, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice, attempt
from experiments.trials import SIX, make_cells, open_data, run_trials

NAME = "methods"

ABOUT = """\
Test accuracy of a network with 67 hidden units, trained on the 50 features that each method of
`seqatt.select` chose with its defaults; the paper's figures are below those of the methods it has.
Ranks are of mean accuracies, 1 is best, over the paper's six data sets (Mice Protein by row)."""


def cells(part: Slice) -> list[Cell]:
    return make_cells(SIX, {c.name: {"k": 50, "method": c.name} for c in contenders()}, part)


def run(cell: Cell) -> dict[str, Any]:
    open_data(cell.data)  # without data there is nothing to attempt
    return attempt(run_trials, cell, "accuracy", "features")


def ranking(results: Results) -> Ranking | None:
    """Over the data sets that were run; Mice Protein counts once."""
    scores: dict[str, dict[str, float]] = {}
    for data in results.ran(SIX):
        if "/" not in data:
            found = {c.name: results.values(data, c.name) for c in CONTENDERS}
            scores[data] = means(found)
    return rank(scores)


def render(results: Results) -> str:
    data = results.data(SIX)
    ranked = ranking(results)
    rows = []
    for contender in CONTENDERS:
        ours = [shown(results.values(name, contender.name)) for name in data]
        theirs = ACCURACY_OF.get(contender.paper, {})
        if theirs or set(ours) != {MISSING}:
            place = ranked.ranks.get(contender.name) if ranked else None
            rows.append([contender.title, "seqatt", *ours, MISSING if place is None else f"{place:.2f}"])
        if theirs:
            rows.append(["", "paper", *(reported(theirs.get(name)) for name in data), ""])
    parts = [table(["method", "", *map(title, data), "average rank"], rows), *failures(results)]
    if ranked:
        parts += [describe(ranked), chart(NAME, CHART_SAYS)]
    return section("Every method with fifty features", "make paper-methods", results, ABOUT, *parts)


def draw(results: Results, folder: Path) -> None:
    ranked = ranking(results)
    if ranked:
        draw_ranking(ranked, folder / f"{NAME}.svg")
