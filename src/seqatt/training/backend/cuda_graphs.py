"""Record a stretch of steps on an accelerator once, replay it ever after."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch


class GraphRecorder:
    """Runs work; on CUDA as a graph, which spares the host the launch of every kernel.

    The work must do the same kernels on the same memory each time its ``kind`` and ``size`` are given.
    The first time of a kind runs as it is: that is when kernels are compiled and libraries wake up,
    which a recording must not see.
    """

    def __init__(self, device: torch.device, *, enabled: bool) -> None:
        self._enabled = enabled and device.type == "cuda"
        self._seen: set[Hashable] = set()
        self._graphs: dict[tuple[Hashable, int], torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle() if self._enabled else None
        self._stream = torch.cuda.Stream(device) if self._enabled else None  # type: ignore[no-untyped-call]

    def run(self, kind: Hashable, size: int, work: Callable[[], None]) -> None:
        if not self._enabled or kind not in self._seen:
            self._seen.add(kind)
            work()
            return
        if (kind, size) not in self._graphs:
            graph = torch.cuda.CUDAGraph()
            # Another thread draws the order of rows meanwhile, which is none of the recording's business.
            with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                work()
            self._graphs[kind, size] = graph
        self._graphs[kind, size].replay()
