"""Feed random input to the public functions for as long as told: ``python -m tools.fuzz --seconds 600``.

Checks the properties of ``tests/support/properties.py``, one after the other, with new input in every round. Prints how
many inputs were tried and every distinct failure with its first input; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for ``tests``
FACTOR = 4  # inputs of a property per round, relative to those of the tests


def main() -> int:
    import torch
    from tests.support.properties import PROPERTIES

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the first round (default: 0)")
    parser.add_argument("--only", choices=list(PROPERTIES), action="append", help="a property; repeatable")
    arguments = parser.parse_args()
    tried: Counter[str] = Counter()
    failures: dict[str, str] = {}
    end, round_number = time.monotonic() + arguments.seconds, arguments.seed
    while time.monotonic() < end:
        for name in arguments.only or PROPERTIES:
            _check(name, round_number, end, tried, failures)
        round_number += 1
    counts = ", ".join(f"{name}: {count:,}" for name, count in tried.items())
    print(f"{sum(tried.values()):,} inputs tried ({counts}); {len(failures)} distinct failures")
    return 1 if failures else 0


def _check(name: str, seed: int, end: float, tried: Counter[str], failures: dict[str, str]) -> None:
    """Check one property with new input, for a round or until the time is up; print each failure once."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from tests.support.properties import PROPERTIES

    found = PROPERTIES[name]

    def check(**arguments: Any) -> None:
        if time.monotonic() >= end:
            return
        tried[name] += 1
        try:
            found.check(**arguments)
        except Exception as error:  # to go on: hypothesis would stop here
            text = f"{type(error).__name__}: {error}"
            key = re.sub(r"\d+|'[^']*'|; input: .*", "", text)[:120]
            if key not in failures:
                failures[key] = text
                print(f"FAILED {name}, seed {seed}: {text}", flush=True)

    run = settings(
        max_examples=FACTOR * found.examples,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )(given(**found.strategies())(check))
    seeded(seed)(run)()


if __name__ == "__main__":
    sys.exit(main())
