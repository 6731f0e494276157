"""SVG drawn by hand: scales, ticks, axes and marks. Colours and text styles are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from seqatt.report.values import html, number

CHARACTER = 6.4  # width of a character of a label, about
MARKERS = 5  # shapes of points


@dataclass(frozen=True)
class Axis:
    """A scale from values between ``low`` and ``high`` to pixels between ``start`` and ``stop``."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.stop - self.start), 1)


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About ``about`` round numbers between ``low`` and ``high``, in steps of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def padded(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """The range of values with some space at both ends."""
    low, high = min(values), max(values)
    space = (high - low) * share or abs(high) * share or 1.0
    return low - space, high + space


def tick_text(value: float, ticks: Sequence[float]) -> str:
    """A tick with as many decimals as its neighbours need."""
    step = min((abs(b - a) for a, b in pairwise(ticks)), default=0)
    if abs(value) >= 1e5 or (step and step < 1e-4):
        return f"{value:.3g}".replace("-", "−")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0
    return f"{value:,.{decimals}f}".replace("-", "−") if step else number(value)


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """A label; ``anchor`` is start, middle or end."""
    classes = f' class="{kind}"' if kind else ""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}"{classes}{where}>{html(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>'


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    steps = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path d="M{steps}" class="{kind}"/>'


def mark(tip: str, body: str) -> str:
    """Something to point at: the script shows the title beside it, and the browser shows it without the script."""
    return f'<g class="m"><title>{html(tip)}</title>{body}</g>'


def marker(x: float, y: float, shape: int, kind: str, size: float = 4) -> str:
    """A point in one of several shapes, so that series differ by more than their colour."""
    if shape % MARKERS == 0:
        return f'<circle cx="{x:g}" cy="{y:g}" r="{size:g}" class="{kind}"/>'
    shapes = [
        ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
        ((0, -1.3), (1.2, 1), (-1.2, 1)),
        ((0, 1.3), (1.2, -1), (-1.2, -1)),
    ]
    corners = " ".join(f"{x + a * size:g},{y + b * size:g}" for a, b in shapes[shape % MARKERS - 1])
    return f'<polygon points="{corners}" class="{kind}"/>'


def left_axis(axis: Axis, right: float, label: str) -> str:
    """Horizontal grid lines with their values, and the label above them."""
    ticks = nice_ticks(axis.low, axis.high)
    parts = [text(0, axis.stop - 14, label, "label")]
    for tick in ticks:
        y = axis(tick)
        parts.append(line(axis_left(ticks), y, right, y, "grid"))
        parts.append(text(axis_left(ticks) - 6, y + 4, tick_text(tick, ticks), "tick", "end"))
    return "".join(parts)


def axis_left(ticks: Sequence[float]) -> float:
    """Where the plot begins: right of the longest tick."""
    return round(8 + CHARACTER * max(len(tick_text(tick, ticks)) for tick in ticks), 1)


def spread_out(positions: Sequence[float], distance: float) -> list[float]:
    """The positions moved apart as little as possible, so that labels do not overlap; their order stays.

    Neighbours that are too close move as one block, around their mean (pool adjacent violators).
    """
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    blocks: list[tuple[float, int]] = []  # sum and number of positions, less their offsets
    for rank, i in enumerate(order):
        total, count = positions[i] - rank * distance, 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            before, number_before = blocks.pop()
            total, count = before + total, number_before + count
        blocks.append((total, count))
    levels = [total / count for total, count in blocks for _ in range(count)]
    moved = {i: level + rank * distance for rank, (i, level) in enumerate(zip(order, levels, strict=True))}
    return [moved[i] for i in range(len(positions))]


def figure(
    identifier: str, title: str, description: str, draw: Callable[[int], tuple[int, str]], below: str = ""
) -> str:
    """A chart in a wide form and a narrow one for phones; the style sheet shows one of them.

    ``draw`` gets a width and returns the height and the body. ``below`` is HTML: a legend, the table of the values.
    """
    forms = ""
    for kind, width in (("wide", 760), ("narrow", 350)):
        height, body = draw(width)
        name = f"{identifier}-{kind}"
        forms += (
            f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{name}-t {name}-d">'
            f'<title id="{name}-t">{html(title)}</title><desc id="{name}-d">{html(description)}</desc>{body}</svg>'
        )
    return f'<figure class="chart">{forms}{below}</figure>'
