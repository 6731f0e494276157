"""How much the chosen set varies from seed to seed, from the selections of the accuracy table."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from experiments.rendering import MISSING, table, title
from experiments.results_file import Results
from experiments.trials import SIX

HEADING = "### How much the chosen set varies"
SETTINGS = ("default", "plain", "random")

ABOUT = """\
Features that two trials both chose, as a share of those that either chose: the Jaccard index,
averaged over all pairs of trials of the accuracy table. 1 is the same set every time; `random` is
what chance gives. Trials on Mice Protein and COIL-20 differ in their training rows as well as in
the seed."""


def jaccard(sets: list[list[int]]) -> float | None:
    """Features in both over features in either, averaged over all pairs of trials."""
    pairs = [(set(a), set(b)) for a, b in combinations(sets, 2)]
    return float(np.mean([len(a & b) / len(a | b) for a, b in pairs])) if pairs else None


def render(accuracy: Results) -> str:
    def spelled(data: str, setting: str) -> str:
        value = jaccard(accuracy.values(data, setting, "features"))
        return MISSING if value is None else f"{value:.2f}"

    rows = [[title(data), *(spelled(data, setting) for setting in SETTINGS)] for data in accuracy.data(SIX)]
    if not accuracy.cells:
        return f"{HEADING}\n\nNot run yet: `make paper-accuracy`."
    return "\n\n".join([HEADING, ABOUT, table(["data set", *SETTINGS], rows)])
