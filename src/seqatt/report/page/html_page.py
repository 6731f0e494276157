"""The page of a report: one HTML file made from facts, with nothing to load.

Every text that comes from data or files passes through ``html``, and the page allows no script but its own, by its
hash. See docs/decisions/0024-report-pages.md.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

from seqatt.report.page import confidence_sections, sections
from seqatt.report.page.comparison_page import comparison_body
from seqatt.report.page.tables import pairs, section
from seqatt.report.values import count, html, metric_name, score, seconds
from seqatt.version import __version__


def make_page(facts: dict[str, Any]) -> str:
    """The HTML of a report. Equal facts give equal pages."""
    head, body = comparison_body(facts) if facts["kind"] == "comparison" else selection_body(facts)
    script, style = _asset("report.js"), _asset("report.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    data = json.dumps(facts, allow_nan=False).replace("<", "\\u003c")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html(title_of(facts))}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header>{head}</header>\n<main>{body}{_origin(facts)}</main>\n"
        f"<footer>Made by seqatt {html(__version__)}. All facts of this page are in it as JSON.</footer>\n"
        f'<script type="application/json" id="facts">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def title_of(facts: dict[str, Any]) -> str:
    """The title of the page: what was selected, for what."""
    target = f" for {facts['target']}" if facts["target"] else ""
    if facts["kind"] == "comparison":
        return f"{count(len(facts['methods']), 'method')} compared{target}"
    return f"{facts['selected']:,} of {facts['available']:,} features{target}"


def selection_body(facts: dict[str, Any]) -> tuple[str, str]:
    """The head of the page, with the answer in words and figures, and its sections."""
    data = facts["data"]
    parts = [facts["method"], describe_target(data)]
    parts += [count(data["rows"], "row")] if "rows" in data else []
    parts += [
        f"{seconds(facts['seconds'])} on {facts['environment'].get('device', 'unknown')}",
        f"seed {facts['seed']}",
    ]
    alert = " alert" if facts["partial"] or facts["empty"] else ""
    first, *others = facts["summary"] or [""]
    lead = f'<p class="lead{alert}">{html(first)}</p>' if first else ""
    lead += "".join(f"<p>{html(sentence)}</p>" for sentence in others)
    head = (
        f'<h1>{html(title_of(facts))}</h1><p class="facts">{html(" · ".join(parts))}</p>{lead}{_tiles(facts)}'
    )
    body = "".join(
        make(facts)
        for make in (
            sections.features_section,
            sections.image_section,
            sections.curve_section,
            sections.frontier_section,
            sections.evaluation_section,
            confidence_sections.confidence_section,
            confidence_sections.stability_section,
            sections.distributions_section,
            confidence_sections.correlation_section,
            confidence_sections.stand_in_section,
            sections.history_section,
        )
    )
    steps = "".join(f"<li>{html(step)}</li>" for step in facts["next"])
    return head, body + section("next", "What to try next", f'<ul class="next">{steps}</ul>' if steps else "")


def describe_target(data: dict[str, Any]) -> str:
    """The kind of target: "multiclass, 3 classes"."""
    task, classes = data.get("task", "unknown task"), data.get("classes")
    return f"{task}, {classes} classes" if classes and task == "multiclass" else str(task)


def _tiles(facts: dict[str, Any]) -> str:
    """Key figures; with only one there are none."""
    tiles = [("selected features", f"{facts['selected']:,}", f"of {facts['available']:,}")]
    curve, evaluation = facts["curve"], facts["evaluation"]
    if evaluation:
        metric = evaluation["metrics"][0]
        names = {"selected": "selected features", "all": "all features", "random": "random features"}
        for each in evaluation["sets"]:
            value = score(each["values"][metric]["mean"])
            tiles.append((f"{metric_name(metric)}, {names[each['name']]}", value, ""))
    elif curve and facts["selected"] in curve["sizes"]:
        metric, at = metric_name(curve["metric"]), curve["sizes"].index(facts["selected"])
        tiles.append(
            (
                f"{metric}, selected features",
                score(curve["means"][at]),
                f"± {score(curve['standard_errors'][at])}",
            )
        )
        tiles.append((f"{metric}, all features", score(curve["all_features"]), ""))
        tiles.append((f"{metric}, random features", score(curve["random_features"]), ""))
    if len(tiles) == 1:
        return ""
    items = "".join(
        f"<div><dt>{html(name)}</dt><dd>{html(value)} <small>{html(unit)}</small></dd></div>"
        for name, value, unit in tiles
    )
    return f'<dl class="tiles">{items}</dl>'


def _origin(facts: dict[str, Any]) -> str:
    """Where the answer comes from: data, settings, versions, and how to repeat it."""
    repeat = ""
    if facts["command"]:
        repeat += f"<h3>Command</h3><pre>{html(facts['command'])}</pre>"
    else:
        repeat += f"<h3>Python</h3><pre>{html(facts['code'])}</pre>"
    shown = {name.replace("_", " "): value for name, value in facts["data"].items() if name != "class_shares"}
    shown |= {
        f"class {each['class']}": _share_of_rows(each["share"])
        for each in facts["data"].get("class_shares", [])
    }
    times = {name: seconds(value) for name, value in facts["timings"].items()}
    folded = {"Settings": facts["settings"], "Versions": facts["environment"], "Time": times}
    body = f"{repeat}<h3>Data</h3>{pairs(shown)}" + "".join(
        f'<details class="print"><summary>{name}</summary>{pairs(values)}</details>'
        for name, values in folded.items()
        if values
    )
    return section("origin", "To repeat it", body)


def _share_of_rows(share: float) -> str:
    """A percentage, since the facts may be those of a sample of the rows."""
    return f"{share:.1%} of the rows" if share >= 0.001 else "less than 0.1% of the rows"


@cache
def _asset(name: str) -> str:
    return resources.files("seqatt.report.page").joinpath(name).read_text(encoding="utf-8").strip()
