"""The page of a report in a real Chromium: no requests and no errors, sorting, hover, keyboard, dark mode, print.

They need Debian's chromium, or another named by SEQATT_CHROMIUM, and Playwright: ``make test-browser`` installs it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.support.reports import HOSTILE, make_comparison, make_evaluation, make_full_selection, make_table

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright: make test-browser installs it"
)
CHROMIUM = os.environ.get("SEQATT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
QUIET = ("gpu", "quic", "background-networking", "component-update", "sync", "dev-shm-usage")
FLAGS = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in QUIET)]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium; SEQATT_CHROMIUM names one"),
]
SIZES = {"desktop": {"width": 1100, "height": 900}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    X, y = make_table()
    folder = tmp_path_factory.mktemp("pages")
    found = {name: folder / f"{name}.html" for name in ("selection", "comparison")}
    make_full_selection().report(
        found["selection"], X, y, evaluation=make_evaluation(), image_shape=(5, 6), target="diagnosis"
    )
    make_comparison().report(found["comparison"])
    return found


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser, pages):
    """Opens a page; whatever it requests beside itself, or says on the console, is an error at the end."""
    problems, opened = [], []

    def open_one(name="selection", size="desktop", **options):
        page = browser.new_page(viewport=SIZES[size], **options)
        address = pages[name].as_uri()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: request.url != address and problems.append(request.url))
        page.goto(address)
        opened.append(page)
        return page

    yield open_one
    for page in opened:
        page.close()
    assert problems == []


@pytest.mark.parametrize("name", ["selection", "comparison"])
@pytest.mark.parametrize("size", SIZES)
def test_a_page_opens_without_requests_errors_or_sideways_scrolling(open_page, name, size):
    page = open_page(name, size)
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = page.locator("figure.chart > svg:visible").first.bounding_box()
    assert shown["width"] > 300


def test_the_table_sorts_by_a_click_and_by_the_keyboard(open_page):
    page = open_page()
    names = page.locator("table.sortable").first.locator("tbody th")
    before = names.all_text_contents()
    assert before[0] == HOSTILE
    button = page.locator("table.sortable").first.locator("thead button").nth(1)
    button.click()
    assert names.all_text_contents() == sorted(before)
    assert page.locator("table.sortable").first.locator("th[aria-sort=ascending]").count() == 1
    button.press("Enter")
    assert names.all_text_contents() == sorted(before, reverse=True)


def test_numbers_sort_as_numbers(open_page):
    page = open_page("comparison")
    table = page.locator("table.sortable").first
    table.locator("thead button").first.click()
    assert [int(text) for text in table.locator("tbody td:first-child").all_text_contents()] == sorted(
        [2, 4, 8] * 3 + [13]
    )


def test_values_appear_under_the_pointer_and_with_the_arrow_keys(open_page):
    page = open_page()
    tip = page.locator("#tip")
    assert tip.is_hidden()
    page.locator("svg.wide .m:has(.ring)").hover()
    assert tip.text_content() == "3 features: AUC 0.980 ± 0.010, chosen"
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    page.locator("table.heat td.s10").first.hover()
    assert HOSTILE in tip.text_content()
    page.locator("figure.chart > svg.wide").first.focus()
    page.keyboard.press("ArrowRight")
    assert "features: AUC" in tip.text_content()
    assert page.locator("[aria-live]").text_content() == tip.text_content()


def test_dark_mode_and_print_have_their_colours(open_page):
    colour = "getComputedStyle(document.body).backgroundColor"
    assert open_page(color_scheme="light").evaluate(colour) == "rgb(255, 255, 255)"
    page = open_page(color_scheme="dark")
    assert page.evaluate(colour) == "rgb(20, 23, 26)"
    page.emulate_media(media="print")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


def test_a_page_is_complete_without_javascript(open_page):
    page = open_page(java_script_enabled=False)
    for heading in ("Selected features", "How many features", "How the scores moved", "To repeat it"):
        assert page.get_by_role("heading", name=heading).is_visible()
    assert page.locator("figure.chart > svg.wide").first.is_visible()
    assert page.locator(".m > title").count() > 10


@pytest.mark.parametrize("name", ["selection", "comparison"])
@pytest.mark.parametrize(("scheme", "size"), [("light", "desktop"), ("dark", "desktop"), ("light", "phone")])
def test_axe_finds_no_serious_violation(open_page, name, scheme, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="make test-browser installs it")
    page = open_page(name, size, color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    response = axe.Axe().run(page).response
    assert len(response["passes"]) > 10
    serious = [v for v in response["violations"] if v["impact"] in ("serious", "critical")]
    assert not serious, [
        (v["id"], v["nodes"][0]["html"][:200], v["nodes"][0]["failureSummary"]) for v in serious
    ]
