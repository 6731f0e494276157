"""When a command reads files a batch at a time, and what it can be told then."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

LARGE = 1 << 29  # bytes on the disk from which a single file is not read whole


def streams(files: list[str], asked: bool, about: dict[str, Any], holdout: float) -> bool:
    """Whether the user says so, or there are several files, a folder, a pattern, a URL or a large file."""
    first = Path(files[0])
    many = len(files) > 1 or first.is_dir() or _is_pattern(files[0])
    streamed = asked or many or "://" in files[0] or _is_large(first)
    if about and not streamed:
        option = next(iter(about)).replace("_", "-").replace("kinds", "categorical")
        raise typer.BadParameter(
            "is for files read a batch at a time; add --stream", param_hint=f"--{option}"
        )
    if streamed and holdout:
        raise typer.BadParameter(
            "needs a single file that fits in memory; leave it out for streamed files", param_hint="--holdout"
        )
    return streamed


def stream_options(
    passes: int | None, categorical: str, log1p: str, negatives_kept: float | None, on_bad_file: str | None
) -> dict[str, Any]:
    """Those that were given, in the words of ``select``."""
    given = {
        "passes": passes,
        "kinds": dict.fromkeys(_names(categorical), "categorical") or None,
        "log1p": True if log1p == "all" else _names(log1p) or None,
        "negatives_kept": negatives_kept,
        "on_bad_file": on_bad_file,
    }
    return {name: value for name, value in given.items() if value is not None}


def keeping_options(
    checkpoint: Path | None, resume: bool, every: float | None, on_full_disk: str | None
) -> dict[str, Any]:
    """Those that were given, in the words of ``select``."""
    given = {
        "checkpoint": checkpoint,
        "resume": resume or None,
        "checkpoint_every": every,
        "on_full_disk": on_full_disk,
    }
    return {name: value for name, value in given.items() if value is not None}


def with_folder(about_run: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """Runs keep checkpoints beside their answer, unless another folder is named."""
    told = ({} if out is None else {"checkpoint": out / "checkpoint"}) | about_run
    if told.get("resume") and "checkpoint" not in told:
        raise typer.BadParameter(
            "needs the folder that holds the checkpoints; add --out DIR or --checkpoint DIR",
            param_hint="--resume",
        )
    return told


@contextmanager
def as_rank(streamed: bool) -> Iterator[int]:
    """As one of several processes where torchrun started several; gives the number of this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield 0
        return
    if not streamed:
        raise ValueError("torchrun: several processes are for files read a batch at a time; add --stream")
    from seqatt.data.files.errors import SkippedData
    from seqatt.distributed.process_group import join_process_group

    with join_process_group() as rank:
        if rank:  # what rank 0 says too need not be said again
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", SkippedData)
        yield rank


def named_columns(ignore: str, weight: str | None) -> dict[str, Any]:
    """Columns that are no features."""
    return {"ignore": _names(ignore)} | ({} if weight is None else {"sample_weight": weight})


def _names(listed: str) -> list[str]:
    return [name for name in listed.split(",") if name]


def _is_pattern(named: str) -> bool:
    return glob.has_magic(named) and not Path(named).exists()


def _is_large(path: Path) -> bool:
    return path.is_file() and path.stat().st_size >= LARGE
