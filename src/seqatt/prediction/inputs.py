"""The columns that a fitted model takes: raw numbers, and codes of categories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqatt.data.tables.categories import FittedCategory, find_values
from seqatt.data.tables.column_roles import with_numbers
from seqatt.data.tables.consistency import check_same_columns, numeric_contents
from seqatt.data.tables.containers import InputTable, read_input_table
from seqatt.data.tables.encoding import Encoder
from seqatt.data.tables.numbers.moments import check_finite

OTHER = 0  # the code of a value that is not listed; the listed ones have the codes 1, 2, ...


@dataclass(frozen=True)
class ModelInputs:
    """The selected columns of a table, as the model takes them.

    ``columns`` are their positions among all columns of X, in the order of the module's inputs, and ``schema`` is the
    table of the training rows without its rows. ``numeric`` and the keys of ``categories`` are positions in ``schema``.
    """

    columns: tuple[int, ...]
    schema: InputTable
    numeric: list[int]
    categories: dict[int, FittedCategory]

    @classmethod
    def of(cls, table: InputTable, columns: tuple[int, ...], encoder: Encoder) -> ModelInputs:
        """The model inputs for ``table``, which holds only the selected columns."""
        schema = table.select_rows(np.zeros(table.rows, dtype=bool))
        categories = dict(sorted((encoder.levels | encoder.coded).items()))
        return cls(columns, schema, list(encoder.numeric), categories)

    def read(self, X: Any, *, selected_only: bool = False) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Numbers (rows, numeric), NaN where missing, and codes (rows, categories) of a table like that of fit.

        With ``selected_only``, it holds only the selected columns, in this order.
        """
        table = read_input_table(X, "X")
        table = table if selected_only else table.select(self.columns)
        pairs = zip(table.names, self.schema.names, strict=True)
        texts = {name for given, name in pairs if given in table.texts}
        table = replace(table, names=self.schema.names)  # which were compared
        contents = numeric_contents(self.schema)
        table = with_numbers(table, {name: contents[name] for name in texts if name in contents})
        check_same_columns(self.schema, table, ("the rows of fit", "X"))
        if table.sparse:
            numbers = table.data[:, self.numeric].toarray().astype(np.float64)
        else:
            numbers = table.numbers(self.numeric).astype(np.float64)
        if numbers.size and not np.isfinite(numbers.sum()):
            check_finite(numbers, np.isnan(numbers), self.numeric, table, "X")
        codes = np.empty((table.rows, len(self.categories)), dtype=np.int64)
        for j, (position, category) in enumerate(self.categories.items()):
            codes[:, j] = find_values(table.categories(position), category.values) + 1
        return numbers, codes

    @property
    def names(self) -> list[str]:
        """The name of each column as text; a column without one gets its number."""
        return [
            name or f"column {column}" for name, column in zip(self.schema.names, self.columns, strict=True)
        ]

    @property
    def names_in_table(self) -> list[str]:
        """The names in the order of the columns in the table of ``fit``."""
        return [name for _, name in sorted(zip(self.columns, self.names, strict=True))]

    def category_codes(self) -> dict[str, dict[str, int]]:
        """For each category the code of every listed value; missing is the empty text, unless that is a value."""
        codes = {}
        for position, category in self.categories.items():
            code_of = {value: code for code, value in enumerate(category.values, 1) if value is not None}
            if None in category.values:
                code_of.setdefault("", category.values.index(None) + 1)
            codes[self.names[position]] = code_of
        return codes
