"""Fixtures of the tests of comparisons."""

from __future__ import annotations

from functools import partial

import pytest

import seqatt
from seqatt.comparison import compare as compare_module


@pytest.fixture
def quick_evaluation(monkeypatch):
    """Networks are trained for a few epochs, for tests in which only the equality of metrics matters."""
    monkeypatch.setattr(compare_module, "evaluate", partial(seqatt.evaluate, epochs=5))
