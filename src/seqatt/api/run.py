"""One call of ``select_trials``: its options, its checkpoints, and the selections made of its result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from seqatt.algorithms.answer_options import AnswerOptions, check_method
from seqatt.algorithms.registry import Method, get_method
from seqatt.algorithms.request import Running, SelectionRequest
from seqatt.api.confidence.examine import check_importance, examine_traces
from seqatt.api.lookup import find_features
from seqatt.api.phase_steps import warn_about_few_steps
from seqatt.api.read_data import Reading, categories_for
from seqatt.api.stability.repeats import check_table, select_repeatedly
from seqatt.checkpoints.checkpointer import Checkpointer
from seqatt.checkpoints.options import CheckpointOptions
from seqatt.checkpoints.run_description import describe_run
from seqatt.checkpoints.training import CheckpointHook
from seqatt.data.files.options import FileOptions
from seqatt.data.files.shards import count_shards
from seqatt.data.tables.options import TableOptions
from seqatt.data.tables.scaling import scale_table
from seqatt.data.tables.table_data import TableData, resolve_k
from seqatt.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from seqatt.options import Options, given_options, names_of, to_json
from seqatt.progress import Advance, Timings
from seqatt.selection import (
    Selection,
    SelectionInterrupted,
    TrainingDiverged,
    describe_environment,
    make_selection,
)
from seqatt.trace import Trace
from seqatt.training.loop import Diverged, TrainingHook, TrainingInterrupted
from seqatt.validation import check_option_names

if TYPE_CHECKING:  # files need pyarrow, tables do not
    from seqatt.api.knockoffs.discoveries import Discoveries
    from seqatt.data.files.file_data import FileData


class CheckedOptions(NamedTuple):
    """The options of a method, of the data, of checkpoints, and of the answer."""

    method: Any
    data: TableOptions
    checkpoints: CheckpointOptions
    answer: AnswerOptions


def make_options(method: str, options: dict[str, Any], *, files: bool = False) -> CheckedOptions:
    """All options of a selection, checked; an unknown option is an error."""
    options_class: type[Options] = get_method(method).options
    data_class = FileOptions if files else TableOptions
    classes: list[type[Options]] = [options_class, data_class, CheckpointOptions, AnswerOptions]
    names = [names_of(each) for each in classes]
    for name in options:
        if not files and name in names_of(FileOptions) and name not in names[1]:
            raise TypeError(f"{name}: is for files; pass their path as X, or leave it out")
    if "recipe" in options and "recipe" not in names[0]:
        raise TypeError(f"recipe: is for sequential_attention; {method} has none, leave it out")
    check_option_names(method, options, names[0], [*names[1], *names[2], *names[3]])
    made = [
        each(**{name: value for name, value in options.items() if name in own})
        for each, own in zip(classes, names, strict=True)
    ]
    checked = CheckedOptions(*made)  # type: ignore[arg-type]
    if checked.answer.repeats and (checked.checkpoints.checkpoint is not None or checked.checkpoints.resume):
        raise ValueError(
            "checkpoint: a selection with repeats writes none; leave it out, or leave repeats out"
        )
    return checked


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
        self._layout: TableData | FileData
        self._hook = TrainingHook()
        self._kept: tuple[int, ...] = ()
        self._curve: dict[str, Any] | None = None

    @property
    def file_options(self) -> FileOptions:
        data = self.options.data
        return data if isinstance(data, FileOptions) else FileOptions()

    @contextmanager
    def open(
        self, reading: Reading, k: Any, advance: Advance
    ) -> Iterator[tuple[Callable[..., list[Trace]], SelectionRequest, Any]]:
        """The function of the method, its request and its plan, with progress and checkpoints while it runs."""
        data, source, method = reading.data, None, self.method
        scaling = getattr(self.options.method, "scaling", "standard")
        data = scale_table(data, scaling) if isinstance(data, TableData) else data.scaled(scaling)
        repeats, fdr = self.options.answer.repeats, self.options.answer.fdr
        if repeats:
            check_table(data)
        race = None if fdr is None else self._start_race(data, fdr, k, advance)
        checkpointer = Checkpointer(self.options.checkpoints, self.ranks.rank == 0)
        if not isinstance(data, TableData) and method.trains:
            from seqatt.api.read_files import make_source  # here, because only files need pyarrow

            data, source = make_source(data, self.file_options, self.ranks, checkpointer.flags)
            reading.facts["shards"] = count_shards(self.file_options.shards, self.ranks.size)
        self._layout = data
        running = Running(self.file_options, self.options.checkpoints, self.ranks)
        kept = self._kept = self._find_kept(data)
        request = SelectionRequest(
            data, 1, self.seeds, self.options.method, self.device, source=source, running=running, kept=kept
        )
        if race is not None:
            request, count = replace(request, data=race.table), race.size
        elif self.options.answer.check_k(k):
            count = self._choose_k(request, advance)
        else:
            count = resolve_k(k, data.features)
        if kept and count <= len(kept):
            raise ValueError(
                f"keep: has {len(kept)} features, so that none is left to select for k={count}; use a larger k"
            )
        request = replace(request, k=count)
        plan = method.plan(request)
        warn_about_few_steps(method, request, plan)
        if self.options.answer.importance:
            check_importance(data, plan)
        facts = {"k": count, "task": data.target.task, "rows": data.rows}
        if kept:
            facts["keep"] = to_json([data.given_names[f] for f in kept])
        if data.target.classes is not None:
            facts["classes"] = len(data.target.classes)
        self._settings = facts | self.options.data.to_settings() | reading.facts | plan.settings
        self._hook = self._make_hook(checkpointer, request.data, count)
        request = replace(request, hook=self._hook)
        select_features = method.select if isinstance(data, TableData) else method.select_files
        assert select_features is not None
        if repeats and (self._curve is None or self._curve["chosen"]):
            select_features = partial(select_repeatedly, method, repeats)
        if race is not None:
            select_features = partial(race.select, method)
        self._hook.advance = advance
        self.timings.end("prepare")
        advance(0, method.title, plan.steps)
        try:
            yield select_features, request, plan
        except Diverged as error:
            self._settings["partial"] = "diverged"
            raise TrainingDiverged(str(error), self._make_partial(error.traces, count)) from None
        except TrainingInterrupted as error:
            self._settings["partial"] = "interrupted"
            # With several strengths of a penalty there are more traces than seeds: none of them is chosen yet.
            traces = error.traces if len(error.traces) <= len(self.seeds) else []
            selections = self._make_partial(traces, count)
            selected = min((len(selection.features) for selection in selections), default=0)
            message = f"interrupted after {selected} of {count} features were selected"
            if repeats and selections and selections[0].stability is not None:
                message = f"interrupted after {selections[0].stability['repeats']} of {repeats} repeats"
            if race is not None:
                message = "interrupted before the features had competed with their knockoffs"
            raise SelectionInterrupted(message, selections) from None
        finally:
            if isinstance(self._hook, CheckpointHook):
                self._hook.close()

    def _find_kept(self, data: TableData | FileData) -> tuple[int, ...]:
        """The features that must be selected, as features of the data."""
        if not self.options.answer.keeps:
            return ()
        check_method(self.method, "keep:")
        return tuple(find_features(data, self.options.answer.keep, "keep", named=True))

    def _start_race(self, data: TableData | FileData, fdr: float, k: Any, advance: Advance) -> Discoveries:
        """The features and the knockoffs that they compete with."""
        from seqatt.api.knockoffs.discoveries import Discoveries  # here, because only it needs scipy.linalg

        advance(0, "Making knockoffs")
        return Discoveries(data, fdr, k, self.seeds[0])

    def _choose_k(self, request: SelectionRequest, advance: Advance) -> int:
        """The number of features for k="auto"; 1 where there is nothing to find, for the ranking of the features."""
        from seqatt.api.auto_k.choose_k import choose_k, resolve_max_k  # here, because it needs pyarrow
        from seqatt.api.auto_k.sample import sample_request

        self.timings.end("prepare")
        own_inputs = getattr(self.options.method, "own_inputs", None)
        request = sample_request(request, categories_for(self.method, own_inputs))
        max_k = resolve_max_k(request.table, self.options.answer.max_k)
        curve = choose_k(self.method, replace(request, k=max_k), self.options.answer.k_rule, advance)
        # On other machines the last digits may differ, and all ranks must select as many.
        self._curve = json.loads(self.ranks.broadcast_text(json.dumps(curve)))
        self.timings.end("choose")
        return int(self._curve["chosen"]) or 1

    def examine(self, request: SelectionRequest, traces: list[Trace], advance: Advance) -> list[Trace]:
        """The traces with how sure they are: what each feature adds, and whether they are better than random ones."""
        traces, answer = [trace.keep_first(self._kept) for trace in traces], self.options.answer
        if answer.importance is False:
            traces = [replace(trace, importance=None) for trace in traces]
        if not isinstance(self._layout, TableData):
            return traces
        fixed = self._curve is None and not answer.repeats and answer.fdr is None
        own = replace(request, data=self._layout)  # without knockoffs
        try:
            return examine_traces(
                self.method,
                own,
                traces,
                advance,
                self.timings,
                importance=bool(answer.importance),
                chance=fixed,
            )
        except KeyboardInterrupt:
            raise TrainingInterrupted(traces) from None

    def finish(self, traces: list[Trace]) -> list[Selection]:
        """The selections, after the checkpoint was marked as that of a finished run."""
        if isinstance(self._hook, CheckpointHook):
            self._hook.complete()
        return self._make_selections(traces)

    def _make_hook(self, checkpointer: Checkpointer, data: TableData | FileData, k: int) -> TrainingHook:
        """Checkpoints of the methods that the training loop trains; sums over files write their own."""
        if checkpointer.active and isinstance(data, TableData) and not self.method.trains:
            raise ValueError(
                f"checkpoint: {self.method.name} writes none on a table; checkpoints are for methods that train a "
                "network in phases"
            )
        if not self.method.trains or not (checkpointer.active or self.ranks.size > 1):
            return TrainingHook()
        hook = CheckpointHook(
            checkpointer, self.ranks, describe_run(data, self.method.name, k, self.seeds, self._settings)
        )
        hook.open()
        return hook

    def _make_partial(self, traces: list[Trace], k: int) -> list[Selection]:
        """Of a surplus that was not removed yet, only the first k features are part of the result."""
        return self._make_selections(
            [replace(t, order=t.order[:k], rest=t.order[k:] + t.rest) for t in traces]
        )

    def _make_selections(self, traces: list[Trace]) -> list[Selection]:
        self.timings.end("select")
        if self._curve is not None:
            size = self._curve["chosen"]
            self._settings |= {
                "k": size,
                "max_k": self._curve["sizes"][-1],
                "k_rule": self.options.answer.k_rule,
            }
            traces = [
                replace(t, order=t.order[:size], rest=t.order[size:] + t.rest, curve=self._curve)
                for t in traces
            ]
        environment = describe_environment(str(self.device))
        return [
            make_selection(
                self._layout,
                trace,
                method=self.method.name,
                seed=seed,
                settings=self._settings | trace.settings | {"options": given_options(*self.options)},
                environment=environment,
                timings=dict(self.timings.seconds),
            )
            for seed, trace in zip(self.seeds, traces, strict=False)  # a run that diverged has fewer traces
        ]
