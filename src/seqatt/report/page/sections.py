"""The sections of the report of a selection, each from its facts; empty where these are not there."""

from __future__ import annotations

from typing import Any

from seqatt.report.page.charts import curve_body, curve_shows_none, dots_body, frontier_body, image_svg
from seqatt.report.page.distributions import distribution_figure
from seqatt.report.page.svg import figure
from seqatt.report.page.tables import Cell, Column, HeatCell, heat_table, meter, section, table, values_table
from seqatt.report.values import count, html, metric_name, number, score


def features_section(facts: dict[str, Any]) -> str:
    """The selected features in order, with what is known of each."""
    rows = facts["features"]
    if not rows:
        return ""
    notes, columns = [], [Column("rank"), Column("feature", False)]
    if "frequency" in rows[0]:  # the score is that of the repeats
        columns.append(Column("selected in"))
        notes.append("selected in: share of the repeats that selected it or one that it stands for")
    else:
        columns.append(Column("score"))
        notes.append("score: that of the method when the feature was selected")
    if "importance" in rows[0]:
        columns.append(Column("importance"))
        notes.append(
            "importance: increase of the loss on held-out rows without the feature, ± one standard error"
        )
    if "metric" in rows[0]:
        columns.append(Column(f"{metric_name(facts['curve']['metric'])} so far"))
        notes.append(
            f"{columns[-1].title}: in cross-validation, with as many features, which each fold selects anew"
        )
    more = facts["selected"] - len(rows)
    if more > 0:
        notes.append(f"{more:,} more features are in selection.json")
    made = table("Selected features", columns, feature_cells(rows), sortable=True, heading=1)
    return section(
        "features",
        "Selected features",
        f'{made}<p class="note" style="margin-top:10px">{html("; ".join(notes))}.</p>',
    )


def feature_cells(rows: list[dict[str, Any]]) -> list[list[Cell]]:
    """The cells of the table of features."""
    scores = [row["score"] for row in rows if row["score"] is not None]
    best = (
        max(scores, default=1.0) if min(scores, default=0.0) >= 0 else None
    )  # a bar shows no negative number
    most = max((row["importance"] or 0 for row in rows if "importance" in row), default=1.0) or 1.0
    made = []
    for row in rows:
        shown = row["score"]
        cells = [Cell(str(row["rank"]), row["rank"]), Cell(row["feature"], numeric=False)]
        if "frequency" in row:
            cells.append(Cell("–" if shown is None else f"{shown:.0%}", shown, meter(shown)))
        else:
            relative = None if shown is None or not best else shown / best
            cells.append(Cell(number(shown), shown, meter(relative, "grey")))
        if "importance" in row:
            error = (
                ""
                if row["importance_error"] is None
                else f" <small>± {html(score(row['importance_error']))}</small>"
            )
            share = None if row["importance"] is None else row["importance"] / most
            cells.append(Cell(score(row["importance"]), row["importance"], error + meter(share)))
        if "metric" in row:
            cells.append(Cell("" if row["metric"] is None else score(row["metric"]), row["metric"]))
        made.append(cells)
    return made


def curve_section(facts: dict[str, Any]) -> str:
    """The metric against the number of features."""
    curve = facts["curve"]
    if not curve:
        return ""
    metric = metric_name(curve["metric"])
    rows = [
        [Cell(str(size), size), Cell(score(mean), mean), Cell(score(error), error)]
        for size, mean, error in zip(curve["sizes"], curve["means"], curve["standard_errors"], strict=True)
    ]
    values = values_table(
        f"{metric} by number of features",
        [Column("features"), Column(metric), Column("standard error")],
        rows,
    )
    described = ", ".join(f"{s}: {score(m)}" for s, m in zip(curve["sizes"], curve["means"], strict=True))
    body = figure(
        "curve",
        f"{metric} by number of features",
        f"{metric} with so many features: {described}. All features: {score(curve['all_features'])}.",
        lambda width: curve_body(curve, facts["available"], width),
        values,
    )
    chosen = f"chosen: {curve['chosen']}" if curve["chosen"] else "none was chosen"
    note = (
        f"{metric} of networks in cross-validation ({curve.get('folds', 3)} folds, each with a selection of its own; "
        f"band: one standard error); {chosen}, ringed."
    )
    if not curve_shows_none(curve):
        note += f" No features, below the chart: {score(curve['no_features'])}."
    return section("curve", "How many features", body, note)


def frontier_section(facts: dict[str, Any]) -> str:
    """The metric against the cost, and what is paid for."""
    frontier = facts["frontier"]
    if not frontier:
        return ""
    metric = metric_name(frontier["metric"])
    points = zip(frontier["costs"], frontier["means"], frontier["standard_errors"], strict=True)
    rows = [
        [Cell(f"{c:,g}", c), Cell(score(mean), mean), Cell(score(error), error)] for c, mean, error in points
    ]
    columns = [Column("cost"), Column(metric), Column("standard error")]
    described = ", ".join(f"{row[0].text}: {row[1].text}" for row in rows)
    body = figure(
        "frontier",
        f"{metric} by cost",
        f"{metric} for so much: {described}. All features: {score(frontier['all_features'])}.",
        lambda width: frontier_body(frontier, width),
        values_table(f"{metric} by cost", columns, rows),
    )
    paid = [
        [
            Cell(each["name"], numeric=False),
            Cell(f"{each['cost']:,g}", each["cost"]),
            Cell(", ".join(each["features"]), numeric=False),
        ]
        for each in frontier["paid"]
    ]
    if paid:
        columns = [Column("paid for", False), Column("cost"), Column("selected features", False)]
        body += table("What is paid for", columns, paid, sortable=True)
    note = (
        f"{metric} of networks in cross-validation ({frontier['folds']} folds; line: one standard error) for what the "
        "search finds at each cost; the selection is ringed."
    )
    return section("frontier", "What the features cost", body, note)


