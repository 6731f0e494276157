"""One call of ``select_trials``: its options, its checkpoints, and the selections made of its result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from seqatt.algorithms.registry import Method
from seqatt.algorithms.request import RunContext, SelectionRequest, select_arranged
from seqatt.api.confidence.post_selection import check_importance, examine_traces
from seqatt.api.constraints.constraint_set import Constraints, find_constraints
from seqatt.api.phase_steps import warn_about_few_steps
from seqatt.api.read_data import Reading, categories_for
from seqatt.api.select_options import CheckedOptions
from seqatt.api.stability.repeats import check_table, select_repeatedly
from seqatt.callbacks.callback import SELECTION
from seqatt.callbacks.monitor import Monitor, Part
from seqatt.checkpoints.checkpointer import Checkpointer
from seqatt.checkpoints.run_description import describe_run
from seqatt.checkpoints.training import CheckpointHook
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import count_shards
from seqatt.data.selected_notes import note_selected
from seqatt.data.tables.scaling import scale_table
from seqatt.data.tables.table_data import TableData, resolve_k
from seqatt.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from seqatt.options import given_options
from seqatt.progress import Advance, Timings
from seqatt.selection import Selection, SelectionInterrupted, TrainingDiverged, make_selection
from seqatt.trace import Trace
from seqatt.training.loop import Diverged, TrainingHook, TrainingInterrupted
from seqatt.version import describe_environment

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.api.knockoffs.discoveries import Discoveries
    from seqatt.data.files.file_data import FileData

INTERRUPTED, STOPPED = "interrupted", "stopped"  # why a result is partial
WITH_KNOCKOFFS = "features and knockoffs"  # the selection itself, with ``fdr``


class Run:
    """One method on one set of data, once per seed."""

    def __init__(
        self,
        method: Method,
        seeds: list[int],
        options: CheckedOptions,
        device: torch.device,
        timings: Timings,
    ) -> None:
        self.method, self.seeds, self.options = method, seeds, options
        self.device, self.timings = device, timings
        self.ranks: ProcessGroup = SINGLE_PROCESS
        self._settings: dict[str, Any] = {}
        self._whole: TableData | FileData  # with features that may not be selected
        self._layout: TableData | FileData
        self.monitor = Monitor()
        self.selections: list[Selection] = []  # when the run has ended
        self._hook = TrainingHook()
        self._curve: dict[str, Any] | None = None
        self._frontier: dict[str, Any] | None = None

    @property
    def file_options(self) -> FileOptions:
        data = self.options.data
        return data if isinstance(data, FileOptions) else FileOptions()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Call the callbacks at the end. If one of them has requested to stop, the partial result is the result."""
        try:
            yield
        except KeyboardInterrupt as error:
            if not self.monitor.stop_requested:
                raise
            self._settings["partial"] = STOPPED
            nothing = Trace([], list(range(self._layout.features)))
            self.selections = getattr(error, "selections", []) or self._make_selections([nothing])
        finally:
            self.monitor.end(self.selections[0] if self.selections else None)

    @contextmanager
    def open(
        self, reading: Reading, k: Any, bar: Advance
    ) -> Iterator[tuple[Callable[[], list[Trace]], SelectionRequest]]:
        """The function that selects and the request of the method, with progress and checkpoints while it runs."""
        data, source, method = reading.data, None, self.method
        self.monitor.bar, advance = bar, self.monitor.advance
        constraints = find_constraints(data, self.options.answer, method, self.options.method)
        if constraints.costs is not None:
            constraints = self._fit_budget(constraints, k, advance)
            k = constraints.data.features
        if constraints.excluded:
            self.monitor.names = tuple(data.given_names[f] for f in np.argsort(data.user_position))
        self._whole, data = data, self._scale(constraints.data)
        repeats = self.options.answer.repeats
        if repeats:
            check_table(data)
        discoveries = self._make_knockoffs(data, k, advance)
        checkpointer = Checkpointer(self.options.checkpoints, self.ranks.rank == 0, self.monitor)
        if not isinstance(data, TableData) and method.trains:
            from seqatt.api.read_files import make_source  # here, because only files need pyarrow

            data, source = make_source(data, self.file_options, self.ranks, checkpointer.flags)
            reading.facts["shards"] = count_shards(self.file_options.shards, self.ranks.size)
        self._layout, kept = data, constraints.kept
        request = self._make_request(data, source=source, kept=kept)
        facts: dict[str, Any] = {"k": 0, "task": data.target.task, "rows": data.rows, **constraints.settings}
        self._settings = facts  # if it ends before k is chosen
        if discoveries is not None:
            request, count = replace(request, data=discoveries.table), discoveries.size
        elif self.options.answer.check_k(k):
            count = self._choose_k(request, constraints, advance)
        else:
            count = resolve_k(k, data.features + constraints.excluded * isinstance(k, int))
        if kept and count <= len(kept):
            raise ValueError(
                f"keep: has {len(kept)} features, so that none is left to select for k={count}; use a larger k"
            )
        request = replace(request, k=count, quotas=None if discoveries else constraints.bound(count))
        plan = method.plan(request)
        warn_about_few_steps(method, request, plan)
        if self.options.answer.importance:
            check_importance(data, plan)
        facts |= {"k": count, **data.target.facts(uses_loss=method.uses_loss)}
        self._settings = facts | self.options.data.to_settings() | reading.settings | plan.settings
        name, layout = (SELECTION, data) if discoveries is None else (WITH_KNOCKOFFS, discoveries)
        steps = plan.steps if method.trains or isinstance(data, TableData) else data.rows  # sums count rows
        part = self.monitor.start_part(name, layout.user_position, layout.given_names, count, steps)
        self._hook = self._make_hook(checkpointer, request.data, count, part)
        request = replace(request, hook=self._hook)
        select_features = method.select if isinstance(data, TableData) else method.select_files
        assert select_features is not None
        counted: Callable[..., None] = self._hook.advance
        if repeats and (self._curve is None or self._curve["chosen"]):
            select_features, counted = partial(select_repeatedly, method, repeats), advance
        if discoveries is not None:
            select_features = partial(discoveries.select, method)
        elif kept or request.quotas is not None:
            select_features = partial(select_arranged, select_features)
        self.timings.end("prepare")
        self.monitor.bar(0, method.title, steps, self.monitor.describe)
        try:
            yield partial(select_features, request, plan, counted), request
        except Diverged as error:
            self._settings["partial"] = "diverged"
            raise TrainingDiverged(str(error), self._make_partial(error.traces, request)) from None
        except TrainingInterrupted as error:
            self._settings["partial"] = STOPPED if self.monitor.stop_requested else INTERRUPTED
            # With several strengths of a penalty there are more traces than seeds: none of them is chosen yet.
            selections = self._make_partial(error.traces * (len(error.traces) <= len(self.seeds)), request)
            selected = min((len(selection.features) for selection in selections), default=0)
            message = f"interrupted after {selected} of {count} features were selected"
            finished = [s.stability["repeats"] for s in selections if s.stability is not None]
            if finished and finished[0] < repeats:
                message = f"interrupted after {finished[0]} of {repeats} repeats"
            if discoveries is not None:
                message = "interrupted before the features were compared with their knockoffs"
            raise SelectionInterrupted(message, selections) from None
        finally:
            if isinstance(self._hook, CheckpointHook):
                self._hook.close()

    def _make_request(self, data: TableData | FileData, **others: Any) -> SelectionRequest:
        """A request for one feature of the data, for each seed."""
        others |= {"context": RunContext(self.file_options, self.options.checkpoints, self.ranks)}
        hook = TrainingHook(Part(self.monitor))
        return SelectionRequest(data, 1, self.seeds, self.options.method, self.device, hook, **others)

    def _scale(self, data: TableData | FileData) -> TableData | FileData:
        scaling = self.options.method.scaling
        return scale_table(data, scaling) if isinstance(data, TableData) else data.scaled(scaling)

    def _fit_budget(self, constraints: Constraints, k: Any, advance: Advance) -> Constraints:
        """Those that leave the features that a budget pays for best; one if none is worth its cost."""
        from seqatt.api.constraints.frontier import fit_budget  # here, because it needs pyarrow

        self.timings.end("prepare")
        data = self._scale(constraints.data)
        request = self._make_request(data)
        categories = categories_for(self.method, self.options.method.own_inputs)
        frontier = fit_budget(self.method, request, constraints, self.options.answer, k, categories, advance)
        self._frontier = json.loads(self.ranks.broadcast_text(json.dumps(frontier)))
        self.timings.end("choose")
        return constraints.only(self._frontier["chosen"] or np.flatnonzero(~data.constant)[:1].tolist())

    def _make_knockoffs(self, data: TableData | FileData, k: Any, advance: Advance) -> Discoveries | None:
        """The features and the knockoffs that they are compared with; None without ``fdr``."""
        fdr = self.options.answer.fdr
        if fdr is None:
            return None
        from seqatt.api.knockoffs.discoveries import Discoveries  # here, because only it needs scipy.linalg

        advance(0, "Making knockoffs")
        return Discoveries(data, fdr, k, self.seeds[0])

    def _choose_k(self, request: SelectionRequest, constraints: Constraints, advance: Advance) -> int:
        """The number of features for k="auto"; 1 where there is nothing to find, for the ranking of the features."""
        from seqatt.api.choose_k import choose_k, resolve_max_k  # here, because it needs pyarrow
        from seqatt.api.confidence.sample import sample_request

        self.timings.end("prepare")
        request = sample_request(request, categories_for(self.method, self.options.method.own_inputs))
        max_k = resolve_max_k(
            request.table, self.options.answer.max_k, constraints.sizes(), len(request.kept)
        )
        request = replace(request, k=max_k, quotas=constraints.bound(max_k))
        curve = choose_k(self.method, request, self.options.answer.k_rule, advance, constraints.sizes()[0])
        # On other machines the last digits may differ, and all ranks must select as many.
        self._curve = json.loads(self.ranks.broadcast_text(json.dumps(curve)))
        self.timings.end("choose")
        return int(self._curve["chosen"]) or 1

    def examine(self, request: SelectionRequest, traces: list[Trace]) -> list[Trace]:
        """The traces with importance and stand-ins, compared with random features where none is significant alone."""
        if isinstance(self._hook, CheckpointHook) and self._hook.release_signals():
            raise TrainingInterrupted(traces)
        answer = self.options.answer
        if answer.importance is False:
            traces = [replace(trace, importance=None) for trace in traces]
        if not isinstance(self._layout, TableData):
            return traces
        nothing = self._frontier is not None and not self._frontier["chosen"]
        fixed = self._curve is None and not answer.repeats and answer.fdr is None and not nothing
        request = replace(request, data=self._layout)  # without knockoffs
        try:
            advance, measures = self.monitor.advance, {"importance": bool(answer.importance), "chance": fixed}
            return examine_traces(self.method, request, traces, advance, self.timings, **measures)
        except KeyboardInterrupt:
            if self.monitor.stop_requested:  # when all features were selected: nothing is missing of them
                return traces
            raise TrainingInterrupted(traces) from None

    def finish(self, traces: list[Trace]) -> list[Selection]:
        """The selections, after the checkpoint was marked as that of a finished run."""
        if isinstance(self._hook, CheckpointHook):
            self._hook.complete()
        self.selections = self._make_selections(traces)
        return self.selections

    def _make_hook(
        self, checkpointer: Checkpointer, data: TableData | FileData, k: int, part: Part
    ) -> TrainingHook:
        """Checkpoints of the methods that the training loop trains; sums over files write their own."""
        if checkpointer.active and isinstance(data, TableData) and not self.method.trains:
            raise ValueError(
                f"checkpoint: {self.method.name} writes none on a table; checkpoints are for methods that train a "
                "network in phases"
            )
        if not self.method.trains or not (checkpointer.active or self.ranks.size > 1):
            return TrainingHook(part)
        about = self.method.name, k, self.seeds, self._settings, self.device.type, self.options.method
        hook = CheckpointHook(checkpointer, self.ranks, describe_run(data, *about), part)
        hook.open()
        return hook

    def _make_partial(self, traces: list[Trace], request: SelectionRequest) -> list[Selection]:
        """Of a surplus that was not removed yet, only the first k features are part of the result."""
        first = [trace.first(request.k) for trace in traces]
        return self._make_selections([request.arrange(t) if len(t.order) == request.k else t for t in first])

    def _make_selections(self, traces: list[Trace]) -> list[Selection]:
        self.timings.end("select")
        if self._curve is not None:
            size, largest = self._curve["chosen"], self._curve["sizes"][-1]
            self._settings |= {"k": size, "max_k": largest, "k_rule": self.options.answer.k_rule}
            traces = [replace(trace.first(size), curve=self._curve) for trace in traces]
        if self._frontier is not None:
            frontier = dict(self._frontier)
            size, largest = len(frontier.pop("chosen")), frontier.pop("max_k")
            self._settings |= {"k": size, "max_k": largest}
            traces = [replace(trace.first(size), frontier=frontier) for trace in traces]
        return [
            make_selection(
                self._layout,
                trace,
                self._whole,
                method=self.method.name,
                seed=seed,
                settings=self._settings_of(trace),
                environment=describe_environment(str(self.device)),
                timings=dict(self.timings.seconds),
            )
            for seed, trace in zip(self.seeds, traces, strict=False)  # a run that diverged has fewer traces
        ]

    def _settings_of(self, trace: Trace) -> dict[str, Any]:
        notes = [*trace.settings.get("notes", []), *self._settings.get("notes", [])]
        notes += note_selected(self._layout, trace.order, self._settings, self.options)
        settings = self._settings | trace.settings | ({"notes": notes} if notes else {})
        return settings | {"options": given_options(*self.options)}
