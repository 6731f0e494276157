"""A progress bar on the terminal; nothing is drawn if stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """Called with the number of steps done since the last call and, optionally, a new title."""

    def __call__(self, steps: int, title: str | None = None) -> None: ...


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool) -> Iterator[Advance]:
    """Draw a bar of ``total`` steps if ``shown`` and stderr is a terminal; yield the function that advances it."""
    if not shown or not sys.stderr.isatty():
        yield lambda steps, title=None: None
        return
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
