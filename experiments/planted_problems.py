"""Generated problems whose useful features are known: each kind of relation that a selection should find.

A problem has ``signals``: sets of columns that hold the same information. A selection of as many features as there are
signals finds a signal if it has at least one of its columns; a second column of the same signal is a wasted choice.
Every kind is drawn in several sizes, so that nothing can be tuned to one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Generator = np.random.Generator


@dataclass(frozen=True)
class Problem:
    """A table, its target, and the signals that determine the target."""

    kind: str
    X: Any  # an array, or a pandas frame if columns are categories
    y: NDArray[Any]
    task: str
    signals: tuple[frozenset[int], ...]

    @property
    def k(self) -> int:
        return len(self.signals)

    def count_found(self, columns: Sequence[int]) -> int:
        """How many signals have a column among these."""
        return sum(bool(signal.intersection(columns)) for signal in self.signals)


Draw = Callable[[Generator, int, int], Problem]
KINDS: dict[str, tuple[Draw, tuple[tuple[int, int], ...]]] = {}


def kind(name: str, *sizes: tuple[int, int]) -> Callable[[Draw], Draw]:
    """Register a kind of problem with its sizes (rows, columns)."""

    def decorate(draw: Draw) -> Draw:
        KINDS[name] = (draw, sizes)
        return draw

    return decorate


def make_problem(name: str, seed: int) -> Problem:
    """A problem of this kind; successive seeds go through its sizes."""
    draw, sizes = KINDS[name]
    rows, columns = sizes[seed % len(sizes)]
    return draw(np.random.default_rng([seed, *name.encode()]), rows, columns)


def shuffled(
    rng: Generator, name: str, X: Floats, y: NDArray[Any], task: str, signals: Sequence[Sequence[int]]
) -> Problem:
    """The problem with its columns in random order, so that no method gains by the order of columns."""
    order = rng.permutation(X.shape[1])
    place = np.argsort(order)
    moved = tuple(frozenset(int(place[c]) for c in signal) for signal in signals)
    return Problem(name, np.ascontiguousarray(X[:, order]), y, task, moved)


def noise(rng: Generator, rows: int, columns: int) -> Floats:
    return rng.standard_normal((rows, columns))


def scaled(values: Floats) -> Floats:
    """Values of mean 0 and variance 1."""
    return np.asarray((values - values.mean()) / values.std())


def label(rng: Generator, signal: Floats, flips: float = 0.05) -> NDArray[np.int64]:
    """Whether a signal is above its median, as a class, with some labels flipped."""
    return np.asarray((signal > np.median(signal)) ^ (rng.random(len(signal)) < flips), dtype=np.int64)


@kind("linear", (200, 60), (600, 120), (2000, 40))
def linear(rng: Generator, rows: int, columns: int) -> Problem:
    """Five summands among correlated columns (neighbours have a correlation of 0.6)."""
    X = noise(rng, rows, columns)
    for column in range(1, columns):
        X[:, column] = 0.6 * X[:, column - 1] + 0.8 * X[:, column]
    used = [int(i * columns / 5 + columns / 10) for i in range(5)]
    y = X[:, used] @ np.array([2.0, -1.6, 1.3, -1.0, 0.8]) + 0.7 * rng.standard_normal(rows)
    return shuffled(rng, "linear", X, y, "regression", [[c] for c in used])


@kind("proxies", (900, 45), (500, 30), (1800, 90))
def proxies(rng: Generator, rows: int, columns: int) -> Problem:
    """Four summands, and two columns that are almost the sums of two of them."""
    X = noise(rng, rows, columns)
    X[:, 4] = scaled(X[:, 0] + X[:, 1]) + 0.25 * rng.standard_normal(rows)
    X[:, 5] = scaled(X[:, 2] + X[:, 3]) + 0.25 * rng.standard_normal(rows)
    y = X[:, :4].sum(1) + 0.1 * rng.standard_normal(rows)
    return shuffled(rng, "proxies", X, y, "regression", [[0], [1], [2], [3]])


@kind("near copies", (700, 60), (1200, 80), (400, 54))
def near_copies(rng: Generator, rows: int, columns: int) -> Problem:
    """Six signals with seven noisy copies each."""
    X = noise(rng, rows, columns)
    signals = []
    for signal in range(6):
        own = list(range(8 * signal, 8 * signal + 8))
        X[:, own[1:]] = X[:, own[:1]] + 0.2 * rng.standard_normal((rows, 7))
        signals.append(own)
    y = X[:, [0, 8, 16, 24, 32, 40]] @ np.linspace(1.5, 0.6, 6) + 0.5 * rng.standard_normal(rows)
    return shuffled(rng, "near copies", X, y, "regression", signals)


@kind("exact copies", (569, 40), (300, 30), (1500, 60))
def exact_copies(rng: Generator, rows: int, columns: int) -> Problem:
    """Five signals with an exact and a negated copy each; two classes."""
    X = noise(rng, rows, columns)
    signals = []
    for signal in range(5):
        own = [3 * signal, 3 * signal + 1, 3 * signal + 2]
        X[:, own[1]], X[:, own[2]] = X[:, own[0]], -X[:, own[0]]
        signals.append(own)
    score = X[:, [0, 3, 6, 9, 12]] @ np.linspace(1.4, 0.7, 5)
    y = (rng.random(rows) < 1 / (1 + np.exp(-3 * score))).astype(np.int64)
    return shuffled(rng, "exact copies", X, y, "binary", signals)


@kind("wide interactions", (450, 260), (700, 300), (350, 120))
def wide_interactions(rng: Generator, rows: int, columns: int) -> Problem:
    """Two main effects, and for each a feature that its strength depends on."""
    X = noise(rng, rows, columns)
    y = 1.5 * X[:, 0] + 1.2 * X[:, 1] + 1.5 * X[:, 0] * X[:, 2] + 1.2 * X[:, 1] * X[:, 3]
    y = y + 0.3 * rng.standard_normal(rows)
    return shuffled(rng, "wide interactions", X, y, "regression", [[0], [1], [2], [3]])


@kind("even functions", (1100, 55), (600, 30), (2200, 110))
def even_functions(rng: Generator, rows: int, columns: int) -> Problem:
    """A square, an absolute value and a cosine: no feature is correlated with the target."""
    X = noise(rng, rows, columns)
    y = scaled(X[:, 0] ** 2) + scaled(np.abs(X[:, 1])) + scaled(np.cos(2 * X[:, 2]))
    y = y + 0.3 * rng.standard_normal(rows)
    return shuffled(rng, "even functions", X, y, "regression", [[0], [1], [2]])


@kind("few rows", (24, 90), (40, 60), (60, 200))
def few_rows(rng: Generator, rows: int, columns: int) -> Problem:
    """Three strong summands in fewer rows than columns; two classes."""
    X = noise(rng, rows, columns)
    y = np.arange(rows) % 2
    X[:, :3] += 2.2 * (y[:, None] - 0.5)
    return shuffled(rng, "few rows", X, y, "binary", [[0], [1], [2]])


@kind("suppressor", (400, 30), (1000, 60), (250, 20))
def suppressor(rng: Generator, rows: int, columns: int) -> Problem:
    """A feature with noise that a second feature, unrelated to the target, measures."""
    X = noise(rng, rows, columns)
    target = rng.standard_normal(rows)
    X[:, 0] = target + X[:, 1]
    y = target + 0.2 * rng.standard_normal(rows)
    return shuffled(rng, "suppressor", X, y, "regression", [[0], [1]])


@kind("xor", (800, 30), (400, 15), (2000, 80))
def xor(rng: Generator, rows: int, columns: int) -> Problem:
    """The sign of a product of two features."""
    X = noise(rng, rows, columns)
    return shuffled(rng, "xor", X, label(rng, X[:, 0] * X[:, 1], 0.02), "binary", [[0], [1]])


@kind("parity of three", (3000, 12), (2000, 8), (4000, 20))
def parity(rng: Generator, rows: int, columns: int) -> Problem:
    """The parity of three signs: no two of them say anything."""
    X = np.sign(noise(rng, rows, columns))
    y = (X[:, :3].prod(1) > 0).astype(np.int64)
    return shuffled(rng, "parity of three", X, y, "binary", [[0], [1], [2]])


@kind("rare class", (3000, 40), (1500, 25), (6000, 80))
def rare_class(rng: Generator, rows: int, columns: int) -> Problem:
    """Three features of a class that three rows in a hundred belong to."""
    X = noise(rng, rows, columns)
    score = X[:, 0] + 0.9 * X[:, 1] - 0.8 * X[:, 2] + 0.3 * rng.standard_normal(rows)
    y = (score > np.quantile(score, 0.97)).astype(np.int64)
    return shuffled(rng, "rare class", X, y, "binary", [[0], [1], [2]])


@kind("counts", (800, 50), (400, 30), (2000, 100))
def counts(rng: Generator, rows: int, columns: int) -> Problem:
    """Features that are counts, and a target that is a count."""
    X = rng.poisson(rng.uniform(0.5, 4, columns), (rows, columns)).astype(np.float64)
    centred = X[:, :4] - X[:, :4].mean(0)
    y = rng.poisson(np.exp(np.clip(1.0 + centred @ np.array([0.35, -0.3, 0.25, 0.2]), -3, 3)))
    return shuffled(rng, "counts", X, y.astype(np.float64), "regression", [[0], [1], [2], [3]])


@kind("heavy-tailed target", (800, 50), (400, 30), (2000, 100))
def heavy_tailed(rng: Generator, rows: int, columns: int) -> Problem:
    """Four summands and noise of Student's t distribution with two degrees of freedom."""
    X = noise(rng, rows, columns)
    y = X[:, :4] @ np.array([1.5, -1.2, 1.0, 0.9]) + 0.7 * rng.standard_t(2, rows)
    return shuffled(rng, "heavy-tailed target", X, y, "regression", [[0], [1], [2], [3]])


