"""The results table: one row per method and k, the best method at each k, and differences to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seqatt.comparison.runs import ALL, ComparisonRun, run_keys
from seqatt.comparison.statistics import comparable_seeds, difference, find_best, summary_row


@dataclass(frozen=True, eq=False)
class ResultsTable:
    """Runs and settings, from which every table, chart and conclusion is computed.

    ``runs`` has one ComparisonRun per method, k and seed.
    """

    runs: list[ComparisonRun]
    settings: dict[str, Any]

    @property
    def metric(self) -> str:
        """The test metric of tables, charts and conclusions."""
        return str(self.settings["metric"])

    @property
    def k(self) -> list[int]:
        """The numbers of features compared, ascending."""
        return list(self.settings["k"])

    @property
    def metrics(self) -> list[str]:
        """The metrics available in the runs."""
        return list(dict.fromkeys(name for run in self.runs for name in run.metrics))

    @property
    def missing(self) -> int:
        """Number of requested runs that are missing because of an interrupt."""
        return len(self.missing_runs())

    def missing_runs(self) -> list[tuple[str, int, int]]:
        """Method, k and seed of the requested runs that are missing because of an interrupt."""
        requested = run_keys(*(self.settings[n] for n in ("methods", "k", "seeds", "features")))
        done = {run.key for run in self.runs}
        return [key for key in requested if key not in done]

    def compared_seeds(self, k: int) -> list[int]:
        """The seeds of the table at ``k``: those that all methods have, or as many methods as possible."""
        return comparable_seeds(self.runs, self._methods(), k)

    def table(self) -> list[dict[str, Any]]:
        """One row per method and k; all features, if compared, are the last row.

        ``mean`` and ``sd`` (n - 1) are those of the test metric over the seeds, ``seconds`` the mean time of
        a selection, ``stability`` the mean Jaccard index over pairs of seeds, ``runs`` the number of seeds
        without an error and ``error`` the first error. If runs are missing, only the seeds that the methods have in
        common are used, so that every mean is over the same splits; a method that has none of them has no mean.
        """
        rows = [self._row(method, k) for k in self.k for method in self._methods()]
        return rows + [self._row(ALL, self.settings["features"])] * (ALL in self.settings["methods"])

    def best(self, k: int | None = None) -> str | None:
        """The method with the best mean at ``k``; None if no run has a score."""
        k = self._resolve_k(k)
        return find_best(self._compared_runs(k), self._methods(), k, self.metric)

    def differences(self, k: int | None = None) -> list[dict[str, Any]]:
        """Differences between the best method and each other one, the smallest first.

        Differences are paired by split: ``ahead`` is their mean, ``sd`` their standard deviation, ``wins``
        the number of the ``runs`` in which the best method was better, ``within_sd`` whether ahead is at
        most sd, ``significant`` whether it passes a test at 5% (a t-test corrected for splits that share rows;
        None if sd is 0 or unknown), and ``near`` whether it is within sd and not significant.
        """
        k = self._resolve_k(k)
        best = self.best(k)
        others = [m for m in self._methods() if m != best] if best is not None else []
        overlap, runs = self._overlap(), self._compared_runs(k)
        differences = [
            difference(runs, str(best), other, k, self.metric, overlap=overlap) for other in others
        ]
        return sorted((d for d in differences if d["runs"]), key=lambda d: d["ahead"])

    def _overlap(self) -> float:
        """Test rows per training row, averaged over the splits; 0 if the user supplied the test rows."""
        splits = self.settings["split_rows"]
        return sum(test / train for train, test in splits) / len(splits) if splits else 0.0

    def _methods(self) -> list[str]:
        return [method for method in self.settings["methods"] if method != ALL]

    def _row(self, method: str, k: int) -> dict[str, Any]:
        return summary_row(self._compared_runs(k, method == ALL), method, k, self.metric)

    def _compared_runs(self, k: int, all_features: bool = False) -> list[ComparisonRun]:
        """The runs at ``k`` over the seeds compared; all features are compared with the largest k."""
        seeds = self.compared_seeds(self.k[-1] if all_features else k)
        if all_features and not self._methods():
            return self.runs
        return [run for run in self.runs if run.k == k and run.seed in seeds]

    def _resolve_k(self, k: int | None) -> int:
        if k is None and len(self.k) == 1:
            return self.k[0]
        if k is None:
            raise ValueError(f"k: give one of {', '.join(map(str, self.k))}")
        if k not in self.k:
            raise ValueError(f"k: {k} was not compared; use one of {', '.join(map(str, self.k))}")
        return int(k)
