"""The shape of the built-in network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MLPShape:
    """An MLP: ``columns`` in, ``hidden`` widths, ``outputs`` out."""

    columns: int
    hidden: tuple[int, ...]
    outputs: int
    activation: str = "relu"
    dropout: float = 0.0
    smoothing: float = 0.0  # of the labels it learns from

    @property
    def sizes(self) -> list[tuple[int, int]]:
        widths = (self.columns, *self.hidden, self.outputs)
        return list(zip(widths[1:], widths[:-1], strict=True))
