"""The page in headless Chromium, as a person meets it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from herdner.corpora.formats import read_documents

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright, which drives the browser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)"),
]

TWO = "Zoë met Ada Lovelace."
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
    page.click("#compare summary")
    page.wait_for_selector(".column:nth-child(2) .entity")
    page.wait_for_selector("#tag:not([aria-busy])")
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


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Any, address: str, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    size = {"width": width, "height": 800}
    page = browser.new_page(color_scheme=scheme, viewport=size, bypass_csp=True)

    def check(where: str) -> None:
        found = axe.run(page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], where

    page.goto(address)
    page.wait_for_selector(".entity")
    check("one answer")
    page.click("#compare summary")
    page.wait_for_selector("#differences:not([hidden])")
    check("answers compared")
    page.locator(".entity").first.click()
    page.wait_for_selector("#parts tbody tr")
    check("why")
    page.goto(address + "/docs")
    page.wait_for_selector(".docs section h2")
    check("description")
    page.close()


def test_one_best_answer_first(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector(".entity")
    assert page.locator(".column h2").all_inner_texts() == ["sum-product"]
    assert page.locator("#differences").is_hidden()
    assert not page.locator("#backends").is_visible()
    page.close()


def test_names_below_the_threshold_are_left_out(page: Any) -> None:
    tag(page, TEXT)

    def shown() -> int:
        return page.locator(".column").first.locator(".entity").count()

    before = shown()
    page.locator("#least").fill("80")
    assert 0 < shown() < before
    assert page.locator("#least-value").inner_text() == "80 %"
    assert page.locator(".column .words").first.text_content() == TEXT
    page.locator("#least").fill("0")
    assert shown() == before


def test_a_file_is_opened_and_what_is_none_is_told(page: Any) -> None:
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": TWO.encode()})
    page.wait_for_selector("text=Zoë met")
    page.wait_for_selector("#tag:not([aria-busy])")
    assert page.input_value("#text") == TWO
    assert page.locator(".column .words").first.text_content() == TWO
    for name, buffer, said in (
        ("b.pdf", b"%PDF-1.7 \xff", "b.pdf is a PDF"),
        ("c.txt", b"K\xf6ln", "c.txt is not a text in UTF-8"),
        ("d.txt", b"a" * 40_000, "d.txt is too large"),
    ):
        page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": buffer})
        page.wait_for_selector(f"#status:has-text('{said}')")
    assert page.input_value("#text") == TWO


def test_the_names_are_saved_in_each_format(page: Any) -> None:
    tag(page, TEXT)
    formats = page.locator("#format option").all_inner_texts()
    assert {"jsonl", "csv", "conll", "html", "spacy", "label-studio", "brat"} <= set(formats)
    for format in formats:
        page.select_option("#format", format)
        with page.expect_download() as started:
            page.click("#save")
        data = Path(started.value.path()).read_bytes()
        if format not in ("html", "text"):
            (document,) = read_documents(io.BytesIO(data), format)
            assert "Charlotte Akinyi" in {entity.text for entity in document.entities}, format
        assert data
    assert started.value.suggested_filename.startswith("herdner.")


def test_text_of_both_directions(page: Any) -> None:
    tag(page, "\u05d0\u05ea\u05de\u05d5\u05dc Ada Lovelace \u05d1.\n\nThen Ada Lovelace sang.")
    words = page.locator(".words").first
    assert words.get_attribute("dir") == "auto"
    assert words.evaluate("each => getComputedStyle(each).direction") == "rtl"
    assert page.locator("#text").get_attribute("dir") == "auto"
    assert page.locator(".column").first.locator(".entity").count() >= 1


def test_swagger_ui_tries_the_service_without_a_network(browser: Any, address: str) -> None:
    pytest.importorskip("fastapi_swagger")
    page = browser.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address + "/try")
    page.click("#operations-service-post_tag_api_tag_post button")
    page.click("text=Execute")
    page.wait_for_selector(".live-responses-table :text('n_tokens')")
    for closed in page.query_selector_all("[aria-expanded=false]"):
        closed.click()
    assert complaints == []  # of the policy neither, which allows no styles in the markup
    assert {urlsplit(url).netloc for url in asked if not url.startswith("data:")} == {urlsplit(address).netloc}
    page.close()


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

    def refuse_exact(route: Any) -> None:
        if '"exact"' in (route.request.post_data or ""):
            route.fulfill(status=422, json={"detail": "this graph is too large"})
        else:
            route.continue_()

    page.route("**/api/tag", refuse_exact)
    page.check("input[value=exact]", force=True)
    page.click("#tag")
    page.wait_for_selector(".problem")
    page.wait_for_selector("#tag:not([aria-busy])")
    assert "too large" in page.locator(".problem").inner_text()
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
