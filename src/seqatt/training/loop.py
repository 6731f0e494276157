"""The training loop: trial groups follow a schedule, one chunk of steps at a time, on tables and on files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

import torch

from seqatt.callbacks.monitor import Monitor, Part
from seqatt.trace import Trace
from seqatt.training.backend.threads import ThreadTuner, WorkerPool, run_concurrently
from seqatt.training.schedule import Schedule
from seqatt.training.trial_group import TrialGroup


class NonFiniteLoss(Exception):
    """A loss or a score of a trial group is not finite."""


class Diverged(RuntimeError):
    """Training diverged. ``traces`` holds what each trial had selected by then."""

    def __init__(self, traces: list[Trace]) -> None:
        selected = min(len(trace.order) for trace in traces)
        super().__init__(
            f"the training loss is no longer a finite number, after {selected} features were selected; try a "
            "smaller learning_rate, or look for extreme values in X and y or a faulty loss"
        )
        self.traces = traces


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training. ``traces`` holds what each trial had selected by then."""

    def __init__(self, traces: list[Trace]) -> None:
        super().__init__()
        self.traces = traces


class TrainingHook:
    """Hooks of the training loop: progress, callbacks, checkpoints and stop requests.

    This one has no checkpoints; ``checkpoints.training`` also saves and resumes.
    """

    one_at_a_time = False  # whether groups train one after another

    def __init__(self, part: Part | None = None) -> None:
        """``part`` reports the progress of this selection; by default nothing is reported."""
        self.part = Part(Monitor()) if part is None else part
        self._leader: TrialGroup | None = None  # the group that is shown

    def advance(self, steps: int) -> None:
        """For work outside the training loop: count steps, and end where a callback has requested to stop."""
        self.part.advance(steps)
        self.part.monitor.check_stop()

    def finished(self, number: int) -> list[Trace] | None:
        """The traces of group ``number`` if it was finished before."""
        return None

    def exchanged(self) -> list[Trace] | None:
        """The traces after exchanges if these were finished before."""
        return None

    def start(self, group: TrialGroup, number: int, schedule: Schedule) -> None:
        """Called before the first step of a group."""
        self._leader = group
        self.part.set_phase(group.phase, len(schedule), *group.shown_trial())

    def after_chunk(self, group: TrialGroup) -> None:
        """Called after every chunk of steps of a group, when its progress was shown."""
        self.part.monitor.check_stop()

    def after_phase(self, group: TrialGroup, schedule: Schedule) -> None:
        """Called after every phase of a group."""
        if group is self._leader:
            self.part.end_phase(group.phase, len(schedule), *group.shown_trial())
        monitor = self.part.monitor
        if monitor.stop_requested and monitor.alone and group.phase < len(schedule):
            self.after_chunk(group)

    def finish(self, group: TrialGroup, number: int, traces: list[Trace]) -> None:
        """Called with the result of a group."""

    def finish_exchanges(self, traces: list[Trace]) -> None:
        """Called with the traces of all groups after exchanges."""


@torch.no_grad()
def train(
    groups: Iterable[TrialGroup],
    schedule: Schedule,
    hook: TrainingHook | None = None,
    threads: int = 1,
    *,
    skip_diverged: bool = False,
    finish: Callable[[TrialGroup], list[Trace]] = TrialGroup.traces,
) -> list[Trace]:
    """Train every group through the schedule; ``finish`` makes the traces of a trained group.

    A loss that is not finite ends the training with ``Diverged``; with ``skip_diverged`` it only ends the training of a
    group none of whose trials is finite. Groups in a list train together, others and those of a hook with
    ``one_at_a_time`` one after another.
    """
    hook = hook or TrainingHook()
    together = isinstance(groups, list) and not hook.one_at_a_time
    traces: list[Trace] = []
    diverged = False
    for number, current in enumerate([groups] if together else ([group] for group in groups)):
        known = None if together else hook.finished(number)
        if known is None:
            assert isinstance(current, list)
            hook.start(current[0], number, schedule)
            try:
                with _Threads(current, threads) as allocation:
                    trainings = [
                        _train_group(group, schedule, allocation, hook, skip_diverged) for group in current
                    ]
                    if allocation.concurrent:
                        run_concurrently(trainings, min(len(current), threads), hook.part.advance)
                    else:
                        for progress in zip_longest(*trainings):
                            hook.part.advance(max(steps or 0 for steps in progress))
            except (NonFiniteLoss, KeyboardInterrupt) as error:  # here no thread changes a group any more
                traces += [trace for group in current for trace in group.traces()]
                kind = Diverged if isinstance(error, NonFiniteLoss) else TrainingInterrupted
                raise kind(traces) from None
            known = []
            for group in current:
                try:
                    known += finish(group)
                except Diverged as error:
                    known += error.traces
                    diverged = True
            hook.finish(current[0], number, known)
        traces += known
    if diverged:
        raise Diverged(traces)
    return traces


