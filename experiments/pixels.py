"""The pixels selected on MNIST (the paper's picture), and how they cluster as more are selected per phase."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import seqatt
from experiments import adaptivity, charts
from experiments.markdown import base_name, chart_link, data_title, format_trials, section, table
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import PLAIN, make_runs, run_trials

NAME = "pixels"
IMAGES = ("mnist",)
FIFTY_PIXELS: dict[str, dict[str, Any]] = {"default": {"k": 50}, "plain": {"k": 50, **PLAIN}}
SETTINGS = FIFTY_PIXELS | adaptivity.SETTINGS

ABOUT = """\
The paper shows its pixels as pictures and observes that they cluster when more are selected per phase.
Two measures of clustering: how many of the eight neighbours of a selected pixel are selected too, and the
distance to the nearest other selected pixel. Every setting but `default` is the paper's plain algorithm."""


def plan_runs(request: RunRequest) -> list[Run]:
    check_images(request.data)
    return make_runs(IMAGES, SETTINGS, request)


def check_images(data: Sequence[str]) -> None:
    """Raise ValueError for a data set that has no images, before anything is run."""
    for name in data:
        if seqatt.datasets.info(name).image_shape is None:
            raise ValueError(f"data: {name} has no images; use mnist, fashion_mnist, coil20 or digits")


def execute(run: Run) -> dict[str, Any]:
    return run_trials(run, evaluate=False)


def selected_mask(data: str, pixels: list[int]) -> np.ndarray:
    """An array of the image's shape, 1 where a pixel is selected."""
    shape = seqatt.datasets.info(base_name(data)).image_shape
    assert shape is not None
    mask = np.zeros(shape)
    mask.flat[pixels] = 1
    return mask


def mean_neighbours(mask: np.ndarray) -> float:
    """The number of selected pixels among the eight around a selected one, on average."""
    padded = np.pad(mask, 1)
    height, width = mask.shape
    around = sum(padded[r : r + height, c : c + width] for r in range(3) for c in range(3)) - mask
    return float(around[mask > 0].mean())


def mean_distance(mask: np.ndarray) -> float:
    """The distance from a selected pixel to the nearest other one, in pixels, on average."""
    positions = np.argwhere(mask)
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return float(distances.min(1).mean())


def render(results: Results) -> str:
    rows = []
    for data in results.data(IMAGES):
        for setting, options in SETTINGS.items():
            masks = [selected_mask(data, pixels) for pixels in results.values(data, setting, "features")]
            figures = [
                format_trials([measure(mask) for mask in masks], digits=2)
                for measure in (mean_neighbours, mean_distance)
            ]
            rows.append([data_title(data), str(options["k"]), setting, *figures])
    return section(
        "The selected pixels, and how they cluster",
        "make paper-pixels",
        results,
        ABOUT,
        table(["data set", "k", "setting", "selected neighbours", "distance to the nearest"], rows),
        chart_link(NAME, "The pixels of the first trial of every setting"),
    )


def draw(results: Results, folder: Path) -> None:
    trials = [
        (data, setting, results.values(data, setting, "features"))
        for data in results.data(IMAGES)
        for setting in SETTINGS
    ]
    first_trials = [(data, setting, features[0]) for data, setting, features in trials if features]
    figure, panels = charts.make_panels(len(first_trials), columns=5, size=(1.7, 1.85))
    for axes, (data, setting, pixels) in zip(panels, first_trials, strict=True):
        height, width = selected_mask(data, pixels).shape
        rows, columns = np.unravel_index(pixels, (height, width))
        axes.scatter(columns, rows, c=np.arange(len(pixels)), cmap="viridis", marker="s", s=7, linewidths=0)
        axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
        axes.set_title(f"{setting}, k = {len(pixels)}", fontsize=7)
    figure.supxlabel("from dark (selected first) to bright (selected last)", fontsize=7)
    charts.save(figure, folder / f"{NAME}.svg")
