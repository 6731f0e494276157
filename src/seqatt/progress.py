"""Progress of long runs: a bar on a terminal or in a notebook, and lines in the log of the logger "seqatt"."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

LOG_SECONDS = 10.0  # between two lines of the log, at least
NOTEBOOK_SECONDS = 0.2  # between two updates of the bar in a notebook, at least

logger = logging.getLogger("seqatt")


class Advance(Protocol):
    """Called with the number of steps done since the last call and, optionally, a new title."""

    def __call__(self, steps: int, title: str | None = None) -> None: ...


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool) -> Iterator[Advance]:
    """Yield the function that counts ``total`` steps.

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

        def advance(steps: int, title: str | None = None) -> None:
            for output in outputs:
                output(steps, title)

        yield advance


@contextmanager
def _terminal_bar(title: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(title, total=max(total, 1))
        yield lambda steps, title=None: bar.update(task, advance=steps, description=title)


class _Progress:
    """Steps done and the time they took, as a line of text; ``due`` says when to show the next one."""

    def __init__(self, title: str, total: int, seconds: float) -> None:
        self.title, self._total, self._interval = title, max(total, 1), seconds
        self._done, self._started = 0, time.monotonic()
        self._shown = self._started

    @property
    def share(self) -> float:
        return min(self._done / self._total, 1.0)

    def advance(self, steps: int, title: str | None) -> None:
        self._done += steps
        self.title = title or self.title

    def finish(self) -> None:
        """All is done, also where fewer steps were counted: some methods cannot tell how far they are."""
        self._done = self._total

    def due(self) -> bool:
        now = time.monotonic()
        if now - self._shown < self._interval:
            return False
        self._shown = now
        return True

    def __str__(self) -> str:
        seconds = time.monotonic() - self._started
        left = f", about {seconds / self.share * (1 - self.share):.0f} s left" if 0 < self.share < 1 else ""
        return f"{self.title}: {self.share:.0%} after {seconds:.0f} s{left}"


@contextmanager
def _log_lines(title: str, total: int) -> Iterator[Advance]:
    progress = _Progress(title, total, LOG_SECONDS)
    logger.info("%s: started", title)

    def advance(steps: int, title: str | None = None) -> None:
        progress.advance(steps, title)
        if progress.due():
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
def _notebook_bar(title: str, total: int, display: Any) -> Iterator[Advance]:
    progress = _Progress(title, total, NOTEBOOK_SECONDS)

    def drawn() -> dict[str, str]:
        text = str(progress)
        bar = f'<progress value="{progress.share:.4f}" max="1" style="vertical-align: middle"></progress>'
        return {"text/plain": text, "text/html": f"{bar} {text}"}

    handle = display.display(drawn(), raw=True, display_id=True)

    def advance(steps: int, title: str | None = None) -> None:
        progress.advance(steps, title)
        if progress.due():
            handle.update(drawn(), raw=True)

    try:
        yield advance
        progress.finish()
    finally:
        handle.update(drawn(), raw=True)
