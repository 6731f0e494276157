"""Generated tables of which is known which columns matter: for false discovery rates."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHAPES = (  # of the additive target, in turn; each has a variance of about 1
    lambda x: 1.4 * np.sin(2 * x),
    lambda x: (x**2 - 1) / 1.4,
    lambda x: np.abs(x) / 0.6,
    lambda x: x,
    lambda x: 2.0 * (x > 0),
)


@dataclass(frozen=True)
class Cell:
    """One kind of problem. ``correlation`` is that of neighbouring columns ("ar") or of any two ("equal")."""

    target: str = "linear"  # or "interactions", "additive", "noise"
    rows: int = 1000
    columns: int = 50
    correlation: float = 0.3
    structure: str = "ar"
    task: str = "regression"
    signals: int = 10
    noise: float = 1.0  # standard deviation; that of the rest is 1
    values: str = "normal"  # of the columns: or "skewed", "rounded", "flags", "categories"

    @property
    def name(self) -> str:
        changed = [
            str(v)
            for k, v in asdict(self).items()
            if k in ("structure", "task", "values") and v != DEFAULTS[k]
        ]
        signals = f"{0 if self.target == 'noise' else self.signals} signals"
        size = f"{self.rows} x {self.columns}"
        return ", ".join([self.target, size, f"correlation {self.correlation}", signals, *changed])

    def draw(self, seed: int) -> tuple[Any, NDArray[Any], set[int]]:
        """A table, its target, and the columns that determine it."""
        rng = np.random.default_rng([seed, self.rows, self.columns, int(100 * self.correlation)])
        latent = rng.standard_normal((self.rows, self.columns)) @ np.linalg.cholesky(self._matrix()).T
        x = latent
        if self.values == "skewed":
            x = np.exp(latent) / 2.2
        elif self.values == "rounded":
            x = np.floor(latent + 0.5)
        elif self.values == "flags":
            x = (latent > 0).astype(np.float64)
        if self.target == "noise":
            signals, effect = np.zeros(0, dtype=int), np.zeros(self.rows)
        else:
            signals = rng.choice(self.columns, self.signals, replace=False)
            effect = self._effect(x[:, signals], rng)
            effect = (effect - effect.mean()) / effect.std()
        y = effect + self.noise * rng.standard_normal(self.rows)
        table: Any = x
        if self.values == "categories":  # every second column, of five values that depend on the others
            import pandas as pd

            table = pd.DataFrame(x, columns=[f"x{i:03d}" for i in range(self.columns)])
            for name in table.columns[::2]:
                table[name] = pd.cut(table[name], [-9, -1, -0.3, 0.3, 1, 9], labels=list("cadbe")).astype(str)
        return table, y if self.task == "regression" else (y > 0).astype(int), set(signals.tolist())

    def _matrix(self) -> Floats:
        if self.structure == "equal":
            return np.full((self.columns,) * 2, self.correlation) + (1 - self.correlation) * np.eye(
                self.columns
            )
        place = np.arange(self.columns)
        return np.asarray(self.correlation ** np.abs(place[:, None] - place))

    def _effect(self, x: Floats, rng: np.random.Generator) -> Floats:
        if self.target == "linear":
            return np.asarray(x @ rng.choice([-1.0, 1.0], self.signals))
        if self.target == "additive":
            return np.asarray(sum(SHAPES[i % len(SHAPES)](column) for i, column in enumerate(x.T)))
        pairs = x[:, : self.signals // 2 * 2].reshape(len(x), -1, 2)  # "interactions"
        return np.asarray((pairs.prod(2) + 0.5 * pairs[:, :, 0]).sum(1))


DEFAULTS = asdict(Cell())

CELLS = (
    *(
        Cell(target, correlation=c)
        for target in ("linear", "interactions", "additive")
        for c in (0.0, 0.3, 0.6, 0.9)
    ),
    *(Cell(correlation=c, structure="equal") for c in (0.3, 0.6, 0.9)),
    *(Cell(rows=rows) for rows in (200, 500, 2000, 5000)),
    *(Cell(columns=columns) for columns in (20, 100, 200, 500)),
    *(
        Cell(rows=rows, columns=columns, correlation=0.6)
        for rows, columns in ((200, 200), (200, 500), (500, 500))
    ),
    *(
        Cell(target, correlation=c, task="binary")
        for target in ("linear", "interactions")
        for c in (0.3, 0.6)
    ),
    Cell(rows=200, columns=20, task="binary"),
    Cell("noise", rows=300, correlation=0.0),
    Cell("noise", rows=300, correlation=0.6),
    Cell("noise", columns=200, correlation=0.6),
    Cell("noise", rows=300, correlation=0.3, task="binary"),
    *(Cell(signals=signals) for signals in (2, 4, 25)),
    *(Cell(correlation=0.6, values=values) for values in ("skewed", "rounded", "flags", "categories")),
)

# For other libraries, some of which take a minute or more per draw.
PEER_CELLS = tuple(Cell(target, correlation=c) for target in ("linear", "interactions") for c in (0.3, 0.6))
