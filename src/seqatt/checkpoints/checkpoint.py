"""A checkpoint on the disk: arrays and a description in one file, whole or not there.

The format is NumPy's .npz, whose parts carry a checksum, and JSON: nothing in it can run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FORMAT = 3
KEPT = 2  # files: a damaged last one is not the end
ABOUT = "about"


class Checkpoint(NamedTuple):
    """What a checkpoint holds, and where it was read from."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    path: Path


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the oldest first."""
    return sorted(folder.glob(f"checkpoint-{'[0-9]' * 8}.npz"))


def write_checkpoint(folder: Path, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Path:
    """One more checkpoint; those before the last are removed once it is safe."""
    before = list_checkpoints(folder)
    number = int(before[-1].stem.split("-")[1]) + 1 if before else 1
    path = folder / f"checkpoint-{number:08d}.npz"
    unfinished = folder / f".{path.name}.part"
    text = json.dumps({"format": FORMAT, "arrays": sorted(arrays), **about}).encode()
    members: dict[str, Any] = {ABOUT: np.frombuffer(text, dtype=np.uint8), **arrays}
    try:
        with unfinished.open("wb") as file:
            np.savez(file, **members)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _settle(folder)
    for old in before[: len(before) + 1 - (1 if about.get("over") else KEPT)]:
        old.unlink(missing_ok=True)
    return path


def read_checkpoint(path: Path) -> Checkpoint:
    """All of it, checked against its sums; a damaged one is refused."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop(ABOUT).tobytes())
        version = about["format"]
        if version == FORMAT and about.pop("arrays") != sorted(arrays):
            raise ValueError("arrays are missing")
    except Exception as error:  # a bit that turned in a directory makes readers raise nearly anything
        reason = " ".join(str(error).split())[:120]
        raise ValueError(
            f"checkpoint: {path} is damaged ({reason}); remove that file to go on from the one before it, "
            "if there is one, or else from the start"
        ) from None
    if version != FORMAT:
        raise ValueError(
            f"checkpoint: {path} has format {version}, and this version of seqatt reads {FORMAT}; go on with "
            "the version that wrote it, or start again in another folder"
        )
    return Checkpoint(about, arrays, path)


def clear_checkpoints(folder: Path) -> None:
    """Remove what a killed process left half-written, and all checkpoints of a run that is over."""
    for path in [*list_checkpoints(folder), *folder.glob(".checkpoint-*.part")]:
        path.unlink(missing_ok=True)


def _settle(folder: Path) -> None:
    """A name is safe once its folder is written down too, where the system can be asked for that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
