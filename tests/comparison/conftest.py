"""Fixtures of the tests of comparisons."""

from __future__ import annotations

import pytest


@pytest.fixture
def quick_evaluation(monkeypatch):
    """Networks are trained for a few steps, for tests in which only the equality of metrics matters."""
    for module in ("evaluate", "networks"):
        monkeypatch.setattr(f"seqatt.api.evaluation.{module}.evaluation_steps", lambda *_: 20)
