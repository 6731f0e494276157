"""The site in a real Chromium, from disk: no errors, no requests to elsewhere, pictures load, search finds pages.

They need a site (``make docs``), a chromium and Playwright (``make test-browser``).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright: make test-browser installs it"
)
SITE = Path(__file__).parents[2] / "site"
CHROMIUM = os.environ.get("SEQATT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
QUIET = ("gpu", "quic", "background-networking", "component-update", "sync", "dev-shm-usage")
FLAGS = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in QUIET)]
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium; SEQATT_CHROMIUM names one"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: make docs builds it"),
]


def address(name: str) -> str:
    return (SITE / name).as_uri()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser):
    """Opens a page; whatever it requests from outside the site, or says on the console, is an error at the end."""
    problems, opened = [], []

    def note_request(request):
        if not request.url.startswith((SITE.as_uri(), "data:")):
            problems.append(request.url)

    def note_failure(request):
        if "ERR_ABORTED" not in (request.failure or ""):  # the next page was opened meanwhile
            problems.append(f"{request.failure}: {request.url}")

    def open_one(name, size="desktop", **options):
        page = browser.new_page(viewport=SIZES[size], **options)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", note_failure)
        page.on("request", note_request)
        page.goto(address(name))
        opened.append(page)
        return page

    yield open_one
    for page in opened:
        page.close()
    assert problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_pages_open_without_errors_requests_or_sideways_scrolling(open_page, size, scheme):
    names = ["index.html", "start.html", "idea.html", "methods.html", "results.html", "gallery/index.html"]
    names += ["how_to/index.html", "how_to/pytorch.html", "reference/generated/seqatt.select.html"]
    page = open_page("search.html", size, color_scheme=scheme)
    for name in names:
        page.goto(address(name))
        assert page.locator("h1").count() == 1, name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        for picture in page.locator("article img").all():
            picture.scroll_into_view_if_needed()
            page.wait_for_function("image => image.complete", arg=picture.element_handle())
            assert picture.evaluate("image => image.naturalWidth") > 0, name


def test_dark_mode_follows_the_reader(open_page):
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = (
        open_page("index.html", color_scheme=scheme).evaluate(colour) for scheme in ("light", "dark")
    )
    assert light == "rgb(255, 255, 255)"
    assert light != dark


@pytest.mark.parametrize("size", SIZES)
def test_search_finds_a_page_from_disk(open_page, size):
    page = open_page("index.html", size)
    if size == "phone":
        page.locator("label[for=__navigation]:visible").first.click()
    page.locator("input[name=q]").fill("knockoffs")
    page.keyboard.press("Enter")
    found = page.locator("#search-results li a", has_text="A bound on false discoveries").first
    found.click()
    page.wait_for_selector("h1")
    assert "false discoveries" in page.locator("h1").text_content()


def test_readers_who_dislike_motion_see_a_still(open_page):
    shown = "document.querySelector('picture img').currentSrc"
    assert open_page("idea.html").evaluate(shown).endswith("attention.webp")
    assert open_page("idea.html", reduced_motion="reduce").evaluate(shown).endswith("attention.png")
