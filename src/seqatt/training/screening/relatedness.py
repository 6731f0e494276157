"""How closely features are related: p-values of their correlations, in samples of a table's rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaincc
from torch import Tensor
from torch.nn.functional import pad

from seqatt.data.tables.table_data import SparseColumns
from seqatt.training.backend.matmul import matmul
from seqatt.training.screening.row_sample import RowSample

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

COLUMNS_AT_A_TIME = 8  # of each sample, compared with all others in one product on an accelerator


class Relatedness:
    """The p-values of the correlations of some features with any others, in several samples of the same table.

    Those with a feature are computed when they are first asked for, and kept.
    """

    def __init__(self, samples: Sequence[RowSample], features: NDArray[np.bool_]) -> None:
        """``features`` (d,) tells which are compared with others."""
        self._samples = list(samples)
        self._skewness = np.stack([sample.moments[1] for sample in samples])
        self._rows = np.array([sample.effective_rows for sample in samples])
        data = samples[0].data
        self._feature_of = data.feature_of
        self._features = np.flatnonzero(features)
        self._columns = np.flatnonzero(features[data.feature_of])
        self._first_columns = np.flatnonzero(np.diff(data.feature_of[self._columns], prepend=-1))
        self._units: Tensor | None = (
            None  # of an accelerator: all columns, of norm 1 (samples, columns, rows)
        )
        if samples[0].values is not None:
            every = np.arange(len(data.feature_of))
            self._units = _stack([sample.unit_columns(every) for sample in samples])
        # The smallest p-value per compared feature (f,): a row for each sample and feature asked for.
        self._p_values = np.empty((0, len(self._features)), dtype=np.float32)
        self._row_of: dict[tuple[int, int], int] = {}

    def smallest_p_values(self, samples: Numbers, selected: Numbers) -> Floats:
        """The smallest p-value of a correlation with a selected feature, per trial and compared feature (t, f).

        ``samples`` (t,) are the numbers of the trials' samples, and ``selected`` (t, m) their features. A feature is
        not compared with itself.
        """
        pairs = [
            [(sample, feature) for feature in features]
            for sample, features in zip(samples.tolist(), selected.tolist(), strict=True)
        ]
        new = sorted({pair for row in pairs for pair in row if pair not in self._row_of})
        if new:
            self._find_p_values(new)
        smallest = [self._p_values[[self._row_of[pair] for pair in row]].min(0) for row in pairs]
        return np.stack(smallest).astype(np.float64)

    def _find_p_values(self, pairs: list[tuple[int, int]]) -> None:
        """Compute and keep the p-values of these pairs of a sample and a feature, sorted."""
        columns_of = [np.flatnonzero(self._feature_of == feature) for _, feature in pairs]
        sample = np.repeat([sample for sample, _ in pairs], [len(columns) for columns in columns_of])
        columns = np.concatenate(columns_of)
        if self._units is not None:
            correlations = self._products(self._units, sample, columns)
        else:
            numbers = [number for number, _ in pairs]
            correlations = np.concatenate([*map(self._of_feature, numbers, columns_of)])
        skew = self._skewness[sample[:, None], self._columns] * self._skewness[sample, columns][:, None]
        by_column = correlation_p_value(correlations, skew, self._rows[sample][:, None])
        by_feature = np.minimum.reduceat(by_column, self._first_columns, axis=1)
        starts = np.cumsum([0, *(len(columns) for columns in columns_of[:-1])])
        first = len(self._row_of)
        last = first + len(pairs)
        if last > len(self._p_values):
            more = np.empty((max(last, 2 * first) - len(self._p_values), len(self._features)), np.float32)
            self._p_values = np.concatenate([self._p_values, more])
        p = np.minimum.reduceat(by_feature, starts, axis=0)
        p[np.array([feature for _, feature in pairs])[:, None] == self._features] = 1.0
        self._p_values[first:last] = p
        self._row_of |= {pair: first + number for number, pair in enumerate(pairs)}

    def _products(self, units: Tensor, sample: Numbers, columns: Numbers) -> Floats:
        """Correlations (m, compared columns) with these ``columns`` (m,), each in its ``sample`` (m,), sorted.

        The shape of a product must not depend on how many columns there are: after a resume all come at once, and the
        last bits of a product may depend on its shape.
        """
        rounds, place = np.divmod(np.arange(len(sample)) - np.searchsorted(sample, sample), COLUMNS_AT_A_TIME)
        number = torch.arange(len(units), device=units.device)[:, None]
        compared = torch.from_numpy(self._columns).to(units.device)
        out = units.new_empty(len(units), units.shape[1], COLUMNS_AT_A_TIME)
        found = np.empty((len(sample), len(self._columns)))
        for each in range(rounds.max() + 1):
            now = np.flatnonzero(rounds == each)
            others = np.zeros((len(units), COLUMNS_AT_A_TIME), dtype=np.int64)
            others[sample[now], place[now]] = columns[now]
            vectors = units[number, torch.from_numpy(others).to(units.device)]
            products = matmul(units, vectors.mT, out)[:, compared].cpu().numpy()
            found[now] = products[sample[now], :, place[now]]
        return found

    def _of_feature(self, number: int, columns: Numbers) -> Floats:
        """Correlations (m, compared columns) with the columns (m,) of one feature, in a sample on the host."""
        sample = self._samples[number]
        if not isinstance(sample.data.columns, SparseColumns):
            units = sample.kept_unit_columns(self._columns)
            out = torch.empty(1, len(units), len(columns))
            return matmul(units[None], sample.unit_columns(columns).T[None], out)[0].T.double().numpy()
        squares = sample.moments[0]
        norms = np.sqrt(np.outer(squares[columns], squares[self._columns]))
        products = sample.inner_products(sample.centred_columns(columns))[self._columns].T
        return np.asarray(products / np.where(norms > 0, norms, np.inf))


def _stack(columns: Sequence[Tensor]) -> Tensor:
    """The columns (m, rows) of several samples as one tensor; samples of fewer rows are filled up with zeros."""
    most = max(part.shape[1] for part in columns)
    return torch.stack([pad(part, (0, most - part.shape[1])) for part in columns])


def correlation_p_value(correlation: Floats, skew: Floats, rows: float | Floats) -> Floats:
    """Two-sided p-value of a correlation under random permutations of the rows.

    The permutation distribution is approximated by a Pearson type III distribution of the same mean, variance
    and skewness; ``skew`` is the product of the two columns' skewness. This matters for columns that are
    mostly zero, whose few other values may coincide by chance. On the side of the short tail the normal
    distribution is used instead, because it is more conservative.
    """
    spread = np.sqrt(np.maximum(1.0, np.asarray(rows) - 1))
    deviation = np.abs(correlation) * spread
    skewness = np.sign(correlation) * skew * spread / np.maximum(1.0, np.asarray(rows) - 2)
    shape = 4 / np.maximum(skewness, 1e-2) ** 2
    return np.asarray(np.minimum(1.0, 2 * gammaincc(shape, shape + deviation * np.sqrt(shape))))
