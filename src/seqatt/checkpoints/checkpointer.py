"""Never losing a run: when a checkpoint is due, who writes it, and what a signal to end does."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from seqatt.checkpoints import checkpoint
from seqatt.checkpoints.checkpoint import Checkpoint
from seqatt.training.options import check_flag, check_number, one_of

TERMINATED = 128 + signal.SIGTERM  # what a shell says of a process that a signal ended


class Terminated(SystemExit):
    """SIGTERM arrived and all that was done is kept. Left alone it ends the process with code 143."""

    def __init__(self, folder: Path) -> None:
        super().__init__(TERMINATED)
        self.folder = folder


@dataclass(frozen=True)
class CheckpointOptions:
    """What a user can say about checkpoints, and how many seconds a rank waits for the others."""

    checkpoint: str | os.PathLike[str] | None = None
    resume: bool = False
    checkpoint_every: float = 60.0
    on_full_disk: str = "warn"
    rank_timeout: float = 600.0

    def __post_init__(self) -> None:
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike):
            raise TypeError(f"checkpoint: must be a folder, got {self.checkpoint!r}")
        check_flag(self, "resume")
        check_number(self, "checkpoint_every", least=0)
        check_number(self, "rank_timeout", above=0)
        one_of("on_full_disk", self.on_full_disk, ["warn", "stop"])
        if self.resume and self.checkpoint is None:
            raise ValueError("resume: needs the folder of the checkpoints, checkpoint=...")


class Checkpointer:
    """Writes checkpoints of one run into one folder, on a thread of its own. Without a folder, nothing."""

    def __init__(self, keeping: CheckpointOptions, writes: bool) -> None:
        self._keeping, self._writes = keeping, writes and keeping.checkpoint is not None
        self.folder = Path(keeping.checkpoint or ".")
        self._last = time.monotonic()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._ending = False

    @contextmanager
    def open(self) -> Iterator[Checkpoint | None]:
        """The folder, ours alone while we run; gives what an earlier run left there."""
        if not self._writes:
            with self._heeding_signals():
                yield None
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".lock", timeout=0)
            lock.acquire()
        except Timeout:
            raise ValueError(f"checkpoint: another run is at work in {self.folder}") from None
        except OSError as error:
            raise ValueError(f"checkpoint: cannot write to {self.folder} ({error.strerror})") from None
        try:
            with self._heeding_signals():
                yield self._find()  # not held on to: it may be large
        finally:
            try:
                self._wait()
            finally:
                lock.release()

    @property
    def active(self) -> bool:
        """Whether this run, on any rank, keeps something."""
        return self._keeping.checkpoint is not None

    def due(self) -> bool:
        """Whether it is time, and the one before is written."""
        if not self._writes or (self._thread is not None and self._thread.is_alive()):
            return False
        return time.monotonic() - self._last >= self._keeping.checkpoint_every

    def ending(self) -> bool:
        return self._ending

    def keep(self, about: Mapping[str, Any], arrays: Mapping[str, Any], *, wait: bool = False) -> None:
        """Start to write; the caller goes on. ``arrays`` must be the caller's no more."""
        if not self._writes:
            return
        self._wait()
        self._last = time.monotonic()
        self._thread = threading.Thread(target=self._write, args=(about, arrays), name="seqatt-checkpoint")
        self._thread.start()
        if wait:
            self._wait()

    def _write(self, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        try:
            checkpoint.write_checkpoint(self.folder, about, arrays)
        except Exception as error:  # raised where someone waits, not lost with the thread
            self._error = error

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            if not isinstance(error, OSError):
                raise error
            message = f"checkpoint: could not be written to {self.folder} ({error.strerror or error})"
            if self._keeping.on_full_disk == "stop" or self._ending:
                raise RuntimeError(f"{message}; make room, and go on from the one before with resume")
            warnings.warn(f"{message}; training goes on, and the one before is still there", stacklevel=3)

    def _find(self) -> Checkpoint | None:
        paths = checkpoint.list_checkpoints(self.folder)
        if not paths:
            checkpoint.clear_checkpoints(self.folder)
            return None
        if self._keeping.resume:
            return checkpoint.read_checkpoint(paths[-1])
        if not self._holds_finished():
            raise ValueError(
                f"checkpoint: {self.folder} holds a run that was not finished; go on with it with resume, or "
                "remove the folder to start again"
            )
        return None

    def clear_finished(self) -> None:
        """Once a run begins afresh: remove what one left that is over."""
        if self._writes and not self._keeping.resume and self._holds_finished():
            checkpoint.clear_checkpoints(self.folder)

    def _holds_finished(self) -> bool:
        paths = checkpoint.list_checkpoints(self.folder)
        try:
            return bool(paths and checkpoint.read_checkpoint(paths[-1]).about.get("over", False))
        except ValueError:
            return False

    @contextmanager
    def _heeding_signals(self) -> Iterator[None]:
        """SIGTERM is a wish, looked at between batches; only a main thread can listen."""
        if self._keeping.checkpoint is None or threading.current_thread() is not threading.main_thread():
            yield
            return

        def heed(*_: object) -> None:
            self._ending = True

        before = signal.signal(signal.SIGTERM, heed)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
