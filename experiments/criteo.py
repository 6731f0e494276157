"""Click logs in one pass over files: the paper's tables on Criteo, and importances that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import seqatt
from experiments import drawing
from experiments.click_files import DATA, click_files, insist_on
from experiments.paper_criteo import AUC, LOG_LOSS, K
from experiments.rendering import chart, reported, section, shown, table
from experiments.results_file import Results
from experiments.running import Cell, Slice

NAME = "criteo"
TRIALS = 3  # as the paper has
PLANTED_K = tuple(range(1, 9))
STRONG, WEAK = 0.3, 3e-4  # as far apart as the paper's 0.1 and 0.0001, which are in units of its own loss
METHODS: dict[str, dict[str, Any]] = {
    "Sequential Attention": {"method": "sequential_attention"},
    "CMIM": {"method": "cmim"},
    "group LASSO, strong": {"method": "group_lasso", "penalty": STRONG},
    "group LASSO, weak": {"method": "group_lasso", "penalty": WEAK},
    "Sequential LASSO, strong": {"method": "sequential_lasso", "penalty": STRONG},
    "Sequential LASSO, weak": {"method": "sequential_lasso", "penalty": WEAK},
    "batch-wise attention": {"method": "batch_attention"},
}
NESTED = ("cmim", "group_lasso", "batch_attention")  # fewer features are the first of more
READING = {"log1p": True, "missing_indicator": True}

ABOUT = """\
The paper's own log, of three billion rows, is not at hand. What stands here is a real sample of the Criteo
display advertising log (137,139 rows; 13 counts, 26 categories): the first four fifths in time to choose
and train on, the last fifth to test on, never seen by a choice. Every method makes one pass over files with
the network of the paper (768, 256 and 128 units); `seqatt.evaluate_files` then trains a new network on the
chosen features in one pass. Three trials, as in the paper, whose figures stand in the second row of each k:
they are of another log and another size, so only the order of methods can be compared. Every method has its
defaults, which were tried on the last eighth of the training rows; the LASSOs have a weak penalty too, 0.0003
beside 0.3, as far apart as the paper's 0.0001 and 0.1. The best mean of a row is bold, however small its
lead."""

ABOUT_PLANTED = """\
On a synthetic log (`seqatt.datasets.synthetic.click_log`, 60,000 rows to choose from) eight features decide
about clicks, each less than the one before; 31 do nothing. So many of the k chosen are among the eight:"""


def cells(part: Slice) -> list[Cell]:
    made = []
    for data in part.data or DATA:
        insist_on(data)
        for setting, options in METHODS.items():
            if not part.settings or setting in part.settings:
                told = options | ({"share": part.epochs} if part.epochs is not None else {})
                made += [Cell(data, setting, (seed,), told) for seed in range(min(part.seeds, TRIALS))]
    return made


def run(cell: Cell) -> dict[str, Any]:
    """The features of every k, and what a network on them says of the test rows or how many were planted."""
    told = dict(cell.options)
    share, method = min(1.0, told.pop("share", 1.0)), told.pop("method")
    (seed,) = cell.seeds
    with click_files(cell.data, share) as log:
        ks = PLANTED_K if log.planted else K
        runs = [ks[-1]] if method in NESTED else ks
        options = READING | told
        made = {
            k: seqatt.select(log.train, target=log.target, k=k, method=method, seed=seed, **options)
            for k in runs
        }
        chosen = [list(made.get(k, made[ks[-1]]).features[:k]) for k in ks]
        if log.planted:
            return {"features": [chosen], "found": [[len(set(c) & set(log.planted)) for c in chosen]]}
        judged = [
            seqatt.evaluate_files(log.train, log.test, log.target, c, seeds=[seed], **READING) for c in chosen
        ]
    return {
        "features": [chosen],
        "auc": [[round(float(j["auc"][0]), 6) for j in judged]],
        "log_loss": [[round(float(j["log_loss"][0]), 6) for j in judged]],
    }


def of_k(results: Results, method: str, number: int, what: str, data: str = "criteo") -> list[float]:
    """One figure a trial, for the k of this number."""
    return [line[number] for line in results.values(data, method, what)]


def render(results: Results) -> str:
    parts: list[str] = []
    for what, theirs, best in (("auc", AUC, max), ("log_loss", LOG_LOSS, min)):
        rows = []
        for number, k in enumerate(K):
            ours = [of_k(results, method, number, what) for method in METHODS]
            leader = best((float(np.mean(v)) for v in ours if v), default=None)
            marked = [f"**{_shown(v)}**" if v and np.mean(v) == leader else _shown(v) for v in ours]
            rows.append([str(k), *marked])
            rows.append(["paper", *(reported(theirs[method][k], digits=4) for method in METHODS)])
        name = "AUC" if what == "auc" else "Log loss"
        parts.append(f"{name} on the test rows:\n\n{table(['k', *METHODS], rows)}")
    found = [
        [str(k), *(shown(of_k(results, m, i, "found", "click_log"), digits=1) for m in METHODS)]
        for i, k in enumerate(PLANTED_K)
    ]
    return section(
        "Click logs, from files",
        f"make paper-{NAME}",
        results,
        ABOUT,
        *parts,
        chart(NAME, "AUC on the Criteo sample by the number of features, for seven ways to choose"),
        f"{ABOUT_PLANTED}\n\n{table(['k', *METHODS], found)}",
    )


def draw(results: Results, folder: Path) -> None:
    figure, (axes,) = drawing.panels(1, size=(6.5, 3.6))
    colours = (drawing.OURS, *drawing.OTHERS)
    for method, colour in zip(METHODS, colours, strict=False):
        figures = [drawing.summary(of_k(results, method, i, "auc")) for i in range(len(K))]
        if all(figures):
            mean, std = zip(*figures, strict=True)  # type: ignore[arg-type]
            axes.errorbar(K, mean, std, fmt="o-", color=colour, markersize=3, capsize=2, label=method)
    axes.set_xlabel("features chosen")
    axes.set_ylabel("AUC on test rows")
    axes.grid(alpha=0.3)
    drawing.legend(figure, [axes])
    drawing.save(figure, folder / f"{NAME}.svg")


def _shown(values: list[float]) -> str:
    return shown(values, digits=4).replace(" (3 trials)", "")
