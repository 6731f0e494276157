"""Click logs as Parquet files, training and test rows apart: a sample of Criteo's log, and a synthetic one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from seqatt.datasets import synthetic

DATA = ("criteo", "click_log")
CRITEO_FILE = "criteo_sample.parquet"
SYNTHETIC_ROWS = 75_000  # training and test rows together
TEST_SHARE = 0.2  # the last rows; the Criteo sample is in chronological order
ROW_GROUP_ROWS = 1 << 14


class ClickLog(NamedTuple):
    """A training file, a test file, the target column, and the relevant features where they are known."""

    train: Path
    test: Path
    target: str
    planted: tuple[str, ...] = ()


def check_log(data: str) -> None:
    """Raise ValueError for an unknown name or a missing file, before anything is run."""
    if data not in DATA:
        raise ValueError(f"data: there is no click log {data!r}; use {' or '.join(DATA)}")
    if data == "criteo":
        criteo_file()


def criteo_file() -> Path:
    path = Path(os.environ.get("SEQATT_DATA_DIR", "")) / CRITEO_FILE
    if not path.is_file():
        raise ValueError(
            f"data: the Criteo sample cannot be downloaded; put {CRITEO_FILE} (columns label, I1 to I13, "
            "C1 to C26, in chronological order) into a folder and name that folder in SEQATT_DATA_DIR"
        )
    return path


@contextmanager
def click_files(data: str, share: float = 1.0) -> Iterator[ClickLog]:
    """Temporary files with ``share`` of the rows, deleted at the end of the with block."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        planted: tuple[str, ...] = ()
        if data == "criteo":
            path, target = criteo_file(), "label"
        else:
            rows = round(SYNTHETIC_ROWS * share)
            log = synthetic.click_log(folder / "all", rows, rows_per_file=SYNTHETIC_ROWS)
            path, target, planted = log.files[0], log.target, log.planted
        table = pq.read_table(path)
        table = table.slice(0, round(len(table) * share)) if data == "criteo" else table
        train_rows = round(len(table) * (1 - TEST_SHARE))
        train, test = folder / "train.parquet", folder / "test.parquet"
        pq.write_table(table.slice(0, train_rows), train, row_group_size=ROW_GROUP_ROWS)
        pq.write_table(table.slice(train_rows), test, row_group_size=ROW_GROUP_ROWS)
        yield ClickLog(train, test, target, planted)
