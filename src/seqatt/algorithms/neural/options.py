"""Options of LassoNet and the concrete autoencoder. Importing them does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from seqatt.options import option
from seqatt.training.options import NetworkOptions, ScalingOptions
from seqatt.validation import boolean, falling_temperatures, number


@dataclass(frozen=True)
class LassoNetOptions(NetworkOptions, ScalingOptions):
    """Options of LassoNet."""

    hierarchy: float = option(
        10.0,
        number(above=0),
        "M of the constraint |W_j| <= M |skip_j| on the first-layer weights of feature j.",
    )

    def check_together(self) -> None:
        super().check_together()
        if not self.hidden:
            raise ValueError("hidden: lassonet needs a hidden layer beside its skip connection; give a width")


@dataclass(frozen=True)
class AutoencoderOptions(NetworkOptions, ScalingOptions):
    """Options of the concrete autoencoder."""

    reconstruct: bool = option(False, boolean(), "Learn to reconstruct the table instead of the target.")
    temperatures: tuple[float, float] = option(
        (10.0, 0.01), falling_temperatures, "First and last temperature of the nodes."
    )
