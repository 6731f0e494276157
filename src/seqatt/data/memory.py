"""Sizes of memory: how much is available, and sizes written as text."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from seqatt.validation import show

UNITS = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KI": 2**10,
    "MI": 2**20,
    "GI": 2**30,
    "TI": 2**40,
}
UNKNOWN_MEMORY = 4 * 2**30  # bytes assumed where the system does not say


def memory_size(name: str, value: Any) -> int | str | None:
    """Check: a number of bytes, a text such as "2GB" or "500MiB", or None; a text stays as it was given."""
    if value is not None:
        parse_size(name, value)
    return value  # type: ignore[no-any-return]


def parse_size(name: str, value: Any) -> int:
    """The number of bytes of a size such as 2_000_000_000 or "2GB"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", str(value).upper())
    if match is None or isinstance(value, bool) or match.group(2) not in UNITS:
        raise ValueError(
            f'{name}: must be a number of bytes or a size such as "2GB" or "500MiB", got {show(value)}'
        )
    return int(float(match.group(1)) * UNITS[match.group(2)])


def available_memory() -> int:
    """The bytes that this process can still use: those of the machine, and of its control group if that has fewer."""
    limits = [_machine_memory(), _group_memory()]
    return min(limit for limit in limits if limit is not None)


def _machine_memory() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY


def _group_memory() -> int | None:
    """The memory left of the limit of a container, None without one."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((folder / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no control group, or the limit is "max"
        return None
    return max(0, limit - used)
