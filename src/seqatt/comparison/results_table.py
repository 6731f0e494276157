"""Who stands where: the rows of a comparison, the best at each k, and how far the others are behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seqatt.comparison.runs import ALL, ComparisonRun, run_keys
from seqatt.comparison.statistics import difference, find_best, row


@dataclass(frozen=True, eq=False)
class ResultsTable:
    """Cells and what was asked for. Everything said and drawn is made from this."""

    cells: list[ComparisonRun]
    settings: dict[str, Any]

    @property
    def metric(self) -> str:
        """The test metric everything is shown in."""
        return str(self.settings["metric"])

    @property
    def k(self) -> list[int]:
        """The numbers of features compared, from small to large."""
        return list(self.settings["k"])

    @property
    def metrics(self) -> list[str]:
        """The metrics there are."""
        return list(dict.fromkeys(name for cell in self.cells for name in cell.metrics))

    @property
    def missing(self) -> int:
        """How many runs were asked for and not made, because of an interrupt."""
        wanted = run_keys(*(self.settings[n] for n in ("methods", "k", "seeds", "features")))
        return len(set(wanted) - {cell.key for cell in self.cells})

    def table(self) -> list[dict[str, Any]]:
        """A row a method and k: mean and sd (n - 1) of the test metric over the seeds, seconds, stability.

        ``stability`` is the mean Jaccard index over pairs of seeds, ``runs`` how many seeds went well and
        ``error`` the first error of those that did not. All features, where asked for, come last.
        """
        rows = [self._row(method, k) for k in self.k for method in self._methods()]
        return rows + [self._row(ALL, self.settings["features"])] * (ALL in self.settings["methods"])

    def best(self, k: int | None = None) -> str | None:
        """The method with the best mean at ``k``; None where nothing went well."""
        k = self._known(k)
        return find_best([self._row(method, k) for method in self._methods()], self.metric)

    def differences(self, k: int | None = None) -> list[dict[str, Any]]:
        """How far the best method is ahead of each other one, nearest first.

        Differences are taken split by split: ``ahead`` is their mean, ``sd`` their standard deviation,
        ``wins`` on how many of ``runs`` the best was better, ``within_sd`` whether ahead is at most sd,
        ``clear`` whether it is more than chance explains (a t-test corrected for splits that share rows;
        None where sd is 0 or unknown), and ``near`` whether it is within sd and not clear.
        """
        k = self._known(k)
        best = self.best(k)
        others = [m for m in self._methods() if m != best] if best is not None else []
        overlap = self._overlap()
        found = [
            difference(self.cells, str(best), other, k, self.metric, overlap=overlap) for other in others
        ]
        return sorted((d for d in found if d["runs"]), key=lambda d: d["ahead"])

    def _overlap(self) -> float:
        """Test rows for each training row; nothing where all seeds are tested on rows of the user's own."""
        splits = self.settings["split_rows"]
        return sum(test / train for train, test in splits) / len(splits) if splits else 0.0

    def _methods(self) -> list[str]:
        return [method for method in self.settings["methods"] if method != ALL]

    def _row(self, method: str, k: int) -> dict[str, Any]:
        return row(self.cells, method, k, self.metric)

    def _known(self, k: int | None) -> int:
        if k is None and len(self.k) == 1:
            return self.k[0]
        if k is None:
            raise ValueError(f"k: give one of {', '.join(map(str, self.k))}")
        if k not in self.k:
            raise ValueError(f"k: {k} was not compared; use one of {', '.join(map(str, self.k))}")
        return int(k)
