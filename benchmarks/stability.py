"""What ``select(..., repeats=20)`` promises, on generated problems: false choices, stand-ins, stability and cost.

    python -m benchmarks.stability                 # everything, and a record
    python -m benchmarks.stability cost            # one part: bound, twins, agreement or cost
    python -m benchmarks.stability cost --device cuda  # on a GPU, and a record of its own

- **bound**: false choices among the features that the bound is about, against the bound; means over draws. Noise is
  independent, in blocks of ten columns of correlation 0.9, or there is no signal at all.
- **twins**: three signals and a near copy of each: how often the more frequent of the two is chosen, and how often the
  cluster is.
- **agreement**: Jaccard index of the answers for independent tables of the same problem, and of those of two seeds on
  one table, for one selection and for repeats; and the share of the signals that are found.
- **cost**: seconds of 20 repeats over those of one selection, in turns, when the device has been used. Where another
  device than a CPU is given: how many of the features that 20 repeats choose are those on a CPU, beside two seeds on a
  CPU, with the signals among them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from benchmarks.record_file import write_record
from numpy.typing import NDArray

import seqatt

Floats = NDArray[np.float64]
Problem = tuple[Floats, Floats, set[int]]  # a table, a target and the columns that determine it
DEFAULT, FAST = "sequential_attention", "linear_omp"
DRAWS = {DEFAULT: 10, FAST: 100}  # of each problem


def draw_table(seed: int, rows: int, columns: int, signals: int, noise: float, blocks: int = 0) -> Problem:
    """Signals of falling weight among independent columns, or with columns after them in correlated blocks of ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    for block in range(blocks):
        own = slice(signals + 10 * block, signals + 10 * block + 10)
        X[:, own] = np.sqrt(0.9) * rng.normal(size=(rows, 1)) + np.sqrt(0.1) * X[:, own]
    weights = np.linspace(1.5, 0.5, signals)
    y = X[:, :signals] @ weights + noise * rng.normal(size=rows)
    return X, y, set(range(signals))


PROBLEMS: dict[str, tuple[Callable[[int], Problem], int]] = {
    "independent, 300 x 60, k = 10": (lambda seed: draw_table(seed, 300, 60, 5, 2.0), 10),
    "independent, 200 x 200, k = 10": (lambda seed: draw_table(seed, 200, 200, 5, 2.0), 10),
    "blocks of 0.9, 300 x 65, k = 10": (lambda seed: draw_table(seed, 300, 65, 5, 2.0, blocks=6), 10),
    "only noise, 300 x 60, k = 5": (lambda seed: draw_table(seed, 300, 60, 0, 1.0), 5),
}


def select(X: Any, y: Any, k: int, device: str = "cpu", **options: Any) -> seqatt.Selection:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seqatt.select(X, y, k, task="regression", device=device, **options)


def measure_bound() -> list[dict[str, Any]]:
    rows = []
    for name, (draw, k) in PROBLEMS.items():
        for method, draws in DRAWS.items():
            found = []
            for seed in range(draws):
                X, y, signals = draw(seed)
                selection = select(X, y, k, method=method, seed=seed, repeats=20)
                stability = selection.stability
                assert stability is not None
                bounded = selection.indices[: stability["bounded"]].tolist()
                false = len(set(bounded) - signals)
                bounds = stability["false_choices"] or 0.0, stability["false_choices_any"] or 0.0
                found.append((len(bounded), false, *bounds))
            means, error = np.mean(found, 0), np.std(found, 0)[1] / np.sqrt(draws)
            rows.append(
                {
                    "problem": name,
                    "method": method,
                    "draws": draws,
                    "features": means[0],
                    "false": means[1],
                    "standard_error": error,
                    "bound": means[2],
                    "bound_any": means[3],
                }
            )
            print(f"{name}, {method}: {means[1]:.2f} ± {error:.2f} false of {means[0]:.1f}, bound {means[2]:.2f} "
                  f"(any distribution {means[3]:.2f})")  # fmt: skip
    return rows


def measure_twins() -> list[dict[str, Any]]:
    rows = []
    for method in DRAWS:
        single, together, found = [], [], []
        for seed in range(10):
            X, y, _ = draw_table(seed, 400, 40, 3, 1.0)
            X[:, 3:6] = X[:, :3] + 0.1 * np.random.default_rng([seed, 1]).normal(size=(400, 3))
            y = y + 0.5 * (X[:, 3] - X[:, 0])
            selection = select(X, y, 3, method=method, seed=seed, repeats=20)
            assert selection.stability is not None
            frequency = np.array(selection.stability["frequency"])
            clusters = {frozenset(c["features"]): c["frequency"] for c in selection.stability["clusters"]}
            for twin in range(3):
                single.append(max(frequency[twin], frequency[twin + 3]))
                own = [share for members, share in clusters.items() if {twin, twin + 3} <= members]
                together.append(own[0] if own else single[-1])
                found.append(bool(own) or single[-1] == 1.0)
        row = {
            "method": method,
            "more_frequent_twin": np.mean(single),
            "cluster": np.mean(together),
            "lowest": min(together),
        }
        rows.append(row | {"clustered_or_always_the_same": np.mean(found)})
        print(f"twins, {method}: {row['more_frequent_twin']:.2f} alone, {row['cluster']:.2f} together, at least "
              f"{row['lowest']:.2f}; clustered or always the same one {np.mean(found):.2f}")  # fmt: skip
    return rows


