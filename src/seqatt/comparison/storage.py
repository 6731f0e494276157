"""A comparison on disk, whole after every cell, and whether another run may go on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seqatt.comparison.comparison import Comparison
from seqatt.comparison.runs import ComparisonRun

FILE = "comparison.json"
FIXED = {
    "data": "the data",
    "task": "task",
    "test": "the test rows",
    "table": "what is said about the table",
    "device": "device",
    "seqatt": "seqatt's version",
}


def open_folder(out: Path, asked: dict[str, Any]) -> list[ComparisonRun]:
    """Make the folder, and give the cells of an earlier run with the same settings that went well."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        earlier = Comparison.load(out / FILE) if (out / FILE).exists() else None
    except OSError as error:
        raise ValueError(f"out: cannot write to {out} ({error.strerror})") from None
    if earlier is None:
        return []
    _insist_on_same(earlier.settings, asked, out)
    return [cell for cell in earlier.cells if cell.error is None]


def _insist_on_same(there: dict[str, Any], asked: dict[str, Any], out: Path) -> None:
    """Methods, k and seeds may be added; all else, and what was run, must be as it was."""
    remedy = f"name another folder, or remove {out / FILE}"
    for name, words in FIXED.items():
        if there.get(name) != asked[name]:
            shown = "" if name in ("data", "table") else f" ({there.get(name)} there, {asked[name]} now)"
            raise ValueError(f"out: {out} holds a comparison that differs in {words}{shown}; {remedy}")
    for name in ("methods", "k", "seeds"):
        left_out = [value for value in there.get(name, []) if value not in asked[name]]
        if left_out:
            raise ValueError(f"out: {out} also holds {name} {left_out[0]!r}; ask for it too, or {remedy}")
    for method in there.get("methods", []):
        options = asked["options"].get(method, {})
        if there.get("options", {}).get(method, {}) != options:
            raise ValueError(f"out: {out} holds {method} with other options; {remedy}")
        if any(isinstance(value, dict) and "code" in value for value in options.values()):
            raise ValueError(
                f"out: {out} holds {method} with code among its options, which may have changed; {remedy}"
            )
