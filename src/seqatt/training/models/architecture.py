"""The architecture of the built-in network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MLPShape:
    """An MLP with ``columns`` inputs, hidden layers of widths ``hidden`` and ``outputs`` outputs."""

    columns: int
    hidden: tuple[int, ...]
    outputs: int
    activation: str = "relu"
    dropout: float = 0.0
    label_smoothing: float = 0.0  # in the training loss only

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(outputs, inputs) of each layer."""
        widths = (self.columns, *self.hidden, self.outputs)
        return list(zip(widths[1:], widths[:-1], strict=True))
