"""``Evaluation``: metrics on test rows, one value per seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.target import Target

if TYPE_CHECKING:
    from seqatt.report.plots import EvaluationPlots

Metrics = dict[str, float]  # of one network, by name; the first one is the main metric


class Evaluation(Mapping[str, NDArray[np.float64]]):
    """Metrics on test rows by name, one value per seed: ``evaluation["accuracy"]``.

    Attributes
    ----------
    metric : str
        The main metric: accuracy for classes, R² for numbers.
    seeds : list of int
        The seeds, in the order of the values.
    mean, std : dict of str to float
        Mean and standard deviation of every metric over the seeds. ``std`` divides by n (``compare`` by n - 1).
    """

    def __init__(self, values: dict[str, NDArray[np.float64]], seeds: Sequence[int]) -> None:
        self._values = values
        self.seeds = list(seeds)
        self.metric = next(iter(values))

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def mean(self) -> dict[str, float]:
        return {name: float(v.mean()) for name, v in self._values.items()}

    @property
    def std(self) -> dict[str, float]:
        return {name: float(v.std()) for name, v in self._values.items()}

    def to_dict(self) -> dict[str, Any]:
        """The seeds and the values of every metric, as JSON can hold them."""
        return {"seeds": self.seeds, **{name: v.tolist() for name, v in self._values.items()}}

    @property
    def plot(self) -> EvaluationPlots:
        """A plot with matplotlib: ``plot.scores()``."""
        from seqatt.report.plots import EvaluationPlots

        return EvaluationPlots(self._values)

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per seed and one column per metric."""
        from seqatt.report.frames import make_frame

        return make_frame(self._values, self.seeds).rename_axis("seed")

    def _repr_html_(self) -> str:
        from seqatt.report.frames import evaluation_html

        return evaluation_html(self._values, self.mean, self.std)

    def __repr__(self) -> str:
        shown = ", ".join(f"{n} {self.mean[n]:.4f} ± {self.std[n]:.4f}" for n in self)
        return f"Evaluation({shown}; {len(self.seeds)} seed(s))"


def make_evaluation(per_seed: Sequence[Metrics | Exception], seeds: Sequence[int]) -> Evaluation:
    """The metrics of the networks of several seeds; raises the error of the first one that has one."""
    metrics = []
    for result in per_seed:
        if isinstance(result, Exception):
            raise result
        metrics.append(result)
    return Evaluation({name: np.array([each[name] for each in metrics]) for name in metrics[0]}, seeds)


def compute_metrics(target: Target, outputs: NDArray[np.float64], targets: NDArray[Any]) -> Metrics:
    """Metrics of ``outputs`` (rows, outputs) by name; the first one is the main metric."""
    if target.task == "regression":
        assert target.scale is not None
        assert target.shift is not None
        error = outputs * target.scale + target.shift - targets
        size = float(max(np.abs(error).max(), np.abs(targets).max()))
        unit = 1.0 if 1e-100 < size < 1e100 else max(size, np.finfo(np.float64).tiny)  # squares leave float64
        error, targets = error / unit, targets / unit
        total = ((targets - targets.mean(0)) ** 2).sum(0)
        r2 = 1 - (error**2).sum(0) / np.where(total > 0, total, 1.0)
        return {"r2": float(r2.mean()), "rmse": unit * float(np.sqrt((error**2).mean()))}
    if target.task == "multilabel":
        return {"accuracy": float(((outputs > 0) == (targets > 0.5)).mean())}
    if target.task == "multiclass":
        return {"accuracy": float((outputs.argmax(1) == targets).mean())}
    logit = outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs[:, 0]
    label = targets[:, 0]
    above, below = logit[label > 0.5], np.sort(logit[label <= 0.5])
    return {
        "accuracy": float(((logit > 0) == (label > 0.5)).mean()),
        # From scikit-learn both would be a call, but its import takes longer than a small selection.
        "auc": float(share_below(below, above).mean()) if len(above) and len(below) else float("nan"),
        "log_loss": float(np.logaddexp(0.0, np.where(label > 0.5, -logit, logit)).mean()),
    }


def share_below(values: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the sorted values below each point; ties count half."""
    left, right = np.searchsorted(values, points, "left"), np.searchsorted(values, points, "right")
    return np.asarray((left + right) / (2 * len(values)))
