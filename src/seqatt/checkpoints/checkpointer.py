"""When a checkpoint is due, which process writes it, and how SIGTERM and Ctrl-C end a run."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from filelock import FileLock, Timeout

from seqatt.callbacks.monitor import Monitor
from seqatt.checkpoints import checkpoint
from seqatt.checkpoints.checkpoint import Checkpoint, DamagedCheckpoint
from seqatt.checkpoints.options import CheckpointOptions

SIGTERM_EXIT_CODE = 128 + signal.SIGTERM  # 143, as shells report a process that SIGTERM ended


class Terminated(SystemExit):
    """SIGTERM arrived and a checkpoint was saved. Uncaught, it ends the process with exit code 143."""

    def __init__(self, folder: Path) -> None:
        super().__init__(SIGTERM_EXIT_CODE)
        self.folder = folder


class Checkpointer:
    """Writes the checkpoints of one run into one folder, on a background thread.

    With ``writes=False`` (the ranks that leave it to rank 0) or without a folder, it writes nothing.
    """

    def __init__(self, options: CheckpointOptions, writes: bool, monitor: Monitor | None = None) -> None:
        self._options, self._writes = options, writes and options.checkpoint is not None
        self.folder = Path(options.checkpoint or ".")
        self._last = time.monotonic()  # when the last checkpoint was begun
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None  # of the background thread
        self._stop_requested = self._interrupted = False  # by SIGTERM or Ctrl-C; by Ctrl-C
        self._handlers: dict[int, Any] = {}  # of signals that are handled, as they were before
        self._monitor = monitor or Monitor()

    @contextmanager
    def open(self) -> Iterator[Checkpoint | None]:
        """Lock the folder and handle signals while the run lasts; yields the checkpoint to resume from, if any."""
        if not self._writes:
            with self._handle_signals():
                yield None
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".lock", timeout=0)
            lock.acquire()
        except Timeout:
            raise ValueError(
                f"checkpoint: another run is using {self.folder}; wait for it, or use another folder"
            ) from None
        except OSError as error:
            raise ValueError(f"checkpoint: cannot write to {self.folder} ({error.strerror})") from None
        try:
            with self._handle_signals():
                yield self._read_last()  # no reference is kept here: it may be large
        finally:
            try:
                self._wait()
            finally:
                lock.release()

    @property
    def active(self) -> bool:
        """Whether this run writes checkpoints, on this rank or another."""
        return self._options.checkpoint is not None

    def due(self) -> bool:
        """Whether ``checkpoint_every`` seconds have passed and the previous checkpoint is written."""
        if not self._writes or (self._thread is not None and self._thread.is_alive()):
            return False
        return time.monotonic() - self._last >= self._options.checkpoint_every

    def flags(self) -> tuple[bool, bool]:
        """Whether this rank wants a checkpoint, and whether it has to stop."""
        return self.due(), self.stop_requested()

    def stop_requested(self) -> bool:
        """Whether SIGTERM or Ctrl-C has arrived, or a callback has requested to stop."""
        return self._stop_requested or self._monitor.stop_requested

    def save(self, metadata: Mapping[str, Any], arrays: Mapping[str, Any], *, wait: bool = False) -> None:
        """Write a checkpoint in the background; the caller must not change ``arrays`` afterwards."""
        if not self._writes:
            return
        self._wait()
        self._last = time.monotonic()
        self._thread = threading.Thread(target=self._write, args=(metadata, arrays), name="seqatt-checkpoint")
        self._thread.start()
        if wait:
            self._wait()

    def _write(self, metadata: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        try:
            checkpoint.write_checkpoint(self.folder, metadata, arrays)
        except Exception as error:  # raised by _wait, on the caller's thread
            self._error = error

    def _wait(self) -> None:
        """Wait for the background thread, and warn or raise if it failed."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            if not isinstance(error, OSError):
                raise error
            message = f"checkpoint: could not be written to {self.folder} ({error.strerror or error})"
            if self._options.on_full_disk == "stop" or self._stop_requested:
                raise RuntimeError(
                    f"{message}; free some space and continue from the previous checkpoint with resume"
                )
            warnings.warn(f"{message}; training continues, the previous checkpoint remains", stacklevel=3)

    def _read_last(self) -> Checkpoint | None:
        paths = checkpoint.list_checkpoints(self.folder)
        if not paths:
            checkpoint.clear_checkpoints(self.folder)
            return None
        if self._options.resume:
            return self._read_last_intact(paths)
        if not self._holds_finished_run():
            raise ValueError(
                f"checkpoint: {self.folder} holds an unfinished run; continue it with resume, or remove the "
                "folder to start again"
            )
        return None

    def _read_last_intact(self, paths: list[Path]) -> Checkpoint:
        """The newest checkpoint that is not damaged. Damaged ones are set aside, and no checkpoint left is an error."""
        *earlier, path = paths
        try:
            return checkpoint.read_checkpoint(path)
        except DamagedCheckpoint as error:
            if not earlier:
                raise
            aside = path.with_name(f"{path.name}.damaged")
            path.rename(aside)
            reason = str(error).partition(";")[0]
            warnings.warn(
                f"{reason}; it is now {aside.name}, and {earlier[-1].name} is used instead", stacklevel=2
            )
        return self._read_last_intact(earlier)

    def clear_finished(self) -> None:
        """Without resume: remove the checkpoints of an earlier run that is finished."""
        if self._writes and not self._options.resume and self._holds_finished_run():
            checkpoint.clear_checkpoints(self.folder)

    def _holds_finished_run(self) -> bool:
        paths = checkpoint.list_checkpoints(self.folder)
        try:
            return bool(paths and checkpoint.read_checkpoint(paths[-1]).metadata.get("complete", False))
        except ValueError:
            return False

    def end(self, folder: Path | None = None) -> NoReturn:
        """End the run when a signal has requested it and a checkpoint is saved; ``folder`` is what the user named."""
        folder = folder or self.folder
        cause = "interrupted" if self._interrupted else "stopped by SIGTERM"
        warnings.warn(f"{cause}; continue with resume from {folder}", stacklevel=3)
        raise KeyboardInterrupt if self._interrupted else Terminated(folder)

    @contextmanager
    def _handle_signals(self) -> Iterator[None]:
        """Let SIGTERM and the first Ctrl-C set a flag, which is read between batches.

        Only a main thread can install a handler. A second Ctrl-C ends the run at once. With several ranks the first one
        does, because the others may not have received it.
        """
        if self._options.checkpoint is None or threading.current_thread() is not threading.main_thread():
            yield
            return
        for number in (signal.SIGTERM, signal.SIGINT) if self._monitor.alone else (signal.SIGTERM,):
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):  # None: not set by Python, which could not set it again
                self._handlers[number] = handler
                signal.signal(number, self._request_stop)
        try:
            yield
        finally:
            self.release_signals()

    def _request_stop(self, number: int, _: object) -> None:
        self._stop_requested = True
        if number == signal.SIGINT:
            self._interrupted = True
            signal.signal(number, self._handlers.pop(number))

    def release_signals(self) -> bool:
        """Let signals do what they did before, when training is over; whether Ctrl-C came too late to end it."""
        while self._handlers:
            signal.signal(*self._handlers.popitem())
        return self._interrupted
