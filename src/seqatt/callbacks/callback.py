"""``Callback`` and ``CallbackState``: what a callback is called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seqatt.validation import show

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seqatt.selection import Selection

SELECTION = "selection"  # the part of a run that is the selection itself


@dataclass(frozen=True)
class CallbackState:
    """How far a selection is.

    Attributes
    ----------
    method, seed :
        Those of the selection.
    part : str
        "selection", or what else is running: "fold 2 of 3" (k="auto"), "repeat 5 of 20" (``repeats``; "repeats 1 to
        20 of 20" on a GPU), "features and knockoffs" (``fdr``), "test fold 1 of 3" (the test against random features).
    phase, phases : int
        The number of the phase that runs, or has just ended, and how many there are; 0 where a method has no phases.
    k : int
        How many features this part selects; with a surplus, more of them are selected for a while.
    names : tuple
        The names of all features.
    features, indices : list
        The names and positions of the features selected so far, in order. With several strengths of a penalty, those
        of the strength with the lowest loss.
    loss : float or None
        The mean training loss of the last phase that has ended.
    held_out_loss : float or None
        The loss on held-out rows with the selected features. It is measured at the end of the last phase alone.
    scores : ndarray or None
        The score of each feature, in the order of ``names``, by which the last features were selected.
    seconds : float
        Seconds since ``select`` was called.
    share : float
        The share of the steps of this part that is done, from 0 to 1; on files, that of the rows.
    """

    method: str
    seed: int
    part: str
    phase: int
    phases: int
    k: int
    names: tuple[Any, ...] = field(repr=False)
    features: list[Any]
    indices: list[int]
    loss: float | None
    held_out_loss: float | None
    scores: NDArray[np.float64] | None = field(repr=False)
    seconds: float
    share: float
    _request_stop: Callable[[], None] = field(repr=False)

    def stop(self) -> None:
        """End the selection here: ``select`` returns the features selected so far, marked as partial."""
        self._request_stop()


class Callback:
    """Base class of callbacks: override what you need. They run on the thread that called ``select``.

    A callback cannot change what is selected; it can end the selection by ``state.stop()``.

    Examples
    --------
    >>> import seqatt
    >>> from sklearn.datasets import load_wine
    >>> class AtMost(seqatt.Callback):
    ...     def on_phase_end(self, state):
    ...         if state.seconds > 60:
    ...             state.stop()
    >>> X, y = load_wine(return_X_y=True)
    >>> len(seqatt.select(X, y, k=2, callbacks=[AtMost()]).features)
    2
    """

    def on_phase_end(self, state: CallbackState) -> None:
        """Called at the end of each phase, after features were selected or dropped."""

    def on_batch(self, state: CallbackState) -> None:
        """Called after each chunk of steps: up to 64 batches of a table, one batch of files.

        Methods without phases call it after each unit of their work, such as a feature or a model.
        """

    def on_end(self, selection: Selection | None) -> None:
        """Called once, with what ``select`` is about to return, or None if it ends with an error."""


def check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """The callbacks as a tuple; refuses anything else than a list of instances of ``Callback``."""
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str):
        raise TypeError(f"callbacks: must be a list of seqatt.Callback, such as [{show(callbacks)}]")
    for callback in callbacks:
        if not isinstance(callback, Callback):
            made = f"; call it: {callback.__name__}()" if isinstance(callback, type) else ""
            raise TypeError(f"callbacks: must be instances of seqatt.Callback, got {show(callback)}{made}")
    return tuple(callbacks)
