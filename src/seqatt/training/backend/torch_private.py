"""Private functions of PyTorch, all in one place.

PyTorch documents none of these, so a new version may change or remove them; then this module is the only one
to adapt. All were checked with torch 2.11 and 2.13. Each name is a plain reference to PyTorch's own function,
so a call through this module costs nothing extra.

=========================  ======================================================================
``fused_adam_``            One kernel per optimizer step. ``torch.optim.Adam(fused=True)`` runs the
                           same kernel, but its Python code costs about five times as much per step.
``softmax_backward``       The gradient of a softmax in one operation, from the softmax itself.
``gelu``, ``silu``         These write into a given buffer (``out=``); ``torch.nn.functional`` cannot.
``tanh_backward``,         Gradients of activations in one operation, written into a given buffer
``gelu_backward``,         (``grad_input=``), for models whose backward pass is written out.
``silu_backward``
``foreach_add_``,          Elementwise operations on a list of tensors in one call, as used by the
``foreach_mul_``           optimizers of ``torch.optim``.
=========================  ======================================================================
"""

from __future__ import annotations

import torch

_aten = torch.ops.aten

fused_adam_ = torch._fused_adam_  # type: ignore[attr-defined]
softmax_backward = torch._softmax_backward_data
gelu = _aten.gelu.out
silu = _aten.silu.out
tanh_backward = _aten.tanh_backward.grad_input
gelu_backward = _aten.gelu_backward.grad_input
silu_backward = _aten.silu_backward.grad_input
foreach_add_ = torch._foreach_add_
foreach_mul_ = torch._foreach_mul_
