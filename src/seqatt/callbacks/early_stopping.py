"""``EarlyStopping``: select no more features once they no longer help."""

from __future__ import annotations

from seqatt.callbacks.callback import SELECTION, Callback, CallbackState
from seqatt.validation import integer, number


class EarlyStopping(Callback):
    """Stop when the training loss no longer improves over the phases that select features.

    It looks at the phases up to the k-th feature: what follows them makes a better choice of the same number. The folds
    of k="auto", repeats and races with knockoffs are not stopped: a part of them is no answer.

    Parameters
    ----------
    patience : int, default 3
        Phases without improvement after which to stop.
    min_delta : float, default 0.0
        The least decrease of the loss that counts as an improvement.

    Examples
    --------
    >>> import seqatt
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> stopping = seqatt.callbacks.EarlyStopping(patience=2, min_delta=1.0)
    >>> seqatt.select(X, y, k=10, callbacks=[stopping]).settings["partial"]
    'stopped'
    """

    def __init__(self, patience: int = 3, min_delta: float = 0.0) -> None:
        self.patience = integer(1)("patience", patience)
        self.min_delta = number(minimum=0)("min_delta", min_delta)
        self._best, self._waited, self._most = float("inf"), 0, 0

    def on_phase_end(self, state: CallbackState) -> None:
        if state.part != SELECTION:
            return
        if state.phase == 1:  # of a new selection
            self._best, self._waited, self._most = float("inf"), 0, 0
        if state.loss is None or not self._most < len(state.features) < state.k:
            return
        self._most = len(state.features)
        if state.loss < self._best - self.min_delta:
            self._best, self._waited = state.loss, 0
            return
        self._waited += 1
        if self._waited >= self.patience:
            state.stop()
