"""Fixtures that every test may ask for."""

from __future__ import annotations

import pytest
from tests.support.problems import Problem, linear_problem

from seqatt.training import defaults


@pytest.fixture
def problem() -> Problem:
    return linear_problem("binary")


@pytest.fixture
def training(request: pytest.FixtureRequest) -> None:
    """Trainings of default length are short or not; see ``tests.support.budgets``."""
    if request.param == "few_steps":
        request.getfixturevalue("few_steps")


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of default length are a tenth as long: for tests to which it does not matter what is selected."""
    for name in ("MIN_STEPS", "MAX_STEPS", "EVALUATION_MIN_STEPS", "EVALUATION_MAX_STEPS"):
        monkeypatch.setattr(defaults, name, getattr(defaults, name) // 10)
