"""A univariate significance test of each feature against the target, before training.

A network with many columns and few rows finds a use for noise. The gradient of the loss of a model without
features is the covariance of each feature with the target: the first step of OMP, and a test statistic with a
known distribution under the null hypothesis of no relation. Features of several columns and targets of
several outputs are tested by Pillai's trace and its F approximation, exact for one column or one output.

Covariance does not see even functions such as a square. A feature of one column is therefore tested twice, as a
number and divided into bins of equal size (analysis of variance), and the smaller p-value counts, doubled.

A category with an embedding is tested by the means of the target over all its values (analysis of variance). Its values
may be nearly as many as the rows and the target a rare class, where the F distribution is wrong; so the sum of squares
between the values is compared with its mean and variance over all permutations of the rows (Kazi-Aoual et al., 1995).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc
from torch import Tensor

from seqatt.data.tables.table_data import SparseColumns
from seqatt.training.backend.threads import single_thread
from seqatt.training.screening.row_sample import RowSample, transposed_product

Floats = NDArray[np.float64]

MAX_BINS = 6  # into which a column is divided
ROWS_PER_BIN = 10  # at least, else there are fewer bins
MIN_PERMUTED_ROWS = 8  # on which categories with embeddings are tested
QUANTILE_ROWS = 2048  # rows from which the limits of the bins are computed


class UnivariateTest(NamedTuple):
    """Per feature (d,): -log10 of its Benjamini-Hochberg q-value, and the share of the target that it explains.

    Both are 0 for constant features. The share is corrected for degrees of freedom, so it may be negative.
    """

    log_q: Floats
    explained: Floats


def univariate_test(sample: RowSample) -> UnivariateTest:
    """Test each feature of a sample."""
    data = sample.data
    target = _target_basis(sample)
    log_q, explained = np.zeros(data.features), np.zeros(data.features)
    varying = np.flatnonzero(~data.constant)
    if target.shape[1]:
        with single_thread():  # its many products are small
            p, linear = _test_numbers(sample, target)
            binned_p, binned = _test_bins(sample, target)
        tested = np.isfinite(binned_p)
        p[tested] = np.minimum(1.0, 2 * np.minimum(p[tested], binned_p[tested]))
        if sample.coded is not None:
            with single_thread():
                _test_codes(sample.coded, p, linear)
        log_q[varying] = -np.log10(benjamini_hochberg(p[varying]))
        explained[varying] = np.fmax(linear, binned)[varying]
    return UnivariateTest(log_q, explained)


def _target_basis(sample: RowSample) -> Tensor:
    """A basis (rows, m) of the centred target, orthonormal in the weighted inner product.

    Classes are encoded one-hot.
    """
    # Only of these rows: what a survival time or a quantile means as a number depends on the others.
    target = replace(sample.data.target, values=sample.data.target.values[sample.rows])
    values = target.as_numbers()
    if target.task == "multiclass":
        values = np.eye(target.outputs)[values]
    columns = np.asarray(values, dtype=np.float64).reshape(len(sample.rows), -1)
    centred = sample.centre(sample.on_device(columns))
    eigenvalues, eigenvectors = np.linalg.eigh(sample.gram_matrix(centred))
    positive = eigenvalues > 1e-10 * max(eigenvalues[-1], np.finfo(np.float64).tiny)
    return centred @ sample.on_device(eigenvectors[:, positive] / np.sqrt(eigenvalues[positive]))


def _test_numbers(sample: RowSample, target: Tensor) -> tuple[Floats, Floats]:
    """The p-value (d,) of each feature by Pillai's trace and its F approximation, and the share that it explains."""
    data = sample.data
    products, squares = sample.inner_products(target), sample.moments[0]
    trace = np.zeros(data.features)
    width = sample.columns_per_feature.copy()  # later their rank
    varies = squares > 0
    single = (width[data.feature_of] == 1) & varies
    trace[data.feature_of[single]] = (products[single] ** 2).sum(1) / squares[single]
    for feature in np.flatnonzero(width > 1):
        columns = np.flatnonzero((data.feature_of == feature) & varies)
        trace[feature], width[feature] = _pillai_trace(sample, columns, products[columns])
    outputs, count = target.shape[1], sample.effective_rows
    return _f_test(trace, width, outputs, count), _explained_share(trace, width, outputs, count)


