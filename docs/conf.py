"""The site: ``make docs`` builds it from these pages, the docstrings and the examples (decision 25)."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from seqatt.version import __version__

DOCS = Path(__file__).parent.resolve()
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

project = "seqatt"
author = "the authors of seqatt"
version = release = __version__
html_title = f"seqatt {__version__}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["sg_execution_times.rst", "gallery/sg_execution_times.rst", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/icon.svg"
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00507f", "color-brand-content": "#00507f"},
    "dark_css_variables": {"color-brand-primary": "#6cb8e6", "color-brand-content": "#6cb8e6"},
}
pygments_style, pygments_dark_style = "friendly", "github-dark"

# Headings have the anchors that GitHub gives them, so that links work there and here.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "colon_fence"]
suppress_warnings = ["myst.header"]  # pages of the repository may skip a level, as GitHub allows

autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings, in words
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib",),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "default_thumb_file": str(DOCS / "pictures" / "demo.png"),
    "image_srcset": ["2x"],
}

# Files of the repository outside docs that are pages of the site. The page itself is a line that includes the file.
INCLUDED = {
    DOCS / "architecture.md": ROOT / "ARCHITECTURE.md",
    DOCS / "benchmarks.md": ROOT / "benchmarks" / "README.md",
    DOCS / "changelog.md": ROOT / "CHANGELOG.md",
    DOCS / "contributing.md": ROOT / "CONTRIBUTING.md",
}
PAGES = {file: page for page, file in INCLUDED.items()}
PAGES |= {folder: folder / "index.md" for folder in (DOCS / "decisions", DOCS / "how_to")}
PAGES |= {ROOT / "README.md": DOCS / "index.md", ROOT / "benchmarks": DOCS / "benchmarks.md"}
PAGES |= {ROOT / "examples": DOCS / "gallery" / "index.rst"}
PAGES |= {file: DOCS / "gallery" / f"{file.stem}.rst" for file in ROOT.glob("examples/plot_*.py")}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def include_and_link(app: Any, docname: str, source: list[str]) -> None:
    """Put in the file that a page includes, and point links between files of the repository to their pages."""
    page = Path(app.env.doc2path(docname)).resolve()
    if page.suffix != ".md":
        return
    origin = INCLUDED.get(page, page)

    def relink(match: re.Match[str]) -> str:
        target = (origin.parent / match[1]).resolve()
        return os.path.relpath(PAGES.get(target, target), page.parent)

    text = source[0] if origin == page else origin.read_text(encoding="utf-8")
    source[0] = LINK.sub(relink, text)


def skip_inherited(app: Any, what: str, name: str, item: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what classes inherit from other packages: scikit-learn and PyTorch document it themselves."""
    function = getattr(item, "fget", item)
    module = getattr(function, "__module__", None) or "seqatt"
    return True if not str(module).startswith("seqatt") else None


def adapt_docstring(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Escape absolute values such as |x| in help texts, which terminals show as well, and link the pages they name."""
    plain = [line if "``" in line else line.replace("|", r"\|") for line in lines]
    lines[:] = [re.sub(r"\bdocs/([\w/]+)\.md", r":doc:`/\1`", line) for line in plain]


def copy_animation(app: Any, error: Exception | None) -> None:
    """Copy the pictures of the element that chooses between an animation and its end, which Sphinx does not see."""
    if error is None:
        folder = Path(app.outdir) / "pictures"
        folder.mkdir(exist_ok=True)
        for picture in ("attention.webp", "attention.png"):
            shutil.copy(DOCS / "pictures" / picture, folder)


def write_command_line(app: Any) -> None:
    """Write the page of the commands."""
    from command_line import write_page

    write_page(DOCS / "reference" / "generated" / "command_line.md")


def setup(app: Any) -> None:
    app.connect("builder-inited", write_command_line)
    app.connect("source-read", include_and_link)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", adapt_docstring)
    app.connect("build-finished", copy_animation)
