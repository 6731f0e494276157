"""Callbacks: follow a selection while it runs, and stop it early."""

from seqatt.callbacks.callback import Callback, CallbackState
from seqatt.callbacks.ready import EarlyStopping, MLflowCallback, TensorBoardCallback

__all__ = ["Callback", "CallbackState", "EarlyStopping", "MLflowCallback", "TensorBoardCallback"]
