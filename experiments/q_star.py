"""The paper's figure 2: contours of the penalty Q*(beta o beta) for two features, at three zoom levels.

    pip install 'seqatt[bench]'
    python experiments/q_star.py

Writes results/q_star.json and results/q_star.svg. The paper concludes from its plots that the penalty is
concave where |b1| + |b2| > 2 and so favours one feature over two; the JSON file has a measure of that for
several lines |b1| + |b2| = constant.
"""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import numpy as np
import scipy

import seqatt
from seqatt.linear import q_star

LIMITS = (1.0, 5.0, 25.0)  # largest |beta_i| of each panel
POINTS = 41  # grid points per axis of one quadrant; the other quadrants mirror it
RESULTS = Path(__file__).parent / "results"


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return done.stdout.strip() or "unknown"


def quadrant(limit: float) -> np.ndarray:
    """Q* on the grid 0 <= beta_1, beta_2 <= limit, of shape (POINTS, POINTS)."""
    axis = np.linspace(0, limit, POINTS)
    return np.asarray(q_star(np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)))


def along_lines(
    totals: tuple[float, ...] = (0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 25),
) -> dict[str, dict[str, float]]:
    """On |b1| + |b2| = total: the penalty of one feature over that of two equal ones, and the concave share."""
    measured = {}
    for total in totals:
        first = np.linspace(0, total, 81)
        values = q_star(np.stack([first, total - first], axis=1))
        second_differences = np.diff(values, 2)
        measured[str(total)] = {
            "one_over_two": round(float(values[0] / values[40]), 4),
            "concave_share": round(float(np.mean(second_differences < 0)), 3),
        }
    return measured


def draw(grids: dict[float, np.ndarray]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "seqatt"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(grids), figsize=(10.5, 3.3), layout="constrained")
    for axis, (limit, grid) in zip(axes, grids.items(), strict=True):
        ticks = np.linspace(-limit, limit, 2 * POINTS - 1)
        full = np.block([[grid[:0:-1, :0:-1], grid[:0:-1]], [grid[:, :0:-1], grid]])
        contours = axis.contour(ticks, ticks, full, levels=12, cmap="viridis", linewidths=1.1)
        axis.clabel(contours, fontsize=6, fmt="%.3g")
        axis.set(title=f"|β| up to {limit:g}", xlabel="β₁", ylabel="β₂", aspect="equal")
    figure.suptitle("Q*(β ∘ β): the penalty of softmax attention for two coefficients")
    figure.savefig(RESULTS / "q_star.svg", metadata={"Date": None})


def main() -> None:
    RESULTS.mkdir(exist_ok=True)
    grids = {limit: quadrant(limit) for limit in LIMITS}
    record = {
        "command": "python experiments/q_star.py",
        "settings": {"limits": LIMITS, "points": POINTS},
        "environment": {
            "seqatt": seqatt.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "commit": commit(),
        },
        "lines": along_lines(),
        "diagonal": {str(r): [round(float(v), 6) for v in np.diag(g)[::8]] for r, g in grids.items()},
        "axis": {str(r): [round(float(v), 6) for v in g[0, ::8]] for r, g in grids.items()},
    }
    (RESULTS / "q_star.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    draw(grids)
    print(json.dumps(record["lines"], indent=1))


if __name__ == "__main__":
    main()
