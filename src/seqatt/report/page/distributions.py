"""Small charts of selected features: their distribution by class, or a numeric target against them."""

from __future__ import annotations

from typing import Any

from seqatt.report.page.svg import CHARACTER, Axis, line, mark, padded, path, text
from seqatt.report.values import html, score, short

WIDTH, TOP, BOTTOM = 240, 8, 92  # of a chart, in pixels


def distribution_figure(facts: dict[str, Any], target: str) -> str:
    """The chart of one feature, with its name above and the ends of its axis below."""
    name = facts["feature"]
    if "ranges" in facts:
        return _ranges_figure(name, facts, target)
    labels, edges = facts.get("labels"), facts.get("edges")
    bins = len(labels) if labels else len(edges or [0, 1]) - 1
    if "target" in facts:
        body, below = _against_target(facts["target"], bins, labels, edges, target)
        what = f"mean of {target} and the middle 80 % in bins of {name}"
    else:
        body, below = _by_class(facts["series"], bins, labels, edges), ""
        what = f"share of rows in bins of {name}" + (" by class" if len(facts["series"]) > 1 else "")
    ends = (labels[0], labels[-1]) if labels else (short(edges[0]), short(edges[-1])) if edges else ("", "")
    return _small(name, facts, what, BOTTOM + 2, body, (ends[0], ends[1] if bins > 1 else ""), below=below)


def _ranges_figure(name: str, facts: dict[str, Any], target: str) -> str:
    """The middle 80 % of a feature in every class, and its mean."""
    ranges = [each for each in facts["ranges"] if each["mean"] is not None]
    known = [v for each in ranges for v in (each["low"], each["mean"], each["high"])] or [0.0, 1.0]
    low, high = min(known), max(known)
    left = min(8 + CHARACTER * max((len(each["name"]) for each in ranges), default=0), WIDTH * 0.4)
    most = int((left - 8) / CHARACTER)
    x, height = Axis(low, high, left + 4, WIDTH - 4), 13 * len(ranges) + 4
    parts = []
    for i, each in enumerate(ranges):
        y = 13 * i + 8
        middle = f"{short(each['low'])} to {short(each['high'])}"
        tip = f"{each['name']}: mean {short(each['mean'])}, middle 80 % from {middle}"
        shown = each["name"] if len(each["name"]) <= most else f"{each['name'][: most - 1]}…"
        body = f'<rect x="0" y="{y - 6.5}" width="{WIDTH}" height="13" class="hit"/>'
        body += text(left - 6, y + 4, shown, "tick", "end") + line(
            x(each["low"]), y, x(each["high"]), y, "span c0"
        )
        parts.append(mark(tip, f'{body}<circle cx="{x(each["mean"]):g}" cy="{y}" r="3.5" class="point c0"/>'))
    what = f"{name} by class of {target}: " + ", ".join(
        f"{each['name']} {short(each['mean'])}" for each in ranges
    )
    return _small(name, facts, what, height, "".join(parts), (short(low), short(high)), left)


def _small(
    name: str,
    facts: dict[str, Any],
    what: str,
    height: int,
    body: str,
    ends: tuple[str, str],
    left: float = 0,
    below: str = "",
) -> str:
    missing = (
        f' <span class="muted">{facts["missing"]:.0%} missing</span>' if facts["missing"] >= 0.005 else ""
    )
    indent = f' style="padding-left:{left / WIDTH:.0%}"' if left else ""
    return (
        f'<figure class="small"><figcaption>{html(name)}{missing}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html(what)}">{body}</svg>'
        f'<div class="ends"{indent}><span>{html(ends[0])}</span>{below}<span>{html(ends[1])}</span></div></figure>'
    )


def _bin_name(i: int, labels: list[str] | None, edges: list[float] | None) -> str:
    if labels:
        return labels[i]
    return f"{short(edges[i])} to {short(edges[i + 1])}" if edges else ""


