"""Stability: how much the selected set varies from seed to seed, from the runs of the accuracy table."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from experiments.markdown import MISSING, data_title, table
from experiments.results_file import Results
from experiments.trials import PAPER_DATA

HEADING = "### Stability of the selected set"
SETTINGS = ("default", "plain", "random")

ABOUT = """\
The Jaccard index of two trials, the number of features that both selected over the number that either
selected, averaged over all pairs of trials of the accuracy table. 1 is the same set every time; `random`
is the value by chance. Trials on Mice Protein and COIL-20 differ in their training rows as well as in the
seed."""


def jaccard(sets: list[list[int]]) -> float | None:
    """The Jaccard index, averaged over all pairs of sets; None if there are fewer than two sets."""
    pairs = [(set(a), set(b)) for a, b in combinations(sets, 2)]
    return float(np.mean([len(a & b) / len(a | b) for a, b in pairs])) if pairs else None


def render(accuracy: Results) -> str:
    if not accuracy.runs:
        return f"{HEADING}\n\nNot run yet: `make paper-accuracy`."

    def format_jaccard(data: str, setting: str) -> str:
        value = jaccard(accuracy.values(data, setting, "features"))
        return MISSING if value is None else f"{value:.2f}"

    rows = [
        [data_title(data), *(format_jaccard(data, setting) for setting in SETTINGS)]
        for data in accuracy.data(PAPER_DATA)
    ]
    return "\n\n".join([HEADING, ABOUT, table(["data set", *SETTINGS], rows)])
