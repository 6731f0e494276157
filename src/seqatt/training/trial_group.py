"""Trial groups: trials that select at the same time.

On a GPU the built-in network trains all trials of a table in one group. Otherwise there is one group per seed; on a CPU
a trial then gives the same result, bit for bit, alone and beside others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from seqatt.trace import PhaseRecord, Trace
from seqatt.training.backend.threads import WorkerPool
from seqatt.training.ensemble import average_blocks, importance_of, in_standard_errors, pool_scores
from seqatt.training.loaders.stream import FileStream
from seqatt.training.schedule import Phase, Schedule
from seqatt.training.screening.score_penalty import ScorePenalty, TrialPenalties
from seqatt.training.screening.working_set import WorkingSet
from seqatt.training.selection_state import SelectionState
from seqatt.training.state import Arrays
from seqatt.training.trainer import Trainer

Value = TypeVar("Value")
MIN_Z = 2.0  # standard errors by which a category with an embedding must lower the held-out loss,
UNCONFIRMED = 10.0  # or this is subtracted from its score


class TrialGroup:
    """Trials that select at the same time, the trainers of their models, and how far they are in the schedule.

    The models of the trainers, in order, are the members of the first trial, then those of the second. A group that
    trains on files has a ``stream``: all its models see the same batches.
    """

    def __init__(
        self,
        trainers: Sequence[Trainer],
        state: SelectionState,
        score_penalties: Sequence[ScorePenalty | None] | None = None,
        stream: FileStream | None = None,
        working_set: WorkingSet | None = None,
        embedded: NDArray[np.int64] | None = None,
    ) -> None:
        """``score_penalties`` has one per trial; ``working_set``, which chooses what trains, is for a single trial.

        Of the features ``embedded``, those come last that do not lower the loss on held-out rows.
        """
        self.trainers = list(trainers)
        self.state, self._working_set = state, working_set
        self._embedded = np.empty(0, dtype=np.int64) if embedded is None else embedded
        self.penalties = TrialPenalties(score_penalties or [None] * len(state.order))
        self.stream = stream
        self.chunk_steps = min(trainer.chunk_steps for trainer in trainers)
        trials, features = state.candidates().shape
        self._last_scores = np.zeros((trials, features))
        self.finite = np.ones(trials, dtype=bool)  # trials whose losses and scores were finite so far
        self.records: list[list[PhaseRecord]] = [[] for _ in range(trials)]
        self._importance: list[dict[str, Any]] = []  # per trial, where it was measured
        # Where it was: the losses (trials, members, b) per block of validation rows, and the rows (b,) of a block.
        self.validation_losses = np.empty((trials, 0, 0)), np.empty(0, dtype=np.int64)
        self.phase, self.done, self.seconds = 0, 0, 0.0  # the current phase, its steps and its seconds so far

    def is_thread_invariant(self) -> bool:
        return all(trainer.is_thread_invariant() for trainer in self.trainers)

    def next_steps(self, schedule: Schedule, most: int) -> int:
        """The steps of the next chunk, whose batches are ready to be loaded; 0 if the phase is over.

        On files, a phase ends when its share of the rows was read, and the last one with the rows.
        """
        phase = schedule[self.phase]
        if self.stream is None:
            return min(most, self.chunk_steps, phase.steps - self.done)
        end = sum(earlier.steps for earlier in schedule[: self.phase + 1])
        is_last = all(later.steps == 0 for later in schedule[self.phase + 1 :])
        if phase.steps == 0 or (self.done and self.stream.position() >= end and not is_last):
            return 0
        return int(self.stream.advance())

    def start_phase(self, phase: Phase) -> None:
        self.done, self.seconds = 0, 0.0
        if self._working_set is not None and phase.steps:
            features = self._working_set.for_phase(phase, self.state.order[0])
            if features is not None:
                self._use_features(features)
        for trainer in self.trainers:
            trainer.start_phase(phase)

    def end_phase(self, phase: Phase, pool: WorkerPool) -> None:
        """Select or drop features at the END of a phase, from logits that were trained in it."""
        if self.stream is not None and phase.steps and not self.stream.seen:
            raise ValueError("X: no row of any file could be read")
        if phase.steps and not self.done and (phase.take or phase.drop):
            raise ValueError(
                f"k: the rows ended after {len(self.state.order[0])} features were selected; use a smaller "
                "batch_size, more epochs or a smaller k"
            )
        losses = self._by_trial([trainer.mean_losses() for trainer in self.trainers]).mean(1)
        records = [PhaseRecord(self.done, phase.sees, loss, self.seconds) for loss in losses.tolist()]
        if phase.take:
            unconfirmed, scores = self._unconfirmed(pool), self._scores()
            scores[unconfirmed] -= UNCONFIRMED
            for trial, taken in enumerate(self.state.take(scores, phase.take)):
                records[trial].taken, records[trial].scores = taken, scores[trial]
            self._last_scores = scores
            self._change_working_set(pool)
        if phase.narrows:
            self._last_scores = self._scores()
            self._change_working_set(pool)
        if phase.drop:
            for _ in range(phase.drop):  # one at a time: of two copies, only one can be spared
                for record, dropped in zip(records, self.state.drop(self._usefulness(pool)), strict=True):
                    record.dropped.append(dropped)
        if phase.orders:
            self._order_by_usefulness(pool)
        if phase.measures:
            self._measure_importance(pool)
        for history, record in zip(self.records, records, strict=True):
            history.append(record)
        self.phase, self.done = self.phase + 1, 0

    def shown_trial(self) -> tuple[list[int], PhaseRecord | None, float | None]:
        """Features, last phase and held-out loss of the trial with the lowest loss, which stands for all trials."""
        losses = np.array([history[-1].loss if history else np.nan for history in self.records], dtype=float)
        best = int(np.argmin(np.nan_to_num(losses, nan=np.inf)))
        history = self.records[best]
        held_out = self._importance[best]["loss"] if self._importance else None
        return self.state.order[best], history[-1] if history else None, held_out

    def _order_by_usefulness(self, pool: WorkerPool) -> None:
        """Order the selected features: the last is the least useful, the one before it the least useful of the others.

        The features that are kept stay first. Usefulness is measured as when features are dropped: on validation rows,
        with the models as they are.
        """
        before = self.state.to_dict()
        removed: list[list[int]] = [[] for _ in self.state.order]
        for _ in range(len(self.state.order[0]) - max(1, len(self.state.kept))):
            for features, dropped in zip(removed, self.state.drop(self._usefulness(pool)), strict=True):
                features.append(dropped)
        order = [first + last[::-1] for first, last in zip(self.state.order, removed, strict=True)]
        self.state.load_dict(before | {"order": order})

    def _measure_importance(self, pool: WorkerPool) -> None:
        """By how much the loss of each trial increases on validation rows without each of its features."""
        blocks = self._per_trainer(Trainer.losses_by_block, pool)
        losses, rows = self._by_trial([losses for losses, _ in blocks]), blocks[0][1].numpy()
        self.validation_losses = losses[:, :, 0], rows
        self._importance = [
            importance_of(order, of_trial, rows)
            for order, of_trial in zip(self.state.order, losses, strict=True)
        ]

    def _change_working_set(self, pool: WorkerPool) -> None:
        """After some of the phases, choose the features that train from then on."""
        working_set, selected = self._working_set, self.state.order[0]
        phases = 1 + sum(bool(record.taken) for record in self.records[0])
        if working_set is None or not working_set.is_due(phases):
            return
        hidden_gradients = [trainer.hidden_gradient for trainer in self.trainers]
        outside = working_set.outside_scores(hidden_gradients, selected, pool)
        if outside is not None:
            self.penalties.add_to_scores(outside[None], [selected])
        self._use_features(working_set.choose(self._last_scores[0], outside, selected))

    def _use_features(self, features: NDArray[np.int64]) -> None:
        assert self._working_set is not None
        table = self._working_set.use(features)
        self.state.use_features(features)
        first = 0
        for trainer in self.trainers:
            own_state = self.state.of_models(slice(first, first + trainer.models))
            trainer.use_features(own_state, table.columns, table.rows, table.in_table)
            first += trainer.models

    def check_finite(self) -> None:
        self.finite &= self._by_trial([trainer.finite() for trainer in self.trainers]).all(1)

    def traces(self) -> list[Trace]:
        settings = {} if self.stream is None else self.stream.facts()
        return [
            Trace(
                list(order),
                self.state.rank_unselected(t, self._last_scores[t]),
                self.records[t],
                dict(settings),
                importance=self._importance[t] if self._importance else None,
            )
            for t, order in enumerate(self.state.order)
        ]

    def _scores(self) -> NDArray[np.float64]:
        """The scores (trials, d): pooled over the members, plus their share of the score penalties (0 or less)."""
        scores = self._by_trial([trainer.scores() for trainer in self.trainers])
        features = None if self._working_set is None else self._working_set.features
        trained = slice(None) if features is None else features
        if scores.shape[1] > 1 or self.penalties:
            pooled = pool_scores(scores, self.state.candidates()[:, trained])
        else:
            pooled = scores[:, 0]
        self.penalties.add_to_scores(pooled, self.state.order, trained)
        if features is None:
            return pooled
        # Features outside the working set come after all others, in the order they had before.
        everywhere = np.asarray(self._last_scores - self._last_scores.max() + pooled.min() - 1.0)
        everywhere[:, features] = pooled
        return everywhere

    def _unconfirmed(self, pool: WorkerPool) -> NDArray[np.bool_]:
        """Features (trials, d) with an embedding that neither lower the held-out loss nor are significant alone.

        Embeddings learn rows of rare values by heart, so that attention takes a category of noise for useful. Where all
        features are in doubt, none is left out: two categories may matter only together.
        """
        candidates = self.state.candidates()
        unconfirmed = np.zeros(candidates.shape, dtype=bool)
        if len(self._embedded):
            features = torch.from_numpy(self._embedded).expand(len(unconfirmed), -1)
            blocks = self._per_trainer(partial(Trainer.losses_by_block, attended=True), pool, features)
            losses, rows = self._by_trial([losses for losses, _ in blocks]), blocks[0][1].numpy()
            for trial, without in enumerate(losses[:, :, 1:] - losses[:, :, :1]):
                gains, errors = average_blocks(without, rows)
                sure = self.penalties.has_none(trial, candidates.shape[1])
                sure[self._embedded] |= np.array(gains) > MIN_Z * np.array(errors)
                if (sure & candidates[trial]).any():
                    unconfirmed[trial, self._embedded] = ~sure[self._embedded]
        return unconfirmed

    def _usefulness(self, pool: WorkerPool) -> NDArray[np.float64]:
        """How useful each selected feature is (trials, m): the loss without it, plus its score penalty (0 or less).

        Where there is a score penalty, the loss is in standard errors, to be on the scale of the penalty.
        """
        losses = self._by_trial(self._per_trainer(Trainer.losses_without_each, pool))
        if not self.penalties or losses.shape[1] == 1:
            return np.asarray(losses.mean(1))
        usefulness = in_standard_errors(losses)
        self.penalties.add_to_usefulness(usefulness, self.state.order)
        return usefulness

    def _per_trainer(
        self, function: Callable[[Trainer, torch.Tensor], Value], pool: WorkerPool, of_trials: Any = None
    ) -> list[Value]:
        """The value of a function for each trainer and features (T, m): those ``of_trials``, or the selected ones."""
        trials, models = len(self.state.order), len(self.state.selected)
        features = torch.as_tensor(self.state.order if of_trials is None else of_trials)
        if self._working_set is not None and self._working_set.features is not None:
            features = torch.searchsorted(torch.from_numpy(self._working_set.features), features)
        features = features.to(self.state.selected.device).repeat_interleave(models // trials, 0)
        per_trainer = torch.split(features, [trainer.models for trainer in self.trainers])
        return pool.run([partial(function, *each) for each in zip(self.trainers, per_trainer, strict=True)])

    def _by_trial(self, values: list[torch.Tensor]) -> NDArray[np.float64]:
        """One tensor per trainer, one row per model, as an array (trials, members, ...)."""
        rows = torch.cat(values).double().cpu().numpy()
        return rows.reshape(len(self.state.order), -1, *rows.shape[1:])

    def state_arrays(self) -> Arrays:
        """Copies of all tensors that later steps depend on, for a checkpoint."""
        arrays: Arrays = {"last_scores": self._last_scores.copy()}
        for number, trainer in enumerate(self.trainers):
            arrays |= {f"{number}.{name}": array for name, array in trainer.state_arrays().items()}
        return arrays

    def state_dict(self) -> dict[str, Any]:
        """A copy of everything else, for JSON: it may be written while training continues."""
        return {
            "phase": self.phase,
            "done": self.done,
            "seconds": self.seconds,
            "finite": self.finite.tolist(),
            "selection": self.state.to_dict(),
            "records": [[record.to_dict() for record in records] for records in self.records],
            "stream": None if self.stream is None else self.stream.state(),
            "working_set": None if self._working_set is None else self._working_set.to_dict(),
        }

    def load(self, state: dict[str, Any], arrays: Arrays, schedule: Schedule) -> None:
        """Restore what ``state_dict`` and ``state_arrays`` returned."""
        self.phase, self.done, self.seconds = state["phase"], state["done"], state["seconds"]
        self.finite = np.array(state["finite"])
        self.state.load_dict(state["selection"])
        if self._working_set is not None:
            features = self._working_set.load_dict(state["working_set"])
            if features is not None:
                self._use_features(features)
        self.records = [[PhaseRecord.from_dict(record) for record in records] for records in state["records"]]
        self._last_scores = np.array(arrays["last_scores"])
        if self.stream is not None:
            self.stream.load_state(state["stream"])
        for number, trainer in enumerate(self.trainers):
            prefix = f"{number}."
            saved = {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
            trainer.load_arrays(saved)
            trainer.resume_phase(schedule[self.phase])
