"""CUDA graphs: record a chunk of training steps once, replay it from then on."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import torch


class GraphRecorder:
    """Saves the host the launch of every kernel of a chunk of steps::

        if not recorder.replay(kind, steps):
            with recorder.capture(kind, steps):
                ...  # the steps

    The steps must launch the same kernels on the same memory whenever ``kind`` and ``steps`` are the same. On a CPU, or
    if not ``enabled``, the steps simply run. So does the first chunk of each kind: kernels are compiled and libraries
    initialised then, which must not happen during a capture.
    """

    def __init__(self, device: torch.device, *, enabled: bool) -> None:
        self._enabled = enabled and device.type == "cuda"
        self._warm: set[Hashable] = set()
        self._graphs: dict[tuple[Hashable, int], torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle() if self._enabled else None
        self._stream = torch.cuda.Stream(device) if self._enabled else None  # type: ignore[no-untyped-call]

    def replay(self, kind: Hashable, steps: int) -> bool:
        """Replay the chunk if it is recorded; False if not."""
        graph = self._graphs.get((kind, steps))
        if graph is None:
            return False
        graph.replay()
        return True

    @contextmanager
    def capture(self, kind: Hashable, steps: int, *, enabled: bool = True) -> Iterator[None]:
        """Record what the body of the ``with`` statement launches, then replay it; on a CPU just run the body."""
        if not (self._enabled and enabled and kind in self._warm):
            if enabled:
                self._warm.add(kind)
            yield
            return
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the device meanwhile: what they launch is no part of the capture.
        with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
            yield
        self._graphs[kind, steps] = graph
        graph.replay()
