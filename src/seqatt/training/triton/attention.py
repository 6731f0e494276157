"""The Triton kernel of the attention gate: one program per model, which has D logits.

DP is D padded to a power of two.
"""

from __future__ import annotations

import triton
import triton.language as tl

from seqatt.training.triton.adam import adam_step, bias_corrections


@triton.jit
def attend(
    logits, exp_avg, exp_avg_sq, grad, selected, blocked, weights, lr, beta_powers, D, inv_temperature,
    DP: tl.constexpr, UPDATE: tl.constexpr,
):  # fmt: skip
    """The weights of one model's features; with UPDATE, after an Adam step of the logits along ``grad``."""
    t = tl.program_id(0)
    j = tl.arange(0, DP)
    valid = j < D
    address = t * D + j
    additive_mask = tl.load(blocked + address, mask=valid, other=-float("inf"))
    selected_weight = tl.load(selected + address, mask=valid, other=0.0)
    logit = tl.load(logits + address, mask=valid, other=0.0)
    share = _softmax(logit * inv_temperature + additive_mask)
    if UPDATE:
        beta_powers += 2 * t
        tl.store(beta_powers, tl.load(beta_powers) * 0.9)
        tl.store(beta_powers + 1, tl.load(beta_powers + 1) * 0.999)
        tl.debug_barrier()
        step_size, v_scale = bias_corrections(beta_powers, lr)
        logit_grad = share * tl.load(grad + address, mask=valid, other=0.0)
        logit_grad = (logit_grad - share * tl.sum(logit_grad, 0)) * inv_temperature
        logit = adam_step(logit, logit_grad, exp_avg, exp_avg_sq, address, valid, step_size, v_scale)
        tl.store(logits + address, logit, mask=valid)
        share = _softmax(logit * inv_temperature + additive_mask)
    tl.store(weights + address, share + selected_weight, mask=valid)


@triton.jit
def _softmax(logit):
    exps = tl.exp(logit - tl.max(logit, 0))
    return exps / tl.sum(exps, 0)
