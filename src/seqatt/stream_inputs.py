"""When a command reads files a batch at a time, and what it can be told then."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import typer

LARGE = 1 << 29  # bytes on the disk from which a single file is not read whole


def streams(files: list[str], asked: bool, about: dict[str, Any], holdout: float) -> bool:
    """Whether the user says so, or there are several files, a folder, a pattern or a large file."""
    first = Path(files[0])
    streamed = asked or len(files) > 1 or first.is_dir() or _is_pattern(files[0]) or _is_large(first)
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
    passes: int | None, categorical: str, log1p: str, negatives_kept: float | None
) -> dict[str, Any]:
    """Those that were given, in the words of ``select``."""
    given = {
        "passes": passes,
        "kinds": dict.fromkeys(_names(categorical), "categorical") or None,
        "log1p": True if log1p == "all" else _names(log1p) or None,
        "negatives_kept": negatives_kept,
    }
    return {name: value for name, value in given.items() if value is not None}


def named_columns(ignore: str, weight: str | None) -> dict[str, Any]:
    """Columns that are no features."""
    return {"ignore": _names(ignore)} | ({} if weight is None else {"sample_weight": weight})


def _names(listed: str) -> list[str]:
    return [name for name in listed.split(",") if name]


def _is_pattern(named: str) -> bool:
    return glob.has_magic(named) and not Path(named).exists()


def _is_large(path: Path) -> bool:
    return path.is_file() and path.stat().st_size >= LARGE