class _Threads:
    """How the threads of a CPU are used while some groups train together.

    Groups whose results do not depend on threads train concurrently, on up to ``threads`` threads. If there is one
    group, its trainers do; if it has one trainer, the slices of its batches do, or its products use several threads
    where that is faster.
    """

    def __init__(self, groups: Sequence[TrialGroup], threads: int) -> None:
        on_cpu = groups[0].state.selected.device.type == "cpu"
        invariant = on_cpu and all(group.is_thread_invariant() for group in groups)
        self._groups = groups
        self.concurrent = invariant and min(len(groups), threads) > 1
        trainers = len(groups[0].trainers) if invariant and not self.concurrent else 1
        single = invariant and len(groups) == trainers == 1
        sliced = single and groups[0].trainers[0].is_sliced()
        self.tuner = ThreadTuner(torch.get_num_threads() if single and not sliced else 1)
        self.pool = WorkerPool(min(trainers, threads))
        self._slice_pool = WorkerPool(threads if sliced else 1)

    def __enter__(self) -> _Threads:
        self._torch_threads = torch.get_num_threads()
        if self.pool.threads > 1 or self._slice_pool.threads > 1:
            # Threads that wait inside a product would take the cores from the other threads.
            torch.set_num_threads(1)
        for group in self._groups:
            for trainer in group.trainers:
                trainer.model.use_pool(self._slice_pool)
        return self

    def __exit__(self, *error: object) -> None:
        torch.set_num_threads(self._torch_threads)
        for group in self._groups:
            for trainer in group.trainers:
                trainer.model.use_pool(WorkerPool(1))
        for pool in (self.pool, self._slice_pool):
            pool.__exit__()
        for group in self._groups:
            if group.stream is not None:
                group.stream.close()


def _train_group(
    group: TrialGroup,
    schedule: Schedule,
    threads: _Threads,
    hook: TrainingHook,
    skip_diverged: bool,
) -> Iterator[int]:
    """Train one group through the schedule, from where it is; yields the steps of each chunk."""
    tuner, pool = threads.tuner, threads.pool
    # A GPU would have to wait for each check, and ranks for each other.
    check_every_chunk = group.state.selected.device.type == "cpu" and group.stream is None
    resumed = group.phase, group.done
    while group.phase < len(schedule):
        phase = schedule[group.phase]
        if (group.phase, group.done) != resumed or not group.done:
            group.start_phase(phase)
        started, before = time.perf_counter(), group.seconds
        while steps := group.next_steps(schedule, tuner.max_steps or group.chunk_steps):
            with tuner.measure(steps):
                if pool.threads > 1:
                    pool.run([partial(trainer.train_chunk, steps) for trainer in group.trainers])
                else:
                    for trainer in group.trainers:
                        trainer.train_chunk(steps)
            group.done += steps
            group.seconds = before + time.perf_counter() - started
            if check_every_chunk and not _is_finite(group, skip_diverged):
                return
            yield steps
            hook.after_chunk(group)
        if not check_every_chunk and not _is_finite(group, skip_diverged):
            return
        group.end_phase(phase, pool)
        hook.after_phase(group, schedule)


def _is_finite(group: TrialGroup, skip_diverged: bool) -> bool:
    """Whether some trial of the group is finite; an error if not all are, except with ``skip_diverged``."""
    group.check_finite()
    if not skip_diverged and not group.finite.all():
        raise NonFiniteLoss
    return bool(group.finite.any())
