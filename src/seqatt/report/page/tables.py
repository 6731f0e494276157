"""Sections and HTML tables of a report: tables that sort, pairs of names and values, tables of coloured cells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from seqatt.report.values import html, number


def section(identifier: str, title: str, body: str, note: str = "") -> str:
    """A part of the page under a heading; nothing without a body."""
    if not body:
        return ""
    below = f'<p class="note">{html(note)}</p>' if note else ""
    return f'<section aria-labelledby="{identifier}"><h2 id="{identifier}">{html(title)}</h2>{below}{body}</section>'


class Cell(NamedTuple):
    """A cell: its text, what follows as HTML, and the number it is sorted by; without one it is text."""

    text: str
    sort: float | None = None
    after: str = ""
    numeric: bool = True


class Column(NamedTuple):
    """A heading, and whether the cells below it are numbers."""

    title: str
    numeric: bool = True


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    sortable: bool = False,
    heading: int = 0,
    best: Sequence[int] = (),
) -> str:
    """A table in a box that scrolls if it is too wide; the cell at ``heading`` names its row."""
    head = "".join(f'<th scope="col"{_kind(c.numeric)}>{html(c.title)}</th>' for c in columns)
    body = ""
    for position, row in enumerate(rows):
        cells = "".join(_cell(cell, i == heading) for i, cell in enumerate(row))
        body += f'<tr class="best">{cells}</tr>' if position in best else f"<tr>{cells}</tr>"
    kind = ' class="sortable"' if sortable else ""
    return (
        f'<div class="scroll"><table{kind}><caption class="hidden">{html(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _kind(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def _cell(cell: Cell, heading: bool) -> str:
    tag, scope = ("th", ' scope="row"') if heading else ("td", "")
    key = f' data-sort="{"" if cell.sort is None else format(cell.sort, ".9g")}"' if cell.numeric else ""
    text = html(cell.text).replace("_", "_<wbr>") if heading else html(cell.text)
    return f"<{tag}{scope}{_kind(cell.numeric)}{key}>{text}{cell.after}</{tag}>"


def meter(share: float | None, kind: str = "") -> str:
    """A bar behind a number, from 0 to 1; for the eye alone."""
    if share is None:
        return ""
    width = max(0.0, min(1.0, share))
    return f'<span class="meter {kind}" aria-hidden="true"><i style="width:{width:.0%}"></i></span>'


def values_table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    """The values of a chart as a table, folded away."""
    return f'<details class="data"><summary>Values</summary>{table(caption, columns, rows)}</details>'


def pairs(values: dict[str, Any]) -> str:
    """Names and values side by side."""
    items = "".join(f"<div><dt>{html(n)}</dt><dd>{html(show_value(v))}</dd></div>" for n, v in values.items())
    return f'<dl class="pairs">{items}</dl>'


def show_value(value: Any) -> str:
    """A setting as text: numbers short, lists with commas."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list):
        return (
            ", ".join(map(show_value, value[:20])) + (", …" if len(value) > 20 else "") if value else "none"
        )
    return json.dumps(value) if isinstance(value, dict) else str(value)


class HeatCell(NamedTuple):
    """A coloured cell: its class, its text, a mark that is seen, and its value in words where the text is not that."""

    kind: str
    text: str
    mark: str = ""
    value: str = ""
    visible: bool = False


def heat_table(
    caption: str,
    columns: Sequence[str],
    headings: Sequence[str],
    rows: Sequence[tuple[str, str, Sequence[HeatCell]]],
) -> str:
    """Cells coloured by value. ``columns`` are the full names of the columns, ``headings`` what has space above them.

    A row is its name, the class of its element, and its cells.
    """
    head = "".join(f'<th scope="col">{html(text)}</th>' if text else "<td></td>" for text in headings)
    body = ""
    for name, kind, cells in rows:
        made = "".join(_heat_cell(cell) for cell in cells)
        row = f'<tr class="{kind}">' if kind else "<tr>"
        body += f'{row}<th scope="row" title="{html(name)}">{html(name)}</th>{made}</tr>'
    names = html(json.dumps(list(columns), ensure_ascii=False))
    return (
        f'<table class="heat" data-columns="{names}"><caption class="hidden">{html(caption)}</caption>'
        f'<thead><tr><td class="name"></td>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def _heat_cell(cell: HeatCell) -> str:
    kinds = " ".join(kind for kind in (cell.kind, "v" if cell.visible else "") if kind)
    start = f"<td{f' class={chr(34)}{kinds}{chr(34)}' if kinds else ''}"
    value = f' data-value="{html(cell.value)}"' if cell.value else ""
    mark = f"<b>{html(cell.mark)}</b>" if cell.mark else ""
    return f"{start}{value}>{html(cell.text)}{mark}</td>"
