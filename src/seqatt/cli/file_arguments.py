"""Whether ``seqatt select`` streams its files, and the arguments that are for streamed files alone."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

MIN_STREAMED_BYTES = 1 << 29  # a single file of this size or more is not read whole


def is_streamed(files: list[str], requested: bool, arguments: dict[str, Any], holdout: float) -> bool:
    """Whether files are streamed: on request, or for several files, a folder, a pattern, a URL or a large file."""
    first = Path(files[0])
    several = len(files) > 1 or first.is_dir() or _is_pattern(files[0])
    streamed = requested or several or "://" in files[0] or _is_large(first)
    if arguments and not streamed:
        flag = next(iter(arguments)).replace("_", "-").replace("column-types", "categorical")
        raise typer.BadParameter("is for files read a batch at a time; add --stream", param_hint=f"--{flag}")
    if streamed and holdout:
        raise typer.BadParameter(
            "needs a single file that fits in memory; leave it out for streamed files", param_hint="--holdout"
        )
    return streamed


def file_arguments(
    passes: int | None, categorical: str, log1p: str, negatives_kept: float | None, on_bad_file: str | None
) -> dict[str, Any]:
    """The options of ``select`` for the arguments that were given."""
    options = {
        "passes": passes,
        "column_types": dict.fromkeys(_names(categorical), "categorical") or None,
        "log1p": True if log1p == "all" else _names(log1p) or None,
        "negatives_kept": negatives_kept,
        "on_bad_file": on_bad_file,
    }
    return {name: value for name, value in options.items() if value is not None}


def checkpoint_arguments(
    checkpoint: Path | None, resume: bool, every: float | None, on_full_disk: str | None
) -> dict[str, Any]:
    """The options of ``select`` for the arguments that were given."""
    options = {
        "checkpoint": checkpoint,
        "resume": resume or None,
        "checkpoint_every": every,
        "on_full_disk": on_full_disk,
    }
    return {name: value for name, value in options.items() if value is not None}


def with_checkpoint_folder(arguments: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """Checkpoints go beside the result unless another folder is named."""
    options = ({} if out is None else {"checkpoint": out / "checkpoint"}) | arguments
    if options.get("resume") and "checkpoint" not in options:
        raise typer.BadParameter(
            "needs the folder that holds the checkpoints; add --out DIR or --checkpoint DIR",
            param_hint="--resume",
        )
    return options


def column_arguments(ignore: str, weight: str | None) -> dict[str, Any]:
    """Columns that are not features."""
    return {"ignore": _names(ignore)} | ({} if weight is None else {"sample_weight": weight})


@contextmanager
def as_rank(streamed: bool) -> Iterator[int]:
    """Join the process group where torchrun started several processes; yields the rank of this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield 0
        return
    if not streamed:
        raise ValueError("torchrun: several processes are for files read a batch at a time; add --stream")
    from seqatt.data.files.errors import SkippedData
    from seqatt.distributed.process_group import join_process_group

    with join_process_group() as rank:
        if rank:  # rank 0 gives the same warnings, except about data that only this rank skipped
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", SkippedData)
        yield rank


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _is_pattern(name: str) -> bool:
    return glob.has_magic(name) and not Path(name).exists()


def _is_large(path: Path) -> bool:
    return path.is_file() and path.stat().st_size >= MIN_STREAMED_BYTES
