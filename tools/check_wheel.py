"""Installs the wheel in ``dist`` into an empty environment and runs ``seqatt demo`` there: run by ``make test-wheel``.

The demo runs in an empty folder, without variables of Python, and must open no file of the checkout: what the wheel
lacks is missed here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEMO = """
import pathlib, sys

checkout = pathlib.Path(sys.argv.pop(1))
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from seqatt.cli.main import main

try:
    main()
finally:
    foreign = sorted({path for path in opened if checkout in pathlib.Path(path).absolute().parents})
    if foreign:
        sys.exit(f"the demo opened files of the checkout, which a wheel does not have: {foreign[:5]}")
"""


def find_wheel() -> Path:
    wheels = sorted((ROOT / "dist").glob("seqatt-*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    if not wheels:
        sys.exit("no wheel in dist: make dist builds one")
    return wheels[-1]


def check_wheel(wheel: Path, folder: Path) -> None:
    environment, empty = folder / "environment", folder / "empty"
    empty.mkdir()
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True, env=variables)
    done = subprocess.run(
        [python, "-c", DEMO, str(ROOT), "demo"],
        cwd=empty,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or "selected by seqatt" not in done.stdout:
        sys.exit(f"seqatt demo failed in an empty environment:\n{done.stdout}\n{done.stderr}")
    if left := sorted(path.name for path in empty.iterdir()):
        sys.exit(f"seqatt demo left files behind: {left}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", nargs="?", type=Path, help="by default the newest in dist")
    chosen = parser.parse_args().wheel or find_wheel()
    with tempfile.TemporaryDirectory() as temporary:
        check_wheel(chosen.resolve(), Path(temporary))
    print(f"{chosen.name}: seqatt demo works in an empty environment")
