"""Attention logits against marginal gains, pixel by pixel (the paper's appendix B.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import seqatt
from experiments import charts
from experiments.markdown import chart_link, data_title, format_trials, section, table
from experiments.pixels import check_images
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import PLAIN, make_runs, open_data, split_kind

NAME = "marginal"
IMAGES = ("mnist",)
SELECTED_BEFORE = (0, 9, 49)  # number of pixels selected before logits and gains are compared
TOP = 50
# With k = n + 1, the last selection is made with n features selected; its logits rank all other features.
SETTINGS: dict[str, dict[str, Any]] = {f"{n} chosen": {"k": n + 1, **PLAIN} for n in SELECTED_BEFORE}

ABOUT = f"""\
Does the attention logit of a feature predict how much the feature would improve the model? With 0, 9
and 49 pixels selected by the paper's plain algorithm, one network per remaining pixel is trained with
that pixel added; its marginal gain is the decrease of the loss on held-out rows. The table compares the
gains with the logits of the same moment: Spearman's correlation over all pixels that vary, and how many
of the {TOP} best pixels by gain are among the {TOP} best by logit (about three or four by chance)."""


def plan_runs(request: RunRequest) -> list[Run]:
    check_images(request.data)
    return make_runs(IMAGES, SETTINGS, request)


def execute(run: Run) -> dict[str, Any]:
    """Per trial: the pixels selected before, the others in the order of their logits, and their gains."""
    dataset = open_data(run.data)
    kind = split_kind(run.data)
    X, y, *_ = dataset.split(kind, seed=0 if kind == "official" else run.seeds[0])
    varies = np.ptp(X, axis=0) > 0
    options = {"task": dataset.task, "progress": True}
    measured: dict[str, list[list[Any]]] = {"chosen": [], "candidates": [], "gains": []}
    for trial in seqatt.select_trials(X, y, seeds=run.seeds, **options, **run.options):
        order = np.argsort(trial.ranking)
        selected, candidates = np.split(order, [run.options["k"] - 1])
        candidates = candidates[varies[candidates]]
        gains = seqatt.marginal_gains(
            X, y, selected.tolist(), candidates.tolist(), seed=trial.seed, **options
        )
        measured["chosen"].append(selected.tolist())
        measured["candidates"].append(candidates.tolist())
        measured["gains"].append(np.round(gains[candidates], 6).tolist())
    return measured


def correlation(gains: list[float]) -> float:
    """Spearman's correlation of logits and gains; ``gains`` are in the order of the logits, largest first."""
    return float(spearmanr(-np.arange(len(gains)), gains).statistic)


def shared_in_top(gains: list[float], top: int = TOP) -> int:
    """How many of the ``top`` largest gains belong to the ``top`` largest logits, which come first."""
    return int((np.argsort(-np.asarray(gains), kind="stable")[:top] < top).sum())


def render(results: Results) -> str:
    rows = []
    for data in results.data(IMAGES):
        for setting in SETTINGS:
            gains = results.values(data, setting, "gains")
            figures = [
                format_trials([correlation(g) for g in gains], digits=2),
                format_trials([shared_in_top(g) for g in gains], digits=1),
            ]
            rows.append([data_title(data), setting, *figures])
    return section(
        "Logits and marginal gains",
        "make paper-marginal",
        results,
        ABOUT,
        table(["data set", "pixels", "Spearman correlation", f"shared of the best {TOP}"], rows),
        chart_link(
            NAME, f"The best {TOP} pixels by marginal gain and by logit, after 0, 9 and 49 selections"
        ),
    )


def draw(results: Results, folder: Path) -> None:
    pairs = [(d, s) for d in results.data_with_runs(IMAGES) for s in SETTINGS if results.pick(d, s)]
    figure, panels = charts.make_panels(2 * len(pairs), columns=2, size=(2.0, 2.15))
    for number, (data, setting) in enumerate(pairs):
        run = results.pick(data, setting)[0]
        selected, candidates, gains = (run[measure][0] for measure in ("chosen", "candidates", "gains"))
        by_gain = [candidates[i] for i in np.argsort(-np.asarray(gains), kind="stable")[:TOP]]
        best_by = {"marginal gain": by_gain, "attention logit": candidates[:TOP]}
        shape = seqatt.datasets.info(data.partition("/")[0]).image_shape
        assert shape is not None
        for axes, (name, best) in zip(panels[2 * number :], best_by.items(), strict=False):
            charts.draw_pixels(axes, shape, [(selected, charts.GREY), (best, charts.SEQATT)])
            axes.set_title(f"{setting}: best {len(best)} by {name}", fontsize=6)
    figure.supxlabel("grey: selected before", fontsize=7)
    charts.save(figure, folder / f"{NAME}.svg")
