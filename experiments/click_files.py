"""Click logs as files, training and test rows apart: a sample of Criteo's, and one with known importances."""

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
SAMPLE = "criteo_sample.parquet"
ROWS = 75_000  # of the log with planted importances, in all
TESTED = 0.2  # share of the rows: the last of the Criteo sample, which is in the order of time
GROUP = 1 << 14  # rows in a row group


class Log(NamedTuple):
    """Files to choose and train on, files to test on, the column to predict, and what was planted."""

    train: Path
    test: Path
    target: str
    planted: tuple[str, ...] = ()


def insist_on(data: str) -> None:
    """A wrong name, or a file that is not there, is told before any work."""
    if data not in DATA:
        raise ValueError(f"data: there is no click log {data!r}; use {' or '.join(DATA)}")
    if data == "criteo":
        sample()


def sample() -> Path:
    path = Path(os.environ.get("SEQATT_DATA_DIR", "")) / SAMPLE
    if not path.is_file():
        raise ValueError(
            f"data: the Criteo sample is no file that can be downloaded; put {SAMPLE} (columns label, "
            "I1 to I13, C1 to C26, in the order of time) into a folder and name that in SEQATT_DATA_DIR"
        )
    return path


@contextmanager
def click_files(data: str, share: float = 1.0) -> Iterator[Log]:
    """Written for as long as they are needed; ``share`` of the rows."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        planted: tuple[str, ...] = ()
        if data == "criteo":
            path, target = sample(), "label"
        else:
            log = synthetic.click_log(folder / "whole", round(ROWS * share), rows_per_file=ROWS)
            path, target, planted = log.files[0], log.target, log.planted
        whole = pq.read_table(path)
        whole = whole.slice(0, round(len(whole) * share)) if data == "criteo" else whole
        cut = round(len(whole) * (1 - TESTED))
        train, test = folder / "train.parquet", folder / "test.parquet"
        pq.write_table(whole.slice(0, cut), train, row_group_size=GROUP)
        pq.write_table(whole.slice(cut), test, row_group_size=GROUP)
        yield Log(train, test, target, planted)