def _test_bins(sample: RowSample, target: Tensor) -> tuple[Floats, Floats]:
    """P-value and explained share (d,) of features of one column, in bins of about equal size; NaN for the others.

    Columns with fewer than three distinct bins have none: two bins say no more than the number itself.
    """
    data, rows = sample.data, len(sample.rows)
    p, explained = np.full((2, data.features), np.nan)
    bins = min(MAX_BINS, rows // ROWS_PER_BIN)
    if bins < 3 or isinstance(data.columns, SparseColumns):  # most cells of a sparse column are one value, 0
        return p, explained
    single = np.flatnonzero(sample.columns_per_feature[data.feature_of] == 1)
    weighted = torch.cat([target, torch.ones_like(target[:, :1])], 1) * sample.row_weights
    total = weighted.sum(0).cpu().numpy()
    step = max(1, rows // QUANTILE_ROWS)
    for block in sample.column_blocks(len(single)):
        columns = single[block]
        adjacent = columns[-1] - columns[0] == len(columns) - 1  # then no cell is looked up by its number
        values = sample.centred_columns(slice(columns[0], columns[-1] + 1) if adjacent else columns)
        limits = _quantiles(values[::step], sample.weights[::step], bins)
        below = torch.stack([transposed_product((values <= limit).double(), weighted) for limit in limits])
        of_all = np.broadcast_to(total, below.shape[1:])
        per_bin = np.diff([0 * of_all, *below.cpu().numpy(), of_all], axis=0)  # (bins, columns, outputs + 1)
        sums, weights = per_bin[:, :, :-1], per_bin[:, :, -1]
        filled = weights > 1e-9 * sample.effective_rows
        trace = ((sums**2).sum(2) * filled / np.where(filled, weights, 1.0)).sum(0)
        degrees = filled.sum(0) - 1
        arguments = trace, degrees, target.shape[1], sample.effective_rows
        p[data.feature_of[columns]] = np.where(degrees > 1, _f_test(*arguments), np.nan)
        explained[data.feature_of[columns]] = np.where(degrees > 1, _explained_share(*arguments), np.nan)
    return p, explained


def _test_codes(sample: RowSample, p: Floats, explained: Floats) -> None:
    """Replace the p-values and the shares of features that are a single category with an embedding."""
    data, weights, count = sample.data, sample.weights, sample.effective_rows
    alone = ~np.isin(data.coded_features, data.feature_of) & (
        np.bincount(data.coded_features, minlength=data.features)[data.coded_features] == 1
    )
    basis = _target_basis(sample).numpy()
    rows, outputs = basis.shape
    if rows < MIN_PERMUTED_ROWS or not outputs:
        return
    weighted, equal = basis * weights[:, None], bool((weights == weights[0]).all())
    diagonal = float(((basis**2).sum(1) ** 2).sum() * weights[0] ** 2)
    for column in np.flatnonzero(alone):
        feature, codes = data.coded_features[column], data.codes[sample.rows, column]
        sizes = np.bincount(codes, weights=weights)
        filled = sizes > 0
        sums = np.stack([np.bincount(codes, weights=output)[filled] for output in weighted.T])
        trace, width = np.array([(sums**2 / sizes[filled]).sum()]), np.array([filled.sum() - 1])
        if equal:
            per_value = sizes[filled] / weights[0]
            of_values = int(width[0]), float((per_value * (1 / per_value - 1 / rows) ** 2).sum())
            p[feature] = _permutation_p(float(trace[0]), rows, (outputs, diagonal), of_values)
        else:
            p[feature] = _f_test(trace, width, outputs, count)[0]
        explained[feature] = _explained_share(trace, width, outputs, count)[0]


def _permutation_p(trace: float, rows: int, *projections: tuple[int, float]) -> float:
    """The p-value of the trace of the product of two projections, over the permutations of the rows of one.

    The trace has the mean and the variance that a multiple of a chi-squared variable gets.
    """
    if not all(0 < rank < rows - 1 for rank, _ in projections):
        return 1.0
    mean, variance = _permuted_moments(rows, *projections)
    variance = max(variance, 1e-12 * mean**2)
    return float(chdtrc(2 * mean**2 / variance, 2 * mean * trace / variance))


def _permuted_moments(n: int, *projections: tuple[int, float]) -> tuple[float, float]:
    """The mean and the variance of that trace; of each projection the rank and the sum of its squared diagonal.

    Their rows sum to 0: the mean of the target, and that of all values, has been subtracted.
    """
    mean = float(np.prod([rank for rank, _ in projections])) / (n - 1)
    products, diagonals = (
        2.0 / ((n - 1) ** 2 * (n + 1) * (n - 2)),
        1.0 / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3)),
    )
    for rank, squares in projections:
        products *= (n - 1) * rank - rank**2
        diagonals *= n * (n + 1) * squares - (n - 1) * (rank**2 + 2 * rank)
    return mean, products + diagonals


