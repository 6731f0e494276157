"""How a ``Selection`` shows itself: report, plots, data frame, notebook. Whatever draws is imported on use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from seqatt.report.plots import SelectionPlots
    from seqatt.selection import Selection


class SelectionDisplay:
    """The base class of ``Selection`` with everything that shows it."""

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        evaluation: Any = None,
        image_shape: Sequence[int] | None = None,
        target: str | None = None,
    ) -> None:
        """Write a report: one HTML file that needs no network, for a browser, a phone, or a printer.

        Parameters
        ----------
        path : path of the file, such as "report.html"
        X : array, DataFrame or sparse matrix, optional
            The table that the features were selected from. With it the report has distributions and correlations;
            it never contains rows.
        y : array-like, or the name of a column of X, optional
            The target: distributions are then by class, or against the numbers of the target.
        evaluation : Evaluation, or dict of them, optional
            That of ``evaluate`` on test rows; several by the names "selected", "random" and "all".
        image_shape : (height, width), optional
            The features are the pixels of images of this shape.
        target : str, optional
            The name of the target, for the title.

        Examples
        --------
        >>> import tempfile, pathlib, seqatt
        >>> from sklearn.datasets import load_wine
        >>> data = load_wine(as_frame=True)
        >>> selection = seqatt.select(data.data, data.target, k=3, epochs=5)
        >>> path = pathlib.Path(tempfile.mkdtemp(), "report.html")
        >>> selection.report(path, data.data, data.target)
        >>> path.read_text().startswith("<!DOCTYPE html>")
        True
        """
        from seqatt.report.report_file import write_selection_report

        write_selection_report(
            path, self._selection, X, y, evaluation=evaluation, image_shape=image_shape, target=target
        )

    @property
    def plot(self) -> SelectionPlots:
        """Plots with matplotlib: ``plot.curve()``, ``frontier``, ``scores``, ``history``, ``image(shape)``, ..."""
        from seqatt.report.plots import SelectionPlots

        return SelectionPlots(self._selection)

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per selected feature: rank, feature, score, and what was measured of it."""
        from seqatt.report.frames import selection_frame

        return selection_frame(self._selection)

    def _repr_html_(self) -> str:
        from seqatt.report.frames import selection_html

        return selection_html(self._selection)

    @property
    def _selection(self) -> Selection:
        return cast("Selection", self)
