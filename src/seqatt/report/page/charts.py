"""The charts of a report: metric against the number of features, metrics on test rows, methods, pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqatt.report.page.svg import (
    CHARACTER,
    Axis,
    axis_left,
    left_axis,
    line,
    mark,
    marker,
    nice_ticks,
    padded,
    path,
    spread_out,
    text,
    tick_text,
)
from seqatt.report.values import html, metric_name, score

LOG_FROM = 8  # ratio of the largest to the smallest number of features from which their axis is logarithmic
LABEL_DISTANCE = 15  # pixels between two labels at the right edge, at least
COLOURS = 7  # of series, in the style sheet


def curve_body(curve: dict[str, Any], available: int, width: int) -> tuple[int, str]:
    """The metric against the number of features, with one standard error, and lines to compare with."""
    metric = metric_name(curve["metric"])
    sizes, means, errors = curve["sizes"], curve["means"], curve["standard_errors"]
    references = [
        (f"all {available:,}", curve["all_features"]),
        (f"{curve['random_size']} random", curve["random_features"]),
        ("none", curve["no_features"]),
    ]
    height = 300
    values = [m + s * e for m, e in zip(means, errors, strict=True) for s in (-1, 1)]
    values += [value for _, value in references[:-1]]
    if curve_shows_none(curve):
        values.append(curve["no_features"])
    else:
        references.pop()
    low, high = padded(values)
    y = Axis(low, high, height - 42, 30)
    right = width - CHARACTER * max(len(label) for label, _ in references) - 10
    left = axis_left(nice_ticks(low, high))
    x = _size_axis(sizes, left, right)
    parts = [left_axis(y, right, metric), _bottom(x, sizes, height, "number of features")]
    heights = spread_out([y(value) for _, value in references], LABEL_DISTANCE)
    for (label, value), at in zip(references, heights, strict=True):
        body = line(left, y(value), right, y(value), "reference") + text(right + 6, at + 4, label, "tick")
        parts.append(mark(f"{label} features: {metric} {score(value)}", body))
    upper = [(x(s), y(m + e)) for s, m, e in zip(sizes, means, errors, strict=True)]
    lower = [(x(s), y(m - e)) for s, m, e in zip(sizes, means, errors, strict=True)]
    parts.append(path([*upper, *reversed(lower)], "band c0"))
    parts.append(path([(x(s), y(m)) for s, m in zip(sizes, means, strict=True)], "line c0"))
    for size, mean, error in zip(sizes, means, errors, strict=True):
        chosen = size == curve["chosen"]
        body = marker(x(size), y(mean), 0, "ring c0", 9) if chosen else ""
        body += marker(x(size), y(mean), 0, "point c0")
        tip = f"{size} features: {metric} {score(mean)} ± {score(error)}{', chosen' if chosen else ''}"
        parts.append(mark(tip, body))
    return height, "".join(parts)


def frontier_body(frontier: dict[str, Any], width: int) -> tuple[int, str]:
    """The metric against the cost, with one standard error, as steps: more cannot be had until more is paid."""
    metric, height = metric_name(frontier["metric"]), 300
    costs, means, errors = frontier["costs"], frontier["means"], frontier["standard_errors"]
    values = [m + s * e for m, e in zip(means, errors, strict=True) for s in (-1, 1)]
    low, high = padded([*values, frontier["all_features"]])
    y, left = Axis(low, high, height - 42, 30), axis_left(nice_ticks(low, high))
    label = f"all: {frontier['all_cost']:,g}"
    right = width - CHARACTER * len(label) - 10
    end = max(costs[-1], frontier.get("budget") or 0.0) or 1.0
    x, ticks = Axis(0.0, end, left + 14, right - 8), nice_ticks(0.0, end, 6 if width > 500 else 4)
    parts = [left_axis(y, right, metric), text((x.start + x.stop) / 2, height - 6, "cost", "label", "middle")]
    parts += [text(x(t), height - 24, tick_text(t, ticks), "tick", "middle") for t in ticks if t <= end]
    at = y(frontier["all_features"])
    reference = line(left, at, right, at, "reference") + text(right + 6, at + 4, label, "tick")
    tip = f"all features, {frontier['all_cost']:,g}: {metric} {score(frontier['all_features'])}"
    parts.append(mark(tip, reference))
    steps: list[tuple[float, float]] = []
    for cost, mean in zip(costs, means, strict=True):
        steps += [(x(cost), at) for _, at in steps[-1:]] + [(x(cost), y(mean))]
    parts.append(path([*steps, (x(end), steps[-1][1])], "line c0"))
    for cost, mean, error in zip(costs, means, errors, strict=True):
        chosen = cost == frontier["cost"]
        body = line(x(cost), y(mean - error), x(cost), y(mean + error), "whisker c0")
        body += marker(x(cost), y(mean), 0, "ring c0", 9) if chosen else ""
        body += marker(x(cost), y(mean), 0, "point c0")
        tip = f"cost {cost:,g}: {metric} {score(mean)} ± {score(error)}{', the selection' if chosen else ''}"
        parts.append(mark(tip, body))
    return height, "".join(parts)


def curve_shows_none(curve: dict[str, Any]) -> bool:
    """Whether the line of no features is near the others; a far one would leave them no space."""
    others = [*curve["means"], curve["all_features"], curve["random_features"]]
    low, high = min(others), max(others)
    return bool(low - curve["no_features"] <= high - low)


def dots_body(metric: str, rows: Sequence[dict[str, Any]], width: int) -> tuple[int, str]:
    """One row per set of features: a point per seed, and the mean as a bar."""
    name = metric_name(metric)
    known = [v for row in rows for v in row["values"] if v is not None]
    low, high = padded(known, 0.1)
    left = min(CHARACTER * max(len(row["label"]) for row in rows) + 22, width * 0.4)
    height = 26 * len(rows) + 46
    x = Axis(low, high, left, width - 12)
    ticks = nice_ticks(low, high, 5 if width > 500 else 3)
    parts = [text(left, 12, name, "label")]
    for tick in ticks:
        parts.append(line(x(tick), 22, x(tick), height - 22, "grid"))
        parts.append(text(x(tick), height - 6, tick_text(tick, ticks), "tick", "middle"))
    for i, row in enumerate(rows):
        y = 36 + 26 * i
        kind = "c0" if row["accent"] else "c9"
        parts.append(text(left - 10, y + 4, row["label"], "tick strong" if row["accent"] else "tick", "end"))
        seeds = "".join(
            f'<circle cx="{x(v):g}" cy="{y}" r="3.5" class="dot {kind}"/>'
            for v in row["values"]
            if v is not None
        )
        if row["mean"] is not None:
            seeds += line(x(row["mean"]), y - 9, x(row["mean"]), y + 9, f"bar {kind}")
        spread = "" if row["sd"] is None else f" ± {score(row['sd'])}"
        parts.append(mark(f"{row['label']}: {name} {score(row['mean'])}{spread}", seeds))
    return height, "".join(parts)


def methods_body(
    metric: str,
    ks: Sequence[int],
    lines: Sequence[dict[str, Any]],
    reference: dict[str, Any] | None,
    width: int,
) -> tuple[int, str]:
    """One line per method over k, with one standard deviation; the reference is the mean of all features."""
    name, wide = metric_name(metric), width > 500
    points = [p for each in lines for p in each["points"]]
    values = [p["mean"] + s * (p["sd"] or 0) for p in points for s in (-1, 1)]
    values += [reference["mean"]] if reference else []
    low, high = padded(values)
    height = 340
    labels = [each["method"] for each in lines] + ([reference["label"]] if reference else [])
    right = width - (CHARACTER * max(map(len, labels)) + 18 if wide else 12)
    left = axis_left(nice_ticks(low, high))
    y, x = Axis(low, high, height - 42, 30), _size_axis(ks, left, right - 10)
    parts = [left_axis(y, right, name), _bottom(x, ks, height, "number of features k")]
    ends: list[tuple[float, str, str]] = []
    if reference:
        tip = f"{reference['label']}: {name} {score(reference['mean'])}"
        parts.append(mark(tip, line(left, y(reference["mean"]), right, y(reference["mean"]), "reference")))
        ends.append((y(reference["mean"]), reference["label"], ""))
    for i, each in enumerate(lines):
        shift = (i - (len(lines) - 1) / 2) * (3 if wide else 1.5)
        kind = series_class(each, i)
        placed = [(x(p["k"]) + shift, p) for p in each["points"]]
        parts.append(path([(at, y(p["mean"])) for at, p in placed], f"line {kind}"))
        for at, p in placed:
            body = (
                line(at, y(p["mean"] - p["sd"]), at, y(p["mean"] + p["sd"]), f"whisker {kind}")
                if p["sd"]
                else ""
            )
            body += marker(at, y(p["mean"]), i, f"point {kind}", 3.6)
            spread = "" if p["sd"] is None else f" ± {score(p['sd'])}"
            parts.append(mark(f"{each['method']}, k = {p['k']}: {name} {score(p['mean'])}{spread}", body))
        ends.append((y(each["points"][-1]["mean"]), each["method"], kind))
    if wide:
        for (_, label, kind), at in zip(
            ends, spread_out([end[0] for end in ends], LABEL_DISTANCE), strict=True
        ):
            parts.append(text(right + 8, at + 4, label, f"tick end {kind}"))
    return height, "".join(parts)


def series_class(series: dict[str, Any], position: int) -> str:
    """The class of colour and dashes of a series; references are grey."""
    if series.get("reference"):
        return "c9 dashed"
    return f"c{position % COLOURS}" + (" dashed" if position >= COLOURS else "")


def image_svg(image: dict[str, Any]) -> str:
    """The selected pixels, the first ones darkest, on the mean image where it is known."""
    (height, width), ranks = image["shape"], {int(p): r for p, r in image["ranks"].items()}
    last = max(ranks.values(), default=1)
    parts = [f'<rect width="{width}" height="{height}" class="paper"/>']
    levels: dict[int, list[int]] = {}
    for pixel, mean in enumerate(image["means"] or []):
        levels.setdefault(round(mean * 8), []).append(pixel)
    for level, pixels in sorted(levels.items()):
        squares = "".join(f"M{p % width} {p // width}h1v1h-1z" for p in pixels)
        if level:
            parts.append(f'<path d="{squares}" class="ink" opacity="{level / 20:g}"/>')
    numbered = max(height, width) <= 16
    for pixel, rank in sorted(ranks.items(), key=lambda item: item[1]):
        row, column = divmod(pixel, width)
        strength = 1 - 0.65 * (rank - 1) / max(1, last - 1)
        body = f'<rect x="{column}" y="{row}" width="1" height="1" class="pixel" opacity="{strength:.2f}"/>'
        if numbered:
            tone = "on" if strength > 0.6 else "off"
            body += (
                f'<text x="{column + 0.5}" y="{row + 0.64}" class="{tone}" text-anchor="middle">{rank}</text>'
            )
        parts.append(mark(f"row {row + 1}, column {column + 1}: rank {rank}", body))
    listed = ", ".join(
        f"({p // width + 1}, {p % width + 1})" for p in sorted(ranks, key=lambda p: ranks[p])[:100]
    )
    described = html(f"Rows and columns in order of rank: {listed}")
    return (
        f'<figure class="chart image"><svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="image-t image-d">'
        f'<title id="image-t">Selected pixels of an image of {height} by {width}</title>'
        f'<desc id="image-d">{described}</desc>{"".join(parts)}</svg></figure>'
    )


def _size_axis(sizes: Sequence[int], left: float, right: float) -> Axis:
    low, high = min(sizes), max(sizes)
    return Axis(low, high, left + 14, right - 8, log=high >= LOG_FROM * low)


def _bottom(x: Axis, sizes: Sequence[int], height: int, label: str) -> str:
    """Ticks at the sizes themselves, as many as have space, and the label below."""
    parts, free = [], -1e9
    for size in sizes:
        shown = f"{size:,}"
        half = CHARACTER * len(shown) / 2
        if x(size) - half > free:
            parts.append(text(x(size), height - 24, shown, "tick", "middle"))
            free = x(size) + half + 4
    parts.append(text((x.start + x.stop) / 2, height - 6, label, "label", "middle"))
    return "".join(parts)
