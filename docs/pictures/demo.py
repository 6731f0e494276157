"""Draws demo.svg and demo.png: the pixels that ``seqatt demo`` selects, and the accuracies that it prints.

pip install 'seqatt[bench]'
python docs/pictures/demo.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

import seqatt
from seqatt.cli.demo import split_digits
from seqatt.cli.holdout import evaluate_holdout

matplotlib.use("agg")
from matplotlib import pyplot as plt

BLUE, GREY = "#0072B2", "#767676"
HERE = Path(__file__).parent

X_train, X_test, y_train, y_test = split_digits(0)
selection = seqatt.select(X_train, y_train, k=12)
scores = evaluate_holdout(X_train, y_train, X_test, y_test, selection, "cpu", {})
images = np.column_stack([column.to_numpy() for column in X_train.columns]).reshape(-1, 8, 8)

plt.rcParams |= {"svg.hashsalt": "seqatt", "font.size": 10}
figure = plt.figure(figsize=(8.4, 3.0), layout="constrained")
figure.get_layout_engine().set(h_pad=0.1, w_pad=0.05)
grid = figure.add_gridspec(2, 5, width_ratios=[1, 1, 2.15, 0.25, 3.2])
for place, digit in enumerate((3, 5, 8, 9)):
    axes = figure.add_subplot(grid[place // 2, place % 2])
    axes.imshow(images[np.flatnonzero(y_train == digit)[0]], cmap="Greys", interpolation="nearest")
    axes.set_axis_off()
axes = figure.add_subplot(grid[:, 2])
axes.imshow(images.mean(axis=0), cmap="Greys", vmin=0, vmax=34, interpolation="nearest")
for rank, pixel in enumerate(selection.indices, 1):
    row, column = divmod(int(pixel), 8)
    axes.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, color=BLUE))
    axes.text(column, row, rank, color="white", ha="center", va="center", fontsize=9)
axes.set_title("12 of 64 pixels, in order", fontsize=10, pad=6)
axes.set_axis_off()
axes = figure.add_subplot(grid[:, 4])
bars = [("12 selected", "selected", BLUE), ("12 random", "random", GREY), ("all 64", "all", GREY)]
for place, (label, name, colour) in enumerate(bars):
    values = np.array(scores[name]["accuracy"])
    axes.barh(place, values.mean(), xerr=values.std(ddof=1), color=colour, capsize=3, height=0.62)
    axes.text(0.03, place, f"{label}: {values.mean():.3f}", color="white", va="center")
axes.invert_yaxis()
axes.set_yticks([])
axes.set_xlim(0, 1)
axes.set_xlabel(f"accuracy on {len(y_test)} test images (mean, sd of 5 seeds)")
for side in ("top", "right", "left"):
    axes.spines[side].set_visible(False)
figure.savefig(HERE / "demo.svg", metadata={"Date": None})
figure.savefig(HERE / "demo.png", dpi=110)
