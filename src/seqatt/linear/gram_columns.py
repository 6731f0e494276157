"""Columns of the Gram matrix, computed from the rows on demand together with those likely to be needed next.

A pass over the rows costs as much as the product for about 15 columns, so columns are computed in blocks. A wrong
prediction costs another pass but never changes the result, which uses exact columns of all features.
"""

from __future__ import annotations

import numpy as np

from seqatt.linear.design_matrix import DesignMatrix
from seqatt.linear.inputs import FeatureBlocks, read_blocks
from seqatt.linear.residual_problem import ColumnIndices, ResidualFromGram
from seqatt.linear.stepwise import select_stepwise
from seqatt.linear.threads import Floats

MAX_BLOCK = 100  # columns per pass, at most
DRY_RUN_BLOCK = 16, 64  # columns per pass that follow from a dry run: at least, at most
DRY_RUN_RATIO = 8  # features in a dry run per column of its block


class GramColumns:
    """A cache of columns of the Gram matrix of ``design``, for a selection of ``k`` features."""

    def __init__(self, design: DesignMatrix, blocks: FeatureBlocks, k: int) -> None:
        self.design, self.blocks, self.k = design, blocks, k
        self.cache: dict[int, tuple[Floats, int]] = {}

    def column(self, j: int, problem: ResidualFromGram) -> tuple[Floats, int]:
        """``PartialColumn`` j; ``problem`` predicts which other columns to compute with it."""
        if j not in self.cache and self.blocks.single and len(problem.columns) == self.k - 1:
            x, last = self.design.columns(np.array([j]))[:, 0], np.zeros(self.design.d)
            last[j] = x @ x  # the other entries update correlations, which no step needs any more
            return last, 0
        if j not in self.cache:
            likely = self.blocks.columns(self._likely_features(problem)).tolist()
            wanted = sorted({j, *likely} - self.cache.keys())
            columns, basis = self.design.products(np.array(wanted)), problem.basis
            columns -= basis[:, wanted].T @ basis  # one product for all of them
            self.cache.update((j, (column, len(basis))) for j, column in zip(wanted, columns, strict=True))
        return self.cache[j]

    def _likely_features(self, problem: ResidualFromGram) -> ColumnIndices:
        """Features that are likely to be selected soon: those with the highest scores.

        In a wide table many of these are wrong, and a dry run of OMP on them is cheap compared to a pass.
        """
        selected = np.unique(self.blocks.feature_of[problem.columns])
        remaining = self.k - len(selected)
        scores = self.blocks.norms(problem.correlations())
        scores[selected] = -1.0
        if not self.blocks.single or self.design.d <= self.design.n:
            return _highest(scores, min(remaining, MAX_BLOCK))
        steps = int(np.clip(self.k // 3, *DRY_RUN_BLOCK))
        candidates = _highest(scores, DRY_RUN_RATIO * steps)
        columns, basis = self.design.columns(candidates), problem.basis[:, candidates]
        square = columns.T @ columns - basis.T @ basis
        dry_run = ResidualFromGram(
            problem.correlations()[candidates],
            np.array([problem.loss()]),
            lambda j: (square[j], 0),
            np.maximum(np.diag(square), 0.0),  # rounding may leave less than nothing
        )
        blocks = read_blocks(None, len(candidates))
        return candidates[select_stepwise(dry_run, blocks, min(steps, remaining), None, False).order]


def _highest(scores: Floats, count: int) -> ColumnIndices:
    count = min(count, len(scores))
    return np.argpartition(-scores, count - 1)[:count]
