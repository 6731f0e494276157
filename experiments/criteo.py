"""Click logs, in one pass over files: the paper's tables on Criteo, and a log whose relevant features are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import seqatt
from experiments import charts
from experiments.click_files import DATA, ClickLog, check_log, click_files
from experiments.markdown import chart_link, format_reported, format_trials, section, table
from experiments.paper_criteo import AUC, LOG_LOSS, K
from experiments.results_file import Results
from experiments.runs import Run, RunRequest

NAME = "criteo"
TRIALS = 3  # as in the paper
PLANTED_K = tuple(range(1, 9))
STRONG, WEAK = 0.1, 1e-4  # strengths of the LASSO penalties, as in the paper
METHODS: dict[str, dict[str, Any]] = {
    "Sequential Attention": {"method": "sequential_attention"},
    "CMIM": {"method": "cmim"},
    "group LASSO, strong": {"method": "group_lasso", "penalty": STRONG},
    "group LASSO, weak": {"method": "group_lasso", "penalty": WEAK},
    "Sequential LASSO, strong": {"method": "sequential_lasso", "penalty": STRONG},
    "Sequential LASSO, weak": {"method": "sequential_lasso", "penalty": WEAK},
    "batch-wise attention": {"method": "batch_attention"},
}
# Their selections are nested: the features for a small k are the first ones of those for a larger k.
NESTED_METHODS = ("cmim", "group_lasso", "batch_attention")
READ_OPTIONS = {"log1p": True, "missing_indicator": True, "memory": 0}
PAPER_NETWORK = {"hidden": (768, 256, 128), "epochs": 1}  # in one pass; for methods that train

ABOUT = """\
The paper's own log, of three billion rows, is not used here. These figures are for a real sample of the
Criteo display advertising log (137,139 rows; 13 counts, 26 categories). The first four fifths in
chronological order are for selection and training; the last fifth is for testing and is never used in a
selection. Every method makes one pass over files with the paper's network (768, 256 and 128 units);
`seqatt.evaluate` then trains a new network on the selected features in one pass. There are three
trials, as in the paper. The second row of each k has the paper's figures: they are for another log of
another size, so only the order of the methods can be compared. Every method has its defaults, which were
tried on the last eighth of the training rows. The LASSOs also have a weak penalty, 0.0003 beside 0.3, which
is the ratio of the paper's 0.0001 and 0.1. The best mean of a row is bold, however small its lead. Sequential
Attention selects with today's default; the other methods were selected before and are evaluated with the same
evaluation."""

ABOUT_PLANTED = """\
In a synthetic log (`seqatt.datasets.synthetic.click_log`, 60,000 training rows) eight features determine the
clicks, each with a smaller effect than the one before; the other 31 have no effect. The table counts how many
of the k selected features are among the eight:"""


def plan_runs(request: RunRequest) -> list[Run]:
    runs = []
    for data in request.data or DATA:
        check_log(data)
        for setting, method in METHODS.items():
            if not request.settings or setting in request.settings:
                options = method | ({"share": request.epochs} if request.epochs is not None else {})
                runs += [Run(data, setting, (seed,), options) for seed in range(min(request.seeds, TRIALS))]
    return runs


def execute(run: Run) -> dict[str, Any]:
    """The features for every k, with AUC and log loss on the test rows or the number of planted features."""
    options = dict(run.options)
    share, method = min(1.0, options.pop("share", 1.0)), options.pop("method")
    (seed,) = run.seeds
    with click_files(run.data, share) as log:
        ks = PLANTED_K if log.planted else K
        options = READ_OPTIONS | ({} if method == "cmim" else PAPER_NETWORK) | options
        selections = {
            k: seqatt.select(log.train, target=log.target, k=k, method=method, seed=seed, **options)
            for k in ([ks[-1]] if method in NESTED_METHODS else ks)
        }
        selected = [list(selections.get(k, selections[ks[-1]]).features[:k]) for k in ks]
        if log.planted:
            found = [len(set(features) & set(log.planted)) for features in selected]
            return {"features": [selected], "found": [found]}
        return {"features": [selected], **_evaluate(log, selected, seed)}


def evaluate_again(run: Run, features: list[list[list[str]]]) -> dict[str, Any]:
    """AUC and log loss of the recorded features by today's evaluation; of the synthetic log nothing is evaluated."""
    (seed,), (selected,) = run.seeds, features
    if run.data != "criteo":
        return {}
    with click_files(run.data) as log:
        return _evaluate(log, selected, seed)


def _evaluate(log: ClickLog, selected: list[list[str]], seed: int) -> dict[str, Any]:
    evaluations = [
        seqatt.evaluate(
            log.train, log.target, log.test, indices=features, seeds=[seed], **READ_OPTIONS, **PAPER_NETWORK
        )
        for features in selected
    ]
    return {
        name: [[round(float(evaluation[name][0]), 6) for evaluation in evaluations]]
        for name in ("auc", "log_loss")
    }


def values_at(results: Results, method: str, index: int, measure: str, data: str = "criteo") -> list[float]:
    """One value per trial for the k at this index."""
    return [by_k[index] for by_k in results.values(data, method, measure)]


def render(results: Results) -> str:
    parts: list[str] = []
    for title, measure, reported, best in (
        ("AUC", "auc", AUC, max),
        ("Log loss", "log_loss", LOG_LOSS, min),
    ):
        rows = []
        for index, k in enumerate(K):
            measured = [values_at(results, method, index, measure) for method in METHODS]
            best_mean = best((float(np.mean(v)) for v in measured if v), default=None)
            texts = [f"**{_format(v)}**" if v and np.mean(v) == best_mean else _format(v) for v in measured]
            rows.append([str(k), *texts])
            rows.append(["paper", *(format_reported(reported[method][k], digits=4) for method in METHODS)])
        parts.append(f"{title} on the test rows:\n\n{table(['k', *METHODS], rows)}")
    found = [
        [str(k), *(format_trials(values_at(results, m, i, "found", "click_log"), digits=1) for m in METHODS)]
        for i, k in enumerate(PLANTED_K)
    ]
    return section(
        "Click logs, from files",
        f"make paper-{NAME}",
        results,
        ABOUT,
        *parts,
        chart_link(NAME, "AUC on the Criteo sample against the number of features, for seven methods"),
        f"{ABOUT_PLANTED}\n\n{table(['k', *METHODS], found)}",
    )


def draw(results: Results, folder: Path) -> None:
    figure, (axes,) = charts.make_panels(1, size=(6.5, 3.6))
    for method, colour in zip(METHODS, charts.METHOD_COLOURS, strict=False):
        figures = [charts.mean_and_std(values_at(results, method, i, "auc")) for i in range(len(K))]
        if all(figures):
            mean, std = zip(*figures, strict=True)  # type: ignore[arg-type]
            axes.errorbar(K, mean, std, fmt="o-", color=colour, markersize=3, capsize=2, label=method)
    axes.set_xlabel("features selected")
    axes.set_ylabel("AUC on test rows")
    axes.grid(alpha=0.3)
    charts.add_legend(figure, [axes])
    charts.save(figure, folder / f"{NAME}.svg")


def _format(values: list[float]) -> str:
    return format_trials(values, digits=4).replace(" (3 trials)", "")
