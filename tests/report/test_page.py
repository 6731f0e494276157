"""The page of a report: one small file without network, in which no name of a column becomes markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from tests.support.reports import (
    HOSTILE,
    make_comparison,
    make_evaluation,
    make_full_selection,
    make_selection,
    make_table,
)

import seqatt
from seqatt.report.facts.comparison_facts import comparison_facts
from seqatt.report.facts.selection_facts import selection_facts
from seqatt.report.page.html_page import make_page
from seqatt.report.page.svg import spread_out

VOID = {"meta", "br", "wbr", "input", "img", "link", "hr"}


class Reader(HTMLParser):
    """The elements, identifiers and texts of a page; an element that is not closed is an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data


@pytest.fixture(scope="module")
def full_page(tmp_path_factory) -> str:
    X, y = make_table()
    path = tmp_path_factory.mktemp("page") / "report.html"
    make_full_selection().report(path, X, y, evaluation=make_evaluation(), image_shape=(5, 6), target=HOSTILE)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def comparison_page() -> str:
    return make_page(comparison_facts(make_comparison(), target=HOSTILE))


def test_every_section_is_there_if_its_facts_are(full_page):
    headings = re.findall(r"<h2 id=\"([\w-]+)\"", full_page)
    assert headings == [
        "features",
        "image",
        "curve",
        "evaluation",
        "confidence",
        "stability",
        "distributions",
        "correlation",
        "history",
        "origin",
    ]
    bare = re.findall(r"<h2 id=\"([\w-]+)\"", make_page(selection_facts(make_selection())))
    assert bare == ["features", "history", "next", "origin"]


def test_names_that_are_markup_are_text(full_page, comparison_page):
    for page in (full_page, comparison_page):
        assert HOSTILE not in page
        reader = Reader(page)
        scripts = [attributes for tag, attributes in reader.tags if tag == "script"]
        assert scripts == [{"type": "application/json", "id": "facts"}, {}]
        assert HOSTILE in reader.text
        assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)


@pytest.mark.parametrize(
    "name", ['"><img src=x onerror=alert(1)>', "' onload='x", "</title></style>", "\x00\u202e", "{{7*7}}", ""]
)
def test_any_name_gives_a_page_that_can_be_parsed_and_written(name, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    frame = pd.DataFrame(X, columns=[name, "b", "c"])
    selection = seqatt.select(frame, (X[:, 0] > 0).astype(int), 2, method="f_test")
    selection.report(tmp_path / "r.html", frame, X[:, 0] > 0, target=name + "\ud800")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    reader = Reader(page)
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)
    assert not [tag for tag, _ in reader.tags if tag == "img"]


def test_only_columns_without_a_name_are_shown_as_such(full_page, comparison_page):
    assert "(no name)" not in full_page + comparison_page
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["", "b", "c"])
    selection = seqatt.select(X, X["b"] > 0, 2, method="f_test", keep=[""])
    page = make_page(selection_facts(selection))
    assert len(re.findall(r"<t[dh][^>]*>\(no name\)</t[dh]>", page)) == 1


def test_a_page_needs_no_network_and_allows_only_its_own_script(full_page, comparison_page):
    for page in (full_page, comparison_page):
        assert not re.search(r"(src|href)=|url\(|@import|https?://", page)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
        assert "default-src 'none'" in policy
        assert "script-src 'sha256-" in policy
        assert "connect" not in policy


def test_identifiers_are_unique(full_page, comparison_page):
    for page in (full_page, comparison_page):
        identifiers = [a["id"] for _, a in Reader(page).tags if "id" in a]
        assert len(identifiers) == len(set(identifiers))


def test_pages_are_small(full_page, comparison_page):
    assert len(full_page.encode()) < 150_000
    assert len(comparison_page.encode()) < 80_000


def test_the_largest_report_is_below_two_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1200))
    y = np.digitize(X[:, 0], np.linspace(-1.5, 1.5, 9))
    selection = seqatt.select(X, y, 1000, method="random", task="classification")
    selection.report(tmp_path / "r.html", X, y)
    assert (tmp_path / "r.html").stat().st_size < 1_000_000


def test_the_facts_of_a_page_are_in_it(full_page):
    raw = re.search(r'<script type="application/json" id="facts">(.*?)</script>', full_page, re.DOTALL).group(
        1
    )
    facts = json.loads(raw)
    assert facts["features"][0]["feature"] == HOSTILE
    assert make_page(facts) == full_page


def test_equal_facts_give_equal_pages():
    facts = selection_facts(make_full_selection())
    assert make_page(facts) == make_page(facts)


def test_the_answer_comes_first(full_page):
    text = Reader(full_page).text
    assert text.index("3 of 30 features") < text.index("reach AUC 0.980") < text.index("Selected features")


def test_every_chart_has_a_name_and_a_description_or_is_named_by_a_label(full_page, comparison_page):
    for page in (full_page, comparison_page):
        charts = [attributes for tag, attributes in Reader(page).tags if tag == "svg"]
        assert charts
        for attributes in charts:
            assert (
                "aria-labelledby" in attributes
                or "aria-label" in attributes
                or attributes["aria-hidden"] == "true"
            )


def test_a_comparison_shows_table_chart_failures_and_conclusion(comparison_page):
    reader = Reader(comparison_page)
    assert "sequential_attention is best" in reader.text or "has the best mean" in reader.text
    assert "<b>no</b>" in reader.text
    assert "all features" in reader.text
    assert "Accuracy against k" in reader.text
    assert "seqatt.compare(X, y, k=[2, 4, 8]" in reader.text


def test_a_comparison_at_one_k_has_a_row_per_method():
    page = make_page(comparison_facts(make_comparison((2,))))
    assert "Accuracy at k = 2" in Reader(page).text


def test_a_selection_of_nothing_has_a_page(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 4))
    selection = seqatt.select(X, np.arange(40) % 2, 1, method="f_test")
    none = np.array([], dtype=np.int64)
    empty = replace(selection, indices=none, columns=none, features=[], scores=none.astype(float))
    empty.report(tmp_path / "r.html", X, np.arange(40) % 2)
    assert "0 of 4 features" in Reader((tmp_path / "r.html").read_text()).text


def test_y_without_x_is_an_error(tmp_path):
    with pytest.raises(TypeError, match="y: needs X too"):
        make_selection().report(tmp_path / "r.html", y=[1, 2])


@pytest.mark.parametrize(("metric", "best"), [("rmse", "random"), ("accuracy", "sequential_attention")])
def test_the_method_that_the_chart_highlights_is_the_best_one(metric, best):
    made = make_comparison((2,))
    runs = [replace(run, metrics={metric: run.metrics["accuracy"]}) for run in made.runs]
    comparison = replace(made, runs=runs, settings=made.settings | {"metric": metric})
    assert comparison.best(2) == best
    page = make_page(comparison_facts(comparison))
    chart = page[page.index('<h2 id="chart"') : page.index('<h2 id="origin"')]
    assert set(re.findall(r'class="tick strong"[^>]*>([^<]*)<', chart)) == {best}
    assert ("Lower is better." in chart) == (metric == "rmse")


def test_the_page_says_shares_of_classes_and_no_number_of_rows_of_a_sample(full_page):
    text = Reader(full_page).text
    assert "37.3% of the rows" in text
    assert "212 rows" not in text


def test_chart_labels_keep_their_order_and_spacing():
    positions = spread_out([0.9, 0.1, 0.5, 0.51, 0.52], 0.1)
    assert positions == pytest.approx([0.9, 0.1, 0.41, 0.51, 0.61])
