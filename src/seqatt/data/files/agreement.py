"""Batches of files, and what all ranks agree on about each of them."""

from __future__ import annotations

from typing import NamedTuple

from seqatt.data.files.encoding.rows import EncodedRows


class FileBatch(NamedTuple):
    """The rows of this rank in a batch, and what all ranks agreed on.

    ``expected_rows`` is the number of rows of the whole pass, as far as it is known by now. ``total`` is the
    number of rows of the batch over all ranks, of which ``first_row`` are on lower ranks than this. After the batch all
    ranks ``save`` a checkpoint or ``stop``.
    """

    rows: EncodedRows
    expected_rows: float
    total: int
    save: bool = False
    stop: bool = False
    first_row: int = 0


class BatchAgreement(NamedTuple):
    """What all ranks agreed on about the next batch: sums over ranks, and whether any rank saves or stops.

    ``first_row`` is the number of rows on lower ranks.
    """

    total: int
    expected_rows: float
    save: bool = False
    stop: bool = False
    first_row: int = 0
