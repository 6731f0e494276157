"""Comparison: the result of ``compare``, with its table, conclusion, chart and JSON file, which a call may continue."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqatt.comparison import chart, conclusion, formatting
from seqatt.comparison.results_table import ResultsTable
from seqatt.comparison.runs import ComparisonRun, read_run
from seqatt.json_files import read_json, write_atomically

FORMAT = 3
FILE = "comparison.json"
FIXED = {  # settings that must not change between calls, and how errors name them
    "data": "the data",
    "task": "task",
    "test": "the test rows",
    "table": "the table options",
    "device": "device",
    "seqatt": "the version of seqatt",
    "evaluation_steps": "the recipe of the evaluation",
}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ResultsTable):
    """The result of ``compare``.

    Attributes
    ----------
    runs : one ComparisonRun per method, k and seed, with features, test metrics and seconds, or the error.
    settings : the arguments of ``compare`` with defaults resolved, and the size and hash of the data.
    environment : versions of libraries, and the device.
    """

    environment: dict[str, str]

    def by(self, metric: str) -> Comparison:
        """This comparison with another metric in tables, charts and conclusions."""
        if metric not in self.metrics:
            raise ValueError(f"metric: unknown {metric!r}; use one of {', '.join(self.metrics)}")
        return replace(self, settings=self.settings | {"metric": metric})

    def conclusion(self) -> str:
        """The conclusion in words, one line per k."""
        return conclusion.conclude(self)

    def notes(self) -> list[str]:
        """Explanations of the columns of the table, followed by the failures."""
        return formatting.notes(self)

    @property
    def plot(self) -> chart.ComparisonPlots:
        """Plots with matplotlib (extra ``plot``): ``plot()``, which is ``plot.curve()``, and ``plot.stability()``."""
        return chart.ComparisonPlots(self)

    def report(self, path: str | os.PathLike[str], *, target: str | None = None) -> None:
        """Write a report: one HTML file that needs no network. ``target`` is the name of the target, for the title."""
        from seqatt.report.report_file import write_comparison_report

        write_comparison_report(path, self, target=target)

    def to_svg(self) -> str:
        """The chart as SVG text."""
        return chart.to_svg(self)

    def to_markdown(self) -> str:
        """The conclusion, the table and its notes."""
        return formatting.to_markdown(self)

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        from seqatt.report.frames import make_frame

        return make_frame(self.table())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file atomically."""
        write_atomically(Path(path), json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Comparison:
        """Read a file written by ``save``."""
        raw = read_json(path, "a saved comparison")
        try:
            if raw["format"] != FORMAT:
                raise ValueError(f"format {raw['format']}")
            if not all(rows >= 1 for split in raw["settings"]["split_rows"] for rows in split):
                raise ValueError("'split_rows' must be above 0")
            comparison = cls([read_run(run) for run in raw["runs"]], raw["settings"], raw["environment"])
            comparison.to_markdown()  # raises if settings are missing or damaged
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"{path}: not a saved comparison ({reason})") from None
        return comparison

    def to_dict(self) -> dict[str, Any]:
        """The comparison as dicts, lists, numbers and strings, ready for JSON."""
        return {
            "format": FORMAT,
            "settings": self.settings,
            "environment": self.environment,
            "runs": [run.to_dict() for run in self.runs],
        }

    def __repr__(self) -> str:
        return formatting.to_text(self)

    def _repr_html_(self) -> str:
        return formatting.to_html(self)


def load_runs(out: Path, settings: dict[str, Any]) -> list[ComparisonRun]:
    """Create the directory ``out`` and return the successful runs of an earlier call with these settings."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        earlier = Comparison.load(out / FILE) if (out / FILE).exists() else None
    except OSError as error:
        raise ValueError(f"out: cannot write to {out} ({error.strerror})") from None
    if earlier is None:
        return []
    _check_same_settings(earlier.settings, settings, out)
    return [run for run in earlier.runs if run.error is None]


def _check_same_settings(saved: dict[str, Any], settings: dict[str, Any], out: Path) -> None:
    """Raise unless ``settings`` only add methods, k and seeds to the saved ones."""
    remedy = f"use another directory, or remove {out / FILE}"
    for name, description in FIXED.items():
        if saved.get(name) != settings[name]:
            values = "" if name in ("data", "table") else f" ({saved.get(name)} saved, {settings[name]} now)"
            raise ValueError(f"out: {out} holds a comparison that differs in {description}{values}; {remedy}")
    for name in ("methods", "k", "seeds"):
        left_out = [value for value in saved.get(name, []) if value not in settings[name]]
        if left_out:
            raise ValueError(f"out: {out} also holds {name} {left_out[0]!r}; include it, or {remedy}")
    for method in saved.get("methods", []):
        options = settings["options"].get(method, {})
        if saved.get("options", {}).get(method, {}) != options:
            raise ValueError(f"out: {out} holds {method} with other options; {remedy}")
        if any(isinstance(value, dict) and "code" in value for value in options.values()):
            raise ValueError(
                f"out: {out} holds {method} with code among its options, which may have changed; {remedy}"
            )
