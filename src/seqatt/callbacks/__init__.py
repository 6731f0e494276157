"""Callbacks: follow a selection while it runs, and stop it early."""

from seqatt.callbacks.callback import Callback, CallbackState
from seqatt.callbacks.early_stopping import EarlyStopping
from seqatt.callbacks.tracking import MLflowCallback, TensorBoardCallback

__all__ = ["Callback", "CallbackState", "EarlyStopping", "MLflowCallback", "TensorBoardCallback"]
