"""Costs of features: prices, each paid once if any of its features is selected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqatt.api.lookup import find_features
from seqatt.options import to_json

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData
    from seqatt.data.tables.table_data import TableData


@dataclass(frozen=True)
class Costs:
    """Prices with their names; ``required[i, f]`` is True if price i must be paid for feature f."""

    names: tuple[str, ...]
    prices: NDArray[np.float64]
    required: NDArray[np.bool_]

    @cached_property
    def _needs(self) -> list[frozenset[int]]:
        """The prices that each feature requires."""
        return [frozenset(np.flatnonzero(needs).tolist()) for needs in self.required.T]

    def total(self, features: Iterable[int]) -> float:
        """The cost of these features together."""
        paid = frozenset().union(*(self._needs[f] for f in features))
        return float(sum(self.prices[i] for i in sorted(paid)))

    def bundles(self) -> list[list[int]]:
        """The features of each price that several features share."""
        return [np.flatnonzero(shared).tolist() for shared in self.required if shared.sum() > 1]

    def explain(self, features: Iterable[int]) -> str:
        """The prices that make up a total, in words."""
        paid = np.flatnonzero(self.required[:, list(features)].any(1))
        return " and ".join(f"{self.names[i]} {self.prices[i]:g}" for i in paid)

    def take(self, features: NDArray[np.int64]) -> Costs:
        """The costs of some features."""
        return replace(self, required=self.required[:, features])


def find_costs(data: TableData | FileData, given: Mapping[Any, Any]) -> tuple[Costs, dict[str, Any]]:
    """The costs of features that a user names, checked by ``ConstraintOptions``; and the same for settings."""
    required, settings = np.zeros((len(given), data.features), dtype=bool), {}
    for i, (name, cost) in enumerate(given.items()):
        shared = cost["features"]
        features = find_features(
            data, [name] if shared is None else shared, "costs", named=True, prefer_names=True
        )
        required[i, features] = True
        named = to_json([data.given_names[f] for f in features])
        settings[str(name)] = {"cost": cost["cost"], "features": named}
    prices = np.array([cost["cost"] for cost in given.values()], dtype=np.float64)
    return Costs(tuple(map(str, given)), prices, required), settings
