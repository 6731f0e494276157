"""A results table as text, Markdown and HTML. This module formats values and computes no statistics."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from seqatt.comparison.conclusion import conclude, format_score, name_seeds
from seqatt.comparison.results_table import ResultsTable
from seqatt.comparison.runs import ALL
from seqatt.display_text import LOWER_IS_BETTER, describe_task, metric_name

NO_VALUE = "–"
LEFT_ALIGNED = (1, 2)  # columns with the method and its score; numbers are aligned right


@dataclass(frozen=True)
class FormattedRow:
    """A row of formatted values; ``best`` says that it has the best mean of its k."""

    k: int
    method: str
    score: str
    behind: str
    seconds: str
    stability: str
    best: bool

    @property
    def texts(self) -> tuple[str, ...]:
        return str(self.k), self.method, self.score, self.behind, self.seconds, self.stability


def headings(results: ResultsTable) -> tuple[str, ...]:
    return "k", "method", metric_name(results.metric), "behind", "seconds", "stability"


def sections(results: ResultsTable) -> list[list[FormattedRow]]:
    """One list of rows per k, the best first and those without a score last; all features come last."""
    sign = 1 if results.metric in LOWER_IS_BETTER else -1
    by_k: dict[int, list[dict[str, Any]]] = {}
    for row in results.table():
        separate = row["method"] == ALL and row["k"] in results.k  # a section of its own, not that of k
        by_k.setdefault(-1 if separate else row["k"], []).append(row)
    for rows in by_k.values():
        rows.sort(key=lambda row: (row["mean"] is None, sign * (row["mean"] or 0)))
    return [[_format_row(results, row) for row in rows] for rows in by_k.values()]


def title(results: ResultsTable) -> str:
    settings = results.settings
    return f"{describe_task(settings)}, {settings['rows']:,} rows, {settings['features']:,} features"


def notes(results: ResultsTable) -> list[str]:
    """Explanations of the columns, followed by the failures."""
    settings = results.settings
    seeds = len(settings["seeds"])
    metric, better = results.metric, " (lower is better)" if results.metric in LOWER_IS_BETTER else ""
    splits = _describe_splits(settings, seeds)
    what = f"{metric_name(metric)}{better}"
    lines = [f"{what}: of a network trained on the selected features, mean ± sd over {splits}"]
    if seeds > 1:
        lines.append(
            "behind: mean paired difference to the best method; ≈ at most one standard deviation of it, and not "
            "significant"
        )
    lines.append("seconds: time of one selection; the first in a process includes loading libraries")
    lines.append("stability: mean Jaccard index of the features selected by two seeds")
    return lines + failures(results)


def failures(results: ResultsTable) -> list[str]:
    """Failed runs with their errors, undefined metrics and missing runs."""
    lines: list[str] = []
    failed: dict[tuple[str, str], list[str]] = {}
    for row in results.table():
        if row["error"]:
            failed.setdefault((row["method"], row["error"]), []).append(str(row["k"]))
    lines += [f"{method} failed at k = {', '.join(ks)}: {error}" for (method, error), ks in failed.items()]
    metric = results.metric
    runs = results.runs
    seeds = sorted({run.seed for run in runs if run.error is None and run.metrics.get(metric) is None})
    if seeds:
        reason = " (one class only)" if metric == "auc" else ""
        listed = ", ".join(map(str, seeds))
        lines.append(f"{metric_name(metric)} is undefined on test rows of seed {listed}{reason}")
    if results.missing:
        lines.append(f"interrupted: {len(runs)} of {len(runs) + results.missing} runs were made")
        lines += _describe_missing(results)
    return lines


def _describe_missing(results: ResultsTable) -> list[str]:
    """The missing runs, and those that are left out because other methods have none of the same seed."""
    missing: dict[int, dict[str, list[int]]] = {}
    for method, k, seed in results.missing_runs():
        missing.setdefault(k, {}).setdefault(method, []).append(seed)
    lines = []
    for k, by_method in sorted(missing.items()):
        runs = (f"{method} ({name_seeds(by_method[method])})" for method in sorted(by_method))
        lines.append(f"missing at k = {k}: {', '.join(runs)}")
    for k in results.k:
        compared = results.compared_seeds(k)
        seeds = sorted({r.seed for r in results.runs if r.k == k and r.method != ALL} - {*compared})
        if seeds:
            lines.append(f"left out at k = {k}: {name_seeds(seeds)}, which not all of these methods have")
    return lines


def to_text(results: ResultsTable) -> str:
    rows = [row.texts for section in sections(results) for row in section]
    widths = [max(map(len, column)) for column in zip(headings(results), *rows, strict=True)]
    aligned = [
        "  ".join(
            text.ljust(width) if i in LEFT_ALIGNED else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [headings(results), *rows]
    ]
    return "\n".join([f"Comparison({title(results)})", *aligned, "", *failures(results), conclude(results)])


def to_markdown(results: ResultsTable) -> str:
    lines = [["---" if i in LEFT_ALIGNED else "---:" for i in range(len(headings(results)))]]
    for section in sections(results):
        for row in section:
            texts = [text.replace("|", "\\|") for text in row.texts]
            lines.append(
                [f"**{text}**" if row.best and i in LEFT_ALIGNED else text for i, text in enumerate(texts)]
            )
    table = "\n".join(f"| {' | '.join(line)} |" for line in [headings(results), *lines])
    bullets = "\n".join(f"- {note}" for note in notes(results))
    conclusion = "\n\n".join(conclude(results).split("\n"))
    return f"## Comparison: {title(results)}\n\n{conclusion}\n\n{table}\n\n{bullets}\n"


def to_html(results: ResultsTable) -> str:
    from seqatt.report.frames import plain_table  # here: the commands need none of it

    rows = [row for section in sections(results) for row in section]
    bold = [position for position, row in enumerate(rows) if row.best]
    table = plain_table(headings(results), [row.texts for row in rows], bold)
    conclusion = "<br>".join(escape(line) for line in conclude(results).split("\n"))
    small = "<br>".join(escape(note) for note in notes(results))
    return (
        f"<p>Comparison: {escape(title(results))}</p><p>{conclusion}</p>{table}<p><small>{small}</small></p>"
    )


def _format_row(results: ResultsTable, row: dict[str, Any]) -> FormattedRow:
    k, method, metric = row["k"], row["method"], results.metric
    ranked = method != ALL
    best = ranked and results.best(k) == method
    difference = next((d for d in results.differences(k) if d["method"] == method), None) if ranked else None
    behind = "best" if best else NO_VALUE
    if difference is not None:
        behind = ("≈ " if difference["near"] else "") + format_score(difference["ahead"], metric)
    seconds = NO_VALUE if row["seconds"] is None else _format_seconds(row["seconds"])
    stability = NO_VALUE if row["stability"] is None else f"{row['stability']:.2f}"
    return FormattedRow(k, method, _format_mean(results, row), behind, seconds, stability, best)


def _format_mean(results: ResultsTable, row: dict[str, Any]) -> str:
    if row["mean"] is None:
        return "failed" if row["error"] else "undefined" if row["runs"] else NO_VALUE
    text = format_score(row["mean"], row["metric"])
    if row["sd"] is not None:
        text += f" ± {format_score(row['sd'], row['metric'])}"
    n_seeds = len(results.settings["seeds"])
    return text if row["runs"] == n_seeds else f"{text} ({row['runs']} of {n_seeds})"


def _format_seconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _describe_splits(settings: dict[str, Any], seeds: int) -> str:
    """The runs over which mean and standard deviation are taken, in words."""
    test, splits = settings["test"], settings["split_rows"]
    if seeds == 1:
        return "one run"
    if "rows" in test:
        count = "" if test["rows"] is None else f"{test['rows']:,} "
        return f"{seeds} seeds, on your {count}test rows"
    if any(None in rows for rows in splits):  # text files do not store their number of rows
        size = f"{test['size']:.0%}"
    else:
        share = sum(n_test / (n_train + n_test) for n_train, n_test in splits) / len(splits)
        rows = round(sum(n_test for _, n_test in splits) / len(splits))
        size = f"{share:.0%}" if isinstance(test["size"], float) else f"{rows:,}"
    table = settings.get("table", {})
    if table.get("time"):  # the same rows for every seed
        whole = ", whole groups" if table.get("groups_of_rows") else ""
        return f"{seeds} seeds (tested on the latest {size} of the rows{whole})"
    kind = ", whole groups" if test["grouped"] else ", stratified" if test["stratified"] else ""
    return f"{seeds} splits (tested on {size} of the rows{kind})"
