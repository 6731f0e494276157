"""``seqatt methods`` and docs/methods.md list every method and its options."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.command import run

import seqatt
from seqatt.algorithms.registry import all_methods

METHODS = all_methods()
PAGE = (Path(__file__).parents[1] / "docs" / "methods.md").read_text(encoding="utf-8")


def run_seqatt(*arguments: str) -> str:
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_command_prints_one_line_per_method():
    lines = [line for line in run_seqatt("methods").splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert cells == [[name, method.summary] for name, method in METHODS.items()]


def test_the_json_list_has_the_options():
    rows = {row["name"]: row for row in json.loads(run_seqatt("methods", "--json"))}
    assert list(rows) == seqatt.methods()
    assert rows["cmim"] == {
        "name": "cmim",
        "summary": METHODS["cmim"].summary,
        "options": ["bins", "lazy"],
    }


def test_help_refers_to_the_list_of_methods():
    assert "seqatt methods" in re.sub(r"\s*│\s*│\s*", " ", run_seqatt("select", "--help"))
    assert "methods" in run_seqatt("--help")
    assert "seqatt.methods()" in seqatt.select.__doc__


def test_every_method_has_a_section_and_a_table_row():
    sections = re.findall(r"^## `(\w+)`\n\n(.+?)(?=\n\n|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert sorted(name for name, _ in sections) == sorted(seqatt.methods())
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(seqatt.methods())


def test_the_page_lists_every_option_of_the_methods_without_a_network():
    for name in ("linear_attention", "cmim", "mutual_information", "forest", "boosting"):
        row = re.search(rf"^\| `{name}` \|.*$", PAGE, re.MULTILINE)[0]
        for option in METHODS[name].options.__dataclass_fields__:
            assert f"`{option}`" in row