def _by_class(
    series: list[dict[str, Any]], bins: int, labels: list[str] | None, edges: list[float] | None
) -> str:
    """Outlines of histograms, one per class, or bars side by side for few values."""
    highest = max((share for each in series for share in each["shares"]), default=1.0) or 1.0
    y = Axis(0, highest, BOTTOM, TOP)
    step = WIDTH / max(1, bins)
    parts = [f'<line x1="0" y1="{BOTTOM}" x2="{WIDTH}" y2="{BOTTOM}" class="axis"/>']
    if labels:
        width = step * 0.8 / len(series)
        for i in range(bins):
            bars = "".join(
                f'<rect x="{i * step + step * 0.1 + j * width:.1f}" y="{y(each["shares"][i]):g}" '
                f'width="{max(width - 0.6, 0.6):.1f}" height="{BOTTOM - y(each["shares"][i]):.1f}" class="fill c{j}"/>'
                for j, each in enumerate(series)
            )
            parts.append(mark(_tip(_bin_name(i, labels, edges), series, i), _column(i, step) + bars))
        return "".join(parts)
    for j, each in enumerate(series):
        corners = [(0.0, float(BOTTOM))]
        for i, share in enumerate(each["shares"]):
            corners += [(round(i * step, 1), y(share)), (round((i + 1) * step, 1), y(share))]
        corners.append((float(WIDTH), float(BOTTOM)))
        parts.append(path(corners, f"step c{j}"))
    parts += [mark(_tip(_bin_name(i, labels, edges), series, i), _column(i, step)) for i in range(bins)]
    return "".join(parts)


def _tip(where: str, series: list[dict[str, Any]], i: int) -> str:
    if len(series) == 1:
        return f"{where}: {series[0]['shares'][i]:.1%}"
    return f"{where}: " + ", ".join(f"{each['name']} {each['shares'][i]:.1%}" for each in series)


def _column(i: int, step: float) -> str:
    return f'<rect x="{i * step:.1f}" y="0" width="{step:.1f}" height="{BOTTOM}" class="hit"/>'


def _against_target(
    target: dict[str, Any], bins: int, labels: list[str] | None, edges: list[float] | None, name: str
) -> tuple[str, str]:
    """Mean and middle 80 % of the target per bin, and the range of the target for below."""
    known = [i for i in range(bins) if target["means"][i] is not None]
    if not known:
        return "", ""
    low, high = padded([v for i in known for v in (target["low"][i], target["high"][i], target["means"][i])])
    y = Axis(low, high, BOTTOM, TOP)
    if labels or not edges or edges[-1] == edges[0]:
        x = [(i + 0.5) * WIDTH / bins for i in range(bins)]
    else:
        span = edges[-1] - edges[0]
        x = [((edges[i] + edges[i + 1]) / 2 - edges[0]) / span * WIDTH for i in range(bins)]
    parts = [f'<line x1="0" y1="{BOTTOM}" x2="{WIDTH}" y2="{BOTTOM}" class="axis"/>']
    if not labels:
        upper = [(round(x[i], 1), y(target["high"][i])) for i in known]
        lower = [(round(x[i], 1), y(target["low"][i])) for i in known]
        parts.append(path([*upper, *reversed(lower)], "band c0"))
        parts.append(path([(round(x[i], 1), y(target["means"][i])) for i in known], "line c0"))
    for i in known:
        mean, spread = target["means"][i], (target["low"][i], target["high"][i])
        tip = (
            f"{_bin_name(i, labels, edges)}: {name} {score(mean)}, middle 80 % from {score(spread[0])} to "
            f"{score(spread[1])}, {target['rows'][i]:,} rows"
        )
        at = f"{x[i]:.1f}"
        body = f'<circle cx="{at}" cy="{y(mean):g}" r="3" class="point c0"/>'
        if labels:
            body = (
                f'<line x1="{at}" y1="{y(spread[0]):g}" x2="{at}" y2="{y(spread[1]):g}" class="whisker c0"/>'
                + body
            )
        parts.append(mark(tip, body))
    return "".join(
        parts
    ), f'<span class="muted">{html(name)} {html(short(low))} to {html(short(high))}</span>'
