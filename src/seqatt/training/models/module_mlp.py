"""The built-in network as torch modules, for options that the written-out network does not have."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from seqatt.training.models.architecture import MLPShape

ACTIVATION_MODULES: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
}


def build_mlp(shape: MLPShape, *, batch_norm: bool = False) -> nn.Sequential:
    """The built-in network as torch modules."""
    layers: list[nn.Module] = []
    for outs, ins in shape.sizes[:-1]:
        layers.append(nn.Linear(ins, outs))
        if batch_norm:
            layers.append(nn.BatchNorm1d(outs))
        layers.append(ACTIVATION_MODULES[shape.activation]())
        if shape.dropout:
            layers.append(nn.Dropout(shape.dropout))
    outs, ins = shape.sizes[-1]
    return nn.Sequential(*layers, nn.Linear(ins, outs))
