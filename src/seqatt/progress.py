"""Progress of long runs: a bar on a terminal or in a notebook, lines in the log of the logger "seqatt", and seconds."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from html import escape
from typing import Any, Protocol

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


def show_nothing(
    steps: float, title: str | None = None, total: int | None = None, details: Details | None = None
) -> None:
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
        """Count the time since the last ``end`` as ``parts``; what is left of it belongs to the next ``end``."""
        for part, seconds in parts.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + seconds
        self._last += sum(parts.values())


@contextmanager
def progress_bar(title: str, total: int | None, *, shown: bool) -> Iterator[Advance]:
    """Yield the function that counts ``total`` steps; with None, nobody knows yet how long it will take.

    If ``shown``, there is a bar on a terminal (stderr) or in a notebook. Where the logger "seqatt" is enabled for INFO,
    a line is logged at the start, at the end, and every ``LOG_SECONDS`` in between.
    """
    outputs: list[Advance] = []
    with ExitStack() as stack:
        if shown and sys.stderr.isatty():
            outputs.append(stack.enter_context(_terminal_bar(title, total)))
        elif shown and (shell := _notebook_shell()) is not None:
            outputs.append(stack.enter_context(_notebook_bar(title, total, shell)))
        if logger.isEnabledFor(logging.INFO):
            outputs.append(stack.enter_context(_log_lines(title, total)))

        def advance(
            steps: float, title: str | None = None, total: int | None = None, details: Details | None = None
        ) -> None:
            for output in outputs:
                output(steps, title, total, details)

        yield advance


@contextmanager
def _terminal_bar(title: str, total: int | None) -> Iterator[Advance]:
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class BarWithDetails(Progress):
        """A bar, and below it lines that are made anew whenever the bar is drawn."""

        details: Details = NO_DETAILS

        def get_renderables(self) -> Iterable[RenderableType]:
            yield from super().get_renderables()
            for line in self.details().splitlines():
                yield Text(line, style="dim", no_wrap=True, overflow="ellipsis")

    bar = BarWithDetails(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(title, total=None if total is None else max(total, 1))

        def advance(
            steps: float, title: str | None = None, total: int | None = None, details: Details | None = None
        ) -> None:
            if total is not None:
                bar.reset(task, total=max(total, 1), description=title)
            bar.details = details or bar.details  # type: ignore[method-assign]
            bar.update(task, advance=steps, description=title)

        yield advance


class _Progress:
    """Steps done and the time they took, as a line of text; ``due`` says when to show the next one.

    ``share`` is None as long as the total is not known.
    """

    def __init__(self, title: str, total: int | None, seconds: float) -> None:
        self._interval = seconds
        self._details = NO_DETAILS
        self._start(title, total)

    def _start(self, title: str, total: int | None) -> None:
        self.title, self._total = title, None if total is None else max(total, 1)
        self._done, self._started = 0.0, time.monotonic()
        self._shown = self._started

    @property
    def share(self) -> float | None:
        return None if self._total is None else min(self._done / self._total, 1.0)

    def advance(
        self, steps: float, title: str | None, total: int | None, details: Details | None = None
    ) -> None:
        if total is not None:
            self._start(title or self.title, total)
        self._details = details or self._details
        self._done += steps
        self.title = title or self.title

    def finish(self) -> None:
        """All is done, also where fewer steps were counted: some methods cannot tell how far they are."""
        self._done = self._total = self._total or 1
        self._details = NO_DETAILS

    def due(self) -> bool:
        now = time.monotonic()
        if now - self._shown < self._interval:
            return False
        self._shown = now
        return True

    def __str__(self) -> str:
        seconds, share = time.monotonic() - self._started, self.share
        if share is None:
            return f"{self.title}: {seconds:.0f} s"
        left = f", about {seconds / share * (1 - share):.0f} s left" if 0 < share < 1 else ""
        return " · ".join(
            [f"{self.title}: {share:.0%} after {seconds:.0f} s{left}", *self._details().splitlines()]
        )


@contextmanager
def _log_lines(title: str, total: int | None) -> Iterator[Advance]:
    progress = _Progress(title, total, LOG_SECONDS)
    logger.info("%s: started", title)

    def advance(
        steps: float, title: str | None = None, total: int | None = None, details: Details | None = None
    ) -> None:
        progress.advance(steps, title, total, details)
        if total is not None:
            logger.info("%s: started", progress.title)
        elif progress.due():
            logger.info("%s", str(progress))  # as text: a handler may format it later

    yield advance
    progress.finish()
    logger.info("%s", str(progress))


def _notebook_shell() -> Any:
    """The module IPython.display in a notebook, else None. IPython is not imported: a notebook has imported it."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_shell is None else get_shell()
    if not hasattr(shell, "kernel"):  # IPython on a terminal has none
        return None
    from IPython import display  # type: ignore[import-not-found,unused-ignore]

    return display


@contextmanager
def _notebook_bar(title: str, total: int | None, display: Any) -> Iterator[Advance]:
    progress = _Progress(title, total, NOTEBOOK_SECONDS)

    def drawn() -> dict[str, str]:
        text, share = str(progress), progress.share
        value = "" if share is None else f' value="{share:.4f}"'  # without a value, the bar moves to and fro
        bar = f'<progress{value} max="1" style="vertical-align: middle"></progress>'
        return {"text/plain": text, "text/html": f"{bar} {escape(text)}"}

    handle = display.display(drawn(), raw=True, display_id=True)

    def advance(
        steps: float, title: str | None = None, total: int | None = None, details: Details | None = None
    ) -> None:
        progress.advance(steps, title, total, details)
        if total is not None or progress.due():
            handle.update(drawn(), raw=True)

    try:
        yield advance
        progress.finish()
    finally:
        handle.update(drawn(), raw=True)
