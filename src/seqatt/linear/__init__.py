"""Feature selection for least squares: OMP, Sequential LASSO and linear Sequential Attention.

Theorems 1.1 and 1.2 of the Sequential Attention paper prove that the three select the same features.
"""

from seqatt.linear.attention import linear_attention
from seqatt.linear.gram import Gram
from seqatt.linear.guarantees import Guarantees, guarantees
from seqatt.linear.omp import omp
from seqatt.linear.path import LinearPath
from seqatt.linear.penalty import q_star
from seqatt.linear.sequential_lasso import sequential_lasso

__all__ = [
    "Gram",
    "Guarantees",
    "LinearPath",
    "guarantees",
    "linear_attention",
    "omp",
    "q_star",
    "sequential_lasso",
]
