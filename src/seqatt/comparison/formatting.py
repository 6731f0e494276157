"""A standings as text, Markdown and HTML. Nothing is computed here but the spelling of figures."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from seqatt.comparison.conclusion import conclude, figure, name
from seqatt.comparison.results_table import ResultsTable
from seqatt.comparison.statistics import LOWER_IS_BETTER

NOTHING = "–"


@dataclass(frozen=True)
class FormattedRow:
    """A row as people read it; ``best`` has the best mean of its k."""

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


def headings(standings: ResultsTable) -> tuple[str, ...]:
    return "k", "method", name(standings.metric), "behind", "seconds", "stability"


def lines(standings: ResultsTable) -> list[list[FormattedRow]]:
    """The rows of each k, best first, those that failed last."""
    sign = 1 if standings.metric in LOWER_IS_BETTER else -1
    sections: dict[int, list[dict[str, Any]]] = {}
    for row in standings.table():
        own = row["method"] == "all" and row["k"] in standings.k
        sections.setdefault(-1 if own else row["k"], []).append(row)
    for rows in sections.values():
        rows.sort(key=lambda row: (row["mean"] is None, sign * (row["mean"] or 0)))
    return [[_line(standings, row) for row in rows] for rows in sections.values()]


def title(standings: ResultsTable) -> str:
    settings = standings.settings
    return f"{settings['task']}, {settings['rows']:,} rows, {settings['features']:,} features"


def notes(standings: ResultsTable) -> list[str]:
    """What the columns mean, and what else there is to know."""
    settings = standings.settings
    seeds = len(settings["seeds"])
    metric, better = standings.metric, " (lower is better)" if standings.metric in LOWER_IS_BETTER else ""
    over = _tests(settings, seeds)
    said = [f"{name(metric)}{better}: a network's with the chosen features, mean ± sd over {over}"]
    if seeds > 1:
        said.append(
            "behind: mean difference to the best, split by split; ≈ within one sd of that, and not clear"
        )
    said.append("seconds: of a selection; a method's first in a process also loads what it needs")
    said.append("stability: overlap (Jaccard) of the sets that two seeds choose")
    return said + failures(standings)


def failures(standings: ResultsTable) -> list[str]:
    """What failed and why, what is undefined and what is missing."""
    said: list[str] = []
    failed: dict[tuple[str, str], list[str]] = {}
    for row in standings.table():
        if row["error"]:
            failed.setdefault((row["method"], row["error"]), []).append(str(row["k"]))
    said += [f"{method} failed at k = {', '.join(ks)}: {error}" for (method, error), ks in failed.items()]
    metric = standings.metric
    seeds = sorted({c.seed for c in standings.cells if c.error is None and c.metrics.get(metric) is None})
    if seeds:
        why = " (one class only)" if metric == "auc" else ""
        said.append(f"{name(metric)} is undefined on test rows of seed {', '.join(map(str, seeds))}{why}")
    if standings.missing:
        made = len(standings.cells)
        said.append(f"interrupted: {made} of {made + standings.missing} runs were made")
    return said


def to_text(standings: ResultsTable) -> str:
    rows = [line.texts for section in lines(standings) for line in section]
    widths = [max(map(len, column)) for column in zip(headings(standings), *rows, strict=True)]
    shown = [
        "  ".join(
            text.ljust(width) if place in (1, 2) else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [headings(standings), *rows]
    ]
    said = [*failures(standings), conclude(standings)]
    return "\n".join([f"Comparison({title(standings)})", *shown, "", *said])


def to_markdown(standings: ResultsTable) -> str:
    made = [["---:", "---", "---", "---:", "---:", "---:"]]
    for section in lines(standings):
        for line in section:
            texts = [text.replace("|", "\\|") for text in line.texts]
            made.append(
                [f"**{text}**" if line.best and i in (1, 2) else text for i, text in enumerate(texts)]
            )
    table = "\n".join(f"| {' | '.join(row)} |" for row in [headings(standings), *made])
    listed = "\n".join(f"- {note}" for note in notes(standings))
    said = "\n\n".join(conclude(standings).split("\n"))
    return f"## Comparison: {title(standings)}\n\n{said}\n\n{table}\n\n{listed}\n"


def to_html(standings: ResultsTable) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in headings(standings))
    body = ""
    for section in lines(standings):
        for line in section:
            style = ' style="font-weight:bold"' if line.best else ""
            body += f"<tr{style}>" + "".join(f"<td>{escape(text)}</td>" for text in line.texts) + "</tr>"
    said = "<br>".join(escape(line) for line in conclude(standings).split("\n"))
    small = "<br>".join(escape(note) for note in notes(standings))
    return (
        f"<p>Comparison: {escape(title(standings))}</p><p>{said}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p><small>{small}</small></p>"
    )


def _line(standings: ResultsTable, row: dict[str, Any]) -> FormattedRow:
    k, method, metric = row["k"], row["method"], standings.metric
    judged = method != "all"
    best = judged and standings.best(k) == method
    apart = next((d for d in standings.differences(k) if d["method"] == method), None) if judged else None
    behind = "best" if best else NOTHING
    if apart is not None:
        behind = ("≈ " if apart["near"] else "") + figure(apart["ahead"], metric)
    seconds = NOTHING if row["seconds"] is None else _seconds(row["seconds"])
    stability = NOTHING if row["stability"] is None else f"{row['stability']:.2f}"
    return FormattedRow(k, method, _score(standings, row), behind, seconds, stability, best)


def _score(standings: ResultsTable, row: dict[str, Any]) -> str:
    if row["mean"] is None:
        return "failed" if row["error"] else "undefined" if row["runs"] else NOTHING
    text = figure(row["mean"], row["metric"])
    if row["sd"] is not None:
        text += f" ± {figure(row['sd'], row['metric'])}"
    asked = len(standings.settings["seeds"])
    return text if row["runs"] == asked else f"{text} ({row['runs']} of {asked})"


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _tests(settings: dict[str, Any], seeds: int) -> str:
    test, splits = settings["test"], settings["split_rows"]
    if seeds == 1:
        return "one run"
    if "rows" in test:
        return f"{seeds} seeds, on your {test['rows']:,} test rows"
    tested = sum(held / (train + held) for train, held in splits) / len(splits)
    rows = round(sum(held for _, held in splits) / len(splits))
    part = f"{tested:.0%}" if isinstance(test["size"], float) else f"{rows:,}"
    how = ", whole groups" if test["grouped"] else ", stratified" if test["stratified"] else ""
    return f"{seeds} splits (tested on {part} of the rows{how})"
