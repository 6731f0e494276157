"""The layer ``SequentialAttention`` for a training loop of your own."""

from seqatt.layer.attention_layer import SequentialAttention

__all__ = ["SequentialAttention"]
