"""The checkpoint file: arrays and JSON metadata in one ``.npz`` archive, written completely or not at all.

Members of the archive carry checksums, and it is read without pickle: nothing in a checkpoint can run code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqatt.json_files import atomic_file

FORMAT = 8  # raised whenever names or meanings inside a checkpoint change
KEPT_FILES = 2  # checkpoints kept of an unfinished run: if the last is damaged, the one before it remains
METADATA = "metadata"  # the array that holds the JSON text


class DamagedCheckpoint(ValueError):
    """A checkpoint file that cannot be read or fails its checksums."""


class Checkpoint(NamedTuple):
    """The content of a checkpoint and the file it was read from."""

    metadata: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    path: Path


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoint files in a folder, oldest first."""
    return sorted(folder.glob(f"checkpoint-{'[0-9]' * 8}.npz"))


def write_checkpoint(folder: Path, metadata: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Path:
    """Write the next checkpoint, then remove the older ones that are no longer needed.

    The last ``KEPT_FILES`` of an unfinished run stay, and only this one of a finished run (``metadata["complete"]``).
    """
    _remove_partial(folder)
    existing = list_checkpoints(folder)
    number = int(existing[-1].stem.split("-")[1]) + 1 if existing else 1
    path = folder / f"checkpoint-{number:08d}.npz"
    text = json.dumps({"format": FORMAT, "arrays": sorted(arrays), **metadata}).encode()
    members: dict[str, Any] = {METADATA: np.frombuffer(text, dtype=np.uint8), **arrays}
    with atomic_file(path) as file:
        np.savez(file, **members)
    _sync_folder(folder)
    for old in existing[: len(existing) + 1 - (1 if metadata.get("complete") else KEPT_FILES)]:
        old.unlink(missing_ok=True)
    return path


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a whole checkpoint and verify its checksums; a damaged file or another format is an error."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        # Formats up to 3 called the metadata "about"; read here, so that the error below can name the format.
        metadata = json.loads(arrays.pop(METADATA if METADATA in arrays else "about").tobytes())
        version = metadata["format"]
        if version == FORMAT and metadata.pop("arrays") != sorted(arrays):
            raise ValueError("arrays are missing")
    except Exception as error:  # a flipped bit in the archive's directory makes readers raise almost anything
        reason = " ".join(str(error).split())[:120]
        raise DamagedCheckpoint(
            f"checkpoint: {path} is damaged ({reason}); remove the folder to start again"
        ) from None
    if version != FORMAT:
        raise ValueError(
            f"checkpoint: {path} has format {version}, and this version of seqatt reads {FORMAT}; continue with "
            "the version that wrote it, or start again in another folder"
        )
    return Checkpoint(metadata, arrays, path)


def clear_checkpoints(folder: Path) -> None:
    """Remove all checkpoints, and the partial files that a killed process left."""
    for path in list_checkpoints(folder):
        path.unlink(missing_ok=True)
    _remove_partial(folder)


def _remove_partial(folder: Path) -> None:
    """Remove the partial files that a killed process left; the caller holds the lock of the folder."""
    for path in folder.glob(".checkpoint-*.part"):
        path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Flush the folder's directory entry: on POSIX systems a new name survives a crash only after that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
