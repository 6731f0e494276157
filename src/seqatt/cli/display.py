"""Selections, evaluations and comparisons as tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from seqatt.cli.arguments import make_console
from seqatt.display_text import NO_NAME, describe_task, escape_controls, metric_name
from seqatt.report.facts.constraint_facts import (
    constraint_sentence,
    frontier_facts,
    frontier_sentence,
)
from seqatt.selection import Selection, lacks_evidence
from seqatt.selection_file import found_together, no_better, why_empty

BAR = 40  # width of the longest bar of a curve, where there is room
BESIDE_BAR = 27  # of a line with a bar: score, standard error, mark of the chosen one and spaces
MAX_LISTED = 6  # members of a cluster that are named
ADDS, OR = "adds", "or"  # headings: what a feature adds, and which ones could stand in for it

if TYPE_CHECKING:
    from seqatt.comparison.comparison import Comparison


def show(selection: Selection, target: str) -> None:
    """Print the selected features in order, with their scores."""
    title = f"{len(selection.features)} of {len(selection.names)} features for {target}"
    table = Table()
    table.add_column("rank", justify="right")
    table.add_column("feature", overflow="fold")
    columns = _feature_columns(selection)
    for heading in columns:
        table.add_column(heading, justify="left" if heading == OR else "right", overflow="fold")
    for rank, (name, *cells) in enumerate(zip(selection.features, *columns.values(), strict=True), 1):
        shown = NO_NAME if name == "" else name
        table.add_row(str(rank), *(escape(escape_controls(str(cell))) for cell in (shown, *cells)))
    console = make_console()
    console.print(f"[bold]{escape(title)}[/bold]")
    if selection.features:
        console.print(table)
        if selection.importance is not None:
            console.print(f"[dim]{escape(_explain_columns(selection.importance))}[/dim]")
        for sentence in describe_stability(selection):
            console.print(escape(escape_controls(sentence)))
    else:
        flag = (
            "--fdr" if selection.false_discoveries is not None else "--cost" if selection.frontier else None
        )
        anyway = f"Leave {flag} out and give -k to select" if flag else "A number as -k selects"
        console.print(f"Nothing selected: {why_empty(selection)}. {anyway} as many anyway.")
    if selection.false_discoveries is not None:
        console.print(_describe_discoveries(selection.false_discoveries))
    if selection.curve is not None:
        _show_curve(console, selection.curve, len(selection.names))
    if selection.frontier is not None:
        _show_frontier(console, selection)
    settings, device = selection.settings, selection.environment["device"]
    if asked := constraint_sentence(settings, selection.features):
        console.print(escape(escape_controls(asked)))
    console.print(f"{describe_task(settings)}, {selection.seconds:.1f} s on {device}{_reading(settings)}")
    if selection.chance is not None:
        console.print(escape(_describe_chance(selection, selection.chance)))
    elif lacks_evidence(settings) and selection.features and not found_together(selection.curve, settings):
        console.print(
            f"No feature is significantly related to {escape(target)} by itself (smallest q-value "
            f"{settings['min_q_value']:.2g}). Features may still matter together: check with --holdout."
        )
    for note in selection.notes:
        console.print(f"Note: {escape(escape_controls(note))}")
    console.print()


def _feature_columns(selection: Selection) -> dict[str, list[str]]:
    """Cells per selected feature, by the heading of their column: importance, or else the score."""
    importance, columns = selection.importance, {}
    if selection.stability is not None:  # the scores are shares of the repeats
        columns = {"chosen in": [_percent(share) for share in selection.scores]}
    elif importance is None:
        columns = {"score": [f"{score:.3f}" for score in selection.scores]}
    if importance is None:
        return columns
    pairs = zip(importance["increases"], importance["standard_errors"], strict=True)
    columns |= {ADDS: [f"{increase:+.3f} ± {error:.3f}" for increase, error in pairs]}
    stand_ins = [
        ", ".join(f"{name} ({value:.2f})" for name, value in pairs)
        for pairs in importance.get("stand_ins", [])
    ]
    return columns | ({OR: stand_ins} if any(stand_ins) else {})


def _explain_columns(importance: dict[str, Any]) -> str:
    """The legend of the columns about features."""
    text = f"{ADDS}: increase of the loss on held-out rows without the feature ({importance['loss']:.3f} with all)"
    return text + (f"; {OR}: rejected, with the correlation" if any(importance.get("stand_ins", [])) else "")


def describe_stability(selection: Selection) -> list[str]:
    """Sentences about the repeats: the selected features that stand for a cluster, and the bound."""
    stability, names = selection.stability, selection.names
    if stability is None:
        return []
    sentences = []
    for cluster in stability["clusters"]:
        members = cluster["features"]
        if not selection.support[members].any():
            continue
        listed = [f"{names[f]} ({_percent(stability['frequency'][f])})" for f in members]
        if len(listed) > MAX_LISTED:
            listed = [*listed[: MAX_LISTED - 1], f"{len(listed) - MAX_LISTED + 1} others"]
        sentences.append(
            f"{', '.join(listed[:-1])} or {listed[-1]}: {_percent(cluster['frequency'])} together"
        )
    as_one = " (any of a cluster)" if sentences else ""
    often, count = f"{_percent(stability['threshold'])} of them{as_one}", stability["bounded"]
    which = f"these {count}" if count == len(selection.features) else f"the first {count}"
    any_distribution = f"{stability['false_choices_any']:.2g} without assuming unimodal frequencies"
    most = f"{stability['false_choices']:.2g}"
    bound = f"at most {most} of {which}, chosen in at least {often}, are expected to be"
    if stability["false_choices"] >= count:
        bound = f"{count} were chosen in at least {often}, where up to {most} are expected to be"
    halves = f"{stability['repeats']} repeats on {stability['rows']:,} rows each"
    return [*sentences, f"{halves}: {bound} false choices ({any_distribution})."]


def _describe_discoveries(found: dict[str, Any]) -> str:
    """How the features compared with their knockoffs, in a sentence."""
    rate = f"False discovery rate {found['rate']:g}"
    compared = f"{found['raced']} features were compared with {found['knockoffs']} knockoffs each"
    estimate = found["estimated_rate"]
    return f"{rate}{'' if estimate is None else f', estimated as {estimate:.2g}'}: {compared}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _describe_chance(selection: Selection, chance: dict[str, Any]) -> str:
    """Whether the features are better than as many random ones, in a sentence with the scores."""
    verdict = no_better(selection.settings).capitalize()
    if chance["better"]:
        alone = lacks_evidence(selection.settings)
        verdict = f"{'No feature is significant by itself, but together they are b' if alone else 'B'}etter than chance"
    random = (
        ""
        if chance["random_features"] is None
        else f"{chance['random_features']:.3f} with as many random ones, "
    )
    return (
        f"{verdict}: {metric_name(chance['metric'])} {chance['score']:.3f} ± {chance['standard_error']:.3f} on rows "
        f"not used for the selection, {random}{chance['no_features']:.3f} with no features."
    )


def _show_frontier(console: Console, selection: Selection) -> None:
    """Print the metric against the cost as bars, from no features on."""
    facts = frontier_facts(selection)
    assert facts is not None
    if selection.features:
        console.print(escape(escape_controls(frontier_sentence(facts))))
    lowest, highest = facts["no_features"], max(*facts["means"], facts["all_features"])
    labels = [f"{cost:,g}" for cost in facts["costs"]] + [f"all {facts['all_cost']:,g}"]
    width = max(len("cost"), *map(len, labels))
    console.print(f"{'cost':>{width}}  {metric_name(facts['metric'])} in cross-validation")
    for label, mean in zip(labels, [*facts["means"], facts["all_features"]], strict=True):
        share = (mean - lowest) / (highest - lowest) if highest > lowest else 0.0
        chosen = " ← selected" if label == f"{facts['cost']:,g}" else ""
        console.print(
            f"{label:>{width}}  {mean:.3f} {'█' * round(BAR * max(0.0, share))}{chosen}", highlight=False
        )


def _show_curve(console: Console, curve: dict[str, Any], features: int) -> None:
    """Print the score of every number of features as a bar, from that of no features on, and lines to compare with."""
    lowest, highest = curve["no_features"], max(*curve["means"], curve["all_features"])
    labels = [str(size) for size in curve["sizes"]] + [
        f"all {features}",
        f"{curve['random_size']} random",
        "none",
    ]
    scores = [*curve["means"], curve["all_features"], curve["random_features"], lowest]
    errors = [f" ± {error:.3f}" for error in curve["standard_errors"]] + [" " * 8] * 3
    width = max(map(len, labels))
    longest = max(1, min(BAR, console.width - width - BESIDE_BAR))
    unit = max(highest - lowest, 1e-12) / longest
    console.print(
        f"\n[bold]How many features: {metric_name(curve['metric'])} in cross-validation[/bold]; each fold selects anew"
    )
    for label, score, error in zip(labels, scores, errors, strict=True):
        bar = "█" * round(max(0.0, score - lowest) / unit)
        chosen = " ← chosen" if label == str(curve["chosen"]) else ""
        console.print(f"{label:>{width}}  {score:6.3f}{error}  {bar}{chosen}")
    console.print()


def _reading(settings: dict[str, Any]) -> str:
    """A line that says how files were read; empty if there are none."""
    rows, reading = settings["rows"], settings.get("reading")
    if reading is None:
        return ""
    files = f"{settings['files']:,} file{'s' if settings['files'] > 1 else ''}"
    size = _size(settings["table_bytes"])
    if reading == "memory":
        return f"\n{rows:,} rows of {files}, read into memory ({size})"
    if reading == "sample":
        return f"\na sample of {rows:,} rows of {files}, which would take {size} of memory: see --memory"
    # Files of text do not say how many rows they have.
    return f"\nabout {float(f'{rows:.3g}'):,.0f} rows of {files}, read batch by batch"


def _size(count: float) -> str:
    """A number of bytes with its unit."""
    unit = "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if count >= 1000:
            count, unit = count / 1000, larger
    return f"{count:,.1f} {unit}" if count < 10 else f"{count:,.0f} {unit}"


def show_scores(scores: dict[str, dict[str, Any]], where: str) -> None:
    """Print the metrics of a network on the selected, on random and on all features; ``where`` names the test rows."""
    table = Table()
    table.add_column("features")
    table.add_column("how many", justify="right")
    metrics = [name for name in scores["selected"] if name != "features"]
    for metric in metrics:
        table.add_column(metric_name(metric))
    labels = {"selected": "selected by seqatt", "random": "random", "all": "all"}
    for name, row in scores.items():
        cells = [f"{np.mean(row[m]):.3f} ± {np.std(row[m]):.3f}" for m in metrics]
        table.add_row(labels[name], str(row["features"]), *cells, style="bold" if name == "selected" else "")
    console = make_console()
    console.print(f"[bold]A network trained on these features, {where}[/bold]")
    console.print(table)
    console.print("mean ± standard deviation over 5 seeds\n")


def show_timings(seconds: Mapping[str, float]) -> None:
    """Print what the seconds of a command were spent on."""
    parts = ", ".join(f"{part} {value:.1f}" for part, value in seconds.items())
    print(f"{sum(seconds.values()):.1f} s in all: {parts}")


def show_comparison(comparison: Comparison, target: str) -> None:
    """Print one section per k with its best method in bold, then notes on the columns and the conclusion."""
    from seqatt.comparison import formatting  # here: it needs SciPy's statistics, which a selection does not

    table = Table()
    for i, heading in enumerate(formatting.headings(comparison)):
        left = i in formatting.LEFT_ALIGNED
        table.add_column(heading, justify="left" if left else "right", overflow="fold")
    for section in formatting.sections(comparison):
        for number, line in enumerate(section):
            first, *others = line.texts
            table.add_row(
                "" if number else first,
                *map(escape, others),
                style="bold" if line.best else "",
                end_section=line is section[-1],
            )
    console = make_console()
    console.print(
        f"[bold]{escape(f'Selecting features for {target}: {formatting.title(comparison)}')}[/bold]"
    )
    console.print(table)
    for note in formatting.notes(comparison):
        console.print(f"[dim]{escape(note)}[/dim]")
    console.print(f"\n{escape(comparison.conclusion())}\n")


def show_pixels(selected: list[int]) -> None:
    """Print the selected pixels of the 8 x 8 images as numbers, their ranks."""
    rank_of = {pixel: rank for rank, pixel in enumerate(selected, 1)}
    print("Where the selected pixels are (numbers: their ranks):")
    for row in range(8):
        pixels = range(8 * row, 8 * row + 8)
        print("  " + "".join(f"{rank_of[pixel]:>3}" if pixel in rank_of else "  ·" for pixel in pixels))
    print()
