"""Encodes the target and weight columns of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types as of

from seqatt.data.files.options import FileOptions
from seqatt.data.tables.target import Target, read_target
from seqatt.data.tables.weights import fit_class_weights
from seqatt.losses.table import LOSSES
from seqatt.validation import show

Floats = NDArray[np.float64]
MIN_SHARE = 1e-6  # share of a class, at least: its logarithm must be finite


@dataclass(frozen=True)
class TargetColumn:
    """The columns of target and weight, and how they are encoded.

    ``class_weights`` has one weight per class; weights are divided by ``mean_weight`` so that their mean in the
    schema sample is 1. ``initial_output`` is the initial bias of a network's output layer: the log odds of the classes.
    """

    column: str
    weight: str | None
    target: Target
    class_weights: Floats
    mean_weight: float
    initial_output: Floats

    @property
    def unweighted(self) -> bool:
        """Whether every row has weight 1."""
        return self.weight is None and bool((self.class_weights == 1).all())

    def encode(self, batch: Any) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Target (class numbers, 0 and 1, or standardised numbers) and weights of a batch, (n,) each."""
        column = batch.column(self.column)
        check_target_values(column, self.column)
        weights = (
            np.ones(len(column))
            if self.weight is None
            else read_weights(batch.column(self.weight), self.weight)
        )
        if self.target.classes is None:
            assert self.target.shift is not None
            assert self.target.scale is not None
            values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            if self.target.task != "regression":
                self.target.loss.encode(values, self.target, f"target: column {self.column!r}")
            return (
                ((values - self.target.shift) / self.target.scale).astype(np.float32),
                (weights / self.mean_weight).astype(np.float32),
            )
        codes = self._codes(column)
        weights = weights * self.class_weights[codes] / self.mean_weight
        target = codes if self.target.task == "multiclass" else codes.astype(np.float32)
        return target, weights.astype(np.float32)

    def _codes(self, column: Any) -> NDArray[np.int64]:
        labels = column.cast(pa.string()) if of.is_dictionary(column.type) else column
        coded = labels.dictionary_encode()
        try:
            codes = self.target.encode(pa.chunked_array([coded.dictionary]), "target")
        except ValueError as error:
            raise ValueError(
                f"{error}: it is not in the schema sample; raise schema_rows to sample more rows"
            ) from None
        return np.asarray(codes.reshape(-1).astype(np.int64)[coded.indices.to_numpy()])


def fit_target(
    name: str, column: Any, weights: Floats | None, options: FileOptions, expected_rows: float = 0.0
) -> TargetColumn:
    """Infer task, classes and class weights from the schema sample; all files have about ``expected_rows`` rows."""
    if options.task in LOSSES and not LOSSES[options.task].streams:  # no task that is inferred from a column
        raise ValueError(
            f"task: {options.task!r} needs a table; raise memory so that the files are read into one"
        )
    distinct = [] if pa.types.is_nested(column.type) else column.unique()
    if len(distinct) == 1 and len(column) < round(expected_rows):  # files that are sorted by the target
        raise ValueError(
            f"target: column {name!r} is {show(distinct[0].as_py())} in all {len(column):,} rows of the schema sample; "
            "raise schema_rows to sample more rows, or shuffle the rows of the files"
        )
    try:
        target = read_target(pa.chunked_array([column]), weights, options.task, "target", options.quantile)
    except ValueError as error:
        raise ValueError(f"{error} (column {name!r}, in a schema sample of {len(column):,} rows)") from None
    base = np.ones(len(column)) if weights is None else weights
    if not base.any():
        raise ValueError(
            "sample_weight: every weight in the schema sample is zero; raise schema_rows to sample more rows"
        )
    codes = target.codes
    if codes is None and options.class_weight is None and options.negatives_kept == 1:
        return TargetColumn(name, options.sample_weight, target, np.ones(1), float(base.mean()), np.zeros(1))
    class_weights = fit_class_weights(target, base, options.class_weight, options.negatives_kept)
    assert codes is not None
    row_weights = base * class_weights[codes]
    if not row_weights.any():
        raise ValueError("class_weight: every row of the schema sample has weight zero")
    shares = np.maximum(np.bincount(codes, row_weights, len(class_weights)) / row_weights.sum(), MIN_SHARE)
    log_odds = np.log(shares[1:] / shares[:1]) if target.task == "binary" else np.log(shares)
    return TargetColumn(
        name, options.sample_weight, target, class_weights, float(row_weights.mean()), log_odds
    )


def check_target_values(column: Any, name: str) -> None:
    """Check that no target is missing or infinite."""
    if bad := count_unusable(column):
        raise ValueError(unusable_target(name, f"{bad:,} of {len(column):,} rows that were looked at"))


def count_unusable(column: Any) -> int:
    """The number of values that are missing or infinite."""
    if not of.is_floating(column.type):
        return int(column.null_count)
    return len(column) - int(pc.sum(pc.is_finite(column)).as_py() or 0)


def unusable_target(name: str, where: str) -> str:
    """The message about missing or infinite targets in some rows."""
    return (
        f"target: column {name!r} has missing or infinite values in {where}; write the files without those rows, "
        f"for example with .dropna(subset=[{name!r}]) of pandas"
    )


def read_weights(column: Any, name: str) -> Floats:
    """A weight column as an array, checked to be finite and not negative."""
    try:
        weights = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise ValueError(f"sample_weight: column {name!r} must hold numbers") from None
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"sample_weight: column {name!r} must be finite and not negative")
    return np.asarray(weights, dtype=np.float64)
