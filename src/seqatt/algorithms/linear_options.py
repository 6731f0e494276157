"""Options of the methods that solve least squares. Importing them does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from seqatt.options import Options, option
from seqatt.validation import choice


@dataclass(frozen=True)
class LinearAttentionOptions(Options):
    """Options of linear attention."""

    parameterisation: str = option(
        "linear", choice(["linear", "softmax"]), "The weights of Definition 3.1, or the softmax of Lemma 3.2."
    )
