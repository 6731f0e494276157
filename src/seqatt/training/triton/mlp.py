"""Triton kernels of the MLP's training step: first layer, loss and backward pass, Adam.

``fused.py`` launches them. Sizes: B rows per batch, C columns, H hidden units, OUTS outputs. The models are
one axis of the program grid; ``t`` is the number of a program's model. ``sums`` are the pre-activations of
the hidden layer. ``g_x`` points to gradients of x, ``w_m`` and ``w_v`` to Adam's moments of w.

Tile sizes: BM rows, BD columns, BK terms of a sum, BP parameters, BT tiles of rows; HA and HB are the sizes of
blocks a and b, OP is OUTS padded. SHARED: all models have the same targets. LOSS and ACTIVATION are codes of
``fused.py``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from seqatt.training.triton.adam import adam_step, bias_corrections

# Hidden units are processed in two blocks, a and b, because the sides of a tile are powers of two: 67 units,
# the default, are padded to 64 + 16 = 80 instead of 128.


@triton.jit
def first_layer_sums(
    table, index, bank, offsets, gate, w1, sums, beta_powers, B, C,
    DROPOUT: tl.constexpr, SPLITS: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
    H: tl.constexpr, HA: tl.constexpr, HB: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The contribution of one split of the columns to the hidden sums of one tile of rows."""
    tile, t, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if tile == 0 and t == 0 and split == 0:  # ``adam_update``, which runs after this kernel, reads them
        tl.store(beta_powers, tl.load(beta_powers) * 0.9)
        tl.store(beta_powers + 1, tl.load(beta_powers + 1) * 0.999)
    rows = tile * BM + tl.arange(0, BM)
    in_batch = (rows < B)[:, None]
    table_rows = tl.load(index + t * B + rows, mask=rows < B, other=0)
    a = tl.arange(0, HA)
    b = HA + tl.arange(0, HB)
    sums_a = tl.zeros((BM, HA), dtype=tl.float32)
    sums_b = tl.zeros((BM, HB), dtype=tl.float32)
    split_columns = tl.cdiv(tl.cdiv(C, SPLITS), BK) * BK
    for k in range(split * split_columns, tl.minimum((split + 1) * split_columns, C), BK):
        c = k + tl.arange(0, BK)
        in_table = (c < C)[None, :]
        x = tl.load(table + table_rows[:, None] * C + c[None, :], mask=in_batch & in_table, other=0.0)
        if DROPOUT:
            x *= _dropout_factors(bank, offsets, t, rows, c, in_batch & in_table, C)
        x *= tl.load(gate + t * C + c, mask=c < C, other=0.0)[None, :]
        valid = (a < H)[:, None] & in_table
        layer_a = tl.load(w1 + (t * H + a[:, None]) * C + c[None, :], mask=valid, other=0.0)
        sums_a = tl.dot(x, tl.trans(layer_a), sums_a, input_precision=PRECISION)
        valid = (b < H)[:, None] & in_table
        layer_b = tl.load(w1 + (t * H + b[:, None]) * C + c[None, :], mask=valid, other=0.0)
        sums_b = tl.dot(x, tl.trans(layer_b), sums_b, input_precision=PRECISION)
    address = ((t * SPLITS + split) * B + rows[:, None]) * H
    tl.store(sums + address + a[None, :], sums_a, mask=in_batch & (a < H)[None, :])
    tl.store(sums + address + b[None, :], sums_b, mask=in_batch & (b < H)[None, :])


@triton.jit
def _dropout_factors(bank, offsets, t, rows, c, valid, C):
    """The dropout factors of inputs: rows ``rows`` of the model's batch, columns ``c``."""
    return tl.load(bank + tl.load(offsets + t) + rows[:, None] * C + c[None, :], mask=valid, other=0.0)


