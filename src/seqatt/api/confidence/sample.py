"""The rows on which k is chosen: all of a table, or a sample of data that are too large to be a dense table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.options import Categories
from seqatt.data.tables.scaling import scale_table
from seqatt.data.tables.table_data import SparseColumns, TableData, take_rows

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.data.files.file_data import FileData

SAMPLE_CELLS = 1 << 26  # rows times columns of a sample (256 MiB), at most


def sample_request(request: SelectionRequest, categories: Categories) -> SelectionRequest:
    """The request for a dense table: of all rows, or of a sample of files read batch by batch or of a sparse table.

    The sample of files is their schema sample, with the training budget of a table of its size: passes over the files
    are none over the sample.
    """
    data, options = request.data, request.options
    if isinstance(data, TableData) and not isinstance(data.columns, SparseColumns):
        return request
    if not isinstance(data, TableData):
        data = _read_sample(data, request, categories)
        budget = {name: None for name in ("epochs", "batch_size") if hasattr(options, name)}
        options = replace(options, **budget)
    rows = np.arange(data.rows)
    most = max(1, SAMPLE_CELLS // max(1, data.encoded_columns))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(request.seeds[0]).permutation(rows)[:most])
    table = take_rows(data, rows)
    if isinstance(table.columns, SparseColumns):
        table = replace(table, columns=table.columns.to_dense(np.arange(len(rows))))
    return replace(request, data=table, options=options, source=None)


def _read_sample(data: FileData, request: SelectionRequest, categories: Categories) -> TableData:
    from seqatt.data.files.validation_rows import sample_table  # here, because only files need pyarrow

    table = sample_table(data, request.context.file_options, categories)
    return scale_table(table, request.options.scaling)
