"""The paper's figure 2: contours of Q*(beta o beta) for two features, at three zoom levels.

    pip install 'seqatt[bench]'
    python experiments/q_star.py

Writes results/q_star.json and results/q_star.svg beside this file. The paper reads off its plots that the
penalty is concave where |b1| + |b2| > 2, and so favours one feature over two; the JSON says how far that is
so, line by line.
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

REACH = (1.0, 5.0, 25.0)  # |beta_i| at most: near, middle, far
POINTS = 41  # a side, of one quadrant; the others mirror it
RESULTS = Path(__file__).parent / "results"


def commit() -> str:
    asked = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return done.stdout.strip() or "unknown"


def panel(reach: float) -> np.ndarray:
    side = np.linspace(0, reach, POINTS)
    return np.asarray(q_star(np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)))


def along_lines(
    totals: tuple[float, ...] = (0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 25),
) -> dict[str, dict[str, float]]:
    """On |b1| + |b2| = total: what one feature costs over what two halves cost, and where it is concave."""
    found = {}
    for total in (0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 25):
        first = np.linspace(0, total, 81)
        values = q_star(np.stack([first, total - first], axis=1))
        bends = np.diff(values, 2)
        found[str(total)] = {
            "one_over_two": round(float(values[0] / values[40]), 4),
            "concave_share": round(float(np.mean(bends < 0)), 3),
        }
    return found


def draw(grids: dict[float, np.ndarray]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "seqatt"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(grids), figsize=(10.5, 3.3), layout="constrained")
    for axis, (reach, grid) in zip(axes, grids.items(), strict=True):
        side = np.linspace(-reach, reach, 2 * POINTS - 1)
        full = np.block([[grid[:0:-1, :0:-1], grid[:0:-1]], [grid[:, :0:-1], grid]])
        drawn = axis.contour(side, side, full, levels=12, cmap="viridis", linewidths=1.1)
        axis.clabel(drawn, fontsize=6, fmt="%.3g")
        axis.set(title=f"|β| up to {reach:g}", xlabel="β₁", ylabel="β₂", aspect="equal")
    figure.suptitle("Q*(β ∘ β): what softmax attention charges for two coefficients")
    figure.savefig(RESULTS / "q_star.svg", metadata={"Date": None})


def main() -> None:
    RESULTS.mkdir(exist_ok=True)
    grids = {reach: panel(reach) for reach in REACH}
    record = {
        "command": "python experiments/q_star.py",
        "settings": {"reach": REACH, "points": POINTS},
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
