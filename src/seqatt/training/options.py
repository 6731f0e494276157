"""Options of the built-in network and of its training, shared by the neural methods and by evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from seqatt.options import RARE, Options, option
from seqatt.validation import boolean, choice, function, integer, layer_widths, number

if TYPE_CHECKING:  # the command line reads options without importing torch
    import torch
    from torch import nn

ACTIVATION_NAMES = ("relu", "tanh", "gelu", "silu")
SCALINGS = ("standard", "min-max", "none")
FOLDS = 5  # parts of the rows; each model of a candidate feature holds out one


@dataclass(frozen=True)
class ScalingOptions(Options):
    """How a selection method scales the inputs of its network. Evaluation always standardises them."""

    scaling: str = option(
        "standard",
        choice(SCALINGS),
        "How numbers are scaled for the network: to mean 0 and variance 1 (standard), to the range from 0 to 1 "
        "(min-max), or not at all (none). Values of categories and missing-value indicators are then 0 or 1.",
        group=RARE,
    )


@dataclass(frozen=True)
class NetworkOptions(Options):
    """The built-in network and how long and how fast it trains: the options of every neural method."""

    epochs: float | None = option(
        None,
        number(above=0, optional=True),
        "Passes over the rows; by default 10, but 4,000 to 20,000 steps and at least 40 per feature to select.",
    )
    batch_size: int | None = option(
        None,
        integer(1, optional=True),
        "Rows per step; by default all rows up to 256, else about 1/16 of them: 64, 128 or 256.",
    )
    learning_rate: float = option(3e-3, number(above=0), "Adam's step size.")
    hidden: tuple[int, ...] = option((67,), layer_widths, "Widths of the hidden layers, such as 128,64.")
    activation: str = option("relu", choice(ACTIVATION_NAMES), "Activation of the hidden layers.", group=RARE)


@dataclass(frozen=True)
class TrainingOptions(NetworkOptions):
    """The network and how it is regularised, or a user's own model, loss and optimizer."""

    dropout: float = option(
        0.0, number(minimum=0, below=1), "Share of hidden units dropped at random in training.", group=RARE
    )
    input_dropout: float | None = option(
        None,
        number(minimum=0, below=1, optional=True),
        "Share of inputs dropped at random in training; by default sqrt(columns / rows) where that is 0.15 or "
        "more, at most 0.6; sequential_attention drops none, and no method where scaling is not standard.",
    )
    label_smoothing: float = option(
        0.0, number(minimum=0, below=1), "Share of a label that is spread over all classes.", group=RARE
    )
    batch_norm: bool = option(
        False, boolean(), "Add batch normalisation after each hidden layer.", group=RARE
    )
    embedding_dim: int | None = option(
        None,
        integer(1, optional=True),
        "Width of the embeddings of categories with many values; by default 4, or 8 if one has more than 100 codes.",
        group=RARE,
    )
    model: nn.Module | Callable[[int, int], nn.Module] | None = option(
        None,
        function("an nn.Module, or a function (columns, outputs) that returns one"),
        "Your own network: an nn.Module, copied for every trial, or a function (columns, outputs) -> nn.Module.",
    )
    inputs: Literal["columns", "raw"] = option(
        "columns",
        choice(["columns", "raw"]),
        "What your own model is called with: one tensor of columns, categories one-hot and weighted by attention "
        "(columns), or numbers, codes of the categories and the weights of these (raw), to embed them itself.",
        group=RARE,
    )
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = option(
        None,
        function("a function of outputs and targets, such as torch.nn.functional.mse_loss"),
        "Your own loss, a function (outputs, targets) -> loss per row or mean loss. The targets of a regression are "
        "standardised.",
    )
    optimizer: Callable[[Any], torch.optim.Optimizer] | None = option(
        None,
        function(
            "a function of the model's parameters that returns an optimizer, such as torch.optim.AdamW or "
            "lambda parameters: torch.optim.SGD(parameters, lr=0.1)"
        ),
        "Your own optimizer, a function of the model's parameters.",
    )

    def check_together(self) -> None:
        super().check_together()
        if self.inputs == "raw" and self.model is None:
            raise ValueError("inputs: 'raw' is for your own model, as the built-in network embeds categories")
        if self.model is not None:
            for name in ("hidden", "activation", "dropout", "batch_norm", "embedding_dim"):
                if getattr(self, name) != getattr(type(self), name):
                    raise ValueError(f"{name}: is for the built-in network; leave it out, or leave out model")
        if self.label_smoothing and self.loss is not None:
            raise ValueError("label_smoothing: is for the built-in loss; smooth the labels in your own loss")
        if self.batch_norm and self.batch_size == 1:
            raise ValueError("batch_size: batch_norm needs at least 2 rows in a batch")

    @property
    def own_inputs(self) -> str | None:
        """The ``inputs`` of a network that trains through autograd; None for the built-in one."""
        return None if self.built_in else self.inputs

    @property
    def built_in(self) -> bool:
        """Whether the built-in MLP is used; anything else trains through autograd."""
        return not self.batch_norm and all(part is None for part in (self.model, self.loss, self.optimizer))


@dataclass(frozen=True)
class LoopOptions(TrainingOptions, ScalingOptions):
    """Options of every method that the training loop trains."""


@dataclass(frozen=True)
class CandidateOptions(NetworkOptions, ScalingOptions):
    """The model of each candidate and its training."""

    epochs: float | None = option(
        None,
        number(above=0, optional=True),
        "Passes of each model over the rows it trains on; by default 3.75, from 200 to 1,000 steps.",
    )
    learning_rate: float = option(1e-2, number(above=0), "Adam's step size.")
    folds: int | None = option(
        None,
        integer(1, optional=True),
        "How many fifths of the rows are held out in turn; by default enough for 500 held-out rows.",
    )

    def check_together(self) -> None:
        super().check_together()
        if self.folds is not None and self.folds > FOLDS:
            raise ValueError(f"folds: the rows are split into 5 folds, so at most 5, got {self.folds}")
