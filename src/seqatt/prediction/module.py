"""Networks and their preprocessing as one ``nn.Module``: from raw numbers and codes of categories to predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from seqatt.data.tables.encoding import Encoder
from seqatt.data.tables.table_data import TableData
from seqatt.training.evaluation.networks import NetworkParameters
from seqatt.training.models.architecture import ACTIVATIONS


class PredictionModule(nn.Module):
    """The mean of the outputs of T networks, for rows as the user has them.

    ``forward(numbers, codes)`` takes numbers (n, m) in float64, NaN where missing, and codes (n, categories) in int64,
    and returns probabilities (n, classes) or predicted values (n, outputs). ``outputs`` are the logits instead of
    probabilities: ``output_scale * mean + output_shift``. All is float64, so that no row depends on the rows beside it
    by more than rounding errors of 1e-15.
    """

    def __init__(
        self,
        data: TableData,
        networks: Sequence[NetworkParameters],
        activation: str,
        output_scale: ArrayLike,
        output_shift: ArrayLike,
    ) -> None:
        super().__init__()
        encoder = data.encoder
        self.task, self.activation = data.target.task, activation
        self.logarithms = list(encoder.log1p)
        self.indicated = np.searchsorted(encoder.numeric, encoder.indicated).tolist()
        categories = sorted(encoder.levels | encoder.coded)
        self.one_hot = [j for j, position in enumerate(categories) if position in encoder.levels]
        self.coded = [j for j, position in enumerate(categories) if position in encoder.coded]
        self.shift, self.scale = _constant(encoder.shift), _constant(encoder.scale)
        first = np.searchsorted(encoder.input_of, np.arange(len(encoder.constant)))
        assert isinstance(data.columns, np.ndarray)
        numbers = data.columns[:, first[encoder.numeric]]
        self.lowest, self.highest = _constant(numbers.min(0)), _constant(numbers.max(0))
        self.indicator_shift = _constant(encoder.indicator_shift)
        self.indicator_scale = _constant(encoder.indicator_scale)
        self.output_scale, self.output_shift = _constant(output_scale), _constant(output_shift)
        # The row of code 0, any other value, comes first here and last in the encoder.
        rows = [np.roll(encoder.levels[p].one_hot_rows(), 1, axis=0) for p in sorted(encoder.levels)]
        self.one_hot_rows = nn.ParameterList(map(_constant, rows))
        self.embeddings = _stacked([network.embeddings for network in networks])  # (T, codes, width)
        # Inputs of the first layer: numbers, indicators, one-hot columns; embeddings have weights of their own.
        # Weights are (T, ins, outs) and biases (T, 1, outs).
        self.weights = _stacked([[weight.T for weight in network.weights] for network in networks])
        self.biases = _stacked([[bias[None] for bias in network.biases] for network in networks])
        first, order = self.weights[0], _column_order(encoder)
        widths = [table.shape[2] for table in self.embeddings]
        self.embedding_weights = nn.ParameterList(
            map(_constant, torch.split(first[:, len(order) :], widths, 1))
        )
        self.weights[0] = _constant(first[:, order])

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        outputs = self.outputs(numbers, codes)
        if self.task == "regression":
            return outputs
        if self.task == "multiclass":
            return torch.softmax(outputs, 1)
        if self.task == "binary":
            return torch.sigmoid(torch.cat([-outputs, outputs], 1))
        return torch.sigmoid(outputs)

    def outputs(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Logits, or predicted values, (n, outputs)."""
        sums = self.encode(numbers, codes) @ self.weights[0] + self.biases[0]  # (T, n, h)
        for category, table, weights in zip(self.coded, self.embeddings, self.embedding_weights, strict=True):
            sums = sums + table[:, codes[:, category]] @ weights
        for weights, biases in zip(self.weights[1:], self.biases[1:], strict=True):
            sums = ACTIVATIONS[self.activation].function(sums) @ weights + biases
        outputs: Tensor = sums.mean(0) * self.output_scale + self.output_shift
        return outputs

    def encode(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Standardised numbers, missing-value indicators and one-hot columns (n, c)."""
        missing = torch.isnan(numbers)
        if self.logarithms:
            logarithms = torch.zeros_like(self.shift, dtype=torch.bool)
            logarithms[self.logarithms] = True
            numbers = torch.where(logarithms, torch.sign(numbers) * torch.log1p(torch.abs(numbers)), numbers)
        # A network says little about numbers beyond those of its training rows, but it says it with confidence.
        standard = torch.clamp((numbers - self.shift) / self.scale, self.lowest, self.highest)
        parts = [torch.where(missing, 0.0, standard)]
        if self.indicated:
            indicators = missing[:, self.indicated].double()
            parts.append((indicators - self.indicator_shift) / self.indicator_scale)
        parts += [rows[codes[:, c]] for c, rows in zip(self.one_hot, self.one_hot_rows, strict=True)]
        return torch.cat(parts, 1)


def _constant(values: ArrayLike | Tensor) -> nn.Parameter:
    """Float64 values that are saved with the module and not trained."""
    return nn.Parameter(torch.tensor(np.asarray(values, dtype=np.float64)), requires_grad=False)


def _stacked(networks: Sequence[Sequence[Tensor]]) -> nn.ParameterList:
    """The tensors of several networks, each with those of all networks along its first dimension."""
    return nn.ParameterList(_constant(torch.stack(tensors)) for tensors in zip(*networks, strict=True))


def _column_order(encoder: Encoder) -> list[int]:
    """The encoded columns: numbers, then indicators, then the one-hot columns of each category."""
    first = np.searchsorted(encoder.input_of, np.arange(len(encoder.constant)))
    one_hot = [
        np.arange(first[position], first[position] + len(encoder.levels[position].values))
        for position in sorted(encoder.levels)
    ]
    return [int(c) for c in np.concatenate([first[encoder.numeric], first[encoder.indicated] + 1, *one_hot])]
