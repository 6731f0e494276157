"""Draws one_choice.svg: the first selection of OMP, Sequential LASSO and linear attention on the same columns.

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
max_correlation = float(np.abs(X.T @ y).max())
penalties = np.linspace(1.15, 0.1, 85)  # lambda over lambda*
RESTARTS = 24  # some of them end on a saddle point


def attention_weights(penalty: float) -> np.ndarray:
    """|w| at the minimum of Definition 3.1 with S empty; lambda* is 2 max |X'y| here."""

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        w, theta = v[:6], v[6:]
        residual = X @ (w * theta) - y
        beta_grad = 2 * X.T @ residual
        grad = np.concatenate([theta * beta_grad, w * beta_grad]) + 2 * max_correlation * penalty * v
        return float(residual @ residual + max_correlation * penalty * (v @ v)), grad

    minima = [
        minimize(objective, generator.normal(size=12), jac=True, method="L-BFGS-B", tol=1e-12)
        for generator in (np.random.default_rng(seed) for seed in range(RESTARTS))
    ]
    return np.abs(min(minima, key=lambda minimum: minimum.fun).x[:6])


def main() -> None:
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "seqatt"
    import matplotlib.pyplot as plt

    alphas = np.sort(max_correlation * penalties / len(X))[::-1]
    _, paths, _ = lasso_path(X, y, alphas=alphas, tol=1e-10)
    weights = np.array([attention_weights(penalty) for penalty in penalties])
    selected = omp(X, y, 1).order[0]
    colours = ["#c3c9d0"] * 6
    colours[selected] = "#c2410c"

    figure, (bars, lasso, attention) = plt.subplots(1, 3, figsize=(10.5, 3.1), layout="constrained")
    bars.bar(range(6), np.abs(X.T @ y), color=colours)
    bars.set(title="OMP: correlation with the residual", xlabel="feature", ylabel="|X'r|")
    for feature in np.argsort(np.arange(6) == selected):
        style = {"color": colours[feature], "linewidth": 2.2 if feature == selected else 1.2}
        lasso.plot(penalties, np.abs(paths[feature]), **style)
        attention.plot(penalties, weights[:, feature], **style)
    lasso.set(title="Sequential LASSO: |coefficient|", xlabel="λ / λ*")
    attention.set(title="linear attention: |w|", xlabel="λ / λ*")
    for axis in (lasso, attention):
        axis.axvline(1, color="#475569", linewidth=0.8, linestyle=":")
        axis.invert_xaxis()
    for axis in (bars, lasso, attention):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
