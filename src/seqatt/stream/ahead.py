"""Work on a thread of its own, a little ahead of those who wait for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

AHEAD = 4  # blocks decoded before they are needed

Item = TypeVar("Item")


def read_ahead(items: Iterator[Item], depth: int) -> Iterator[Item]:
    """The same items, made on a thread of their own, at most ``depth`` before they are asked for."""
    made: queue.Queue[tuple[str, Item | BaseException | None]] = queue.Queue(depth)
    enough = threading.Event()

    def put(what: str, item: Item | BaseException | None) -> None:
        while not enough.is_set():
            try:
                made.put((what, item), timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put("item", item)
                if enough.is_set():
                    break
            else:
                put("end", None)
        except BaseException as error:
            put("error", error)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    thread = threading.Thread(target=work, daemon=True, name="seqatt-read-ahead")
    thread.start()
    try:
        while True:
            what, item = made.get()
            if what == "error":
                assert isinstance(item, BaseException)
                raise item
            if what == "end":
                return
            yield item  # type: ignore[misc]
    finally:
        enough.set()
        thread.join()