@triton.jit
def loss_and_backward(
    sums, y, w, b1, w2, b2, g_sums, g_w2, g_b1, g_b2, losses, B, OUTS,
    WEIGHTED: tl.constexpr, SHARED: tl.constexpr, SPLITS: tl.constexpr, BM: tl.constexpr,
    H: tl.constexpr, HA: tl.constexpr, HB: tl.constexpr, OP: tl.constexpr,
    LOSS: tl.constexpr, SMOOTHING: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """One tile of rows: from the hidden sums to the loss, and back to the gradients of the hidden sums."""
    tile, t = tl.program_id(0), tl.program_id(1)
    tile_index = t * tl.num_programs(0) + tile
    rows = tile * BM + tl.arange(0, BM)
    in_batch = rows < B
    batch_rows = t * B + rows
    target_rows = rows if SHARED else batch_rows
    a = tl.arange(0, HA)
    b = HA + tl.arange(0, HB)
    o = tl.arange(0, OP)
    w2_a = _load_w2(w2, t, o, a, OUTS, H)
    w2_b = _load_w2(w2, t, o, b, OUTS, H)
    sums_a = _sum_splits(sums, b1, t, rows, a, B, BM, HA, H, SPLITS)
    sums_b = _sum_splits(sums, b1, t, rows, b, B, BM, HB, H, SPLITS)
    active_a, slope_a = _activate(sums_a, ACTIVATION)
    active_b, slope_b = _activate(sums_b, ACTIVATION)
    out = tl.dot(active_a, tl.trans(w2_a), input_precision="ieee")
    out = tl.dot(active_b, tl.trans(w2_b), out, input_precision="ieee")
    out += tl.load(b2 + t * OUTS + o, mask=o < OUTS, other=0.0)[None, :]
    weight = tl.where(in_batch, 1.0, 0.0) / B
    if WEIGHTED:
        weight *= tl.load(w + target_rows, mask=in_batch, other=0.0)
    out_grad, loss = _loss_and_gradient(out, y, target_rows, o, in_batch, OUTS, LOSS, SMOOTHING)
    out_grad = tl.where(in_batch[:, None] & (o < OUTS)[None, :], out_grad * weight[:, None], 0.0)
    tl.store(losses + tile_index, tl.sum(loss * weight, 0))
    tl.store(g_b2 + tile_index * OUTS + o, tl.sum(out_grad, 0), mask=o < OUTS)
    _backward(
        g_sums, g_w2, g_b1, out_grad, active_a, slope_a, w2_a, t, rows, in_batch, tile_index, o, a, OUTS, H, B
    )  # fmt: skip
    _backward(
        g_sums, g_w2, g_b1, out_grad, active_b, slope_b, w2_b, t, rows, in_batch, tile_index, o, b, OUTS, H, B
    )  # fmt: skip


@triton.jit
def _sum_splits(
    sums, b1, t, rows, h, B,
    BM: tl.constexpr, SIZE: tl.constexpr, H: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    valid = (rows < B)[:, None] & (h < H)[None, :]
    total = tl.zeros((BM, SIZE), dtype=tl.float32)
    for split in tl.static_range(SPLITS):
        address = ((t * SPLITS + split) * B + rows[:, None]) * H + h[None, :]
        total += tl.load(sums + address, mask=valid, other=0.0)
    return total + tl.load(b1 + t * H + h, mask=h < H, other=0.0)[None, :]


@triton.jit
def _backward(
    g_sums, g_w2, g_b1, out_grad, active, slope, w2, t, rows, in_batch, tile_index, o, h, OUTS,
    H: tl.constexpr, B,
):  # fmt: skip
    """From the gradient of the outputs to that of a block of hidden sums, and this tile's contributions to
    the gradients of ``w2`` and ``b1``."""
    valid_units = (h < H)[None, :]
    sums_grad = tl.dot(out_grad, w2, input_precision="ieee") * slope
    valid = in_batch[:, None] & valid_units
    tl.store(g_sums + (t * H + h[None, :]) * B + rows[:, None], sums_grad, mask=valid)
    tl.store(g_b1 + tile_index * H + h, tl.sum(sums_grad, 0), mask=h < H)
    w2_grad = tl.dot(tl.trans(out_grad), active, input_precision="ieee")
    address = (tile_index * OUTS + o[:, None]) * H + h[None, :]
    tl.store(g_w2 + address, w2_grad, mask=(o < OUTS)[:, None] & valid_units)


@triton.jit
def _activate(sums, ACTIVATION: tl.constexpr):
    """The activations of hidden units, and their derivative."""
    if ACTIVATION == 0:
        active = tl.maximum(sums, 0.0)
        slope = tl.where(sums > 0, 1.0, 0.0)
    elif ACTIVATION == 1:
        active = 2 * tl.sigmoid(2 * sums) - 1
        slope = 1 - active * active
    elif ACTIVATION == 2:
        cdf = 0.5 * (1 + tl.erf(sums * 0.7071067811865476))
        active = sums * cdf
        slope = cdf + sums * tl.exp(-0.5 * sums * sums) * 0.3989422804014327
    else:
        sigmoid = tl.sigmoid(sums)
        active = sums * sigmoid
        slope = sigmoid * (1 + sums * (1 - sigmoid))
    return active, slope


@triton.jit
def _loss_and_gradient(out, y, target_rows, o, in_batch, OUTS, LOSS: tl.constexpr, SMOOTHING: tl.constexpr):
    """The gradient of the loss (with smoothed labels) for the outputs, and each row's loss (without)."""
    valid_outputs = (o < OUTS)[None, :]
    if LOSS == 0:
        label = tl.load(y + target_rows, mask=in_batch, other=0)
        out = tl.where(valid_outputs, out, -float("inf"))
        max_out = tl.max(out, 1)
        exps = tl.exp(out - max_out[:, None])
        total = tl.sum(exps, 1)
        is_label = o[None, :] == label[:, None]
        out_grad = exps / total[:, None] - tl.where(is_label, 1.0 - SMOOTHING, 0.0) - SMOOTHING / OUTS
        loss = tl.log(total) + max_out - tl.sum(tl.where(is_label, out, 0.0), 1)
    else:
        valid = in_batch[:, None] & valid_outputs
        target = tl.load(y + target_rows[:, None] * OUTS + o[None, :], mask=valid, other=0.0)
        if LOSS == 1:
            out_grad = (tl.sigmoid(out) - target - SMOOTHING * (0.5 - target)) / OUTS
            per_output = tl.maximum(out, 0.0) - out * target + tl.log(1 + tl.exp(-tl.abs(out)))
        else:
            out_grad = (out - target) * (2.0 / OUTS)
            per_output = (out - target) * (out - target)
        loss = tl.sum(tl.where(valid, per_output, 0.0), 1) / OUTS
    return out_grad, loss


@triton.jit
def adam_update(
    table, index, bank, offsets, gate, g_sums, g_w2, g_b1, g_b2, gate_grad, decay, gradients, beta_powers, lr,
    w1, w1_m, w1_v, w2, w2_m, w2_v, b1, b1_m, b1_v, b2, b2_m, b2_v,
    B, C, OUTS, TILES,
    DROPOUT: tl.constexpr, DECAY: tl.constexpr, SUM_GRADIENTS: tl.constexpr, BD: tl.constexpr, BK: tl.constexpr,
    BP: tl.constexpr, BT: tl.constexpr, H: tl.constexpr, HA: tl.constexpr, HB: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients and Adam's step: programs for the columns of ``w1``, then for ``w2``, ``b1`` and ``b2``."""
    t = tl.program_id(1)
    step_size, v_scale = bias_corrections(beta_powers, lr)
    block = tl.program_id(0) - tl.cdiv(C, BD)
    w2_blocks = tl.cdiv(OUTS * H, BP)
    b1_blocks = tl.cdiv(H, BP)
    if block < 0:
        _update_columns(
            tl.program_id(0), t, table, index, bank, offsets, gate, g_sums, gate_grad, decay, gradients,
            w1, w1_m, w1_v, step_size, v_scale, B, C, DROPOUT, DECAY, SUM_GRADIENTS, BD, BK, H, HA, HB, PRECISION,
        )  # fmt: skip
    elif block < w2_blocks:
        _adam_from_tiles(w2, w2_m, w2_v, g_w2, t, block, OUTS * H, TILES, step_size, v_scale, BP, BT)
    elif block < w2_blocks + b1_blocks:
        _adam_from_tiles(b1, b1_m, b1_v, g_b1, t, block - w2_blocks, H, TILES, step_size, v_scale, BP, BT)
    else:
        _adam_from_tiles(
            b2, b2_m, b2_v, g_b2, t, block - w2_blocks - b1_blocks, OUTS, TILES, step_size, v_scale, BP, BT
        )


@triton.jit
def _update_columns(
    tile, t, table, index, bank, offsets, gate, g_sums, gate_grad, decay, gradients, w1, w1_m, w1_v, step_size, v_scale,
    B, C, DROPOUT: tl.constexpr, DECAY: tl.constexpr, SUM_GRADIENTS: tl.constexpr, BD: tl.constexpr,
    BK: tl.constexpr, H: tl.constexpr, HA: tl.constexpr, HB: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of columns of ``w1``: their gradient and weight decay, the gate's gradient, and Adam's step."""
    a = tl.arange(0, HA)
    b = HA + tl.arange(0, HB)
    c = tile * BD + tl.arange(0, BD)
    in_table = c < C
    scale = tl.load(gate + t * C + c, mask=in_table, other=0.0)
    w1_grad_a = tl.zeros((HA, BD), dtype=tl.float32)
    w1_grad_b = tl.zeros((HB, BD), dtype=tl.float32)
    for k in range(0, B, BK):
        rows = k + tl.arange(0, BK)
        in_batch = rows < B
        table_rows = tl.load(index + t * B + rows, mask=in_batch, other=0)
        valid_x = in_batch[:, None] & in_table[None, :]
        x = tl.load(table + table_rows[:, None] * C + c[None, :], mask=valid_x, other=0.0)
        if DROPOUT:
            x *= _dropout_factors(bank, offsets, t, rows, c, valid_x, C)
        valid = (a < H)[:, None] & in_batch[None, :]
        sums_grad_a = tl.load(g_sums + (t * H + a[:, None]) * B + rows[None, :], mask=valid, other=0.0)
        valid = (b < H)[:, None] & in_batch[None, :]
        sums_grad_b = tl.load(g_sums + (t * H + b[:, None]) * B + rows[None, :], mask=valid, other=0.0)
        w1_grad_a = tl.dot(sums_grad_a, x, w1_grad_a, input_precision=PRECISION)
        w1_grad_b = tl.dot(sums_grad_b, x, w1_grad_b, input_precision=PRECISION)
    penalty = tl.zeros((BD,), dtype=tl.float32)
    if DECAY:
        penalty = tl.load(decay + t * C + c, mask=in_table, other=0.0)
    gate_grad_a = _adam_columns(w1, w1_m, w1_v, t, a, c, w1_grad_a, scale, penalty, step_size, v_scale, H, C)
    gate_grad_b = _adam_columns(w1, w1_m, w1_v, t, b, c, w1_grad_b, scale, penalty, step_size, v_scale, H, C)
    tl.store(gate_grad + t * C + c, gate_grad_a + gate_grad_b, mask=in_table)
    if SUM_GRADIENTS:
        _add_columns(gradients, t, a, c, w1_grad_a, scale, H, C)
        _add_columns(gradients, t, b, c, w1_grad_b, scale, H, C)


@triton.jit
def _adam_columns(w1, w1_m, w1_v, t, h, c, w1_grad, scale, penalty, step_size, v_scale, H, C):
    """Adam on a block of ``w1``; returns the block's contribution to the gradient of the gate weights."""
    address = (t * H + h[:, None]) * C + c[None, :]
    valid = (h < H)[:, None] & (c < C)[None, :]
    value = tl.load(w1 + address, mask=valid, other=0.0)
    gate_grad = tl.sum(value * w1_grad, 0)
    total = w1_grad * scale[None, :] + value * penalty[None, :]
    value = adam_step(value, total, w1_m, w1_v, address, valid, step_size, v_scale)
    tl.store(w1 + address, value, mask=valid)
    return gate_grad


@triton.jit
def _add_columns(gradients, t, h, c, w1_grad, scale, H, C):
    """Add the gradient of a block of ``w1`` to the sum over steps."""
    address = (t * H + h[:, None]) * C + c[None, :]
    valid = (h < H)[:, None] & (c < C)[None, :]
    total = tl.load(gradients + address, mask=valid, other=0.0) + w1_grad * scale[None, :]
    tl.store(gradients + address, total, mask=valid)


@triton.jit
def _adam_from_tiles(
    w, w_m, w_v, grads, t, block, SIZE, TILES, step_size, v_scale, BP: tl.constexpr, BT: tl.constexpr
):
    """Adam on one block of a small tensor, whose gradient is the sum over the tiles of rows."""
    j = block * BP + tl.arange(0, BP)
    valid = j < SIZE
    value = tl.load(w + t * SIZE + j, mask=valid, other=0.0)
    total = tl.zeros((BP,), dtype=tl.float32)
    for start in range(0, TILES, BT):
        tile = start + tl.arange(0, BT)
        address = (t * TILES + tile[:, None]) * SIZE + j[None, :]
        total += tl.sum(tl.load(grads + address, mask=(tile < TILES)[:, None] & valid[None, :], other=0.0), 0)
    value = adam_step(value, total, w_m, w_v, t * SIZE + j, valid, step_size, v_scale)
    tl.store(w + t * SIZE + j, value, mask=valid)


@triton.jit
def _load_w2(w, t, o, h, OUTS, H):
    valid = (o < OUTS)[:, None] & (h < H)[None, :]
    return tl.load(w + (t * OUTS + o[:, None]) * H + h[None, :], mask=valid, other=0.0)
