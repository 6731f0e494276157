"""The result file of an experiment: JSON with a line a cell, written whole after each of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

COMMITTED = Path(__file__).parent / "results"


def results_folder() -> Path:
    """Where result files are: in the repository, or where SEQATT_RESULTS says."""
    return Path(os.environ.get("SEQATT_RESULTS") or COMMITTED)


class Results:
    """Cells by key, and the runs (machine, commit, versions) they came from."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.path = folder / f"{name}.json"
        self.runs: list[dict[str, Any]] = []
        self.cells: dict[str, dict[str, Any]] = {}
        self._read()

    def _read(self) -> None:
        if not self.path.exists():
            return
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            self.runs, self.cells = list(raw["runs"]), dict(raw["cells"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.path}: not a file of results ({error}); remove it to start afresh"
            ) from None

    def has(self, key: str, options: dict[str, Any]) -> bool:
        """Whether this cell was run, with these options, and did not fail."""
        cell = self.cells.get(key, {"failed": "never run"})
        return "failed" not in cell and cell["options"] == json.loads(json.dumps(options))

    def add(self, key: str, entry: dict[str, Any], run: dict[str, Any]) -> None:
        """Keep a cell, on disk too; what another process added meanwhile stays."""
        self._read()
        if run not in self.runs:
            self.runs.append(run)
        self.cells[key] = {"run": self.runs.index(run), **entry}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            beside.write_text(self._text(), encoding="utf-8")
            os.replace(beside, self.path)
        finally:
            beside.unlink(missing_ok=True)

    def _text(self) -> str:
        runs = ",\n".join(json.dumps(run) for run in self.runs)
        cells = ",\n".join(f"{json.dumps(key)}: {json.dumps(cell)}" for key, cell in self.cells.items())
        return (
            f'{{"experiment": {json.dumps(self.name)},\n"runs": [\n{runs}\n],\n"cells": {{\n{cells}\n}}}}\n'
        )

    def pick(self, data: str, setting: str, machine: str | None = None) -> list[dict[str, Any]]:
        """Cells of one row and column, no seed twice: the larger batches of seeds come first."""
        found = [
            cell
            for cell in self.cells.values()
            if (cell["data"], cell["setting"]) == (data, setting)
            and (machine is None or cell.get("machine") == machine)
        ]
        picked: list[dict[str, Any]] = []
        for cell in sorted(found, key=lambda cell: (-len(cell["seeds"]), cell["seeds"])):
            if not any(set(cell["seeds"]) & set(other["seeds"]) for other in picked):
                picked.append(cell)
        return sorted(picked, key=lambda cell: cell["seeds"])

    def values(
        self, data: str, setting: str, what: str = "accuracy", machine: str | None = None
    ) -> list[Any]:
        """``what`` of every trial, in the order of seeds; empty where nothing was run."""
        return [value for cell in self.pick(data, setting, machine) for value in cell[what]]

    def machines(self) -> list[str]:
        return sorted({cell["machine"] for cell in self.cells.values() if "machine" in cell})

    def ran(self, usual: tuple[str, ...]) -> list[str]:
        """Those data sets of which anything was run."""
        run = {cell["data"] for cell in self.cells.values()}
        return [data for data in self.data(usual) if data in run]

    def data(self, usual: tuple[str, ...]) -> list[str]:
        """The usual data sets, then any others that were run."""
        return [*usual, *dict.fromkeys(c["data"] for c in self.cells.values() if c["data"] not in usual)]