@kind("several outputs", (600, 50), (300, 30), (1500, 100))
def several_outputs(rng: Generator, rows: int, columns: int) -> Problem:
    """Three targets, each of two features."""
    X = noise(rng, rows, columns)
    y = np.stack([X[:, 2 * i] - 0.8 * X[:, 2 * i + 1] for i in range(3)], 1)
    y = y + 0.4 * rng.standard_normal(y.shape)
    return shuffled(rng, "several outputs", X, y, "regression", [[c] for c in range(6)])


@kind("monotone", (500, 40), (1000, 80), (300, 25))
def monotone(rng: Generator, rows: int, columns: int) -> Problem:
    """Steep monotone functions: an exponential, a step, a logarithm and a cube."""
    X = noise(rng, rows, columns)
    y = scaled(np.exp(1.3 * X[:, 0])) + scaled((X[:, 1] > 0.5).astype(float))
    y = y + scaled(np.log(np.abs(X[:, 2] + 6))) + scaled(X[:, 3] ** 3) + 0.3 * rng.standard_normal(rows)
    return shuffled(rng, "monotone", X, y, "regression", [[0], [1], [2], [3]])


@kind("skewed columns", (800, 50), (400, 30), (1600, 100))
def skewed_columns(rng: Generator, rows: int, columns: int) -> Problem:
    """Log-normal columns; their logarithms determine the class."""
    Z = noise(rng, rows, columns)
    y = label(rng, Z[:, :4] @ np.array([1.2, -1.1, 1.0, 0.9]))
    return shuffled(rng, "skewed columns", np.exp(1.5 * Z), y, "binary", [[0], [1], [2], [3]])


