"""``Evaluation``: metrics on test rows, one value per seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqatt.losses.loss import Metrics

if TYPE_CHECKING:
    from seqatt.report.plots import EvaluationPlots

Result = TypeVar("Result")


class Evaluation(Mapping[str, NDArray[np.float64]]):
    """Metrics on test rows by name, one value per seed: ``evaluation["accuracy"]``.

    Attributes
    ----------
    metric : str
        The main metric: accuracy for classes, R² for numbers; docs/how_to/targets.md has those of other targets.
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
        if len(self.seeds) == 1:  # one value has no spread, which is not a spread of 0
            return f"Evaluation({', '.join(f'{n} {self.mean[n]:.4f}' for n in self)}; 1 seed)"
        shown = ", ".join(f"{n} {self.mean[n]:.4f} ± {self.std[n]:.4f}" for n in self)
        return f"Evaluation({shown}; {len(self.seeds)} seeds)"


def make_evaluation(per_seed: Sequence[Metrics | Exception], seeds: Sequence[int]) -> Evaluation:
    """The metrics of the networks of several seeds; raises the error of the first one that has one."""
    metrics = raise_errors(per_seed)
    return Evaluation({name: np.array([of_seed[name] for of_seed in metrics]) for name in metrics[0]}, seeds)


def raise_errors(results: Sequence[Result | Exception]) -> list[Result]:
    """The results; raises the first error among them."""
    good = []
    for result in results:
        if isinstance(result, Exception):
            raise result
        good.append(result)
    return good
