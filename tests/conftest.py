"""Fixtures that every test may ask for."""

from __future__ import annotations

import pytest
from tests.support.problems import Problem, linear_problem


@pytest.fixture
def problem() -> Problem:
    return linear_problem("binary")