def _explained_share(trace: Floats, width: NDArray[np.int64], outputs: int, rows: float) -> Floats:
    """The share of the target that Pillai's trace says is explained, corrected for degrees of freedom."""
    share = trace / np.maximum(1, np.minimum(width, outputs))
    return np.asarray(1 - (1 - share) * (rows - 1) / np.maximum(1.0, rows - 1 - width))


def _quantiles(values: Tensor, weights: Floats, bins: int) -> Tensor:
    """The values (bins - 1, m) that divide the rows of each column (rows, m) into bins of equal weight."""
    shares = np.arange(1, bins) / bins * (1 - 1e-12)
    if (weights == weights[0]).all():  # the positions are the same in all columns, so values alone are sorted
        total = np.cumsum(weights)
        at = [int((total < share * total[-1]).sum()) for share in shares]
        return _sort_rows(values.T.contiguous())[:, at].T
    order = values.argsort(dim=0, stable=True)
    cumulative = torch.from_numpy(weights).to(values.device)[order].cumsum(0)
    positions = torch.stack([(cumulative < share * cumulative[-1]).sum(0) for share in shares.tolist()])
    return values.gather(0, order.gather(0, positions))


def _sort_rows(values: Tensor) -> Tensor:
    """Each row sorted. On a CPU by NumPy, which is several times as fast as torch."""
    if values.device.type == "cpu":
        return torch.from_numpy(np.sort(values.numpy(), axis=1))
    return values.sort(1).values


def _f_test(trace: Floats, width: NDArray[np.int64], outputs: int, rows: float) -> Floats:
    """p-values of Pillai's trace by its F approximation, for features of ``width`` degrees of freedom."""
    smaller = np.minimum(width, outputs)
    trace = np.clip(trace, 0, smaller)
    numerator = width * outputs  # degrees of freedom of the F distribution
    denominator = smaller * (rows - 1 - width - outputs + smaller)
    defined = (denominator > 0) & (width > 0)
    p = np.ones(len(trace))
    with np.errstate(divide="ignore", invalid="ignore"):
        f_statistic = trace / (smaller - trace) * denominator / np.maximum(numerator, 1)
    p[defined] = fdtrc(numerator[defined], denominator[defined], f_statistic[defined])
    return p


def _pillai_trace(sample: RowSample, columns: NDArray[np.int64], products: Floats) -> tuple[float, int]:
    """Pillai's trace of several columns together, and their rank; ``products`` are theirs with the target."""
    gram = sample.gram_matrix(sample.centred_columns(columns))
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    positive = eigenvalues > 1e-8 * max(eigenvalues[-1], 1e-8) if len(eigenvalues) else eigenvalues > 0
    whitened = (eigenvectors[:, positive].T @ products) / np.sqrt(eigenvalues[positive])[:, None]
    return float((whitened**2).sum()), int(positive.sum())


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's q-values: for each p-value, the smallest FDR at which it is significant.

    ``p`` is (..., m): one family of tests per row. Tests of a p-value of infinity do not count, and get 1.
    """
    # scipy.stats.false_discovery_control gives the same to the last bit or two, but nothing else here needs
    # scipy.stats, whose import takes half a second: a quarter of the time of a first small selection.
    order = np.argsort(p, axis=-1, kind="stable")
    tests = np.isfinite(p).sum(-1, keepdims=True)
    q = np.take_along_axis(p, order, -1) * tests / np.arange(1, p.shape[-1] + 1)
    out = np.empty_like(p)
    np.put_along_axis(out, order, np.minimum.accumulate(q[..., ::-1], axis=-1)[..., ::-1], -1)
    return np.clip(out, np.finfo(np.float64).tiny, 1.0)
