"""Random tables and random bytes give a result or an error that explains itself; ``tools/fuzz.py`` tries more."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from tests.support.properties import PROPERTIES


@pytest.mark.parametrize("name", PROPERTIES)
def test_random_input_gives_a_result_or_an_error_that_explains_itself(name):
    found = PROPERTIES[name]
    settings(
        max_examples=found.examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )(given(**found.strategies())(found.check))()
