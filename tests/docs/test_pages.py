"""Links between the files of the repository lead somewhere, and the reference has every public name."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import seqatt

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("how_to/*.md"), *DOCS.glob("decisions/*.md")]
PAGES += [ROOT / "benchmarks" / "README.md"]
LINK = re.compile(r"\]\((?!\w+:)([^)\s]*)\)")
REFERENCE = DOCS / "reference" / "index.md"
MODULES = ("seqatt", "seqatt.callbacks", "seqatt.linear", "seqatt.datasets", "seqatt.ray")


def without_code(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()).strip() for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_to_files_and_headings(page):
    for link in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_pages_that_code_and_tests_name_exist():
    sources = [file for folder in ("src", "tests", "experiments") for file in (ROOT / folder).rglob("*.py")]
    for file in sources:
        for name in re.findall(r"\bdocs/[\w/-]+\.md", file.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{file.relative_to(ROOT)} names {name}"


def documented_names() -> dict[str, set[str]]:
    """Per module the names that the reference lists."""
    found: dict[str, set[str]] = {}
    module = ""
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.match(r"   (?!:)(\S+)$", line):
            found.setdefault(module, set()).add(match[1])
    return found


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_reference_and_has_a_docstring(name):
    module = import_module(name)
    public = {each for each in module.__all__ if each != "__version__" and f"seqatt.{each}" not in MODULES}
    documented = documented_names()
    assert public <= documented[name] | documented["seqatt"]
    assert all(getattr(module, each).__doc__ for each in public)


def test_the_reference_lists_nothing_that_is_gone():
    for name, listed in documented_names().items():
        for each in listed:
            item = import_module(name)
            for part in each.split("."):
                item = (
                    getattr(item, part) if hasattr(item, part) else import_module(f"{item.__name__}.{part}")
                )
            assert item is not seqatt
