"""Results as data frames and in notebooks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqatt.report.facts.selection_facts import NOT_SELECTED, feature_rows
from seqatt.report.values import NO_VALUE, aligned, html, metric_name, score
from seqatt.selection_file import why_empty

if TYPE_CHECKING:
    from seqatt.selection import Selection

MAX_ROWS = 50  # of a table in a notebook


def make_frame(rows: Any, index: Any = None) -> Any:
    """Rows as a pandas DataFrame."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install 'seqatt[pandas]'") from None
    return pd.DataFrame(rows, index=index)


def selection_frame(selection: Selection) -> Any:
    """One row per selected feature, with its name as the user gave it."""
    rows = feature_rows(selection, limit=None)
    named = [row | {"feature": name} for row, name in zip(rows, selection.features, strict=True)]
    return make_frame(named or {"rank": [], "feature": [], "score": []})


def selection_html(selection: Selection) -> str:
    """The first section of the report, for a notebook: no style sheet and no script."""
    rows = feature_rows(selection)
    title = f"{len(selection.features):,} of {len(selection.names):,} features, {selection.method}"
    metric = metric_name(selection.curve["metric"]) if selection.curve else ""
    titles = {"metric": f"{metric} so far", "frequency": "repeats", "importance_error": "±"}
    rows = rows[:MAX_ROWS]
    columns = {name: _column(name, [row[name] for row in rows]) for name in (rows[0] if rows else ())}
    cells = [list(row) for row in zip(*columns.values(), strict=True)]
    headings = [titles.get(name, name) for name in rows[0]] if rows else []
    more = len(selection.features) - len(cells)
    note = f"<p>and {more:,} more</p>" if more > 0 else ""
    if not rows and not why_empty(selection):  # the remarks say why
        note = f"<p>{html(NOT_SELECTED)}</p>"
    remarks = f"<p>{html('; '.join(selection.remarks()))}</p>"
    noticed = "".join(f"<li>{html(sentence)}</li>" for sentence in selection.notes)
    noticed = f"<ul>{noticed}</ul>" if noticed else ""
    return f"<p><b>{html(title)}</b></p>{remarks}{plain_table(headings, cells)}{note}{noticed}"


def _column(name: str, values: Sequence[Any]) -> list[str]:
    if name in ("score", "importance", "importance_error"):
        return aligned(values)
    if name == "frequency":
        return [NO_VALUE if value is None else f"{value:.0%}" for value in values]
    return [score(value) if name == "metric" else str(value) for value in values]


def evaluation_html(values: Mapping[str, Any], mean: Mapping[str, float], std: Mapping[str, float]) -> str:
    """Mean and standard deviation of every metric, for a notebook."""
    cells = [
        [metric_name(name), score(mean[name]), score(std[name]), str(len(values[name]))] for name in values
    ]
    return plain_table(["metric", "mean", "sd", "seeds"], cells)


def plain_table(headings: Sequence[str], cells: Sequence[Sequence[str]], bold: Collection[int] = ()) -> str:
    """A table that takes its style from the notebook; ``bold`` are positions of rows."""
    head = "".join(f'<th scope="col">{html(text)}</th>' for text in headings)
    body = ""
    for position, row in enumerate(cells):
        style = ' style="font-weight:bold"' if position in bold else ""
        body += f"<tr{style}>" + "".join(f"<td>{html(text)}</td>" for text in row) + "</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if cells else ""
