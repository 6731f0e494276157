"""The table of features: bars are as long as what they stand for."""

from __future__ import annotations

import pytest

from seqatt.report.page.sections import feature_cells


def rows(*scores: float) -> list[dict]:
    return [{"rank": i, "feature": f"x{i}", "score": score} for i, score in enumerate(scores, 1)]


@pytest.mark.parametrize(
    ("scores", "widths"),
    [((2.0, 1.0), ["100%", "50%"]), ((-1.0, -2.0), [None, None]), ((1.0, -2.0), [None, None])],
)
def test_scores_have_bars_only_where_none_is_negative(scores, widths):
    for cells, width in zip(feature_cells(rows(*scores)), widths, strict=True):
        assert ("width" in cells[2].after) == (width is not None)
        assert width is None or f"width:{width}" in cells[2].after
