"""Encoded rows, the form in which a model takes them, and batches of them that all ranks agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class EncodedRows:
    """``numbers`` (n, p), category ``codes`` (n, m), and ``target`` and ``weights`` (n,)."""

    numbers: NDArray[np.float32]
    codes: NDArray[np.int32]
    target: NDArray[Any]
    weights: NDArray[np.float32]

    @property
    def count(self) -> int:
        return len(self.weights)

    def take(self, which: slice | NDArray[np.int64]) -> EncodedRows:
        """Some of the rows: a slice gives a view of the same memory, row numbers give a copy."""
        if isinstance(which, slice):
            return EncodedRows(
                self.numbers[which], self.codes[which], self.target[which], self.weights[which]
            )
        return EncodedRows(
            _pick(self.numbers, which),
            _pick(self.codes, which),
            _pick(self.target, which),
            _pick(self.weights, which),
        )


def _pick(values: NDArray[Any], which: NDArray[np.int64]) -> NDArray[Any]:
    """``values[which]`` without a bounds check, three times as fast; ``which`` is part of a permutation."""
    return values.take(which, axis=0, mode="clip")


def concatenate(blocks: Sequence[EncodedRows]) -> EncodedRows:
    """All rows of several blocks, in order."""
    if len(blocks) == 1:
        return blocks[0]
    return EncodedRows(
        np.concatenate([rows.numbers for rows in blocks]),
        np.concatenate([rows.codes for rows in blocks]),
        np.concatenate([rows.target for rows in blocks]),
        np.concatenate([rows.weights for rows in blocks]),
    )


class FileBatch(NamedTuple):
    """The rows of this rank in a batch, and what all ranks agreed on.

    ``expected_rows`` is the number of rows of the whole pass, as far as it is known by now. ``total`` is the number of
    rows of the batch over all ranks, and ``first_row`` the number of those on lower ranks than this one. After the
    batch, all ranks ``save`` a checkpoint or ``stop``.
    """

    rows: EncodedRows
    expected_rows: float
    total: int
    save: bool = False
    stop: bool = False
    first_row: int = 0


class BatchAgreement(NamedTuple):
    """Agreement of all ranks on the next batch: sums over ranks, and whether any rank saves or stops.

    ``first_row`` is the number of rows on lower ranks.
    """

    total: int
    expected_rows: float
    save: bool = False
    stop: bool = False
    first_row: int = 0
