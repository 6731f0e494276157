"""Sections about how sure an answer is, and about features that resemble each other."""

from __future__ import annotations

from typing import Any

from seqatt.report.page.tables import Cell, Column, HeatCell, heat_table, meter, pairs, section, table
from seqatt.report.values import count, html, metric_name, number, score
from seqatt.validation import name_some


def confidence_section(facts: dict[str, Any]) -> str:
    """False discoveries and chance, as the values they came with."""
    body = ""
    found = facts["false_discoveries"]
    if found:
        names = {
            "promised rate": found.get("rate"),
            "estimated rate": found.get("estimated_rate"),
            "knockoffs of each feature": found.get("knockoffs"),
            "features that took part": found.get("raced"),
        }
        body += f"<h3>False discoveries</h3>{pairs({n: v for n, v in names.items() if v is not None})}"
        body += "".join(f'<p class="note alert">{html(each)}</p>' for each in found.get("warnings") or [])
    if facts["chance"]:
        chance = facts["chance"]
        metric = metric_name(chance.get("metric", "score"))
        scores = {
            f"{metric}, selected features": f"{score(chance['score'])} ± {score(chance['standard_error'])}",
            f"{metric}, random features": score(chance["random_features"]),
            f"{metric}, no features": score(chance["no_features"]),
        }
        body += f"<h3>On rows not used for the selection</h3>{pairs(scores)}"
    return section("confidence", "Could it be chance?", body)


def stability_section(facts: dict[str, Any]) -> str:
    """How often features were selected over repeats, and clusters of features that replace each other."""
    stability = facts["stability"]
    if not stability:
        return ""
    clustered = any(row["cluster"] for row in stability["features"])
    columns = [Column("feature", False), Column("selected in")] + ([Column("cluster")] if clustered else [])
    rows = []
    for row in stability["features"]:
        share = row["frequency"]
        cells = [Cell(row["feature"], numeric=False)]
        cells.append(Cell(f"{share:.0%}", share, meter(share, "" if row["selected"] else "grey")))
        if clustered:
            cells.append(Cell(str(row["cluster"] or ""), row["cluster"]))
        rows.append(cells)
    best = [i for i, row in enumerate(stability["features"]) if row["selected"]]
    body = table("Features by how often they were selected", columns, rows, sortable=True, best=best)
    if stability["clusters"]:
        items = ""
        for each in stability["clusters"]:
            listed = [*each["features"], *(["…"] if each["size"] > len(each["features"]) else [])]
            items += (
                f"<li>{html(', '.join(listed))}: one of them in {each['frequency']:.0%} of the repeats</li>"
            )
        body += f"<h3>Features that replace each other</h3><ol>{items}</ol>"
    note = f"{count(stability['repeats'], 'selection')} on halves of the rows; those in the answer are bold."
    if stability.get("bounded"):
        note += (
            f" Of the {count(stability['bounded'], 'feature')} in at least {stability['threshold']:.0%} of them, "
            f"at most {number(stability['false_choices'], 2)} are expected to be there by chance."
        )
    if stability["not_shown"]:
        note += f" {count(stability['not_shown'], 'rarer feature')} not shown."
    return section("stability", "How often each was selected", body, note)


def correlation_section(facts: dict[str, Any]) -> str:
    """Correlations of the selected features, and the rejected ones that they stand in for."""
    correlation = facts["correlation"]
    body = ""
    if correlation and len(correlation["features"]) > 1:
        names = correlation["features"]
        visible = len(names) <= 10
        rows = []
        for i, name in enumerate(names):
            cells = []
            for j, value in enumerate(correlation["matrix"][i]):
                kind = "" if i == j else f"{'s' if value > 0 else 'w'}{max(1, round(10 * abs(value) * 0.6))}"
                shown = number(value, 2) if i != j else ""
                cells.append(HeatCell(kind, shown, value="" if i != j else "1", visible=visible))
            rows.append((f"{i + 1}. {name}", "", cells))
        body = heat_table("Correlations", names, [str(i + 1) for i in range(len(names))], rows)
    listed = (correlation or {}).get("stand_ins") or []
    if listed:
        body += f"<h3>What they stand in for</h3>{_stand_in_table(listed, 'correlation')}"
    note = (
        "Pearson correlation; blue: they rise together, orange: one falls as the other rises." if body else ""
    )
    return section("correlation", "Features that resemble each other", body, note)


def stand_in_section(facts: dict[str, Any]) -> str:
    """Rejected features that could replace a selected one, where importance was measured with them."""
    listed = (facts["importance"] or {}).get("stand_ins")
    if not listed or facts["correlation"]:  # which says it of all features
        return ""
    return section("stand-ins", "What they stand in for", _stand_in_table(listed, "value"))


def _stand_in_table(listed: list[dict[str, Any]], key: str) -> str:
    """Selected features beside the rejected ones that they resemble; ``key`` is that of the correlations."""
    cells = []
    for row in listed:
        names = [f"{rejected['feature']} ({number(rejected[key], 2)})" for rejected in row["of"]]
        shown = name_some(names, row.get("count", len(names)))
        cells.append([Cell(row["feature"], numeric=False), Cell(shown, numeric=False)])
    columns = [Column("selected", False), Column("stands in for (correlation)", False)]
    return table("Rejected features that resemble a selected one", columns, cells)
