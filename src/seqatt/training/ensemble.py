"""The members of a trial's ensemble: their seeds, the rows each trains on, and how their scores are pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.row_units import Rows, RowUnits, keep_neighbours_together
from seqatt.training.defaults import training_rows

WEIGHTS, ORDER, NOISE, HOLDOUT, GATE = range(5)  # independent random streams of one seed


@dataclass(frozen=True)
class Member:
    """One model of a trial's ensemble.

    Several ``variants`` of a member (other strengths of a penalty) use the same random draws.
    """

    seed: int
    number: int
    variant: int = 0

    def generator(self, stream: int) -> torch.Generator:
        return torch.Generator().manual_seed(self._state(stream))

    def module_seed(self) -> int:
        """Seed of torch's global generators for a user's own module; the first member has the trial's seed."""
        return self.seed if self.number == 0 else self._state(WEIGHTS)

    def _state(self, stream: int) -> int:
        """The streams of one seed are independent of each other and of the streams of other seeds."""
        words = [self.seed, stream, self.number] if self.number else [self.seed, stream]
        return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0]) & (2**63 - 1)


def split_rows(
    strata: Rows, seed: int, members: int, units: RowUnits | None = None
) -> list[tuple[Tensor | None, Tensor | None]]:
    """For each member, the numbers of the rows it trains on and of those held out from it.

    A single model has all rows for both, written as None. For an ensemble the rows are divided into one part more
    than there are members, and each member holds out a part of its own.
    """
    if training_rows(len(strata), members) == len(strata):
        return [(None, None)] * members
    pairs = hold_out(strata, seed, members + 1, members, units)
    return [(torch.from_numpy(trained), torch.from_numpy(held_out)) for trained, held_out in pairs]


def split_subset(
    subset: Rows, strata: Rows, seed: int, members: int, units: RowUnits | None = None
) -> list[tuple[Tensor, Tensor]]:
    """``split_rows`` for a trial that sees the rows ``subset`` alone; ``strata`` and ``units`` are those of all rows.

    A single model has all rows of the subset for both, those held out in random order.
    """
    rows = torch.from_numpy(subset)
    subset_units = units and units.take(subset)
    shuffled = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
    # Subsets of whole units differ in size, and the larger ones are cut to the rows that all have.
    alone = (rows if units is None else shuffled, shuffled)
    return [
        alone if trained is None or held_out is None else (rows[trained], rows[held_out])
        for trained, held_out in split_rows(strata[subset], seed, members, subset_units)
    ]


def hold_out(
    strata: Rows, seed: int, parts: int, count: int, units: RowUnits | None = None
) -> list[tuple[Rows, Rows]]:
    """Divide the rows into ``parts`` parts; for each of the first ``count``, the rows outside of it and those in it.

    Where there are ``units``, a part has whole groups of rows, or the latest rows, else blocks of neighbours from every
    stratum.
    """
    rng = np.random.default_rng([seed, HOLDOUT])
    if units is not None:
        return units.hold_out(parts, count, rng)
    order, size = keep_neighbours_together(strata, parts, rng), len(strata) // parts
    held_out = [slice(start, start + size) for start in range(0, count * size, size)]
    return [(np.delete(order, part), order[part].copy()) for part in held_out]


def pool_scores(scores: NDArray[np.float64], candidates: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The scores (trials, members, d) of each trial's members as one score per feature (trials, d).

    The scores of each member are standardised over the ``candidates`` (trials, d), so that members have the same
    influence whatever the scale of their logits; then they are averaged.
    """
    count = np.maximum(candidates.sum(1), 1)[:, None, None]
    counted = candidates[:, None, :]
    centred = scores - (scores * counted).sum(2, keepdims=True) / count
    spread = np.sqrt((centred**2 * counted).sum(2, keepdims=True) / count)
    pooled: NDArray[np.float64] = (centred / np.where(spread > 0, spread, 1.0)).mean(1)
    return pooled


def in_standard_errors(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Losses (trials, members, m) as means over the members (trials, m), in standard errors of the median one.

    The members have different validation rows, some harder than others, so the spread of their losses measures chance.
    The losses without a very useful feature differ by more than chance.
    """
    centred = losses - losses.mean(2, keepdims=True)
    variance = np.median(centred.var(1, ddof=1), axis=1, keepdims=True)
    error = np.sqrt(variance / losses.shape[1])
    return np.asarray(centred.mean(1) / np.where(error > 0, error, 1.0))


def average_blocks(values: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[list[float], list[float]]:
    """The mean of values (members, m, b) over the blocks of ``rows`` (b,) of all members, and its standard error.

    The members have different rows and different weights: the standard error is that over the rows, or that over the
    members where it is larger.
    """
    members, _, blocks = values.shape
    of_member = (values * rows).sum(2) / rows.sum()
    mean = of_member.mean(0)
    squares = ((values - mean[:, None]) ** 2 * rows).sum((0, 2)) / max(1, members * blocks - 1)
    over_rows = squares / (members * rows.sum())
    over_members = of_member.var(0, ddof=1) / members if members > 1 else np.zeros_like(mean)
    return mean.tolist(), np.sqrt(np.maximum(over_rows, over_members)).tolist()


def importance_of(
    features: Sequence[int], losses: NDArray[np.float64], rows: NDArray[np.int64]
) -> dict[str, Any]:
    """By how much the loss of a trial increases without each of these features, as in ``Trace.importance``.

    ``losses`` (members, 1 + m, b) per block of ``rows`` (b,) are with all m features, then without each.
    """
    increases, errors = average_blocks(losses[:, 1:] - losses[:, :1], rows)
    return {
        "features": list(features),
        "loss": average_blocks(losses[:, :1], rows)[0][0],
        "increases": increases,
        "standard_errors": errors,
        "rows": int(rows.sum()) * len(losses),
        "networks": len(losses),
    }
