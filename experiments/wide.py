"""Wide and noisy tables: Sequential Attention against forests and mutual information at equal k."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments import drawing
from experiments.rendering import MISSING, chart, section, shown, table, title
from experiments.results_file import Results
from experiments.running import Cell, Slice
from experiments.trials import make_cells, open_data, run_trials

NAME = "wide"
SEEDS = 10  # a split has ten to forty test rows
WIDE = (
    *("allaml", "arcene", "colon", "glioma", "leukemia", "lymphoma"),
    *("nci9", "orlraws10p", "warpar10p", "yale", "pcmac", "relathe", "planted"),
)
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "forest": {"method": "forest"},
    "mutual information": {"method": "mutual_information"},
    "random": {"method": "random"},
}
COLOURS = (drawing.OURS, drawing.THIRD, drawing.PLAIN, drawing.REST)

ABOUT = """\
Test accuracy over ten random splits, a fifth of the rows for testing, every method judged by the
same network. `default` is Sequential Attention as it comes; `forest` takes the features that lower
impurity most in 500 random trees; `mutual information` those that tell most about the class, each
alone. `planted` is generated (2,000 rows): five features act only together, fifteen are
combinations of them, 480 are noise. The best mean of a row is bold, however small its lead."""


def k_for(data: str) -> int:
    return 20 if data == "planted" else 50


def cells(part: Slice) -> list[Cell]:
    made = []
    for data in part.data or WIDE:
        settings = {name: {"k": k_for(data), **options} for name, options in METHODS.items()}
        made += make_cells((data,), settings, Slice((data,), part.settings, part.seeds, part.epochs))
    return made


def run(cell: Cell) -> dict[str, Any]:
    found = run_trials(cell)
    if cell.data == "planted":
        names = [open_data("planted", seed).feature_names for seed in cell.seeds]
        chosen = zip(names, found["features"], strict=True)
        found["useful"] = [sum(not own[i].startswith("noise") for i in columns) for own, columns in chosen]
    return found


def render(results: Results) -> str:
    rows = []
    for data in results.data(WIDE):
        scores = [results.values(data, method) for method in METHODS]
        best = max((float(np.mean(values)) for values in scores if values), default=None)
        spelled = [shown(values, usual=SEEDS) for values in scores]
        marked = [f"**{t}**" if v and np.mean(v) == best else t for t, v in zip(spelled, scores, strict=True)]
        rows.append([title(data), str(k_for(data)), *marked])
    whole = [data for data in results.data(WIDE) if all(results.values(data, method) for method in METHODS)]
    means = [[float(np.mean(results.values(data, method))) for data in whole] for method in METHODS]
    rows.append([f"mean of {len(whole)}", "", *(f"{np.mean(m):.3f}" if m else MISSING for m in means)])
    useful = [shown(results.values("planted", method, "useful"), digits=1, usual=SEEDS) for method in METHODS]
    return section(
        "Wide and noisy tables",
        "make paper-wide",
        results,
        ABOUT,
        table(["data set", "k", *METHODS], rows),
        "Of the 20 features chosen on `planted`, so many are among the 20 that carry the signal:",
        table(list(METHODS), [useful]),
        chart(NAME, "Accuracy of four ways to choose, by data set"),
    )


def draw(results: Results, folder: Path) -> None:
    data = results.ran(WIDE)
    figure, (axes,) = drawing.panels(1, size=(6.5, 0.8 + 0.4 * len(data)))
    series = [
        (method, colour, [drawing.summary(results.values(d, method)) for d in data])
        for method, colour in zip(METHODS, COLOURS, strict=True)
    ]
    drawing.dots(axes, series, [title(d) for d in data])
    axes.set_xlabel("test accuracy, mean and deviation over splits")
    drawing.legend(figure, [axes])
    drawing.save(figure, folder / f"{NAME}.svg")
