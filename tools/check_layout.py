"""Checks of the layout that no linter has: run by ``make check``.

- No class name is defined twice in ``src``.
- A folder of the package has at most 16 modules, and a module at most 300 lines.
- Lines of the documentation have at most 120 characters; table rows and lines with a link may be longer.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "seqatt"
MAX_MODULES, MAX_LINES, MAX_LENGTH = 16, 300, 120
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]


def duplicate_classes() -> list[str]:
    places = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return [
        f"class {name} is defined in {' and '.join(found)}; rename one"
        for name, found in places.items()
        if len(found) > 1
    ]


def large_folders() -> list[str]:
    counts = {folder: len(list(folder.glob("*.py"))) for folder in [PACKAGE, *PACKAGE.rglob("*/")]}
    return [
        f"{folder.relative_to(ROOT)} has {count} modules, at most {MAX_MODULES}; divide it"
        for folder, count in counts.items()
        if count > MAX_MODULES
    ]


def long_modules() -> list[str]:
    counts = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    return [
        f"{path.relative_to(ROOT)} has {count} lines, at most {MAX_LINES}; is it two topics?"
        for path, count in counts.items()
        if count > MAX_LINES
    ]


def long_lines() -> list[str]:
    found = []
    for path in DOCUMENTS:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > MAX_LENGTH and not line.startswith("|") and "](" not in line:
                found.append(
                    f"{path.relative_to(ROOT)}:{number}: {len(line)} characters, at most {MAX_LENGTH}"
                )
    return found


if __name__ == "__main__":
    problems = duplicate_classes() + large_folders() + long_modules() + long_lines()
    print("\n".join(problems) or "layout: no class name twice, no large folder, no long module, no long line")
    sys.exit(bool(problems))
