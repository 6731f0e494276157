"""Options of the gated methods. Importing them does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from seqatt.options import option, same_option
from seqatt.training.options import LoopOptions
from seqatt.validation import falling_temperatures, integer, number


@dataclass(frozen=True)
class PenaltyOptions(LoopOptions):
    """A method with a penalty."""

    penalty: float | None = option(
        None,
        number(minimum=0, optional=True),
        "Strength of the penalty; by default chosen from several on held-out rows.",
    )


@dataclass(frozen=True)
class LassoOptions(PenaltyOptions):
    """Options of the group LASSO and of Sequential LASSO."""

    scaling: str = same_option(PenaltyOptions, "scaling", default="min-max")


@dataclass(frozen=True)
class StochasticGatesOptions(PenaltyOptions):
    """Options of stochastic gates."""

    sigma: float = option(0.5, number(above=0), "Standard deviation of the gates' noise.")


@dataclass(frozen=True)
class GumbelGatesOptions(PenaltyOptions):
    """Options of Gumbel-sigmoid gates."""

    temperatures: tuple[float, float] = option(
        (2.0, 0.8), falling_temperatures, "First and last temperature of the gates."
    )


@dataclass(frozen=True)
class EntryPruneOptions(LoopOptions):
    """Options of EntryPrune."""

    scaling: str = same_option(LoopOptions, "scaling", default="min-max")
    candidate_share: float | None = option(
        None,
        number(above=0, maximum=1, optional=True),
        "Share of the other features that are in the network beside the k kept ones; by default 0.2, and 0.5 where "
        "there are more columns than rows.",
    )
    rotation_steps: int | None = option(
        None,
        integer(1, optional=True),
        "Steps from the entry of candidates to the next; by default 100, and 5 where there are more columns than rows, "
        "but at least 20 rotations.",
    )


@dataclass(frozen=True)
class BatchAttentionOptions(LoopOptions):
    """Options of the network that computes the attention weights."""

    attention_width: int = option(128, integer(1), "Hidden units of the attention network.")


@dataclass(frozen=True)
class PermutationOptions(LoopOptions):
    """Options of permutation importance."""

    n_repeats: int = option(5, integer(1), "Permutations per feature, over which the importance is averaged.")
