"""The nested order: the first j features of a selection of 50 against a selection made for j features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import seqatt
from experiments import charts
from experiments.markdown import MISSING, chart_link, data_title, section, table
from experiments.results_file import Results
from experiments.runs import Run, RunRequest
from experiments.trials import PAPER_DATA, check_data, open_data, score, split_kind

NAME = "nested"
SEEDS = 2
LARGE, SIZES = 50, (5, 10, 20)
MAX_ROWS = 10_000  # of training rows: a selection takes seconds, not minutes
HELD_OUT = 0.25
SETTING = "default"
DATA = tuple(name for name in PAPER_DATA if name != "mice_protein/groups")

ABOUT = f"""\
What it costs to use the first j features of a larger selection. On at most {MAX_ROWS:,} training rows a quarter is held
out; {LARGE} features are selected on the others (fewer on a table of fewer), and j features alone. Accuracy is that of
networks on the held-out rows, with the first j of {LARGE} (`first`) and with the selection made for j (`alone`);
`shared` is how many of the j features are the same."""


def plan_runs(request: RunRequest) -> list[Run]:
    options = {"k": LARGE} | ({} if request.epochs is None else {"epochs": request.epochs})
    runs = []
    for data in request.data or DATA:
        check_data(data)
        if not request.settings or SETTING in request.settings:
            runs += [Run(data, SETTING, (seed,), options) for seed in range(request.seeds)]
    return runs


def execute(run: Run) -> dict[str, Any]:
    (seed,) = run.seeds
    dataset = open_data(run.data, seed)
    split = hold_out(dataset.split(split_kind(run.data), seed=seed), seed)
    options = {name: value for name, value in run.options.items() if name != "k"}
    large = min(run.options["k"], split.X_train.shape[1])

    def select(k: int) -> list[int]:
        selection = seqatt.select(split.X_train, split.y_train, k, seed=seed, task=dataset.task, **options)
        return selection.indices.tolist()

    order = select(large)
    sizes = [size for size in SIZES if size < large]
    alone = [select(size) for size in sizes]
    sets = [order[:size] for size in sizes] + alone
    measured = [score(split, dataset.task, [seed], [columns])[0] for columns in sets]
    shared = [len(set(own) & set(order[: len(own)])) for own in alone]
    first, made = measured[: len(sizes)], measured[len(sizes) :]
    return {"sizes": [sizes], "first": [first], "alone": [made], "shared": [shared]}


def hold_out(split: seqatt.datasets.Split, seed: int) -> seqatt.datasets.Split:
    """A quarter of the training rows, in place of the test rows."""
    rows = np.random.default_rng(seed).permutation(len(split.y_train))[:MAX_ROWS]
    held_out, others = np.split(rows, [round(HELD_OUT * len(rows))])
    X, y = split.X_train, split.y_train
    return seqatt.datasets.Split(X[others], y[others], X[held_out], y[held_out])


def _figures(results: Results, data: str, size: int, measure: str) -> list[float]:
    """One figure per trial that has this size."""
    pairs = zip(results.values(data, SETTING, "sizes"), results.values(data, SETTING, measure), strict=True)
    return [values[sizes.index(size)] for sizes, values in pairs if size in sizes]


def render(results: Results) -> str:
    rows = []
    losses: dict[int, list[float]] = {size: [] for size in SIZES}
    for data in results.data(DATA):
        for size in SIZES:
            first, alone = (_figures(results, data, size, name) for name in ("first", "alone"))
            if not first:
                continue
            difference = np.array(first) - alone
            losses[size].append(float(difference.mean()))
            shared = np.mean(_figures(results, data, size, "shared"))
            texts = [_mean_std(first), _mean_std(alone), _mean_std(difference, sign="+"), f"{shared:.1f}"]
            rows.append([data_title(data), str(size), *texts])
    means = [f"{np.mean(losses[size]):+.3f} for j = {size}" for size in SIZES if losses[size]]
    summary = f"Difference, mean over the data sets: {', '.join(means) or MISSING}."
    headings = ["data set", "j", f"first j of {LARGE}", "j alone", "difference", "shared"]
    chart = chart_link(NAME, "Accuracy of the first j features and of a selection made for j, by data set")
    return section(
        "The nested order", f"make paper-{NAME}", results, ABOUT, summary, table(headings, rows), chart
    )


def _mean_std(values: Any, sign: str = "") -> str:
    return f"{np.mean(values):{sign}.3f} ± {np.std(values):.3f}"


def draw(results: Results, folder: Path) -> None:
    data = results.data_with_runs(DATA)
    figure, panels = charts.make_panels(len(data), columns=3)
    for axes, name in zip(panels, data, strict=True):
        series: list[charts.Series] = []
        for measure, title, colour in (
            ("first", f"first j of {LARGE}", charts.SEQATT),
            ("alone", "j alone", charts.ORANGE),
        ):
            figures = [charts.mean_and_std(_figures(results, name, size, measure)) for size in SIZES]
            series.append((title, colour, figures))
        charts.dot_plot(axes, series, [f"j = {size}" for size in SIZES])
        charts.set_title(axes, name)
    charts.add_legend(figure, panels)
    figure.supxlabel("accuracy on held-out rows, mean and standard deviation over trials", fontsize=8)
    charts.save(figure, folder / f"{NAME}.svg")
