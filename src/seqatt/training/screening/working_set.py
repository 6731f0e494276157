"""Working sets: on a wide table, only a subset of the features is trained at a time.

All features train in the warm-up and in a short phase after it (or, where phases are short, in the first that selects).
At the end of that one, and after phases 1, 2, 4, 8, ... that select, the subset is chosen again, which is a quarter of
the last one until it has the smallest size. Three quarters of it are the features of the last set with the highest
scores. The others come back from outside: those whose weights in the first layer would get the largest gradient beside
the features selected so far, with the same score penalty as any other feature. In a phase that sees the selected
features alone, no others train.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.training.backend.matmul import matmul
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.ensemble import pool_scores
from seqatt.training.feature_columns import FeatureColumns
from seqatt.training.loaders.batch import DeviceTable
from seqatt.training.schedule import Phase

Features = NDArray[np.int64]
# From row numbers (n,) to the gradient (1, h, n) of the loss with respect to the first hidden layer of a model.
HiddenGradient = Callable[[Tensor], Tensor]

SHRINK = 4  # a working set has this many times fewer features than the one before
SCREENED_ROWS = 512  # rows, at most, from which the gradients of the features outside are computed
COLUMNS_AT_A_TIME = 8192


class WorkingTable(NamedTuple):
    """The table of a working set: the columns of its features, and the feature of each column.

    ``in_table`` are the numbers of these columns in the whole table.
    """

    rows: DeviceTable
    columns: FeatureColumns
    in_table: Tensor


class WorkingSet:
    """Chooses working sets of at least ``size`` features of a table; ``features`` is None while all train."""

    def __init__(
        self, table: DeviceTable, feature_of: Tensor, constant: NDArray[np.bool_], size: int
    ) -> None:
        self._table, self._feature_of = table, feature_of
        self._count, self._size = len(constant), size
        self._varying = ~constant
        self.features: Features | None = None
        # The set that trains again after phases that see the selected features alone.
        self._waiting: Features | None = None
        self._columns = FeatureColumns(feature_of, self._count)

    def is_due(self, phases: int) -> bool:
        """Whether a new set is to be chosen after this many phases that selected features."""
        return phases & (phases - 1) == 0

    def choose(
        self, scores: NDArray[np.float64], outside: NDArray[np.float64] | None, selected: Sequence[int]
    ) -> Features:
        """The next working set, in the order of the table; ``scores`` and ``outside`` (d,) rank the features.

        ``outside`` is for the features that are not in the current set.
        """
        is_in = np.ones(self._count, dtype=bool)
        if self.features is not None:
            is_in[:] = False
            is_in[self.features] = True
        size = max(self._size, int(is_in.sum()) // SHRINK)
        returning = 0 if outside is None else size // SHRINK
        is_next = np.zeros(self._count, dtype=bool)
        is_next[list(selected)] = True
        for candidates, values, count in (
            (is_in & ~is_next & self._varying, scores, size - returning - len(selected)),
            (~is_in & ~is_next & self._varying, outside, returning),
        ):
            if values is not None and count > 0:
                numbers = np.flatnonzero(candidates)
                is_next[numbers[np.argsort(-values[numbers], kind="stable")[:count]]] = True
        return np.flatnonzero(is_next)

    def for_phase(self, phase: Phase, selected: Sequence[int]) -> Features | None:
        """The features that train in a phase with steps, None if they are the same as before."""
        if self.features is None:
            return None
        if phase.sees == "selected":
            self._waiting = self.features if self._waiting is None else self._waiting
            return np.array(sorted(selected))
        waiting, self._waiting = self._waiting, None
        return waiting

    def use(self, features: Features) -> WorkingTable:
        """Make these features the working set."""
        self.features = features
        number_of = torch.full((self._count,), -1, dtype=torch.int64)
        number_of[torch.from_numpy(features)] = torch.arange(len(features))
        number = number_of[self._feature_of]
        in_table = torch.nonzero(number >= 0).flatten()
        columns = FeatureColumns(number[in_table], len(features))
        return WorkingTable(self._table.select_columns(in_table), columns, in_table)

    def to_dict(self) -> dict[str, Any]:
        """A copy of the state for JSON."""
        sets = {"features": self.features, "waiting": self._waiting}
        return {name: None if numbers is None else numbers.tolist() for name, numbers in sets.items()}

    def load_dict(self, state: dict[str, Any]) -> Features | None:
        """Restore what ``to_dict`` returned, but for the features to be used, which are returned."""
        features, self._waiting = (
            None if state[name] is None else np.array(state[name]) for name in ("features", "waiting")
        )
        return features

    def outside_scores(
        self, hidden_gradients: Sequence[HiddenGradient], selected: Sequence[int], pool: WorkerPool
    ) -> NDArray[np.float64] | None:
        """Scores (d,) of the features outside: their gradients, standardised and averaged over the members.

        None while there are no features outside.
        """
        if self.features is None:
            return None
        rows = torch.randperm(self._table.count, generator=torch.Generator().manual_seed(0))
        rows = rows[:SCREENED_ROWS].sort().values
        x = self._table.gather(rows)
        norms = pool.run([partial(self._gradient_norms, member, rows, x) for member in hidden_gradients])
        is_out = self._varying.copy()
        is_out[self.features] = False
        is_out[list(selected)] = False
        return np.asarray(pool_scores(np.stack(norms)[None], is_out[None])[0])

    def _gradient_norms(
        self, hidden_gradient: HiddenGradient, rows: Tensor, x: Tensor
    ) -> NDArray[np.float64]:
        """The norm (d,) of the gradient of each feature's first-layer weights, for the rows ``x`` (n, c)."""
        delta = hidden_gradient(rows)
        squares = torch.empty(1, x.shape[1])
        for start in range(0, x.shape[1], COLUMNS_AT_A_TIME):
            block = x[None, :, start : start + COLUMNS_AT_A_TIME]
            grad = matmul(delta, block, out=delta.new_empty(1, delta.shape[1], block.shape[2]))
            squares[:, start : start + COLUMNS_AT_A_TIME] = grad.square_().sum(1)
        return self._columns.to_features(squares)[0].sqrt().double().numpy()
