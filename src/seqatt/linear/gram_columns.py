"""Columns of the Gram matrix, computed from the rows on demand together with those likely to be needed next.

A pass over the rows costs almost as much for one column as for twenty. A dry run of OMP on the few features
that are most correlated with the residual, and on a sample of the rows, predicts which twenty. A wrong
prediction costs another pass but never changes the result, which uses exact columns of all features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.gram_pursuit import GramPursuit
from seqatt.linear.inputs import FeatureBlocks, read_blocks
from seqatt.linear.threads import Floats

MIN_DRY_RUN_ENTRIES = 1 << 22  # entries of X; a pass over fewer costs no more than the dry run
DRY_RUN_FEATURES = 256  # features in a dry run, at most
DRY_RUN_ROWS = 4096  # rows in a dry run, at most


class GramColumns:
    """A cache of columns of the Gram matrix.

    ``slot_of[j]`` is the index of column j in ``rows`` and ``n_removed``, -1 if it is not stored.
    ``predicted`` are columns that a sample of the rows predicts to be needed.
    """

    def __init__(
        self, design: DesignMatrix, blocks: FeatureBlocks, k: int, predicted: NDArray[np.intp]
    ) -> None:
        self.design, self.blocks, self.k = design, blocks, k
        self.slot_of = np.full(design.d, -1)
        self.rows: list[Floats] = []
        self.n_removed: list[int] = []
        # With many rows, a sample predicts worse than the correlations do until ``predicted`` is used up.
        reliable = design.n <= DRY_RUN_ROWS or len(predicted) > 0
        self.uses_dry_run = blocks.single and reliable and design.n * design.d >= MIN_DRY_RUN_ENTRIES
        # More columns per pass cost less each, but more of them are never used.
        self.columns_per_pass = int(np.clip(k // 3 if self.uses_dry_run else k // 2, 16, 64))

    def store(self, columns: NDArray[np.intp], rows: Floats, n_removed: int = 0) -> None:
        """Store Gram columns minus the part explained by the first ``n_removed`` basis vectors."""
        self.slot_of[columns] = len(self.rows) + np.arange(len(columns))
        self.rows.extend(rows)
        self.n_removed.extend([n_removed] * len(columns))

    def column(self, j: int, pursuit: GramPursuit) -> tuple[Floats, int]:
        """Column j (d,), and how many basis vectors have been removed from it; see ``store``."""
        if self.slot_of[j] < 0 and self.blocks.single and len(pursuit.order) == self.k - 1:
            return self._last_column(j, pursuit)
        if self.slot_of[j] < 0:
            wanted = np.append(self.blocks.columns(self._likely_features(pursuit)), j)
            wanted = np.unique(wanted[self.slot_of[wanted] < 0])
            rows, basis = self.design.products(wanted), pursuit.basis[: len(pursuit.columns)]
            rows -= basis[:, wanted].T @ basis
            self.store(wanted, rows, len(basis))
        slot = int(self.slot_of[j])
        return self.rows[slot], self.n_removed[slot]

    def _last_column(self, j: int, pursuit: GramPursuit) -> tuple[Floats, int]:
        """Column j with only its diagonal entry: the last feature needs no updated correlations."""
        x, removed = self.design.columns(np.array([j]))[:, 0], pursuit.basis[: len(pursuit.columns), j]
        row = np.zeros(self.design.d)
        row[j] = x @ x - removed @ removed
        return row, len(removed)

    def _likely_features(self, pursuit: GramPursuit) -> NDArray[np.intp]:
        """Features that are likely to be selected soon."""
        scores = self.blocks.norms(pursuit.correlations)
        scores[~pursuit.eligible] = -1.0
        size = self.columns_per_pass
        if self.uses_dry_run:
            size = min(8 * size, DRY_RUN_FEATURES)
        size = min(size, int(pursuit.eligible.sum()))
        candidates = np.argpartition(-scores, size - 1)[:size]
        return self._dry_run(candidates, pursuit) if self.uses_dry_run else candidates

    def _dry_run(self, candidates: NDArray[np.intp], pursuit: GramPursuit) -> NDArray[np.intp]:
        """The candidates that OMP would select next, estimated on a sample of the rows."""
        sample = self.design.sample(DRY_RUN_ROWS) if self.design.n > DRY_RUN_ROWS else self.design
        columns, basis = sample.columns(candidates), pursuit.basis[: len(pursuit.columns), candidates]
        square = columns.T @ columns
        square *= self.design.n / sample.n
        square -= basis.T @ basis
        squared_norms = np.maximum(np.diag(square), 0.0)  # an estimate from a sample can be negative
        np.fill_diagonal(square, squared_norms)
        steps = min(self.columns_per_pass, self.k - len(pursuit.order))
        estimate = GramPursuit(
            pursuit.correlations[candidates],
            np.array([pursuit.loss]),
            read_blocks(None, len(candidates)),
            diagonal=squared_norms,
        )
        return candidates[estimate.run(steps, lambda j: (square[j], 0)).order]
