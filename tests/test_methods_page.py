"""Methods are listed where people look for them: in the terminal and on the page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import seqatt
from seqatt.algorithms.registry import METHODS

PAGE = (Path(__file__).parents[1] / "docs" / "methods.md").read_text(encoding="utf-8")


def run(*words: str) -> str:
    command = [sys.executable, "-m", "seqatt", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
    return done.stdout


def test_the_command_lists_every_method_in_a_line():
    lines = [line for line in run("methods").splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert cells == [[name, method.summary] for name, method in METHODS.items()]


def test_the_list_for_programs_has_the_options():
    rows = {row["name"]: row for row in json.loads(run("methods", "--json"))}
    assert list(rows) == seqatt.methods()
    assert rows["cmim"] == {
        "name": "cmim",
        "summary": METHODS["cmim"].summary,
        "options": ["bins", "lazy"],
    }


def test_help_says_where_methods_are_listed():
    assert "seqatt methods" in re.sub(r"\s*│\s*│\s*", " ", run("select", "--help"))
    assert "methods" in run("--help")
    assert "seqatt methods" in seqatt.select.__doc__


def test_every_method_has_its_entry_and_its_row():
    entries = re.findall(r"^## `(\w+)`\n\n(.+?)(?=\n\n|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert sorted(name for name, _ in entries) == sorted(seqatt.methods())
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(seqatt.methods())


def test_the_page_names_every_option_of_a_method_without_a_network():
    for name in ("linear_attention", "cmim", "mutual_information", "forest", "boosting"):
        row = re.search(rf"^\| `{name}` \|.*$", PAGE, re.MULTILINE)[0]
        for option in METHODS[name].options.__dataclass_fields__:
            assert f"`{option}`" in row
