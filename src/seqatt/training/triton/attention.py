"""The Triton kernel of attention: D logits of each trial, which is a program."""

from __future__ import annotations

import triton
import triton.language as tl

from seqatt.training.triton.adam import corrections, step


@triton.jit
def attend(
    logits, first, second, grad, selected, blocked, weights, rate, powers, D, heat,
    DP: tl.constexpr, LEARNS: tl.constexpr,
):  # fmt: skip
    """One trial's attention: the logits' step where they learn, then the weights they give."""
    t = tl.program_id(0)
    j = tl.arange(0, DP)
    live = j < D
    at = t * D + j
    shut = tl.load(blocked + at, mask=live, other=-float("inf"))
    always = tl.load(selected + at, mask=live, other=0.0)
    logit = tl.load(logits + at, mask=live, other=0.0)
    share = _softmax(logit * heat + shut)
    if LEARNS:
        powers += 2 * t
        tl.store(powers, tl.load(powers) * 0.9)
        tl.store(powers + 1, tl.load(powers + 1) * 0.999)
        tl.debug_barrier()
        pace, fix = corrections(powers, rate)
        pull = share * tl.load(grad + at, mask=live, other=0.0)
        pull = (pull - share * tl.sum(pull, 0)) * heat
        logit = step(logit, pull, first, second, at, live, pace, fix)
        tl.store(logits + at, logit, mask=live)
        share = _softmax(logit * heat + shut)
    tl.store(weights + at, share + always, mask=live)


@triton.jit
def _softmax(logit):
    raised = tl.exp(logit - tl.max(logit, 0))
    return raised / tl.sum(raised, 0)
