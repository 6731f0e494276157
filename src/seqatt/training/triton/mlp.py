"""Triton kernels of a network's training step: first product, loss and way back, update.

``fused.py`` launches them. B rows in a batch, C columns, H hidden units, OUTS outputs; a trial is a program
axis of its own.
"""

from __future__ import annotations

import triton
import triton.language as tl

from seqatt.training.triton.adam import corrections, step

# Hidden units are worked on in two blocks, a and b, because a tile's sides are powers of two: the default
# of 67 units, padded to 80, is 64 + 16 instead of 128.


@triton.jit
def first_product(
    table, index, bank, places, gate, w1, sums, powers, B, C,
    NOISY: tl.constexpr, PARTS: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
    H: tl.constexpr, HA: tl.constexpr, HB: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What a part of the columns gives to the hidden sums of some rows."""
    tile, t, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if tile == 0 and t == 0 and part == 0:  # read by the update, after this kernel
        tl.store(powers, tl.load(powers) * 0.9)
        tl.store(powers + 1, tl.load(powers + 1) * 0.999)
    rows = tile * BM + tl.arange(0, BM)
    live = (rows < B)[:, None]
    picked = tl.load(index + t * B + rows, mask=rows < B, other=0)
    a = tl.arange(0, HA)
    b = HA + tl.arange(0, HB)
    sums_a = tl.zeros((BM, HA), dtype=tl.float32)
    sums_b = tl.zeros((BM, HB), dtype=tl.float32)
    share = tl.cdiv(tl.cdiv(C, PARTS), BK) * BK
    for k in range(part * share, tl.minimum((part + 1) * share, C), BK):
        c = k + tl.arange(0, BK)
        inside = (c < C)[None, :]
        x = tl.load(table + picked[:, None] * C + c[None, :], mask=live & inside, other=0.0)
        if NOISY:
            x *= _noise(bank, places, t, rows, c, live & inside, C)
        x *= tl.load(gate + t * C + c, mask=c < C, other=0.0)[None, :]
        some = (a < H)[:, None] & inside
        layer_a = tl.load(w1 + (t * H + a[:, None]) * C + c[None, :], mask=some, other=0.0)
        sums_a = tl.dot(x, tl.trans(layer_a), sums_a, input_precision=PRECISION)
        some = (b < H)[:, None] & inside
        layer_b = tl.load(w1 + (t * H + b[:, None]) * C + c[None, :], mask=some, other=0.0)
        sums_b = tl.dot(x, tl.trans(layer_b), sums_b, input_precision=PRECISION)
    spot = ((t * PARTS + part) * B + rows[:, None]) * H
    tl.store(sums + spot + a[None, :], sums_a, mask=live & (a < H)[None, :])
    tl.store(sums + spot + b[None, :], sums_b, mask=live & (b < H)[None, :])


@triton.jit
def _noise(bank, places, t, rows, c, live, C):
    """What the inputs of some rows of a model's batch are multiplied by."""
    return tl.load(bank + tl.load(places + t) + rows[:, None] * C + c[None, :], mask=live, other=0.0)


@triton.jit
def top_and_back(
    sums, y, w, b1, w2, b2, back, g_w2, g_b1, g_b2, losses, B, OUTS,
    WEIGHTED: tl.constexpr, SHARED: tl.constexpr, PARTS: tl.constexpr, BM: tl.constexpr,
    H: tl.constexpr, HA: tl.constexpr, HB: tl.constexpr, OP: tl.constexpr,
    LOSS: tl.constexpr, SMOOTHING: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """Some rows of a trial: from the hidden sums to the loss and back to the sums' gradient."""
    tile, t = tl.program_id(0), tl.program_id(1)
    which = t * tl.num_programs(0) + tile
    rows = tile * BM + tl.arange(0, BM)
    live = rows < B
    at = t * B + rows
    given = rows if SHARED else at
    a = tl.arange(0, HA)
    b = HA + tl.arange(0, HB)
    o = tl.arange(0, OP)
    top_a = _tile(w2, t, o, a, OUTS, H)
    top_b = _tile(w2, t, o, b, OUTS, H)
    sums_a = _add_parts(sums, b1, t, rows, a, B, BM, HA, H, PARTS)
    sums_b = _add_parts(sums, b1, t, rows, b, B, BM, HB, H, PARTS)
    flow_a, slope_a = _activate(sums_a, ACTIVATION)
    flow_b, slope_b = _activate(sums_b, ACTIVATION)
    out = tl.dot(flow_a, tl.trans(top_a), input_precision="ieee")
    out = tl.dot(flow_b, tl.trans(top_b), out, input_precision="ieee")
    out += tl.load(b2 + t * OUTS + o, mask=o < OUTS, other=0.0)[None, :]
    weight = tl.where(live, 1.0, 0.0) / B
    if WEIGHTED:
        weight *= tl.load(w + given, mask=live, other=0.0)
    wrong, loss = _judge(out, y, given, o, live, OUTS, LOSS, SMOOTHING)
    wrong = tl.where(live[:, None] & (o < OUTS)[None, :], wrong * weight[:, None], 0.0)
    tl.store(losses + which, tl.sum(loss * weight, 0))
    tl.store(g_b2 + which * OUTS + o, tl.sum(wrong, 0), mask=o < OUTS)
    _backward(back, g_w2, g_b1, wrong, flow_a, slope_a, top_a, t, rows, live, which, o, a, OUTS, H, B)
    _backward(back, g_w2, g_b1, wrong, flow_b, slope_b, top_b, t, rows, live, which, o, b, OUTS, H, B)


@triton.jit
def _add_parts(
    sums, b1, t, rows, h, B,
    BM: tl.constexpr, SIZE: tl.constexpr, H: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    some = (rows < B)[:, None] & (h < H)[None, :]
    total = tl.zeros((BM, SIZE), dtype=tl.float32)
    for part in tl.static_range(PARTS):
        spot = ((t * PARTS + part) * B + rows[:, None]) * H + h[None, :]
        total += tl.load(sums + spot, mask=some, other=0.0)
    return total + tl.load(b1 + t * H + h, mask=h < H, other=0.0)[None, :]


@triton.jit
def _backward(
    back, g_w2, g_b1, wrong, flow, slope, top, t, rows, live, which, o, h, OUTS,
    H: tl.constexpr, B,
):  # fmt: skip
    """From the outputs' gradient to that of a block of hidden units, and what the rows give to the layer
    above it and to its bias."""
    wide = (h < H)[None, :]
    lower = tl.dot(wrong, top, input_precision="ieee") * slope
    tl.store(back + (t * H + h[None, :]) * B + rows[:, None], lower, mask=live[:, None] & wide)
    tl.store(g_b1 + which * H + h, tl.sum(lower, 0), mask=h < H)
    upper = tl.dot(tl.trans(wrong), flow, input_precision="ieee")
    spot = (which * OUTS + o[:, None]) * H + h[None, :]
    tl.store(g_w2 + spot, upper, mask=(o < OUTS)[:, None] & wide)


@triton.jit
def _activate(sums, ACTIVATION: tl.constexpr):
    """What hidden units hand on, and its slope."""
    if ACTIVATION == 0:
        flow = tl.maximum(sums, 0.0)
        slope = tl.where(sums > 0, 1.0, 0.0)
    elif ACTIVATION == 1:
        flow = 2 * tl.sigmoid(2 * sums) - 1
        slope = 1 - flow * flow
    elif ACTIVATION == 2:
        below = 0.5 * (1 + tl.erf(sums * 0.7071067811865476))
        flow = sums * below
        slope = below + sums * tl.exp(-0.5 * sums * sums) * 0.3989422804014327
    else:
        squashed = tl.sigmoid(sums)
        flow = sums * squashed
        slope = squashed * (1 + sums * (1 - squashed))
    return flow, slope


@triton.jit
def _judge(out, y, given, o, live, OUTS, LOSS: tl.constexpr, SMOOTHING: tl.constexpr):
    """The loss of each row, and the gradient of that of smoothed labels with respect to the outputs."""
    real = (o < OUTS)[None, :]
    if LOSS == 0:
        label = tl.load(y + given, mask=live, other=0)
        out = tl.where(real, out, -float("inf"))
        peak = tl.max(out, 1)
        raised = tl.exp(out - peak[:, None])
        total = tl.sum(raised, 1)
        hit = o[None, :] == label[:, None]
        wrong = raised / total[:, None] - tl.where(hit, 1.0 - SMOOTHING, 0.0) - SMOOTHING / OUTS
        loss = tl.log(total) + peak - tl.sum(tl.where(hit, out, 0.0), 1)
    else:
        both = live[:, None] & real
        truth = tl.load(y + given[:, None] * OUTS + o[None, :], mask=both, other=0.0)
        if LOSS == 1:
            wrong = (tl.sigmoid(out) - truth - SMOOTHING * (0.5 - truth)) / OUTS
            each = tl.maximum(out, 0.0) - out * truth + tl.log(1 + tl.exp(-tl.abs(out)))
        else:
            wrong = (out - truth) * (2.0 / OUTS)
            each = (out - truth) * (out - truth)
        loss = tl.sum(tl.where(both, each, 0.0), 1) / OUTS
    return wrong, loss


@triton.jit
def update(
    table, index, bank, places, gate, back, g_w2, g_b1, g_b2, grad, powers, rate,
    w1, w1_m, w1_v, w2, w2_m, w2_v, b1, b1_m, b1_v, b2, b2_m, b2_v,
    B, C, OUTS, TILES,
    NOISY: tl.constexpr, BD: tl.constexpr, BK: tl.constexpr, BP: tl.constexpr, BT: tl.constexpr,
    H: tl.constexpr, HA: tl.constexpr, HB: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients and Adam's step: programs for columns of the first layer, then for the rest."""
    t = tl.program_id(1)
    pace, fix = corrections(powers, rate)
    block = tl.program_id(0) - tl.cdiv(C, BD)
    layer = tl.cdiv(OUTS * H, BP)
    bias = tl.cdiv(H, BP)
    if block < 0:
        _update_columns(
            tl.program_id(0), t, table, index, bank, places, gate, back, grad, w1, w1_m, w1_v, pace, fix,
            B, C, NOISY, BD, BK, H, HA, HB, PRECISION,
        )  # fmt: skip
    elif block < layer:
        _step_tail(w2, w2_m, w2_v, g_w2, t, block, OUTS * H, TILES, pace, fix, BP, BT)
    elif block < layer + bias:
        _step_tail(b1, b1_m, b1_v, g_b1, t, block - layer, H, TILES, pace, fix, BP, BT)
    else:
        _step_tail(b2, b2_m, b2_v, g_b2, t, block - layer - bias, OUTS, TILES, pace, fix, BP, BT)


@triton.jit
def _update_columns(
    tile, t, table, index, bank, places, gate, back, grad, w1, w1_m, w1_v, pace, fix, B, C,
    NOISY: tl.constexpr, BD: tl.constexpr, BK: tl.constexpr, H: tl.constexpr, HA: tl.constexpr,
    HB: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Columns of the first layer: their gradient, that of their weights in the gate, Adam's step."""
    a = tl.arange(0, HA)
    b = HA + tl.arange(0, HB)
    c = tile * BD + tl.arange(0, BD)
    inside = c < C
    scale = tl.load(gate + t * C + c, mask=inside, other=0.0)
    outer_a = tl.zeros((HA, BD), dtype=tl.float32)
    outer_b = tl.zeros((HB, BD), dtype=tl.float32)
    for k in range(0, B, BK):
        rows = k + tl.arange(0, BK)
        live = rows < B
        picked = tl.load(index + t * B + rows, mask=live, other=0)
        both = live[:, None] & inside[None, :]
        x = tl.load(table + picked[:, None] * C + c[None, :], mask=both, other=0.0)
        if NOISY:
            x *= _noise(bank, places, t, rows, c, both, C)
        some = (a < H)[:, None] & live[None, :]
        back_a = tl.load(back + (t * H + a[:, None]) * B + rows[None, :], mask=some, other=0.0)
        some = (b < H)[:, None] & live[None, :]
        back_b = tl.load(back + (t * H + b[:, None]) * B + rows[None, :], mask=some, other=0.0)
        outer_a = tl.dot(back_a, x, outer_a, input_precision=PRECISION)
        outer_b = tl.dot(back_b, x, outer_b, input_precision=PRECISION)
    gain_a = _step_columns(w1, w1_m, w1_v, t, a, c, outer_a, scale, pace, fix, H, C)
    gain_b = _step_columns(w1, w1_m, w1_v, t, b, c, outer_b, scale, pace, fix, H, C)
    tl.store(grad + t * C + c, gain_a + gain_b, mask=inside)


@triton.jit
def _step_columns(w1, w1_m, w1_v, t, h, c, outer, scale, pace, fix, H, C):
    """Adam on a block of the first layer; the block's share of the gate's gradient."""
    place = (t * H + h[:, None]) * C + c[None, :]
    kept = (h < H)[:, None] & (c < C)[None, :]
    value = tl.load(w1 + place, mask=kept, other=0.0)
    gain = tl.sum(value * outer, 0)
    value = step(value, outer * scale[None, :], w1_m, w1_v, place, kept, pace, fix)
    tl.store(w1 + place, value, mask=kept)
    return gain


@triton.jit
def _step_tail(w, w_m, w_v, grads, t, block, SIZE, TILES, pace, fix, BP: tl.constexpr, BT: tl.constexpr):
    """Adam on some of a small tensor, from what each tile of rows gave to its gradient."""
    j = block * BP + tl.arange(0, BP)
    live = j < SIZE
    value = tl.load(w + t * SIZE + j, mask=live, other=0.0)
    total = tl.zeros((BP,), dtype=tl.float32)
    for start in range(0, TILES, BT):
        tile = start + tl.arange(0, BT)
        spot = (t * TILES + tile[:, None]) * SIZE + j[None, :]
        total += tl.sum(tl.load(grads + spot, mask=(tile < TILES)[:, None] & live[None, :], other=0.0), 0)
    tl.store(w + t * SIZE + j, step(value, total, w_m, w_v, t * SIZE + j, live, pace, fix), mask=live)


@triton.jit
def _tile(w, t, o, h, OUTS, H):
    kept = (o < OUTS)[:, None] & (h < H)[None, :]
    return tl.load(w + (t * OUTS + o[:, None]) * H + h[None, :], mask=kept, other=0.0)
