"""Text for people: names of columns made safe to show in a terminal, names of metrics, shares of repeats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

METRIC_NAMES = {
    "auc": "AUC",
    "r2": "R²",
    "d2": "D²",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "log_loss": "log loss",
    "pinball": "pinball loss",
    "ndcg@10": "NDCG@10",
    "pair_accuracy": "pairs in the right order",
    "concordance": "concordance index",
}
NO_NAME = "(no name)"  # of a column whose name is empty, as in files with the index of a data frame
LEAVES_RANGE = (
    "latest_rows_leave_range"  # a setting: held-out targets are out of the range of those to train on
)
LOWER_IS_BETTER = ("log_loss", "rmse", "mae", "deviance", "pinball")  # metrics


def escape_controls(text: str) -> str:
    r"""The text with characters that a terminal obeys or cannot show as escapes: "\x1b[2J" as ``\\x1b[2J``.

    Control characters, marks that reverse the direction of text, and halves of surrogate pairs are escaped. All other
    characters stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def describe_task(settings: dict[str, Any]) -> str:
    """The kind of target in a few words, from the settings of a selection or a comparison: "multiclass, 3 classes"."""
    task, classes = str(settings.get("task", "unknown task")), settings.get("classes")
    return f"{task}, {classes} classes" if classes is not None and task == "multiclass" else task


def metric_name(metric: str) -> str:
    """The name of a metric for display."""
    return METRIC_NAMES.get(metric, metric)


def chosen_in(shares: Iterable[float], own_shares: Iterable[float], repeats: int, verb: str) -> str:
    """How often each selected feature was chosen at least: "each chosen in at least 80% of 20 repeats".

    ``shares`` count a feature that stands for a cluster with the others of it, ``own_shares`` by itself.
    """
    pairs = list(zip(shares, own_shares, strict=True))
    lowest = min((share for share, _ in pairs), default=0.0)
    who = "each, or a feature it stands for," if any(share > own for share, own in pairs) else "each"
    often = f"all {repeats}" if lowest == 1 else f"at least {lowest:.0%} of {repeats}"
    return f"{who} {verb} in {often} repeats"
