"""Attention logits against true marginal gains, pixel by pixel (the paper's appendix B.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import seqatt
from experiments import drawing
from experiments.pixels import insist_on_images
from experiments.rendering import chart, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice
from experiments.trials import PLAIN, make_cells, open_data, split_kind

NAME = "marginal"
IMAGES = ("mnist",)
CHOSEN = (0, 9, 49)
TOP = 50
# The last choice of k = n + 1 is made with n features chosen, and its logits put all others in order.
SETTINGS: dict[str, dict[str, Any]] = {f"{n} chosen": {"k": n + 1, **PLAIN} for n in CHOSEN}

ABOUT = f"""\
Is the attention logit of a feature a good stand-in for what it would add? With 0, 9 and 49 pixels
chosen by the paper's plain algorithm, a network is trained anew with each of the other pixels in
turn, and the marginal gain is by how much the loss on rows held out falls. Beside it stand the
logits at the same moment: Spearman's correlation over all pixels that vary, and how many of the {TOP}
best pixels by gain are among the {TOP} best by logit (by lot it would be about three or four)."""


def cells(part: Slice) -> list[Cell]:
    insist_on_images(part.data)
    return make_cells(IMAGES, SETTINGS, part)


def run(cell: Cell) -> dict[str, Any]:
    """Per trial: the pixels chosen before, the others as the logits order them, and their gains."""
    dataset = open_data(cell.data)
    kind = split_kind(cell.data)
    X, y, *_ = dataset.split(kind, seed=0 if kind == "official" else cell.seeds[0])
    varies = np.ptp(X, axis=0) > 0
    told = {"task": dataset.task, "progress": True}
    found: dict[str, list[list[Any]]] = {"chosen": [], "candidates": [], "gains": []}
    for trial in seqatt.select_trials(X, y, seeds=cell.seeds, **told, **cell.options):
        order = np.argsort(trial.ranking)
        before, after = np.split(order, [cell.options["k"] - 1])
        after = after[varies[after]]
        gains = seqatt.marginal_gains(X, y, before.tolist(), after.tolist(), seed=trial.seed, **told)
        found["chosen"].append(before.tolist())
        found["candidates"].append(after.tolist())
        found["gains"].append(np.round(gains[after], 6).tolist())
    return found


def correlation(gains: list[float]) -> float:
    """Spearman's, of gains that stand in the order of the logits, best first."""
    return float(spearmanr(-np.arange(len(gains)), gains).statistic)


def shared(gains: list[float], top: int = TOP) -> int:
    """How many of the best by gain are among the first, which are the best by logit."""
    return int((np.argsort(-np.asarray(gains), kind="stable")[:top] < top).sum())


def render(results: Results) -> str:
    rows = []
    for data in results.data(IMAGES):
        for setting in SETTINGS:
            gains = results.values(data, setting, "gains")
            figures = [
                shown([correlation(g) for g in gains], digits=2),
                shown([shared(g) for g in gains], digits=1),
            ]
            rows.append([title(data), setting, *figures])
    return section(
        "Logits and marginal gains",
        "make paper-marginal",
        results,
        ABOUT,
        table(["data set", "pixels", "Spearman correlation", f"shared of the best {TOP}"], rows),
        chart(NAME, f"The best {TOP} pixels by marginal gain and by logit, after 0, 9 and 49 choices"),
    )


def draw(results: Results, folder: Path) -> None:
    ran = [(data, s) for data in results.ran(IMAGES) for s in SETTINGS if results.pick(data, s)]
    figure, panels = drawing.panels(2 * len(ran), columns=2, size=(2.0, 2.15))
    for number, (data, setting) in enumerate(ran):
        first = results.pick(data, setting)[0]
        chosen, candidates, gains = (first[what][0] for what in ("chosen", "candidates", "gains"))
        by_gain = [candidates[i] for i in np.argsort(-np.asarray(gains), kind="stable")[:TOP]]
        pictures = {"marginal gain": by_gain, "attention logit": candidates[:TOP]}
        shape = seqatt.datasets.info(data.partition("/")[0]).image_shape
        assert shape is not None
        for axes, (name, best) in zip(panels[2 * number :], pictures.items(), strict=False):
            drawing.picture(axes, shape, [(chosen, drawing.REST), (best, drawing.OURS)])
            axes.set_title(f"{setting}: best {len(best)} by {name}", fontsize=6)
    figure.supxlabel("grey: chosen before", fontsize=7)
    drawing.save(figure, folder / f"{NAME}.svg")
