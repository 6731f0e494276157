"""One-hot encodes columns of files as those of tables, with the values and the scale of the schema sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seqatt.data.files.encoding.columns import encode_dictionary
from seqatt.data.tables.arrow_columns import CategoricalValues
from seqatt.data.tables.categories import FittedCategory, find_values, fit_category


@dataclass(frozen=True)
class OneHotColumn:
    """One categorical feature, as one column per value of ``category``."""

    name: str
    category: FittedCategory

    @property
    def width(self) -> int:
        return len(self.category.values)

    @property
    def constant(self) -> bool:
        return self.category.constant

    def unscaled(self) -> OneHotColumn:
        """The same columns as 0 and 1."""
        fitted = self.category
        return replace(self, category=replace(fitted, shift=np.zeros_like(fitted.shift), scale=1.0))

    def write(self, column: Any, out: NDArray[np.float32]) -> None:
        """Encode a column of n values into ``out`` (width, n)."""
        out[:] = self.category.one_hot_rows()[find_values(_read(column), self.category.values)].T


def fit_one_hot(name: str, column: Any, max_categories: int) -> OneHotColumn:
    """Fit the columns of the ``max_categories`` most frequent values of a column of the schema sample."""
    return OneHotColumn(name, fit_category(_read(column), None, len(column), max_categories))


def _read(column: Any) -> CategoricalValues:
    values, value_of = encode_dictionary(column)
    return CategoricalValues(
        values.cast(pa.string()), np.where(value_of < len(values), value_of, np.int32(-1))
    )
