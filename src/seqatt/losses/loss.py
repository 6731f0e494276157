"""The interface of a loss: how a target is encoded, what training minimises, and how predictions are measured.

Outputs of networks are (T, B, o) and targets (T, B) or (T, B, m), where m need not be o. Metrics and scores get the
outputs (n, o) of one network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import date, timedelta
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
DATES = (date, timedelta, np.datetime64, np.timedelta64)  # a datetime, and one of pandas, is a date
Metrics = dict[str, float]  # by name; the first one is the main metric


class Encoding(NamedTuple):
    """The target of the training rows, as ``Target`` holds it: values (n,) or (n, m), and the outputs of a network.

    A numeric target is encoded as ``(y - shift) / scale``.
    """

    values: NDArray[Any]
    outputs: int
    classes: NDArray[Any] | None = None
    shift: Floats | None = None
    scale: Floats | None = None


class Score(NamedTuple):
    """A mean over rows, where higher is better, and its standard error."""

    mean: float
    standard_error: float


class Loss(ABC):
    """One kind of target.

    ``metrics`` are the names of what ``measure`` returns, the main one first. ``score_name`` is the score by which
    k="auto" compares numbers of features. Methods without a network see the target as classes or, with ``numeric``, as
    the numbers of ``as_numbers``; where these are not the target itself, ``stand_in`` describes them. With ``coupled``,
    the loss of a row depends on the other rows of its batch, so that a batch is never divided. ``streams`` says that
    files can be read batch by batch.
    """

    name: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    score_name: ClassVar[str]
    numeric: ClassVar[bool] = True
    stand_in: ClassVar[str | None] = None
    coupled: ClassVar[bool] = False
    streams: ClassVar[bool] = False
    smoothed: ClassVar[bool] = False  # whether labels may be smoothed
    has_univariate_test: ClassVar[bool] = True  # whether the univariate test is defined for this target

    def read(self, y: NDArray[Any], weights: Floats | None, argument: str) -> Encoding:
        """Check and encode the target of the training rows; classes are encoded where labels are read."""
        raise NotImplementedError

    def encode(self, y: NDArray[Any], encoding: Any, argument: str) -> NDArray[Any]:
        """The target of test rows, as ``measure`` takes it, with the classes of ``encoding``."""
        raise NotImplementedError

    @abstractmethod
    def per_row(self, out: Tensor, y: Tensor) -> Tensor:
        """The loss of each row (T, B), by operations that autograd can differentiate."""

    @abstractmethod
    def grad(self, out: Tensor, y: Tensor) -> Tensor:
        """The gradient (T, B, o) of the sum over the rows of a batch with respect to the outputs."""

    def as_numbers(self, values: NDArray[Any], sample: NDArray[Any] | None = None) -> NDArray[Any]:
        """The target for a test of each feature alone, and for methods without a network.

        Of files, ``values`` are those of some rows and ``sample`` those of the schema sample.
        """
        return values

    @abstractmethod
    def measure(self, encoding: Any, outputs: Floats, targets: NDArray[Any]) -> Metrics:
        """Metrics by name of outputs (rows, outputs) on test rows, whose targets are those of ``encode``.

        The first one is the main metric.
        """

    @abstractmethod
    def score(self, outputs: Floats, targets: NDArray[Any]) -> Score:
        """The score of outputs, whose targets are encoded as in training."""

    def score_without_features(self, train: NDArray[Any], test: NDArray[Any]) -> float:
        """The score of the best constant output."""
        return 0.0

    def noise_error(self, test: NDArray[Any]) -> float:
        """The standard error of the score of outputs that do not depend on the target, where that is known; else 0.

        A score of few rows may have a smaller error by chance, and is then no better than no features.
        """
        return 0.0


def mean_score(rows: NDArray[Any]) -> Score:
    """The mean over rows with its standard error."""
    return Score(float(rows.mean()), float(rows.std(ddof=1) / np.sqrt(len(rows))))


def explained(losses: Floats, without: Floats) -> Score:
    """The share by which features lower a loss, from the loss per row with them and without any."""
    total = without.mean()
    return mean_score(1 - losses / total if total > 0 else np.zeros_like(losses))


def one_number(y: NDArray[Any], argument: str, task: str) -> Floats:
    """A numeric target of one column, (n, 1)."""
    if y.ndim == 2:
        raise ValueError(f"{argument}: task={task!r} needs one number per row, got {y.shape[1]} columns")
    return to_floats(y, argument)[:, None]


def to_floats(y: NDArray[Any], argument: str) -> Floats:
    """Numbers, or an error that says what else the values are."""
    types = {type(value) for value in y.flat} if y.dtype == object else set()
    if y.dtype.kind in "US" or any(issubclass(kind, str | bytes) for kind in types):
        if y.ndim == 2:
            is_text = np.array([[isinstance(value, str | bytes) for value in row] for row in y])
            row, column = np.argwhere(is_text)[0]
            raise ValueError(
                f"{argument}: column {column + 1} holds text, such as {str(y[row, column])!r}; several columns must "
                "hold numbers or, as labels, 0 and 1 or booleans"
            )
        raise ValueError(
            f"{argument}: holds text where numbers are needed; convert it (an ordered categorical of pandas with "
            ".cat.codes), or use task='classification' to predict the values as classes"
        )
    if y.dtype.kind in "mM" or any(issubclass(kind, DATES) for kind in types):
        raise ValueError(
            f"{argument}: holds dates or durations where numbers are needed; convert them, such as to days since the "
            "first of them"
        )
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        kinds = ", ".join(sorted({kind.__name__ for kind in types})) or str(y.dtype)
        raise ValueError(
            f"{argument}: holds values of type {kinds} where numbers are needed; convert them"
        ) from None
