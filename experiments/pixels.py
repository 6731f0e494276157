"""The pixels chosen on MNIST (the paper's picture), and how they clump as adaptivity falls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import seqatt
from experiments import adaptivity, drawing
from experiments.rendering import base, chart, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice
from experiments.trials import PLAIN, make_cells, run_trials

NAME = "pixels"
IMAGES = ("mnist",)
FIFTY: dict[str, dict[str, Any]] = {"default": {"k": 50}, "plain": {"k": 50, **PLAIN}}
SETTINGS = FIFTY | adaptivity.SETTINGS

ABOUT = """\
The paper shows its pixels as pictures and says that they clump together as more are chosen at a
time. Here clumping is measured: how many of a chosen pixel's eight neighbours are chosen too, and
how far the nearest other chosen pixel is. All but `default` is the paper's plain algorithm."""


def cells(part: Slice) -> list[Cell]:
    insist_on_images(part.data)
    return make_cells(IMAGES, SETTINGS, part)


def insist_on_images(data: Sequence[str]) -> None:
    for name in data:
        if seqatt.datasets.info(name).image_shape is None:
            raise ValueError(f"data: {name} holds no images; use mnist, fashion_mnist, coil20 or digits")


def run(cell: Cell) -> dict[str, Any]:
    return run_trials(cell, judge=False)


def grid(data: str, pixels: list[int]) -> np.ndarray:
    """The image, 1 where a pixel was chosen."""
    shape = seqatt.datasets.info(base(data)).image_shape
    assert shape is not None
    chosen = np.zeros(shape)
    chosen.flat[pixels] = 1
    return chosen


def neighbours(chosen: np.ndarray) -> float:
    """How many of the eight pixels around a chosen one are chosen too, on average."""
    framed = np.pad(chosen, 1)
    height, width = chosen.shape
    around = sum(framed[r : r + height, c : c + width] for r in range(3) for c in range(3)) - chosen
    return float(around[chosen > 0].mean())


def distance(chosen: np.ndarray) -> float:
    """From a chosen pixel to the nearest other one, in pixels, on average."""
    places = np.argwhere(chosen)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(apart.min(1).mean())


def render(results: Results) -> str:
    rows = []
    for data in results.data(IMAGES):
        for setting, options in SETTINGS.items():
            grids = [grid(data, pixels) for pixels in results.values(data, setting, "features")]
            measured = [shown([measure(g) for g in grids], digits=2) for measure in (neighbours, distance)]
            rows.append([title(data), str(options["k"]), setting, *measured])
    return section(
        "The pixels chosen, and how they clump",
        "make paper-pixels",
        results,
        ABOUT,
        table(["data set", "k", "setting", "chosen neighbours", "distance to the nearest"], rows),
        chart(NAME, "The pixels of the first trial of every setting"),
    )


def draw(results: Results, folder: Path) -> None:
    wanted = [(data, setting) for data in results.data(IMAGES) for setting in SETTINGS]
    found = [(d, s, results.values(d, s, "features")) for d, s in wanted]
    found = [(d, s, trials[0]) for d, s, trials in found if trials]
    figure, panels = drawing.panels(len(found), columns=5, size=(1.7, 1.85))
    for axes, (data, setting, pixels) in zip(panels, found, strict=True):
        rows, columns = np.unravel_index(pixels, grid(data, pixels).shape)
        axes.scatter(columns, rows, c=np.arange(len(pixels)), cmap="viridis", marker="s", s=7, linewidths=0)
        height, width = grid(data, pixels).shape
        axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
        axes.set_title(f"{setting}, k = {len(pixels)}", fontsize=7)
    figure.supxlabel("from dark (chosen first) to bright (chosen last)", fontsize=7)
    drawing.save(figure, folder / f"{NAME}.svg")
