"""Columns of the Gram matrix, fetched from the rows when they are needed, with those likely to be next.

A pass over the rows costs almost as much for one column as for twenty. Which twenty is found by rehearsing:
OMP runs ahead on the few features most correlated with the residual now, on rows enough for a guess. What it
gets wrong costs another pass and never the answer, which is decided on exact columns of all features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.gram_pursuit import GramPursuit
from seqatt.linear.inputs import FeatureBlocks, read_blocks
from seqatt.linear.threads import Floats

WORTH_REHEARSING = 1 << 22  # cells of X: a pass over fewer costs no more than the rehearsal
STAGE = 256  # features on it
ROWS = 4096  # it is given at most


class GramColumns:
    """Columns of the Gram matrix that have been needed, or are likely to be."""

    def __init__(self, design: DesignMatrix, blocks: FeatureBlocks, k: int, guess: NDArray[np.intp]) -> None:
        self.design, self.blocks, self.k = design, blocks, k
        self.place = np.full(design.d, -1)
        self.rows: list[Floats] = []
        self.since: list[int] = []
        # With many rows, a sample of them says less than the correlations do, until a guess has been spent.
        knowing = design.n <= ROWS or len(guess) > 0
        self.rehearses = blocks.single and knowing and design.n * design.d >= WORTH_REHEARSING
        # More at a time are cheaper each, and more of them in vain.
        self.several = int(np.clip(k // 3 if self.rehearses else k // 2, 16, 64))

    def keep(self, columns: NDArray[np.intp], rows: Floats, since: int = 0) -> None:
        """``rows`` are those columns, less what the first ``since`` vectors of the basis explain."""
        self.place[columns] = len(self.rows) + np.arange(len(columns))
        self.rows.extend(rows)
        self.since.extend([since] * len(columns))

    def column(self, j: int, pursuit: GramPursuit) -> tuple[Floats, int]:
        """One column, as ``keep`` says."""
        if self.place[j] < 0 and self.blocks.single and len(pursuit.order) == self.k - 1:
            return self._last(j, pursuit)
        if self.place[j] < 0:
            wanted = np.append(self.blocks.columns(self._likely(pursuit)), j)
            wanted = np.unique(wanted[self.place[wanted] < 0])
            rows, basis = self.design.products(wanted), pursuit.basis[: len(pursuit.columns)]
            rows -= basis[:, wanted].T @ basis
            self.keep(wanted, rows, len(basis))
        place = int(self.place[j])
        return self.rows[place], self.since[place]

    def _last(self, j: int, pursuit: GramPursuit) -> tuple[Floats, int]:
        """Nothing is chosen after it, so its length is all that will be asked for."""
        x, known = self.design.columns(np.array([j]))[:, 0], pursuit.basis[: len(pursuit.columns), j]
        row = np.zeros(self.design.d)
        row[j] = x @ x - known @ known
        return row, len(known)

    def _likely(self, pursuit: GramPursuit) -> NDArray[np.intp]:
        """Features that may be chosen soon."""
        scores = self.blocks.norms(pursuit.c)
        scores[~pursuit.open] = -1.0
        size = min(8 * self.several, STAGE) if self.rehearses else self.several
        size = min(size, int(pursuit.open.sum()))
        top = np.argpartition(-scores, size - 1)[:size]
        return self._rehearse(top, pursuit) if self.rehearses else top

    def _rehearse(self, stage: NDArray[np.intp], pursuit: GramPursuit) -> NDArray[np.intp]:
        few = self.design.sample(ROWS) if self.design.n > ROWS else self.design
        columns, basis = few.columns(stage), pursuit.basis[: len(pursuit.columns), stage]
        square = columns.T @ columns
        square *= self.design.n / few.n
        square -= basis.T @ basis
        norms = np.maximum(np.diag(square), 0.0)  # a sample may say less than nothing is new
        np.fill_diagonal(square, norms)
        ahead = min(self.several, self.k - len(pursuit.order))
        trial = GramPursuit(
            pursuit.c[stage], np.array([pursuit.loss]), read_blocks(None, len(stage)), exact=norms
        )
        return stage[trial.run(ahead, lambda j: (square[j], 0)).order]
