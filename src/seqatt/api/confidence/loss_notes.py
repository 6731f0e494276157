"""Notes about losses: a model of the user that learns nothing, and features that networks are better without."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from seqatt.algorithms.request import SelectionRequest
from seqatt.data.tables.column_notes import listed
from seqatt.data.tables.table_data import TableData
from seqatt.data.tables.weights import BALANCED_SHARE, balanced_share
from seqatt.display_text import NO_NAME
from seqatt.losses.table import autograd_loss
from seqatt.trace import Trace
from seqatt.training.backend.threads import single_thread
from seqatt.training.defaults import resolve_batch_size
from seqatt.training.trainer import LOSS_INTERVAL

Z = 2.0  # standard errors of the recorded training loss by which a model that learns is below a constant prediction
MIN_GAIN = 0.005  # share of the loss of the constant, below which a difference means nothing
MIN_STEPS = 50  # in the later half of the training; fewer do not show whether a model learns
HARMFUL_Z = 3.0  # standard errors by which the held-out loss is lower without a feature that is noted
MAX_ROWS = 100_000  # of which the loss of a constant prediction is computed


def note_unlearned(request: SelectionRequest, traces: list[Trace]) -> list[Trace]:
    """A warning, and a note in each trace, where the user's model is no better than a constant prediction.

    The built-in networks are compared with random features instead. Not for the user's own losses, nor for losses that
    depend on the other rows of a batch.
    """
    options, data = request.options, request.data
    has_own_model = getattr(options, "model", None) is not None and options.loss is None
    if not has_own_model or not isinstance(data, TableData) or data.target.loss.coupled:
        return traces
    with single_thread():
        constant, deviation = _loss_of_constant(data, options.label_smoothing)
    batch_size = resolve_batch_size(data.rows, options.batch_size)
    noted = []
    for trace in traces:
        loss, steps = _later_loss(trace)
        error = deviation / np.sqrt(max(1, steps // LOSS_INTERVAL) * batch_size)
        if steps < MIN_STEPS or loss < constant - max(MIN_GAIN * constant, Z * error):
            noted.append(trace)
            continue
        found = (
            f"is hardly better than one prediction for all rows: its training loss is {loss:.4g}, that of the constant "
            f"{constant:.4g}. Which features it selects may be a matter of chance. Check its outputs and its "
            "initialisation, and try another learning rate or more epochs."
        )
        note = f"The model {found}"
        warnings.warn(f"model: {found}", stacklevel=2)
        noted.append(replace(trace, settings=trace.settings | {"notes": [note]}))
    return noted


def note_harmful(data: TableData, trace: Trace, kept: Sequence[int] = ()) -> Trace:
    """The trace with a note where features raise the held-out loss, or all of them are no better than none.

    Not where the held-out rows are the latest ones, whose mean and relations may be others.
    """
    found = trace.importance
    if found is None or data.target.loss.coupled or (data.units is not None and data.units.in_time):
        return trace
    notes = []
    measured = zip(found["features"], found["increases"], found["standard_errors"], strict=True)
    with single_thread():
        constant, deviation = _loss_of_constant(data, 0.0)
    least = MIN_GAIN * constant
    harmful = [f for f, rise, error in measured if f not in kept and rise < -max(HARMFUL_Z * error, least)]
    if harmful:
        names = listed([str(data.given_names[feature]) or NO_NAME for feature in harmful])
        raises, it = ("raises", "it") if len(harmful) == 1 else ("raise", "them")
        notes.append(
            f"{names} {raises} the loss on held-out rows: networks are better without {it}. Select fewer features, or "
            f"leave {it} out with forbid (--forbid)."
        )
    # Where a class is rare, networks that are right about the order of rows are often wrong about probabilities.
    margin = max(HARMFUL_Z * deviation / np.sqrt(found["rows"]), MIN_GAIN * constant)
    if found["loss"] > constant + margin and balanced_share(data.target) > BALANCED_SHARE:
        notes.append(
            f"On held-out rows networks on the selected features have a loss of {found['loss']:.4g}; {constant:.4g} "
            "is that of one prediction for all rows: they learn their rows by heart, or the features say nothing."
        )
    noted = trace.settings.get("notes", []) + notes
    return replace(trace, settings=trace.settings | {"notes": noted}) if notes else trace


def _later_loss(trace: Trace) -> tuple[float, int]:
    """The mean training loss over the later half of the steps, and how many steps these are."""
    trained = [(phase.loss, phase.steps) for phase in trace.phases if phase.steps and phase.loss is not None]
    later, steps, most = 0.0, 0, sum(steps for _, steps in trained) / 2
    for loss, phase_steps in reversed(trained):
        if steps >= most:
            break
        later, steps = later + loss * phase_steps, steps + phase_steps
    return later / max(1, steps), steps


@torch.inference_mode(mode=False)
def _loss_of_constant(data: TableData, label_smoothing: float) -> tuple[float, float]:
    """The lowest weighted mean loss of outputs that are the same in every row, and its deviation over the rows."""
    rows: slice | np.ndarray = slice(None)
    if data.rows > MAX_ROWS:
        rows = np.random.default_rng(0).choice(data.rows, MAX_ROWS, replace=False)
    target = torch.as_tensor(data.target.values[rows])
    y = target.double() if target.is_floating_point() else target
    weights = torch.ones(len(y)) if data.weights is None else torch.as_tensor(data.weights[rows])
    weights = weights.double() / weights.sum()
    outputs = torch.zeros(data.target.outputs, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([outputs], max_iter=100, line_search_fn="strong_wolfe")

    def losses() -> torch.Tensor:
        return autograd_loss(data.target.loss, outputs.expand(len(y), -1), y, label_smoothing)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = losses() @ weights
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    with torch.enable_grad():
        optimizer.step(closure)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        found = losses()
        mean = found @ weights
        return float(mean), float(((found - mean) ** 2 @ weights).sqrt())
