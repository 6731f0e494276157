"""Options of the methods without a network. Importing them does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from seqatt.options import RUNNING, Options, option
from seqatt.validation import boolean, choice, integer, n_jobs, number

LIBRARIES = ("scikit-learn", "lightgbm", "xgboost")


@dataclass(frozen=True)
class ForestOptions(Options):
    """Options of random forests."""

    n_estimators: int = option(500, integer(1), "Number of trees.")
    n_jobs: int | None = option(None, n_jobs, "Threads; -1 for every core.", group=RUNNING)


@dataclass(frozen=True)
class BoostingOptions(Options):
    """Options of gradient-boosted trees."""

    library: str = option("scikit-learn", choice(LIBRARIES), f"Library: {', '.join(LIBRARIES)}.")
    max_iter: int = option(100, integer(1), "Boosting iterations.")
    learning_rate: float = option(0.1, number(above=0), "Shrinkage of each iteration.")
    n_jobs: int | None = option(None, n_jobs, "Threads; -1 for every core.", group=RUNNING)

    def check_together(self) -> None:
        super().check_together()
        if self.library != LIBRARIES[0] and find_spec(self.library) is None:
            raise ValueError(f"library: {self.library} is not installed; pip install 'seqatt[boosting]'")


@dataclass(frozen=True)
class MutualInformationOptions(Options):
    """Options of the nearest-neighbour estimate of mutual information."""

    n_neighbors: int = option(
        3, integer(1), "Nearest neighbours per row in the estimate for continuous values."
    )
    n_jobs: int | None = option(None, n_jobs, "Threads; -1 for every core.", group=RUNNING)


@dataclass(frozen=True)
class CMIMOptions(Options):
    """Options of CMIM."""

    bins: int | None = option(
        None,
        integer(2, optional=True),
        "Bins per numeric column; by default as many as the rows allow, at most 10.",
    )
    lazy: bool = option(True, boolean(), "Skip candidates that an upper bound already rules out.")


@dataclass(frozen=True)
class LinearAttentionOptions(Options):
    """Options of linear attention."""

    parameterisation: str = option(
        "linear", choice(["linear", "softmax"]), "The weights of Definition 3.1, or the softmax of Lemma 3.2."
    )
