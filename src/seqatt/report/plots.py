"""Plots of selections and evaluations: each draws with matplotlib on the axes given, and returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqatt.report.facts.confidence_facts import importance_columns, stability_facts
from seqatt.report.facts.history_facts import history_facts
from seqatt.report.facts.selection_facts import image_facts
from seqatt.report.values import metric_name, show_name

if TYPE_CHECKING:
    from seqatt.selection import Selection

ACCENT, GREY = "#0072B2", "#888888"
MAX_BARS = 40


def import_matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ImportError("a plot needs matplotlib: pip install 'seqatt[plot]'") from None
    return matplotlib


def new_axes(size: tuple[float, float]) -> Any:
    """New axes of a size in inches."""
    import_matplotlib()
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def tidy(ax: Any) -> Any:
    """Axes without the lines at the top and on the right."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


class SelectionPlots:
    """The plots of a selection, as ``selection.plot.scores()``. Every one takes ``ax`` and returns the axes."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def curve(self, ax: Any = None) -> Any:
        """The metric against the number of features, with one standard error; for k="auto"."""
        curve = self._selection.curve
        if curve is None:
            raise ValueError("plot.curve: this selection has no curve; select with k='auto'")
        ax = new_axes((6.4, 4.0)) if ax is None else ax
        sizes = curve["sizes"]
        ax.errorbar(sizes, curve["means"], curve["standard_errors"], color=ACCENT, marker="o", capsize=3)
        if curve["chosen"] in sizes:
            at = sizes.index(curve["chosen"])
            ax.plot(sizes[at], curve["means"][at], "o", markersize=13, markerfacecolor="none", color=ACCENT)
        lines = {f"all {len(self._selection.names)}": "all_features", "none": "no_features"}
        lines |= {f"{curve['random_size']} random": "random_features"}
        for (label, name), style in zip(lines.items(), ("--", ":", "-."), strict=True):
            ax.axhline(curve[name], color=GREY, linewidth=1, linestyle=style, label=label, zorder=1)
        if sizes[-1] >= 8 * sizes[0]:
            ax.set_xscale("log")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        ax.set_xlabel("number of features")
        ax.set_ylabel(metric_name(curve["metric"]))
        ax.legend(frameon=False)
        return tidy(ax)

    def frontier(self, ax: Any = None) -> Any:
        """The metric against the cost, with one standard error; for ``costs``."""
        frontier = self._selection.frontier
        if frontier is None:
            raise ValueError("plot.frontier: this selection has no frontier; select with costs and a budget")
        ax = new_axes((6.4, 4.0)) if ax is None else ax
        costs, means = frontier["costs"], frontier["means"]
        ax.step(costs, means, where="post", color=ACCENT)
        ax.errorbar(costs, means, frontier["standard_errors"], color=ACCENT, fmt="o", capsize=3)
        at = costs.index(frontier["cost"])
        ax.plot(costs[at], means[at], "o", markersize=13, markerfacecolor="none", color=ACCENT)
        label = f"all features, {frontier['all_cost']:,g}"
        ax.axhline(frontier["all_features"], color=GREY, linewidth=1, linestyle="--", label=label, zorder=1)
        if (budget := self._selection.settings.get("budget")) is not None:
            ax.axvline(budget, color=GREY, linewidth=1, linestyle=":", label=f"budget {budget:,g}", zorder=1)
        ax.set_xlabel("cost")
        ax.set_ylabel(metric_name(frontier["metric"]))
        ax.legend(frameon=False)
        return tidy(ax)

    def scores(self, ax: Any = None) -> Any:
        """A bar per selected feature: its importance where it was measured, else its score."""
        selection = self._selection
        rows = importance_columns(selection)
        measured = bool(rows) and "importance" in rows[0]
        values = [row["importance"] or 0.0 for row in rows] if measured else selection.scores.tolist()
        errors = [row["importance_error"] or 0.0 for row in rows] if measured else None
        names = [show_name(name) for name in selection.features]
        label = "increase of the loss without the feature" if measured else "score"
        return _bars(names, values, [ACCENT] * len(names), label, ax, errors)

    def history(self, ax: Any = None) -> Any:
        """Scores of selected features and runners-up by phase: the darker, the better in its phase."""
        facts = history_facts(self._selection)
        if facts is None:
            raise ValueError("plot.history: this selection has scores of fewer than two phases")
        rows = facts["rows"]
        ax = new_axes((7.2, 1.0 + 0.24 * len(rows))) if ax is None else ax
        import numpy as np

        values = np.array([[np.nan if v is None else v for v in row["values"]] for row in rows])
        ax.imshow(values, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
        for y, row in enumerate(rows):
            for x, sign in row["marks"].items():
                ax.plot(int(x), y, marker="+" if sign == "+" else "x", color="black", markersize=6)
        ax.set_yticks(range(len(rows)), [row["feature"] for row in rows])
        step = max(1, len(facts["phases"]) // 10)
        ax.set_xticks(range(0, len(facts["phases"]), step), facts["phases"][::step])
        ax.set_xlabel("phase (+ selected, x dropped)")
        return tidy(ax)

    def image(self, shape: Sequence[int], ax: Any = None) -> Any:
        """The selected pixels of images of this height and width: the darker, the earlier selected."""
        facts = image_facts(self._selection, shape, None)
        ax = new_axes((4.2, 4.2)) if ax is None else ax
        import numpy as np

        pixels = np.full(facts["shape"], np.nan)
        last = max(facts["ranks"].values(), default=1)
        for pixel, rank in facts["ranks"].items():
            pixels.flat[int(pixel)] = 1 - 0.65 * (rank - 1) / max(1, last - 1)
        ax.imshow(pixels, cmap="Blues", vmin=0, vmax=1.15)
        ax.set_xticks([])
        ax.set_yticks([])
        return ax

    def stability(self, ax: Any = None) -> Any:
        """The share of the repeats that selected each feature; those of the answer are blue."""
        facts = stability_facts(self._selection)
        if facts is None:
            raise ValueError("plot.stability: this selection has no repeats; select with repeats=20")
        rows = facts["features"]
        colours = [ACCENT if row["selected"] else GREY for row in rows]
        label = f"share of {facts['repeats']} repeats"
        return _bars([row["feature"] for row in rows], [row["frequency"] for row in rows], colours, label, ax)


class EvaluationPlots:
    """The plot of an evaluation: ``evaluation.plot.scores()``."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def scores(self, metric: str | None = None, ax: Any = None) -> Any:
        """A metric of every seed, by default the main one, and its mean."""
        metric = next(iter(self._values)) if metric is None else metric
        if metric not in self._values:
            raise ValueError(f"metric: unknown {metric!r}; use one of {', '.join(self._values)}")
        ax = new_axes((5.0, 1.6)) if ax is None else ax
        values = self._values[metric]
        ax.plot(values, [0] * len(values), "o", color=ACCENT, alpha=0.5)
        ax.plot([float(values.mean())], [0], "|", color=ACCENT, markersize=22, markeredgewidth=3)
        ax.set_yticks([])
        ax.set_xlabel(f"{metric_name(metric)}, {len(values)} seed{'s' * (len(values) > 1)}; bar: mean")
        ax.spines["left"].set_visible(False)
        return tidy(ax)


def _bars(
    names: Sequence[str],
    values: Sequence[float],
    colours: Sequence[str],
    label: str,
    ax: Any,
    errors: Sequence[float] | None = None,
) -> Any:
    """Horizontal bars, the first at the top; of many, the first ones."""
    names, values, colours = names[:MAX_BARS], values[:MAX_BARS], colours[:MAX_BARS]
    errors = None if errors is None else errors[:MAX_BARS]
    ax = new_axes((6.4, 1.0 + 0.26 * len(names))) if ax is None else ax
    ax.barh(range(len(names)), values, color=colours, xerr=errors, ecolor=GREY)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel(label)
    return tidy(ax)
