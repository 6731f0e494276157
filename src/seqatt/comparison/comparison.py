"""Comparison: the result of ``compare``, with its table, conclusion, chart and JSON file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqatt.comparison import chart, conclusion, formatting
from seqatt.comparison.results_table import ResultsTable
from seqatt.comparison.runs import read_run
from seqatt.json_files import read_json, write_atomically

FORMAT = 3


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
        """The same comparison with another metric in tables, charts and conclusions."""
        if metric not in self.metrics:
            raise ValueError(f"metric: unknown {metric!r}; use one of {', '.join(self.metrics)}")
        return replace(self, settings=self.settings | {"metric": metric})

    def conclusion(self) -> str:
        """The conclusion in words, one line per k."""
        return conclusion.conclude(self)

    def plot(self, ax: Any = None) -> Any:
        """Plot the metric against k, one line per method, with standard deviations; return the axes.

        With only one k there is one row per method. matplotlib is part of the extra ``plot``.
        """
        return chart.draw(self, ax)

    def to_svg(self) -> str:
        """The chart as SVG text."""
        return chart.to_svg(self)

    def to_markdown(self) -> str:
        """The conclusion, the table and its notes."""
        return formatting.to_markdown(self)

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install 'seqatt[pandas]'") from None
        return pd.DataFrame(self.table())

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
