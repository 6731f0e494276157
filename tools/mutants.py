"""Mutants: changes of a line that each break a promise, and the tests that must fail for them: tools/mutants.txt.

Copies the tree, applies one mutant at a time, runs its tests and prints the mutants that survive. A mutant whose text
is no longer in its file is an error: correct or remove it.

    python tools/mutants.py                    # all; takes half an hour on one core
    python tools/mutants.py gates checkpoints  # of these topics
    python tools/mutants.py --only 12 13       # by number, as printed
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "experiments", "benchmarks", "pyproject.toml")
TIMEOUT = 300  # seconds per mutant: one that never ends counts as found


class Mutant(NamedTuple):
    """Replace ``old``, which occurs once in ``file`` of the package, by ``new``; one of ``tests`` must fail."""

    topic: str
    file: str
    tests: tuple[str, ...]
    old: str
    new: str


def read_mutants(text: str) -> list[Mutant]:
    mutants, topic = [], ""
    for paragraph in text.split("\n\n")[1:]:  # the first one explains the format
        first, *lines = paragraph.strip("\n").split("\n")
        if first.startswith("["):
            topic = first[1:].partition("]")[0]
            continue
        file, _, tests = first.partition(": ")
        old, new = ("\n".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
        mutants.append(Mutant(topic, file, tuple(tests.split()), old, new))
    return mutants


def run_tests(tree: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str] | None:
    """Run test files of the copied tree up to the first failure; None if they take too long."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not gpu and not exhaustive and not slow"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", *(f"tests/{test}" for test in tests)]
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return None


def check_tree(tree: Path, mutants: list[Mutant]) -> None:
    """Stop unless the copied package is the one that tests import, and every test passes without a mutant."""
    code = "import seqatt, sys; sys.stdout.write(seqatt.__file__)"
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    if not found.stdout.startswith(str(tree)):
        sys.exit(f"tests would import {found.stdout}, not the copied tree")
    for test in sorted({test for mutant in mutants for test in mutant.tests}):
        done = run_tests(tree, (test,))
        if done is None or done.returncode:
            sys.exit(f"tests/{test} fails without a mutant:\n{'' if done is None else done.stdout[-2000:]}")


def is_found(tree: Path, mutant: Mutant) -> bool:
    """Whether a test fails with this mutant; the file is restored."""
    path = tree / "src" / "seqatt" / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(original.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        done = run_tests(tree, mutant.tests)
    finally:
        path.write_text(original, encoding="utf-8")
    if done is not None and done.returncode not in (0, 1):  # 0: all passed, 1: a test failed
        sys.exit(f"pytest could not run {mutant.tests}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done is None or done.returncode == 1


def outdated(mutants: list[Mutant]) -> list[str]:
    """One line per mutant whose text does not occur exactly once in its file."""
    lines = []
    for mutant in mutants:
        path = ROOT / "src" / "seqatt" / mutant.file
        count = path.read_text(encoding="utf-8").count(mutant.old) if path.exists() else 0
        if count != 1:
            lines.append(f"{mutant.file}: occurs {count} times: {mutant.old.strip()!r}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    mutants = read_mutants((ROOT / "tools" / "mutants.txt").read_text(encoding="utf-8"))
    topics = list(dict.fromkeys(mutant.topic for mutant in mutants))
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"{', '.join(topics)}; default: all")
    parser.add_argument("--only", nargs="+", type=int, help="numbers of mutants")
    parser.add_argument(
        "--no-baseline", action="store_true", help="do not run the tests without a mutant first"
    )
    options = parser.parse_args()
    chosen = {
        number: mutant
        for number, mutant in enumerate(mutants)
        if (not options.topics or mutant.topic in options.topics) and number in (options.only or [number])
    }
    stale = outdated(list(chosen.values()))
    if stale:
        print("Correct or remove these mutants:", *stale, sep="\n")
        return 2
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        for name in COPIED:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, tree / name)
        if not options.no_baseline:
            check_tree(tree, list(chosen.values()))
        for number, mutant in chosen.items():
            found = is_found(tree, mutant)
            survivors += [] if found else [number]
            print(
                f"{number:3} {'found   ' if found else 'SURVIVES'} {mutant.file}: {mutant.old.strip()!r}",
                flush=True,
            )
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants found; survivors: {survivors or 'none'}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
