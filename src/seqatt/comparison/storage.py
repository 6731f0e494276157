"""A comparison on disk: loading the runs of an earlier call, and the check that its settings match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seqatt.comparison.comparison import Comparison
from seqatt.comparison.runs import ComparisonRun

FILE = "comparison.json"
FIXED = {  # settings that must not change between calls, and how errors name them
    "data": "the data",
    "task": "task",
    "test": "the test rows",
    "table": "the table options",
    "device": "device",
    "seqatt": "the version of seqatt",
}


def load_runs(out: Path, settings: dict[str, Any]) -> list[ComparisonRun]:
    """Create the directory ``out`` and return the successful runs of an earlier call with these settings."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        earlier = Comparison.load(out / FILE) if (out / FILE).exists() else None
    except OSError as error:
        raise ValueError(f"out: cannot write to {out} ({error.strerror})") from None
    if earlier is None:
        return []
    _check_same_settings(earlier.settings, settings, out)
    return [run for run in earlier.runs if run.error is None]


def _check_same_settings(saved: dict[str, Any], settings: dict[str, Any], out: Path) -> None:
    """Raise unless ``settings`` only add methods, k and seeds to the saved ones."""
    remedy = f"use another directory, or remove {out / FILE}"
    for name, description in FIXED.items():
        if saved.get(name) != settings[name]:
            values = "" if name in ("data", "table") else f" ({saved.get(name)} saved, {settings[name]} now)"
            raise ValueError(f"out: {out} holds a comparison that differs in {description}{values}; {remedy}")
    for name in ("methods", "k", "seeds"):
        left_out = [value for value in saved.get(name, []) if value not in settings[name]]
        if left_out:
            raise ValueError(f"out: {out} also holds {name} {left_out[0]!r}; include it, or {remedy}")
    for method in saved.get("methods", []):
        options = settings["options"].get(method, {})
        if saved.get("options", {}).get(method, {}) != options:
            raise ValueError(f"out: {out} holds {method} with other options; {remedy}")
        if any(isinstance(value, dict) and "code" in value for value in options.values()):
            raise ValueError(
                f"out: {out} holds {method} with code among its options, which may have changed; {remedy}"
            )