def measure_agreement() -> list[dict[str, Any]]:
    rows = []
    for name, draw, k in (
        ("five signals, 300 x 60, k = 5", lambda seed: draw_table(seed, 300, 60, 5, 2.0), 5),
        ("five signals, 150 x 60, k = 5", lambda seed: draw_table(seed, 150, 60, 5, 2.0), 5),
        ("five signals, 1000 x 60, k = 10", lambda seed: draw_table(seed, 1000, 60, 5, 2.0), 10),
    ):
        for repeats in (None, 20):
            drawn = [draw(seed) for seed in range(8)]
            answers = [set(select(X, y, k, repeats=repeats).indices.tolist()) for X, y, _ in drawn]
            again = [set(select(X, y, k, repeats=repeats, seed=1).indices.tolist()) for X, y, _ in drawn[:4]]
            between_draws = np.mean([jaccard(a, b) for a, b in combinations(answers, 2)])
            between_seeds = np.mean([jaccard(a, b) for a, b in zip(answers, again, strict=False)])
            found = np.mean(
                [len(a & signals) / len(signals) for a, (_, _, signals) in zip(answers, drawn, strict=True)]
            )
            rows.append(
                {
                    "problem": name,
                    "repeats": repeats,
                    "draws": between_draws,
                    "seeds": between_seeds,
                    "found": found,
                }
            )
            print(f"{name}, repeats {repeats}: Jaccard {between_draws:.2f} between tables, {between_seeds:.2f} "
                  f"between seeds, {found:.2f} of the signals found")  # fmt: skip
    return rows


def jaccard(one: set[int], other: set[int]) -> float:
    return len(one & other) / len(one | other)


def measure_cost(device: str = "cpu") -> list[dict[str, Any]]:
    rows = []
    for count, columns, k in ((300, 30, 5), (2_000, 60, 10), (20_000, 100, 20)):
        X, y, signals = draw_table(0, count, columns, 5, 2.0)
        rounds = 3 if count < 20_000 or device != "cpu" else 1
        # Not measured: the first call of a process loads libraries and, on a GPU, compiles kernels for these sizes.
        for repeats in (None, 20) if device != "cpu" else ():
            select(X, y, k, device, repeats=repeats)
        select(X[:200], y[:200], 2, device)
        seconds = np.array(
            [[_seconds(X, y, k, device, often) for often in (None, 20)] for _ in range(rounds)]
        )
        once, often = np.median(seconds, 0)
        row = {"rows": count, "columns": columns, "k": k, "device": device, "seconds": once}
        row |= {"seconds_of_20": often, "ratio": float(np.median(seconds[:, 1] / seconds[:, 0]))}
        print(f"{count} x {columns}, k = {k}, {device}: 20 repeats take {row['ratio']:.1f} times one selection "
              f"({often:.2f} s against {once:.2f} s)")  # fmt: skip
        if device != "cpu":
            row |= _compare_devices(X, y, k, device, signals)
        rows.append(row)
    return rows


def _compare_devices(X: Floats, y: Floats, k: int, device: str, signals: set[int]) -> dict[str, Any]:
    """Features that 20 repeats choose on the device and on a CPU, with each of some seeds, and how many they share."""
    answers = {
        where: [set(select(X, y, k, where, repeats=20, seed=seed).indices.tolist()) for seed in range(4)]
        for where in (device, "cpu")
    }
    shared = {
        "devices": [len(one & other) for one, other in zip(answers[device], answers["cpu"], strict=True)],
        "seeds_on_device": [len(one & other) for one, other in combinations(answers[device], 2)],
        "seeds_on_cpu": [len(one & other) for one, other in combinations(answers["cpu"], 2)],
    }
    found = {where: [len(own & signals) for own in some] for where, some in answers.items()}
    means = {name: float(np.mean(counts)) for name, counts in shared.items()}
    print(f"    of {k} features {means['devices']:.1f} are shared by {device} and CPU with the same seed, "
          f"{means['seeds_on_device']:.1f} by two seeds on {device}, {means['seeds_on_cpu']:.1f} on a CPU; "
          f"of {len(signals)} signals found: {found}")  # fmt: skip
    return {"shared": shared, "found": found}


def _seconds(X: Floats, y: Floats, k: int, device: str, repeats: int | None) -> float:
    started = time.perf_counter()
    select(X, y, k, device, repeats=repeats)
    return time.perf_counter() - started


PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "bound": measure_bound,
    "twins": measure_twins,
    "agreement": measure_agreement,
    "cost": measure_cost,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What repeats promise, on generated problems.")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--device", default="cpu", help="for the cost; the other parts are measured on a CPU")
    arguments = parser.parse_args()
    parts = arguments.parts or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    results = {part: measure_cost(arguments.device) if part == "cost" else PARTS[part]() for part in parts}
    if arguments.device != "cpu":
        command = " ".join(["python -m benchmarks.stability", *arguments.parts, "--device", arguments.device])
        write_record(f"stability-{arguments.device}", command, results)
    elif parts == list(PARTS):
        write_record("stability", "python -m benchmarks.stability", results)