def evaluation_section(facts: dict[str, Any]) -> str:
    """Metrics on test rows with the selected, random and all features."""
    evaluation = facts["evaluation"]
    if not evaluation:
        return ""
    sizes = {each["name"]: each["features"] for each in evaluation["sets"]}
    labels = {name: name if size is None else f"{name} ({size:,})" for name, size in sizes.items()}
    figures = ""
    rows: list[list[Cell]] = []
    for metric in evaluation["metrics"]:
        lines = [
            {"label": labels[each["name"]], "accent": each["name"] == "selected"} | each["values"][metric]
            for each in evaluation["sets"]
        ]
        if all(v is None for each in lines for v in each["values"]):
            continue
        spoken = ", ".join(f"{each['label']} {score(each['mean'])}" for each in lines)
        name = metric_name(metric)
        figures += figure(
            f"evaluation-{len(rows)}",
            f"{name} by set of features",
            f"Mean {name}: {spoken}.",
            lambda width, metric=metric, lines=lines: dots_body(metric, lines, width),  # type: ignore[misc]
        )
        rows.append([Cell(name, numeric=False), *(Cell(score(each["mean"]), each["mean"]) for each in lines)])
    columns = [Column("metric", False), *(Column(label) for label in labels.values())]
    where = evaluation["rows"] or "test rows"
    note = (
        f"Networks trained on each set of features and tested on {where}: a dot per seed, a bar for the mean."
    )
    values = values_table("Means on test rows", columns, rows)
    return section("evaluation", "Against all and random features", figures + values, note)


def history_section(facts: dict[str, Any]) -> str:
    """Scores of selected features and runners-up by phase."""
    history = facts["history"]
    if not history:
        return ""
    phases = history["phases"]
    every = 1 if len(phases) <= 16 else 5 if len(phases) <= 30 else 10
    headings = [str(phase) if i % every == 0 else "" for i, phase in enumerate(phases)]
    rows, runner_up = [], False
    for row in history["rows"]:
        kind = "" if row["selected"] else "rest" if runner_up else "rest first-rest"
        runner_up = not row["selected"]
        rows.append((row["feature"], kind, [_phase_cell(row, i) for i in range(len(phases))]))
    body = heat_table("Scores by phase", [f"phase {phase}" for phase in phases], headings, rows)
    note = (
        "The stronger the colour, the better the score within the phase. + selected at its end, × dropped again. "
        "Below: the next best features, which were not selected."
    )
    if history["not_shown"]:
        note += f" {count(history['not_shown'], 'more selected feature')} are not shown."
    return section("history", "How the scores moved", body, note)


def _phase_cell(row: dict[str, Any], position: int) -> HeatCell:
    value, sign = row["values"][position], row["marks"].get(str(position), "")
    kind = "" if value is None else f"s{round(10 * value)}"
    shown = "" if value is None else f"{value:.2f}"
    words = {"+": "selected", "-": "dropped"}.get(sign, "")
    spoken = ", ".join(part for part in (shown, words) if part)
    return HeatCell(kind, shown, {"+": "+", "-": "×"}.get(sign, ""), spoken if sign else "")


def image_section(facts: dict[str, Any]) -> str:
    if not facts["image"]:
        return ""
    note = "The stronger the colour, the earlier selected."
    note += " Grey: the mean image." if facts["image"]["means"] else ""
    return section("image", "Where the selected pixels are", image_svg(facts["image"]), note)


def distributions_section(facts: dict[str, Any]) -> str:
    """One small chart per selected feature."""
    listed = facts["distributions"]
    if not listed:
        return ""
    target = facts["target"] or "the target"
    charts = "".join(distribution_figure(each, target) for each in listed)
    series: list[dict[str, Any]] = next((each["series"] for each in listed if "series" in each), [])
    legend = ""
    if len(series) > 1:
        items = "".join(f'<li><i class="c{i}"></i>{html(each["name"])}</li>' for i, each in enumerate(series))
        legend = f'<ul class="legend" aria-label="Classes">{items}</ul>'
        note = f"Share of the rows of each class of {target} by value of the feature."
    elif series:
        note = "Share of the rows by value of the feature."
    elif any("ranges" in each for each in listed):
        note = f"The feature in every class of {target}: a dot for its mean, a line for the middle 80 % of the rows."
    else:
        note = f"Mean of {target} by value of the feature; band: the middle 80 % of the rows."
    return section(
        "distributions", f"The features and {target}", f'{legend}<div class="grid-small">{charts}</div>', note
    )
