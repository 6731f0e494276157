"""Draws phases.svg: the scores of eight features in four phases, where two are readings of the same quantity and two
matter only together.

pip install 'seqatt[bench]'
python docs/pictures/phases.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

import seqatt

matplotlib.use("agg")
from matplotlib import pyplot as plt

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#BBBBBB"

rng = np.random.default_rng(0)
rows = 2000
a, b, c, d = rng.normal(size=(4, rows))
X = pd.DataFrame(
    {
        "reading": a,
        "second reading": a + 0.1 * rng.normal(size=rows),
        "weaker signal": b,
        "half of a pair": c,
        "other half": d,
        **{f"noise {i}": rng.normal(size=rows) for i in (1, 2, 3)},
    }
)
y = 1.5 * a + 0.8 * b + 1.2 * c * d + 0.4 * rng.normal(size=rows) > 0
selection = seqatt.select(X, y.astype(int), k=4, surplus=1, replacement=0)

plt.rcParams |= {"svg.hashsalt": "seqatt", "font.size": 10}
phases = [phase for phase in selection.history if phase["scores"]]
figure, panels = plt.subplots(
    1, len(phases), figsize=(9.6, 2.9), sharey=True, sharex=True, layout="constrained"
)
names, selected = list(X.columns), []
for number, (phase, axes) in enumerate(zip(phases, panels, strict=True), 1):
    for place, name in enumerate(names):
        if name in selected:
            axes.plot(0, place, "o", color=BLUE, markersize=8)
            axes.text(0.25, place, "selected", color=BLUE, va="center")
        else:
            axes.barh(place, phase["scores"][name], color=ORANGE if name in phase["taken"] else GREY)
    axes.axvline(0, color="black", linewidth=0.7)
    axes.set_title(f"phase {number}: {phase['taken'][0]}", fontsize=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(left=False)
    selected += phase["taken"]
panels[0].set_yticks(range(len(names)), names)
panels[0].invert_yaxis()
figure.supxlabel("score at the end of the phase", fontsize=10)
figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})