@kind("thousands of columns", (150, 3000), (100, 2000), (200, 5000))
def thousands(rng: Generator, rows: int, columns: int) -> Problem:
    """Four features whose means differ between two classes, among thousands."""
    X = noise(rng, rows, columns)
    y = np.arange(rows) % 2
    X[:, :4] += 1.3 * (y[:, None] - 0.5) * np.array([1.0, -1.0, 1.0, -1.0])
    return shuffled(rng, "thousands of columns", X, y, "binary", [[0], [1], [2], [3]])


@kind("many classes", (1000, 40), (600, 60), (2000, 100))
def many_classes(rng: Generator, rows: int, columns: int) -> Problem:
    """Eight classes: the corners of a cube in three features, and a fourth that is almost the first."""
    y = rng.integers(8, size=rows)
    X = noise(rng, rows, columns)
    X[:, :3] += 1.3 * (2 * ((y[:, None] >> np.arange(3)) & 1) - 1)
    X[:, 3] = X[:, 0] + 0.2 * rng.standard_normal(rows)
    return shuffled(rng, "many classes", X, y, "multiclass", [[0, 3], [1], [2]])


@kind("many-valued categories", (2000, 20), (4000, 30), (1200, 16))
def categories(rng: Generator, rows: int, columns: int) -> Problem:
    """Half of the columns are categories of 30 values; two of them and two numbers determine the class."""
    import pandas as pd

    texts, numbers = columns // 2, columns - columns // 2
    codes = rng.integers(30, size=(rows, texts))
    Z = noise(rng, rows, numbers)
    effect = [rng.standard_normal(30), rng.standard_normal(30)]
    y = label(rng, effect[0][codes[:, 0]] + effect[1][codes[:, 1]] + Z[:, 0] - 0.9 * Z[:, 1], 0.02)
    frame = {f"text{i}": np.char.add("v", codes[:, i].astype(str)) for i in range(texts)}
    frame |= {f"number{i}": Z[:, i] for i in range(numbers)}
    signals = [frozenset([c]) for c in (0, 1, texts, texts + 1)]
    return Problem("many-valued categories", pd.DataFrame(frame), y, "binary", tuple(signals))


