"""How long the trainings of a test are."""

from __future__ import annotations

import pytest


def short_or_default(epochs: float) -> pytest.MarkDecorator:
    """The argument ``epochs``: as few as show the promise, and in ``make test-all`` also the method's default."""
    return pytest.mark.parametrize(
        "epochs", [epochs, pytest.param(None, id="default", marks=pytest.mark.exhaustive)]
    )


# The argument ``training``: of a test to which it does not matter what is selected, and whose code trains by default.
short_or_full = pytest.mark.parametrize(
    "training", ["few_steps", pytest.param("full", marks=pytest.mark.exhaustive)], indirect=True
)
