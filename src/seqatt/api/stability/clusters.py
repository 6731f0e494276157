"""Clusters of features that replace each other over the repeats.

Of two features that hold the same information, each repeat selects only one of them: each is selected in about half of
the repeats, and one of the two in every repeat. The members of a cluster are related, every two of them, and are rarely
chosen together: less often than if they were chosen independently, and in at most a quarter of the repeats that choose
any of them. Two related features of which each adds something are chosen together and form no cluster.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqatt.data.tables.table_data import TableData, take_rows
from seqatt.training.screening.row_sample import RowSample, draw_sample, transposed_product

Floats = NDArray[np.float64]
Chosen = NDArray[np.bool_]  # (repeats, features)

MIN_CORRELATION = 0.7  # of every two members of a cluster
MAX_TOGETHER = 0.25  # share of the repeats choosing any member that choose several, at most
MAX_ROWS = 10_000  # from which correlations are computed
MIN_FREQUENCY = 0.5  # of a cluster: features that are rarely chosen at all do not stand in for each other


def find_clusters(data: TableData, chosen: Chosen) -> list[list[int]]:
    """The clusters of at least two features, the members of each by how often they were chosen."""
    features = np.flatnonzero(chosen.any(0) & ~data.constant)
    if data.rows > MAX_ROWS:
        data = take_rows(data, np.sort(np.random.default_rng(0).permutation(data.rows)[:MAX_ROWS]))
    related = correlations(draw_sample(data), features)
    clusters = [[number] for number in range(len(features))]
    first, second = np.nonzero(np.triu(related >= MIN_CORRELATION, 1))
    for pair in np.argsort(-related[first, second], kind="stable"):
        one, other = clusters[first[pair]], clusters[second[pair]]
        if one is not other and _replace_each_other(one, other, related, chosen[:, features]):
            one += other
            for member in other:
                clusters[member] = one
    found = {id(cluster): features[cluster] for cluster in clusters if len(cluster) > 1}.values()
    often = [cluster for cluster in found if chosen[:, cluster].any(1).mean() >= MIN_FREQUENCY]
    counts = chosen.sum(0)
    return [sorted(cluster.tolist(), key=lambda feature: (-counts[feature], feature)) for cluster in often]


def _replace_each_other(one: list[int], other: list[int], related: Floats, chosen: Chosen) -> bool:
    """Whether two clusters may be merged: all features are related, and a repeat rarely chooses several of them."""
    if related[np.ix_(one, other)].min() < MIN_CORRELATION:
        return False
    has_one, has_other = chosen[:, one].any(1), chosen[:, other].any(1)
    several = (chosen[:, one + other].sum(1) > 1).sum()
    rarely = several <= MAX_TOGETHER * (has_one | has_other).sum()
    return bool(rarely and (has_one & has_other).mean() < has_one.mean() * has_other.mean())


def correlations(sample: RowSample, features: NDArray[np.int64]) -> Floats:
    """How closely every two features are related (f, f), from 0 to 1, corrected for what chance gives.

    For numbers the absolute correlation, for a number and a category the correlation ratio, for two categories Cramer's
    V: the root mean square of the canonical correlations of their columns, less its expectation for unrelated features.
    """
    bases = _orthonormal_bases(sample, features)
    widths = np.array([basis.shape[1] for basis in bases])
    columns = torch.cat(bases, 1)
    starts = np.cumsum(widths) - widths
    squares = transposed_product(columns, columns).numpy() ** 2
    sums = np.add.reduceat(np.add.reduceat(squares, starts, axis=0), starts, axis=1)
    by_chance = np.outer(widths, widths) / max(1.0, sample.effective_rows - 1)
    most = np.minimum(widths[:, None], widths)
    beyond = np.maximum(sums - by_chance, 0) / np.where(most > by_chance, most - by_chance, np.inf)
    return np.asarray(np.sqrt(np.minimum(beyond, 1)))


def _orthonormal_bases(sample: RowSample, features: NDArray[np.int64]) -> list[Tensor]:
    """The basis of each feature. That of a feature of one column is the column of norm 1: all of these at once."""
    first_column = np.empty(sample.data.features, dtype=np.int64)
    first_column[sample.data.feature_of[::-1]] = np.arange(len(sample.data.feature_of))[::-1]
    single = features[sample.columns_per_feature[features] == 1]
    columns, norms = first_column[single], np.sqrt(sample.moments[0][first_column[single]])
    units = sample.centred_columns(columns) * sample.row_weights.sqrt()
    units /= torch.from_numpy(np.where(norms > 0, norms, np.inf))
    known = {feature: units[:, [i]] for i, feature in enumerate(single.tolist())}
    return [known[f] if f in known else _orthonormal_basis(sample, f) for f in features.tolist()]


def _orthonormal_basis(sample: RowSample, feature: int) -> Tensor:
    """An orthonormal basis (rows, m) of the centred and weighted columns of a feature; zeros if it is constant."""
    columns = sample.centred_columns(np.flatnonzero(sample.data.feature_of == feature))
    eigenvalues, eigenvectors = np.linalg.eigh(sample.gram_matrix(columns))
    positive = eigenvalues > 1e-8 * max(eigenvalues[-1], np.finfo(np.float64).tiny)
    if not positive.any():
        return torch.zeros_like(columns[:, :1])
    scaled = torch.from_numpy(eigenvectors[:, positive] / np.sqrt(eigenvalues[positive]))
    return (columns * sample.row_weights.sqrt()) @ scaled
