"""Options of checkpoints."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from seqatt.options import RUNNING, Options, option
from seqatt.validation import boolean, choice, number, show


def _folder(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name}: must be a folder, got {show(value)}")
    return value


@dataclass(frozen=True)
class CheckpointOptions(Options):
    """Checkpoints, and how long a rank waits for the others."""

    checkpoint: str | os.PathLike[str] | None = option(
        None, _folder, "Folder for checkpoints; by default none are written.", group=RUNNING
    )
    resume: bool = option(
        False,
        boolean(),
        "Continue from the last checkpoint in the folder, or start if there is none.",
        group=RUNNING,
    )
    checkpoint_every: float = option(60.0, number(minimum=0), "Seconds between checkpoints.", group=RUNNING)
    on_full_disk: str = option(
        "warn",
        choice(["warn", "stop"]),
        "If a checkpoint cannot be written: warn and train on, or stop.",
        group=RUNNING,
    )
    rank_timeout: float = option(
        600.0, number(above=0), "Seconds that a rank waits for the others before it gives up.", group=RUNNING
    )

    def check_together(self) -> None:
        super().check_together()
        if self.resume and self.checkpoint is None:
            raise ValueError("resume: needs the folder of the checkpoints, checkpoint=...")
