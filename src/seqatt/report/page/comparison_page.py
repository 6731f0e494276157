"""The head and the sections of the report of a comparison."""

from __future__ import annotations

from typing import Any

from seqatt.report.page.charts import dots_body, methods_body, series_class
from seqatt.report.page.svg import figure, marker
from seqatt.report.page.tables import Cell, Column, HeatCell, heat_table, section, table, values_table
from seqatt.report.values import NO_VALUE, capital, count, html, metric_name, score


def comparison_body(facts: dict[str, Any]) -> tuple[str, str]:
    """The conclusion first, then the table and the metric against k."""
    data = facts["data"]
    target = f" for {facts['target']}" if facts["target"] else ""
    parts = [str(data.get("task", "")), count(data["rows"], "row"), count(data["features"], "feature")]
    parts += [count(len(facts["seeds"]), "seed"), str(facts["environment"].get("device", ""))]
    lead = "".join(f'<p class="lead">{html(line)}</p>' for line in facts["conclusion"])
    head = (
        f"<h1>{html(count(len(facts['methods']), 'method'))} compared{html(target)}</h1>"
        f'<p class="facts">{html(" · ".join(part for part in parts if part))}</p>{lead}'
    )
    return head, _table_section(facts) + _chart_section(facts) + _features_section(facts)


def _table_section(facts: dict[str, Any]) -> str:
    metric = metric_name(facts["metric"])
    columns = [
        Column("k"),
        Column("method", False),
        Column(metric),
        Column("behind"),
        Column("seconds"),
        Column("stability"),
    ]
    rows, best = [], []
    for position, row in enumerate(facts["table"]):
        if row["best"]:
            best.append(position)
        spread = "" if row["sd"] is None else f" <small>± {html(score(row['sd']))}</small>"
        mean = score(row["mean"]) if row["mean"] is not None else "failed" if row["error"] else NO_VALUE
        behind = "best" if row["best"] else NO_VALUE
        if row["behind"] is not None:
            behind = ("≈ " if row["near"] else "") + score(row["behind"])
        method = "all features" if row["method"] == "all" else row["method"]
        rows.append(
            [
                Cell(str(row["k"]), row["k"]),
                Cell(method, numeric=False),
                Cell(mean, row["mean"], spread),
                Cell(behind, 0.0 if row["best"] else row["behind"]),
                Cell(_decimals(row["seconds"]), row["seconds"]),
                Cell(_decimals(row["stability"]), row["stability"]),
            ]
        )
    made = table("Methods compared", columns, rows, sortable=True, heading=1, best=best)
    notes = "".join(f"<li>{html(note)}</li>" for note in facts["notes"])
    return section("table", "Results", f'{made}<ul class="note">{notes}</ul>')


def _decimals(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:,.2f}"


def _chart_section(facts: dict[str, Any]) -> str:
    lines, everything, metric = facts["lines"], facts["all"], metric_name(facts["metric"])
    if not lines:
        return ""
    values = values_table(
        f"{metric} by method and k",
        [Column("method", False), Column("k"), Column(metric), Column("standard deviation")],
        [
            [
                Cell(each["method"], numeric=False),
                Cell(str(p["k"]), p["k"]),
                Cell(score(p["mean"])),
                Cell(score(p["sd"])),
            ]
            for each in lines
            for p in each["points"]
        ],
    )
    title = f"{metric} by method and number of features"
    means = [", ".join(f"{score(p['mean'])} at {p['k']}" for p in each["points"]) for each in lines]
    said = "; ".join(f"{each['method']} {own}" for each, own in zip(lines, means, strict=True))
    described = f"Mean {metric}: {said}."
    better = " Lower is better." if facts["lower_is_better"] else ""
    if len(facts["k"]) == 1:
        sign = 1 if facts["lower_is_better"] else -1  # the best first
        rows = [
            {
                "label": each["method"],
                "accent": i == 0,
                "mean": p["mean"],
                "sd": p["sd"],
                "values": [p["mean"] - (p["sd"] or 0), p["mean"], p["mean"] + (p["sd"] or 0)],
            }
            for i, each in enumerate(sorted(lines, key=lambda each: sign * each["points"][0]["mean"]))
            for p in each["points"]
        ]
        body = figure(
            "methods", title, described, lambda width: dots_body(facts["metric"], rows, width), values
        )
        return section(
            "chart",
            capital(f"{metric} at k = {facts['k'][0]}"),
            body,
            f"Bar: mean over the seeds; dots: one standard deviation.{better}",
        )
    reference = {"label": f"all {everything['k']:,}", "mean": everything["mean"]} if everything else None
    items = "".join(
        '<li><svg viewBox="-7 -7 14 14" aria-hidden="true">'
        f"{marker(0, 0, i, f'point {series_class(each, i)}', 4.5)}</svg>{html(each['method'])}</li>"
        for i, each in enumerate(lines)
    )
    legend = f'<ul class="legend only-narrow">{items}</ul>'
    body = figure(
        "methods",
        title,
        described,
        lambda width: methods_body(facts["metric"], facts["k"], lines, reference, width),
        legend + values,
    )
    return section(
        "chart",
        capital(f"{metric} against k"),
        body,
        f"Mean over the seeds; whiskers: one standard deviation.{better}",
    )


def _features_section(facts: dict[str, Any]) -> str:
    """Which features the methods agree on."""
    features = facts["features"]
    if not features:
        return ""
    rows = [
        (
            row["feature"],
            "",
            [HeatCell(f"s{round(10 * share)}" if share else "", f"{share:.0%}") for share in row["shares"]],
        )
        for row in features["rows"]
    ]
    headings = [str(i + 1) for i in range(len(features["methods"]))]
    legend = ", ".join(f"{i + 1} {method}" for i, method in enumerate(features["methods"]))
    body = heat_table("Features by method", features["methods"], headings, rows)
    note = f"The stronger the colour, the more seeds selected it, at k = {features['k']}. Columns: {legend}."
    return section("agreement", "Features that the methods agree on", body, note)
