"""Built-in callbacks: early stopping, TensorBoard and MLflow; the last two import their library when they are used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seqatt.callbacks.callback import SELECTION, Callback, CallbackState
from seqatt.validation import integer, number

if TYPE_CHECKING:
    from seqatt.selection import Selection


class EarlyStopping(Callback):
    """Stop when the training loss no longer improves over the phases that select features.

    It looks at the phases up to the k-th feature: what follows them makes a better choice of the same number. The folds
    of k="auto", repeats and selections with knockoffs are not stopped: a part of them is no answer.

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


def _scalars(state: CallbackState) -> dict[str, float]:
    """Values to plot against the phase, by name; folds and repeats have plots of their own."""
    values = {"loss": state.loss, "held_out_loss": state.held_out_loss, "features": len(state.features)}
    return {f"{state.part}/{name}": float(value) for name, value in values.items() if value is not None}


class TensorBoardCallback(Callback):
    """Write the loss, the number of selected features, their names and the scores of all features per phase.

    Needs ``pip install 'seqatt[tensorboard]'``; look at it with ``tensorboard --logdir LOG_DIR``.

    Parameters
    ----------
    log_dir : str or path
        The folder of one run: give every run its own, such as "runs/wine-1".
    """

    def __init__(self, log_dir: str | os.PathLike[str]) -> None:
        try:
            import tensorboard  # noqa: F401
        except ImportError as error:
            raise ImportError(
                f"TensorBoardCallback needs TensorBoard ({error}): pip install 'seqatt[tensorboard]'"
            ) from None
        self.log_dir = os.fspath(log_dir)
        self._writer: Any = None  # until the end of a selection

    def on_phase_end(self, state: CallbackState) -> None:
        writer = self._open()
        for name, value in _scalars(state).items():
            writer.add_scalar(name, value, state.phase)
        if state.scores is not None:
            writer.add_histogram(f"{state.part}/scores", state.scores, state.phase)
        writer.add_text(f"{state.part}/selected", _as_list(state.features), state.phase)
        writer.flush()

    def on_end(self, selection: Selection | None) -> None:
        if selection is not None:
            self._open().add_text("result", f"{selection!r}\n\n{_as_list(selection.features)}")
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    def _open(self) -> Any:
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter  # here: it takes a second

            self._writer = SummaryWriter(self.log_dir)  # type: ignore[no-untyped-call]
        return self._writer


def _as_list(features: list[Any]) -> str:
    """Names as a numbered list in Markdown, which TensorBoard renders; backquotes keep them as they are."""
    return "\n".join(f"{rank}. `{name}`" for rank, name in enumerate(features, 1)) or "none"


class MLflowCallback(Callback):
    """Log the loss and the number of features per phase, the settings, and the selection as selection.json.

    It logs to the active run if there is one, else to a new one that ends with the selection. Needs
    ``pip install 'seqatt[mlflow]'``. MLflow's own settings say where to: ``mlflow.set_tracking_uri``,
    ``mlflow.set_experiment``.

    Parameters
    ----------
    run_name : str, optional
        The name of a new run.
    """

    def __init__(self, run_name: str | None = None) -> None:
        try:
            import mlflow  # noqa: F401
        except ImportError as error:
            raise ImportError(
                f"MLflowCallback needs MLflow ({error}): pip install 'seqatt[mlflow]'"
            ) from None
        self.run_name = run_name
        self._is_open = self._is_new = False  # whether it logs to a run, and whether that is its own

    def on_phase_end(self, state: CallbackState) -> None:
        self._open().log_metrics(_scalars(state), step=state.phase)

    def on_end(self, selection: Selection | None) -> None:
        if selection is None and not self._is_open:
            return
        mlflow = self._open()
        if selection is not None:
            params = {"method": selection.method, "seed": selection.seed, "k": selection.settings["k"]}
            mlflow.log_params(params | selection.settings["options"])
            mlflow.log_metrics({"selected_features": len(selection.features), "seconds": selection.seconds})
            mlflow.set_tag("features", ", ".join(map(str, selection.features)))
            mlflow.log_dict(selection.to_dict(), "selection.json")
        if self._is_new:
            mlflow.end_run("FAILED" if selection is None else "FINISHED")
        self._is_open = self._is_new = False

    def _open(self) -> Any:
        import mlflow  # here: it takes seconds

        if not self._is_open:
            self._is_open, self._is_new = True, mlflow.active_run() is None
            if self._is_new:
                mlflow.start_run(run_name=self.run_name)
        return mlflow
