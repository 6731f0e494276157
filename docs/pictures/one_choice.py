"""Draws one_choice.svg: one step of the three algorithms on the same columns.

pip install 'seqatt[bench]'
python docs/pictures/one_choice.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import lasso_path

from seqatt.linear import omp

rng = np.random.default_rng(7)
X = rng.normal(size=(60, 6)) + 0.7 * rng.normal(size=(60, 1))
X /= np.linalg.norm(X, axis=0)
y = X @ np.array([0.0, 1.2, 0.4, 0.0, -1.0, 0.2]) + 0.05 * rng.normal(size=60)
y /= np.linalg.norm(y)
top = float(np.abs(X.T @ y).max())
shares = np.linspace(1.15, 0.1, 85)  # lambda over lambda*


def attention(share: float) -> np.ndarray:
    """|w| at the minimum of Definition 3.1, S empty; lambda* is 2 max |X'y| here."""

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        w, theta = v[:6], v[6:]
        left = X @ (w * theta) - y
        pull = 2 * X.T @ left
        slope = np.concatenate([theta * pull, w * pull]) + 2 * top * share * v
        return float(left @ left + top * share * (v @ v)), slope

    tried = [
        minimize(objective, draw.normal(size=12), jac=True, method="L-BFGS-B", tol=1e-12)
        for draw in (np.random.default_rng(seed) for seed in range(24))
    ]
    return np.abs(min(tried, key=lambda found: found.fun).x[:6])  # some end on the saddle of a feature


def main() -> None:
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "seqatt"
    import matplotlib.pyplot as plt

    _, paths, _ = lasso_path(X, y, alphas=np.sort(top * shares / len(X))[::-1], tol=1e-10)
    weights = np.array([attention(share) for share in shares])
    chosen = omp(X, y, 1).order[0]
    colours = ["#c3c9d0"] * 6
    colours[chosen] = "#c2410c"

    figure, (bars, lasso, soft) = plt.subplots(1, 3, figsize=(10.5, 3.1), layout="constrained")
    bars.bar(range(6), np.abs(X.T @ y), color=colours)
    bars.set(title="OMP: correlation with the residual", xlabel="feature", ylabel="|X'r|")
    for feature in np.argsort(np.arange(6) == chosen):
        style = {"color": colours[feature], "linewidth": 2.2 if feature == chosen else 1.2}
        lasso.plot(shares, np.abs(paths[feature]), **style)
        soft.plot(shares, weights[:, feature], **style)
    lasso.set(title="Sequential LASSO: |coefficient|", xlabel="λ / λ*")
    soft.set(title="linear attention: |w|", xlabel="λ / λ*")
    for axis in (lasso, soft):
        axis.axvline(1, color="#475569", linewidth=0.8, linestyle=":")
        axis.invert_xaxis()
    for axis in (bars, lasso, soft):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