@kind("hidden block", (1000, 60), (600, 40), (1500, 120))
def hidden_block(rng: Generator, rows: int, columns: int) -> Problem:
    """A block of ten correlated weak features beside three independent ones of which each adds something."""
    X = noise(rng, rows, columns)
    factor = rng.standard_normal(rows)
    X[:, 3:13] = 0.8 * factor[:, None] + 0.6 * X[:, 3:13]
    y = 1.5 * factor + X[:, :3] @ np.array([0.9, -0.8, 0.7]) + 0.3 * rng.standard_normal(rows)
    return shuffled(rng, "hidden block", X, y, "regression", [[0], [1], [2], list(range(3, 13))])


@kind("categorical interaction", (1000, 40), (600, 25), (2000, 80))
def categorical_interaction(rng: Generator, rows: int, columns: int) -> Problem:
    """A two-valued feature decides which of two other features the target is."""
    X = noise(rng, rows, columns)
    X[:, 0] = rng.integers(2, size=rows)
    y = np.where(X[:, 0] > 0, X[:, 1], X[:, 2]) + 0.2 * rng.standard_normal(rows)
    return shuffled(rng, "categorical interaction", X, y, "regression", [[0], [1], [2]])


@kind("copies and an interaction", (400, 40), (2000, 40), (1000, 60))
def copies_and_interaction(rng: Generator, rows: int, columns: int) -> Problem:
    """A summand, a square and a product of two features, and a copy of every third column."""
    X = noise(rng, rows, columns)
    copied = columns // 3
    X[:, copied : 2 * copied] = X[:, :copied] + 0.05 * rng.standard_normal((rows, copied))
    y = X[:, 0] + X[:, 1] ** 2 + X[:, 2] * X[:, 3] + 0.2 * rng.standard_normal(rows)
    signals = [[column, column + copied] for column in range(4)]
    return shuffled(rng, "copies and an interaction", X, y, "regression", signals)
