"""One choice after another, by whatever rule, on what the choices so far leave to be explained."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from seqatt.linear.inputs import FeatureBlocks
from seqatt.linear.path import NEGLIGIBLE, LinearPath, negligible, why_stopped
from seqatt.linear.residual import ResidualProblem
from seqatt.linear.threads import Floats

Open = NDArray[np.bool_]  # which features may be chosen
Rule = Callable[[ResidualProblem, FeatureBlocks, Open, Floats], tuple[int, float]]


def select_stepwise(
    problem: ResidualProblem,
    blocks: FeatureBlocks,
    k: int,
    rule: Rule,
    flat: bool,
    seen: list[Floats] | None = None,
) -> LinearPath:
    """``rule`` names the next feature and its score, given X'Py and which features are open.

    ``seen`` gathers the features' correlations with the residual at every choice.
    """
    order: list[int] = []
    scores: list[float] = []
    losses: list[float] = []
    stopped = None
    barred = np.zeros(blocks.count, dtype=bool)
    while len(order) < k:
        cross = problem.correlations()
        open_ = blocks.norms(cross) > negligible(problem.norms, problem.null_loss, blocks)
        open_ &= ~barred
        if not open_.any():
            stopped = _reason(problem, blocks, order)
            break
        chosen, score = rule(problem, blocks, open_, cross)
        barred[chosen] = True
        before, rank = problem.loss(), problem.rank
        problem.choose(blocks.columns([*order, chosen]))
        if problem.rank == rank:  # not to be told from what the chosen ones span
            problem.choose(blocks.columns(order) if order else np.empty(0, dtype=np.intp))
            continue
        if seen is not None:
            seen.append(np.where(open_, blocks.norms(cross), 0.0))
        order.append(chosen)
        scores.append(score)
        losses.append(min(before, problem.loss()))
    coef = problem.coefficients()
    return LinearPath(
        order,
        np.array(scores),
        np.array(losses),
        problem.null_loss,
        coef[:, 0] if flat else coef,
        stopped,
    )


def _reason(problem: ResidualProblem, blocks: FeatureBlocks, order: list[int]) -> str:
    others = np.setdiff1d(np.arange(blocks.count), order)
    dependent = True
    if len(others):
        columns = blocks.columns(others)
        left = np.array([problem.products(c[None])[0, c] for c in columns])
        dependent = bool((left <= 1e-12 * problem.norms[columns]).all())
    # A sum of squares from a Gram is exact to its rounding, one from rows to the rounding's square.
    return why_stopped(problem.loss(), problem.null_loss, dependent, NEGLIGIBLE)
