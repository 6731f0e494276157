"""Writes the report of a selection or a comparison to a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqatt.json_files import write_atomically
from seqatt.report.facts.comparison_facts import comparison_facts
from seqatt.report.facts.selection_facts import selection_facts
from seqatt.report.page.html_page import make_page
from seqatt.validation import check_page_name, values_or_name

if TYPE_CHECKING:
    from seqatt.comparison.comparison import Comparison
    from seqatt.selection import Selection


def write_selection_report(
    path: str | os.PathLike[str],
    selection: Selection,
    X: Any = None,
    y: Any = None,
    *,
    evaluation: Any = None,
    image_shape: Sequence[int] | None = None,
    target: str | None = None,
) -> None:
    """Write the page of a selection; ``X`` and ``y`` are its table and target, ``target`` the name of the target."""
    check_page_name("path", path)
    data, y = None, values_or_name("y", y)
    if X is None and y is not None:
        raise TypeError("y: needs X too, the table that the features were selected from")
    if X is not None:
        from seqatt.report.facts.data_facts import data_facts  # here: it needs narwhals

        data = data_facts(selection, X, y, image=image_shape is not None)
    facts = selection_facts(
        selection,
        evaluation=evaluation,
        data=data,
        image_shape=image_shape,
        target=target,
        column=y if isinstance(y, str) else None,
    )
    write_atomically(Path(path), make_page(facts))


def write_comparison_report(
    path: str | os.PathLike[str], comparison: Comparison, *, target: str | None = None
) -> None:
    """Write the page of a comparison."""
    check_page_name("path", path)
    write_atomically(Path(path), make_page(comparison_facts(comparison, target=target)))
