"""Comparison: what methods did on the same rows, in figures, words and pictures."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqatt.comparison import chart, conclusion, formatting
from seqatt.comparison.results_table import ResultsTable
from seqatt.comparison.runs import read_run
from seqatt.selection import write_atomically

FORMAT = 2


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ResultsTable):
    """What ``compare`` found. ``cells`` has every run: features, test metrics, seconds or the error.

    ``settings`` says what was asked for and ``environment`` where it ran.
    """

    environment: dict[str, str]

    def by(self, metric: str) -> Comparison:
        """The same comparison, shown in another metric."""
        if metric not in self.metrics:
            raise ValueError(f"metric: unknown {metric!r}; use one of {', '.join(self.metrics)}")
        return replace(self, settings=self.settings | {"metric": metric})

    def conclusion(self) -> str:
        """What can be said, a line for each k."""
        return conclusion.conclude(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the metric against k, a line a method, with standard deviations; returns the axes.

        For one k, a row a method. matplotlib comes with the extra ``plot``.
        """
        return chart.draw(self, ax)

    def to_svg(self) -> str:
        """The same chart as the text of an SVG file."""
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
        """Write as JSON, whole or not at all."""
        write_atomically(Path(path), json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Comparison:
        """Read what ``save`` wrote."""
        try:
            raw = json.loads(Path(path).read_text(encoding="utf-8"))
            if raw["format"] != FORMAT:
                raise ValueError(f"format {raw['format']}")
            made = cls([read_run(cell) for cell in raw["cells"]], raw["settings"], raw["environment"])
            made.to_markdown()
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not a saved comparison ({error})") from None
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings."""
        return {
            "format": FORMAT,
            "settings": self.settings,
            "environment": self.environment,
            "cells": [cell.to_dict() for cell in self.cells],
        }

    def __repr__(self) -> str:
        return formatting.to_text(self)

    def _repr_html_(self) -> str:
        return formatting.to_html(self)
