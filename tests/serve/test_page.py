"""The page in headless Chromium, as a person meets it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright, which drives the browser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)"),
]

TEXT = "Winam Ferries Ltd. lost in court, said Charlotte Akinyi. Winam will pay. Akinyi left Kisumu. Winam won before."


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page after its own example was tagged. Nothing may be complained of, nor asked for elsewhere."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    complaints, asked = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append("a dialog"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_selector(".entity")
    yield page
    expected = getattr(page, "expected", [])
    assert [text for text in complaints if not any(known in text for known in expected)] == []
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(address).netloc}
    assert page.context.cookies() == []
    page.close()


def tag(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.click("#tag")
    page.wait_for_selector("#tag:not([aria-busy])")


def test_the_example_shows_what_links_are_for(page: Any) -> None:
    assert page.locator(".column h2").all_inner_texts() == ["sum-product", "viterbi"]
    page.wait_for_selector("#differences:not([hidden])")
    rows = page.locator("#differences tbody tr").all_inner_texts()
    assert any("ORG" in row and "PER" in row for row in rows)
    assert page.locator(".entity.differs").count() >= 2


def test_a_text_is_typed_and_its_names_come_in_colour_with_links(page: Any) -> None:
    tag(page, TEXT)
    first = page.locator(".column").first
    assert first.locator(".words").text_content() == TEXT
    marks = {mark.text_content(): mark.get_attribute("data-label") for mark in first.locator(".entity").all()}
    assert marks["Kisumu"] == "LOC"
    assert marks["Charlotte Akinyi"] == "PER"
    colour = "mark => getComputedStyle(mark).backgroundImage"
    colours = {first.locator(f".entity[data-label={label}]").first.evaluate(colour) for label in ("LOC", "PER")}
    assert len(colours) == 2
    paths = first.locator("svg .link")
    assert paths.count() >= 2
    assert all(path.get_attribute("d").startswith("M") for path in paths.all())
    assert page.locator(".column").nth(1).locator("svg .link").count() == 0  # viterbi has no links


def test_pointing_at_a_name_shows_how_sure_it_is_and_what_it_is_tied_to(page: Any) -> None:
    tag(page, TEXT)
    mark = page.locator(".column").first.locator(".entity", has_text="Akinyi").last
    mark.hover()
    tip = page.locator("#tip")
    tip.wait_for(state="visible")
    assert "confidence " in tip.inner_text()
    assert "same-word" in tip.inner_text()
    assert page.locator(".column").first.locator(".link.shown").count() >= 1
    assert page.locator(".column").first.locator(".entity.linked").first.text_content() == "Charlotte Akinyi"
    page.mouse.move(5, 5)
    tip.wait_for(state="hidden")


def test_a_click_on_a_name_says_why_it_has_its_label(page: Any) -> None:
    tag(page, TEXT)
    page.locator(".column").first.locator(".entity", has_text="Akinyi").last.click()
    page.wait_for_selector("#parts tbody tr")
    assert page.locator("#why-title").inner_text() == "Why is “Akinyi” PER ?"
    rows = page.locator("#parts tbody tr").all_inner_texts()
    assert len(rows) == 13
    assert any("link to 'Charlotte Akinyi' in sentence 1, tagged PER (same-word)" in row for row in rows)
    assert "smaller" in rows[-1]
    assert page.locator("#parts .part-link").count() >= 1
    said = page.locator("#parts .odds").inner_text()
    values = [
        float(text.replace("\N{MINUS SIGN}", "-")) for text in [*(row.split("\t")[0] for row in rows), said.split()[1]]
    ]
    assert abs(sum(values[:-1]) - values[-1]) < 0.1
    page.click("#parts button")
    assert page.locator("#parts tbody tr").count() > 13
    page.select_option("#against", "ORG")
    page.wait_for_selector("text=against ORG")
    page.keyboard.press("Escape")
    assert page.locator("#why").is_hidden()


def test_the_keyboard_asks_why_and_no_links_are_none(page: Any) -> None:
    tag(page, TEXT)
    page.locator(".column").nth(1).locator(".entity").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#parts tbody tr")
    assert page.locator("#parts .part-link").count() == 0
    page.click("#why-close")
    assert page.locator("#why").is_hidden()


def test_the_keyboard_reaches_every_name(page: Any) -> None:
    page.locator(".entity").first.focus()
    assert page.locator("#tip").is_visible()
    label = page.locator(".entity").first.get_attribute("aria-label")
    assert "confidence" in label
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className").startswith("entity")
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_a_link_that_is_pointed_at_says_its_rule(page: Any) -> None:
    tag(page, TEXT)
    point = page.evaluate(
        """() => {
          for (const path of document.querySelectorAll(".column .link")) {
            const text = path.closest(".text");
            const origin = path.ownerSVGElement.getBoundingClientRect();
            for (let i = 1; i < 20; i++) {
              const at = path.getPointAtLength((path.getTotalLength() * i) / 20);
              const [x, y] = [at.x + origin.left, at.y + origin.top];
              const there = document.elementFromPoint(x, y);
              if (there && text.contains(there) && !there.closest(".entity")) return [x, y];
            }
          }
        }"""
    )
    page.mouse.move(*point)
    page.locator("#tip").wait_for(state="visible")
    assert "same-word" in page.locator("#tip").inner_text()


def test_markup_is_shown_and_not_executed(page: Any) -> None:
    text = "<script>alert(1)</script><img src=x onerror=alert(2)> Ada Lovelace <b>met</b> Charles Babbage."
    tag(page, text)
    assert [words.text_content() for words in page.locator(".words").all()] == [text, text]
    assert page.locator(".words script, .words img, .words b").count() == 0


def test_characters_of_two_units_do_not_move_the_marks(page: Any) -> None:
    tag(page, "\U0001f600\U0001f600 Ada Lovelace met Charles Babbage. \U0001f600 Charles Babbage sang.")
    names = page.locator(".column").first.locator(".entity").all_text_contents()
    assert "Ada Lovelace" in names
    assert names.count("Charles Babbage") == 2


def test_no_names_no_text_no_backend_and_a_backend_that_cannot(page: Any) -> None:
    page.expected = ["422"]  # Chromium notes the refusal
    tag(page, "nothing is named here.")
    assert "No names found" in page.locator("#status").inner_text()
    page.fill("#text", " ")
    page.click("#tag")
    assert "text first" in page.locator("#status").inner_text()
    page.fill("#text", TEXT)
    page.check("input[value=exact]", force=True)
    page.click("#tag")
    page.wait_for_selector(".problem")
    page.wait_for_selector("#tag:not([aria-busy])")
    assert "enumerates" in page.locator(".problem").inner_text()
    assert page.locator(".column").count() == 3
    for name in ("exact", "sum-product", "viterbi"):
        page.uncheck(f"input[value={name}]", force=True)
    page.click("#tag")
    assert "at least one backend" in page.locator("#status").inner_text()


def test_a_narrow_page_does_not_scroll_sideways_and_the_service_is_described_off_line(page: Any, address: str) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    for path in ("/", "/docs"):
        page.goto(address + path)
        page.wait_for_selector(".entity, .docs section")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.wait_for_selector("text=POST /api/tag")
    assert "n_sweeps" in page.locator(".docs").inner_text()
