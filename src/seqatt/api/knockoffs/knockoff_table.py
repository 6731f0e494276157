"""A table of features and their knockoffs, in which no method can tell which is which.

Every input column becomes one column of normal scores, whatever its distribution: a number by its ranks, a category by
an order of its values (a Gaussian copula). A knockoff of the scores is turned back into values by its ranks, so a
knockoff of an input column is a permutation of it: skewed, rounded and missing values are as frequent as before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.api.knockoffs.gaussian import (
    Floats,
    choose_s,
    draw_ties,
    normal_scores,
    sample_knockoffs,
    shrunk_correlations,
)
from seqatt.data.tables.table_data import TableData

Integers = NDArray[np.int64]

MIN_RATIO = 1.5  # of the strength of a dependence to that of shuffled rows, from which it is no chance


@dataclass(frozen=True)
class KnockoffTable:
    """A table of ``copies + 1`` columns for each of the original ones; which of them is the original is random.

    Feature f of slot i is feature ``i * d + f`` of ``table``; the original is in slot ``original[f]``. ``largest`` (p,)
    is the largest absolute correlation of each varying input column with those of other features, and ``feature_of``
    (p,) its feature. ``entangled`` are the features with a category that depends on the others in more than one way.
    """

    table: TableData
    copies: int
    original: Integers
    largest: Floats
    feature_of: Integers
    entangled: list[int]

    @property
    def features(self) -> int:
        return len(self.original)


class _Input(NamedTuple):
    """An input column: its encoded columns, or its column of codes, and its feature."""

    columns: Integers
    code: int | None
    feature: int


def make_knockoff_table(data: TableData, copies: int, seed: int) -> KnockoffTable:
    """The table of the features and ``copies`` knockoffs of each."""
    rng = np.random.default_rng([seed, copies])
    inputs = [column for column in _inputs(data) if not data.constant[column.feature]]
    feature_of = np.array([column.feature for column in inputs])
    keys, entangled = _keys(data, inputs, rng)
    scores = draw_ties(keys, normal_scores(keys, rng), rng)
    correlations = shrunk_correlations(scores)
    whiten, restore = _within_groups(correlations, feature_of)
    matrix = whiten @ correlations @ whiten
    s = choose_s(matrix, copies)
    knockoffs = sample_knockoffs(scores @ whiten, matrix, s, copies, rng) @ restore
    original = rng.integers(copies + 1, size=data.features)
    # Slot of copy 0, the feature itself, and of copies 1 to m.
    slots = np.array([np.r_[slot, np.delete(np.arange(copies + 1), slot)] for slot in original])
    assert isinstance(data.columns, np.ndarray)
    columns, codes = np.tile(data.columns, copies + 1), np.tile(data.codes, copies + 1)
    for number, (encoded, code, feature) in enumerate(inputs):
        donors = np.argsort(scores[:, number])  # rows in the order of their values
        for copy in range(copies):
            rows = np.empty(data.rows, dtype=np.int64)
            rows[np.argsort(knockoffs[copy, :, number])] = donors
            slot = slots[feature, copy + 1]
            columns[:, slot * data.columns.shape[1] + encoded] = data.columns[np.ix_(rows, encoded)]
            if code is not None:
                codes[:, slot * data.codes.shape[1] + code] = data.codes[rows, code]
    correlations[feature_of[:, None] == feature_of] = 0.0
    table = _repeat(data, columns, codes, copies + 1)
    return KnockoffTable(table, copies, original, np.abs(correlations).max(0), feature_of, entangled)


def _inputs(data: TableData) -> list[_Input]:
    encoded, coded = data.encoder.input_of, list(data.encoder.coded)
    inputs = []
    for number in np.unique(encoded):
        columns = np.flatnonzero(encoded == number)
        inputs.append(_Input(columns, None, int(data.feature_of[columns[0]])))
    for position in range(len(coded)):
        inputs.append(_Input(np.zeros(0, dtype=np.int64), position, int(data.coded_features[position])))
    return inputs


def _keys(data: TableData, inputs: list[_Input], rng: np.random.Generator) -> tuple[Floats, list[int]]:
    """A number per row and input column by which its rows are ranked: the number itself, or the place of its category.

    Values of a category are ordered along the direction in which their mean rows differ most in the other columns, so
    that knockoffs keep the dependence along that direction. The features of categories that differ in a second
    direction as well, clearly more than if their rows were shuffled, are returned too.
    """
    assert isinstance(data.columns, np.ndarray)
    columns = data.columns
    keys, entangled = np.empty((data.rows, len(inputs))), []
    for number, (encoded, code, feature) in enumerate(inputs):
        if code is None and len(encoded) <= 2 and data.encoder.is_number[encoded[0]]:
            keys[:, number] = columns[:, encoded[0]]
            continue
        values = columns[:, encoded] if code is None else data.codes[:, [code]]
        place, counts = np.unique(values, axis=0, return_inverse=True, return_counts=True)[1:]
        place = place.reshape(-1)
        others = np.delete(columns, encoded, axis=1)
        if not others.shape[1]:  # nothing to depend on: any order will do
            keys[:, number] = place
            continue
        means = _means(others, place, counts)
        weights = np.sqrt(counts)[:, None]  # chance differences of means have equal size then
        strengths, directions = np.linalg.svd(weights * means, full_matrices=False)[1:]
        chance = np.linalg.svd(weights * _means(others, rng.permutation(place), counts), compute_uv=False)
        if len(strengths) > 1 and strengths[1] > MIN_RATIO * chance[0]:
            entangled.append(feature)
        keys[:, number] = (means @ directions[0])[place]
    return keys, entangled


def _means(columns: NDArray[np.float32], place: Integers, counts: Integers) -> Floats:
    """The mean row (v, c) of each value of a category."""
    sums = np.zeros((len(counts), columns.shape[1]))
    np.add.at(sums, place, columns)
    return sums / counts[:, None]


def _within_groups(matrix: Floats, group: Integers) -> tuple[Floats, Floats]:
    """The matrix that makes the columns of each group uncorrelated with each other, and its inverse.

    Knockoffs of uncorrelated columns with a diagonal S are group knockoffs of the columns (Dai and Barber, 2016).
    """
    whiten, restore = np.eye(len(matrix)), np.eye(len(matrix))
    for number in np.flatnonzero(np.bincount(group) > 1):
        block = np.ix_(group == number, group == number)
        values, vectors = np.linalg.eigh(matrix[block])
        whiten[block] = vectors / np.sqrt(values) @ vectors.T
        restore[block] = vectors * np.sqrt(values) @ vectors.T
    return whiten, restore


def _repeat(data: TableData, columns: NDArray[np.float32], codes: NDArray[np.int32], times: int) -> TableData:
    """The table with every feature several times, under the same name."""
    encoder, inputs = data.encoder, len(data.column_order)
    shifts = [slot * inputs for slot in range(times)]

    def shifted(positions: list[int], by: int = inputs) -> list[int]:
        return [position + slot * by for slot in range(times) for position in positions]

    def numbered(values: Integers, count: int) -> Integers:
        return np.concatenate([values + slot * count for slot in range(times)])

    repeated = replace(
        encoder,
        numeric=shifted(encoder.numeric),
        log1p=shifted(encoder.log1p, len(encoder.numeric)),
        shift=np.tile(encoder.shift, times),
        scale=np.tile(encoder.scale, times),
        indicated=shifted(encoder.indicated),
        indicator_shift=np.tile(encoder.indicator_shift, times),
        indicator_scale=np.tile(encoder.indicator_scale, times),
        levels={p + shift: level for shift in shifts for p, level in encoder.levels.items()},
        coded={p + shift: level for shift in shifts for p, level in encoder.coded.items()},
        input_of=numbered(encoder.input_of, inputs),
        constant=np.tile(encoder.constant, times),
        missing_shares=np.tile(encoder.missing_shares, times),
    )
    return replace(
        data,
        columns=columns,
        codes=codes,
        feature_of=numbered(data.feature_of, data.features),
        coded_features=numbered(data.coded_features, data.features),
        names=data.names * times,
        input_columns=tuple(
            tuple(column + shift for column in group) for shift in shifts for group in data.input_columns
        ),
        user_position=numbered(data.user_position, data.features),
        constant=np.tile(data.constant, times),
        encoder=repeated,
        column_order=tuple(column + shift for shift in shifts for column in data.column_order),
        input_names=data.input_names * times,
        given_names=data.given_names * times,
        given_input_names=data.given_input_names * times,
    )
