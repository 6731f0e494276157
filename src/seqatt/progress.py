"""Progress of long runs: a bar on a terminal or in a notebook, lines in the log of the logger "seqatt", and seconds."""

from __future__ import annotations

import logging
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from html import escape
from typing import Any, Protocol, Self

LOG_SECONDS = 10.0  # between two lines of the log, at least
NOTEBOOK_SECONDS = 0.2  # between two updates of the bar in a notebook, at least

logger = logging.getLogger("seqatt")


Details = Callable[[], str]  # lines about what is running, made when they are shown
NO_DETAILS: Details = str


class Advance(Protocol):
    """Called with the number of steps done since the last call, optionally with a new title, total and details.

    A new total starts the count again: what went before was other work.
    """

    def __call__(
        self,
        steps: float,
        title: str | None = None,
        total: int | None = None,
        details: Details | None = None,
    ) -> None: ...


def show_nothing(*arguments: Any, **named: Any) -> None:
    """An ``Advance`` without a bar."""


class Timings:
    """The seconds of each part of a call; together they are those since the start."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def end(self, part: str) -> None:
        """Count the time since the last ``end``, or since the start, as that of ``part``."""
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    def include(self, parts: Mapping[str, float]) -> None:
        """Count the time since the last ``end`` as ``parts``; the rest of that time belongs to the next ``end``."""
        for part, seconds in parts.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + seconds
        self._last += sum(parts.values())


@contextmanager
def progress_bar(title: str, total: int | None, *, shown: bool) -> Iterator[Advance]:
    """Yield the function that counts ``total`` steps; with None, nobody knows yet how long it will take.

    If ``shown``, there is a bar on a terminal (stderr) or in a notebook. Where the logger "seqatt" is enabled for INFO,
    a line is logged at the start, at the end, and every ``LOG_SECONDS`` in between.
    """
    outputs: list[_Output] = []
    with ExitStack() as stack:
        if shown and sys.stderr.isatty():
            outputs.append(stack.enter_context(_TerminalBar(title, total)))
        elif shown and (display := _notebook_display()) is not None:
            outputs.append(stack.enter_context(_NotebookBar(title, total, display)))
        if logger.isEnabledFor(logging.INFO):
            outputs.append(stack.enter_context(_LogLines(title, total)))

        def advance(*arguments: Any, **named: Any) -> None:
            for output in outputs:
                output(*arguments, **named)

        yield advance


class _Output(ABC):
    """An ``Advance`` that shows the steps done and the time they took, while it is open as a context.

    ``seconds`` is the least time between two updates. ``share`` is None as long as the total is not known.
    """

    def __init__(self, title: str, total: int | None, seconds: float = 0.0) -> None:
        self._interval = seconds
        self.details = NO_DETAILS
        self._start(title, total)

    def _start(self, title: str, total: int | None) -> None:
        self.title, self.total = title, None if total is None else max(total, 1)
        self.done, self._started = 0.0, time.monotonic()
        self._shown = self._started

    @abstractmethod
    def show(self, *, started: bool = False) -> None:
        """Show what is done; ``started``: other work has just begun."""

    @property
    def share(self) -> float | None:
        return None if self.total is None else min(self.done / self.total, 1.0)

    def __call__(
        self,
        steps: float,
        title: str | None = None,
        total: int | None = None,
        details: Details | None = None,
    ) -> None:
        if total is not None:
            self._start(title or self.title, total)
        self.details = details or self.details
        self.done += steps
        self.title = title or self.title
        if total is not None:
            self.show(started=True)
        elif (now := time.monotonic()) - self._shown >= self._interval:
            self._shown = now
            self.show()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """All is done, also where fewer steps were counted: some methods cannot tell how far they are."""
        if error is None:
            self.done = self.total = self.total or 1
            self.details = NO_DETAILS

    def __str__(self) -> str:
        seconds, share = time.monotonic() - self._started, self.share
        if share is None:
            return f"{self.title}: {seconds:.0f} s"
        left = f", about {seconds / share * (1 - share):.0f} s left" if 0 < share < 1 else ""
        return " · ".join(
            [f"{self.title}: {share:.0%} after {seconds:.0f} s{left}", *self.details().splitlines()]
        )


class _TerminalBar(_Output):
    """A bar of Rich on stderr, and below it the details, which are made anew whenever the bar is drawn."""

    def __enter__(self) -> Self:
        from rich.console import Console, RenderableType
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.text import Text

        output = self

        class BarWithDetails(Progress):
            def get_renderables(self) -> Iterable[RenderableType]:
                yield from super().get_renderables()
                for line in output.details().splitlines():
                    yield Text(line, style="dim", no_wrap=True, overflow="ellipsis")

        self._bar = BarWithDetails(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.__enter__()
        self._task = self._bar.add_task(self.title, total=self.total)
        return self

    def show(self, *, started: bool = False) -> None:
        if started:
            self._bar.reset(self._task, total=self.total)
        self._bar.update(self._task, completed=self.done, description=self.title)

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)


class _LogLines(_Output):
    """Lines of the logger "seqatt"."""

    def __init__(self, title: str, total: int | None) -> None:
        super().__init__(title, total, LOG_SECONDS)

    def __enter__(self) -> Self:
        logger.info("%s: started", self.title)
        return self

    def show(self, *, started: bool = False) -> None:
        if started:
            logger.info("%s: started", self.title)
        else:
            logger.info("%s", str(self))  # as text: a handler may format it later

    def __exit__(self, error: object, *_: object) -> None:
        super().__exit__(error)
        if error is None:
            self.show()


class _NotebookBar(_Output):
    """A bar of HTML in a notebook; ``display`` is the module IPython.display."""

    def __init__(self, title: str, total: int | None, display: Any) -> None:
        super().__init__(title, total, NOTEBOOK_SECONDS)
        self._handle = display.display(self._drawn(), raw=True, display_id=True)

    def _drawn(self) -> dict[str, str]:
        text, share = str(self), self.share
        value = "" if share is None else f' value="{share:.4f}"'  # without a value, the bar moves to and fro
        bar = f'<progress{value} max="1" style="vertical-align: middle"></progress>'
        return {"text/plain": text, "text/html": f"{bar} {escape(text)}"}

    def show(self, *, started: bool = False) -> None:
        self._handle.update(self._drawn(), raw=True)

    def __exit__(self, error: object, *_: object) -> None:
        super().__exit__(error)
        self.show()


def _notebook_display() -> Any:
    """The module IPython.display in a notebook, else None. IPython is not imported: a notebook has imported it."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_shell is None else get_shell()
    if not hasattr(shell, "kernel"):  # IPython on a terminal has none
        return None
    from IPython import display  # type: ignore[import-not-found,unused-ignore]

    return display
