"""Reports the progress of ``select``: progress bar, user callbacks, and stop requests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.callbacks.callback import SELECTION, Callback, CallbackState
from seqatt.display_text import escape_controls
from seqatt.progress import Advance, show_nothing
from seqatt.trace import PhaseRecord

NOTHING = np.zeros(0, dtype=np.int64)
LISTED = 6  # selected features that are named beside a progress bar


class StopRequested(KeyboardInterrupt):
    """A callback has requested to stop. Like Ctrl-C, it ends the work with what is selected by then."""


class Monitor:
    """The progress bar and the callbacks of one call. Callbacks get the ``seed`` of its only trial."""

    def __init__(
        self,
        callbacks: Sequence[Callback] = (),
        method: str = "",
        seed: int = 0,
        *,
        bar: Advance = show_nothing,
        alone: bool = True,
    ) -> None:
        """``alone``: there are no other ranks, which would have to agree before one of them stops."""
        self.bar, self.alone = bar, alone
        self.names: tuple[Any, ...] = ()  # of the user's features, where only some of them take part
        self.stop_requested = False
        self.callbacks, self._method, self._seed = callbacks, method, seed
        self._started = time.perf_counter()
        self._part: Part | None = None
        self._shown = 0.0  # what the bar shows of the next step of work that has parts

    def advance(
        self, steps: float, title: str | None = None, total: int | None = None, details: Any = None
    ) -> None:
        """Show progress of work beside parts, or of work whose steps are parts; ends here if a stop is requested."""
        self._part = None
        self.bar(max(0.0, steps - self._shown), title, total, self.describe)
        self._shown = 0.0
        self.check_stop()

    def check_stop(self) -> None:
        if self.stop_requested and self.alone:
            raise StopRequested

    def start_part(
        self,
        name: str,
        positions: NDArray[np.int64],
        names: Sequence[Any],
        k: int,
        steps: int,
        *,
        counts: int = 0,
    ) -> Part:
        """Start one selection of ``k`` features with ``steps`` steps.

        ``counts`` is the number of steps of the enclosing progress bar that it accounts for, e.g. 1 for a fold.
        """
        self._part = Part(self, name, positions, names, k, steps, counts=counts)
        self._shown = 0.0
        return self._part

    def show_share(self, share: float, counts: int) -> None:
        """Advance the enclosing progress bar by ``share`` of ``counts`` steps."""
        steps = min(counts * share, counts - self._shown)
        self._shown += steps
        self.bar(steps)

    def describe(self) -> str:
        """The current work, in up to two lines: the part, the phase and the loss; the features selected so far."""
        part = self._part  # read once: the bar asks on a thread of its own
        return "" if part is None else part.describe()

    def call(self, event: str, part: Part) -> None:
        """Call this method of every callback with the state of the part."""
        for callback in self.callbacks:
            state = CallbackState(
                method=self._method,
                seed=self._seed,
                names=part.names,
                seconds=time.perf_counter() - self._started,
                _request_stop=self._request_stop,
                **part.facts(ended=event == "on_phase_end"),
            )
            _call(callback, event, state)

    def _request_stop(self) -> None:
        self.stop_requested = True

    def end(self, selection: Any) -> None:
        """Tell the callbacks what ``select`` returns; None if it ends with an error."""
        for callback in self.callbacks:
            _call(callback, "on_end", selection)


def _call(callback: Callback, event: str, argument: Any) -> None:
    try:
        with torch.enable_grad():  # the training loop switches gradients off, and a callback may train
            getattr(callback, event)(argument)
    except Exception as error:
        error.add_note(f"raised in {type(callback).__qualname__}.{event}, a callback of seqatt")
        raise


class Part:
    """One selection: how far it is, and what it has selected. Features have the user's positions and names."""

    def __init__(
        self,
        monitor: Monitor,
        name: str = SELECTION,
        positions: NDArray[np.int64] = NOTHING,
        names: Sequence[Any] = (),
        k: int = 0,
        steps: int = 0,
        *,
        counts: int = 0,
    ) -> None:
        """``positions`` and ``names`` are those of the method's features; -1 is no feature of the user: a knockoff."""
        self.monitor, self._name, self._k = monitor, name, k
        self._names: tuple[Any, ...] | None = monitor.names or None
        if self._names is not None and len(positions):
            position_of = {str(name): position for position, name in enumerate(self._names)}
            positions = np.array(
                [p if p < 0 else position_of[str(n)] for p, n in zip(positions, names, strict=True)]
            )
        self._positions, self._given_names = positions, names
        self._steps, self._done = max(steps, 1), 0
        self._counts = counts
        self._phase, self._phases = 0, 0
        self.later_phases = 0  # after those of the training loop
        self._indices: list[int] = []
        self._loss: float | None = None
        self._held_out_loss: float | None = None
        self._scores: NDArray[np.float64] | None = None

    @property
    def names(self) -> tuple[Any, ...]:
        """The names in the user's order."""
        if self._names is None:
            order = np.argsort(self._positions, kind="stable")[np.count_nonzero(self._positions < 0) :]
            self._names = tuple(self._given_names[f] for f in order)
        return self._names

    def advance(self, steps: int) -> None:
        """Count steps, show them and call ``on_batch``."""
        self.count(steps)
        if steps and self.monitor.callbacks:
            self.monitor.call("on_batch", self)

    def count(self, steps: int) -> None:
        """Count steps and show them: those before a checkpoint, by themselves."""
        self._done += steps
        if self._counts:
            self.monitor.show_share(steps / self._steps, self._counts)
        else:
            self.monitor.bar(steps)

    def set_phase(
        self,
        phase: int,
        phases: int,
        order: Sequence[int],
        record: PhaseRecord | None,
        held_out_loss: float | None = None,
    ) -> None:
        """Note that ``phase`` phases have ended, the last one with this record, and which features are selected.

        ``phases`` are those of the training loop.
        """
        self._phase, self._phases = phase, phases + self.later_phases
        if len(self._positions):
            positions = self._positions[np.asarray(order, dtype=np.int64)]
            self._indices = positions[positions >= 0].tolist()
        if record is not None and record.steps:
            self._loss = record.loss
        if record is not None and record.scores is not None and self.monitor.callbacks:
            is_feature = self._positions >= 0  # not a knockoff
            self._scores = np.full(len(self.names), np.nan)
            self._scores[self._positions[is_feature]] = record.scores[is_feature]
            # Read-only: shared by all callbacks until the next features are selected.
            self._scores.flags.writeable = False
        self._held_out_loss = held_out_loss

    def end_phase(self, *arguments: Any) -> None:
        """``set_phase``, and call ``on_phase_end``."""
        self.set_phase(*arguments)
        if self.monitor.callbacks:
            self.monitor.call("on_phase_end", self)

    def facts(self, *, ended: bool) -> dict[str, Any]:
        """The fields of ``CallbackState`` that describe this part."""
        return {
            "part": self._name,
            "phase": min(self._phase + (not ended), self._phases),
            "phases": self._phases,
            "k": self._k,
            "features": [self.names[i] for i in self._indices],
            "indices": list(self._indices),
            "loss": self._loss,
            "held_out_loss": self._held_out_loss,
            "scores": self._scores,
            "share": min(self._done / self._steps, 1.0),
        }

    def describe(self) -> str:
        names, indices, loss, selected = self.names, self._indices, self._loss, ""
        texts = [] if self._name == SELECTION else [self._name]
        if self._phases:
            texts.append(f"phase {min(self._phase + 1, self._phases)} of {self._phases}")
        if loss is not None:
            texts.append(f"loss {loss:.3g}")
        if indices:
            latest = ", ".join(escape_controls(str(names[i])) for i in indices[: -LISTED - 1 : -1])
            more = ", ..." if len(indices) > LISTED else ""
            selected = f"{len(indices)} selected, latest first: {latest}{more}"
        return "\n".join(filter(None, (" · ".join(texts), selected)))
