"""The results file of an experiment: JSON with one line per run, rewritten after each run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

COMMITTED = Path(__file__).parent / "results"


def results_folder() -> Path:
    """The folder of results files: the repository's own, or the one that SEQATT_RESULTS names."""
    return Path(os.environ.get("SEQATT_RESULTS") or COMMITTED)


class Results:
    """Recorded runs by key, and the environments (command, machine, commit, versions) of these runs."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.path = folder / f"{name}.json"
        self.environments: list[dict[str, Any]] = []
        self.runs: dict[str, dict[str, Any]] = {}
        self._read()

    def _read(self) -> None:
        if not self.path.exists():
            return
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            self.environments, self.runs = list(raw["environments"]), dict(raw["runs"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.path}: not a results file ({error}); remove it to start from scratch"
            ) from None

    def has(self, key: str, options: dict[str, Any]) -> bool:
        """Whether this run is recorded with these options and did not fail."""
        run = self.runs.get(key, {"failed": "never executed"})
        return "failed" not in run and run["options"] == json.loads(json.dumps(options))

    def add(self, key: str, entry: dict[str, Any], environment: dict[str, Any]) -> None:
        """Record a run in memory and on disk; runs that another process added in the meantime remain."""
        self._read()
        self.runs[key] = {"environment": self._number(environment), **entry}
        self._write()

    def evaluate_again(self, key: str, measured: dict[str, Any], environment: dict[str, Any]) -> None:
        """Record another evaluation of the features that a run has selected."""
        self._read()
        self.runs[key] |= {**measured, "evaluated": self._number(environment)}
        self._write()

    def _number(self, environment: dict[str, Any]) -> int:
        if environment not in self.environments:
            self.environments.append(environment)
        return self.environments.index(environment)

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            temporary.write_text(self._text(), encoding="utf-8")
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def _text(self) -> str:
        environments = ",\n".join(json.dumps(environment) for environment in self.environments)
        runs = ",\n".join(f"{json.dumps(key)}: {json.dumps(run)}" for key, run in self.runs.items())
        return (
            f'{{"experiment": {json.dumps(self.name)},\n'
            f'"environments": [\n{environments}\n],\n"runs": {{\n{runs}\n}}}}\n'
        )

    def pick(self, data: str, setting: str, machine: str | None = None) -> list[dict[str, Any]]:
        """Runs of one data set and setting in the order of seeds, each seed once.

        Where a seed was run twice, the run with more seeds counts.
        """
        matching = [
            run
            for run in self.runs.values()
            if (run["data"], run["setting"]) == (data, setting)
            and (machine is None or run.get("machine") == machine)
        ]
        picked: list[dict[str, Any]] = []
        for run in sorted(matching, key=lambda run: (-len(run["seeds"]), run["seeds"])):
            if not any(set(run["seeds"]) & set(other["seeds"]) for other in picked):
                picked.append(run)
        return sorted(picked, key=lambda run: run["seeds"])

    def values(
        self, data: str, setting: str, measure: str = "accuracy", machine: str | None = None
    ) -> list[Any]:
        """``measure`` of every trial, in the order of seeds; empty if there are no runs."""
        return [value for run in self.pick(data, setting, machine) for value in run[measure]]

    def machines(self) -> list[str]:
        return sorted({run["machine"] for run in self.runs.values() if "machine" in run})

    def data_with_runs(self, default: tuple[str, ...]) -> list[str]:
        """The data sets that have at least one run, in the order of ``data``."""
        recorded = {run["data"] for run in self.runs.values()}
        return [data for data in self.data(default) if data in recorded]

    def data(self, default: tuple[str, ...]) -> list[str]:
        """The experiment's default data sets, then any others that have runs."""
        others = dict.fromkeys(run["data"] for run in self.runs.values() if run["data"] not in default)
        return [*default, *others]
