"""Callbacks: follow a selection while it runs, and stop it early."""

from seqatt.callbacks.builtin import EarlyStopping, MLflowCallback, TensorBoardCallback
from seqatt.callbacks.callback import Callback, CallbackState

__all__ = ["Callback", "CallbackState", "EarlyStopping", "MLflowCallback", "TensorBoardCallback"]
