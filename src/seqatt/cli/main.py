"""How the program starts and ends: signals, errors in one line, exit codes.

Libraries are imported once signals are handled, so that one that arrives meanwhile ends the program as it does later.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import warnings
from contextlib import suppress
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType

from seqatt.display_text import escape_controls

# Options of the library, as messages name them, and the flags that stand for them.
FLAGS = ("batch_size", "budget", "cost_rate", "decimal", "delimiter", "epochs", "memory", "quantile", "task")
OPTIONS = (
    *(
        (rf"column_types=\{{(?:'([^']+)'|name): '{kind}'\}}", f"--{kind}")
        for kind in ("categorical", "numeric")
    ),
    *((rf"\b{name}=('[^']+'|[0-9][0-9.]*)", f"--{name.replace('_', '-')}") for name in FLAGS),
)
# Names of arguments at the beginning of an error, where the flag has another name.
ARGUMENTS = {
    "class_weight": "--balanced",
    "column_types": "--categorical, --numeric",
    "costs": "--cost",
    "quotas": "--quota",
    "sample_weight": "--weight",
}


class _Stopped(BaseException):
    """A signal arrived. Not KeyboardInterrupt, which some libraries catch and turn into errors of their own."""

    def __init__(self, signal_number: int) -> None:
        super().__init__()
        self.signal_number = signal_number


def _stop(signal_number: int, frame: FrameType | None) -> None:
    """End the command; at once during an import, because compiled libraries do not survive an exception there."""
    stopped = _Stopped(signal_number)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _end_stopped(stopped)
        frame = frame.f_back
    raise stopped


class _WithoutPandas(MetaPathFinder, Loader):
    """Refuses to import pandas: whoever tries gets the error of a package that is not installed.

    No command needs it, but Arrow and scikit-learn import it where it is installed, which takes half a second. To look
    for it without importing it, as torch.export does, is no error.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == "pandas" else None

    def create_module(self, spec: ModuleSpec) -> None:
        raise ModuleNotFoundError("pandas is not imported by the commands of seqatt", name=spec.name)


def _end_if_stopped(lost: sys.UnraisableHookArgs) -> None:
    """End the program all the same where Python ignores exceptions: in a ``__del__``, or as an import ends."""
    if isinstance(lost.exc_value, _Stopped):
        _end_stopped(lost.exc_value)
    sys.__unraisablehook__(lost)


def _end_stopped(stopped: _Stopped) -> None:
    _end(128 + stopped.signal_number, MESSAGES[signal.Signals(stopped.signal_number)])


MESSAGES = {signal.SIGINT: "interrupted", signal.SIGTERM: "stopped by SIGTERM"}


def main() -> None:
    """Run a command. An error is one line on stderr instead of a traceback; exit codes are in the commands' help."""
    try:
        sys.unraisablehook = _end_if_stopped
        for signal_number in MESSAGES:
            signal.signal(signal_number, _stop)
        from seqatt.progress import Timings

        timings = Timings()
        warnings.showwarning = partial(_show_note, set())
        if "pandas" not in sys.modules:
            sys.meta_path.insert(0, _WithoutPandas())
        from seqatt.cli.app import app

        try:
            app(standalone_mode=True, obj=timings)
        except SystemExit as done:
            sys.stdout.flush()
            code = done.code if isinstance(done.code, int) else int(done.code is not None)
            _end(code)  # at once: Python and torch take half a second to end
    except _Stopped as stopped:
        _end_stopped(stopped)
    except BrokenPipeError:
        _end(1)
    except (ValueError, TypeError, OSError, RuntimeError, MemoryError, ImportError) as error:
        _end(
            1, f"error: {escape_controls(_name_flags(' '.join(str(error).split()))) or type(error).__name__}"
        )


def _show_note(shown: set[str], message: Warning | str, *_: object) -> None:
    """Show a warning in one line, once: Python repeats one where filters have changed in between."""
    note = f"note: {escape_controls(_name_flags(str(message)))}"
    if note not in shown:
        shown.add(note)
        print(note, file=sys.stderr)


def _name_flags(message: str) -> str:
    """A message with ``--delimiter ';'`` for ``delimiter=';'``, and so on."""
    for pattern, flag in OPTIONS:
        message = re.sub(pattern, partial(_as_flag, flag), message)
    argument, colon, rest = message.partition(":")
    message = ARGUMENTS.get(argument, argument) + colon + rest
    message = re.sub(r"\braise schema_rows\b", r"\g<0> (seqatt select --set schema_rows=NUMBER)", message)
    return re.sub(r"\bwith (resume|ignore)\b", r"with --\1", message)


def _as_flag(flag: str, found: re.Match[str]) -> str:
    return f"{flag} {found.group(1) or 'NAME'}"


def _end(code: int, message: str = "") -> None:
    """End the process at once with this exit code.

    Arrow aborts a process that ends while its threads are still starting (apache/arrow#34314), as they are if the first
    rows of a file have an error.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a full disk, or a pipe that nobody reads any more
            if message and stream is sys.stderr:
                print(message, file=stream)
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
