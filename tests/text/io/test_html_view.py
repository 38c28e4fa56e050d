"""Pages of names: what they show, what they may run, and how they look in a browser."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.corpora.formats import write_documents
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.html_view import MAX_MENTIONS

TEXT = "Ana Rivera met Bo Lim in Rio. Rivera left Rio."
STORY = Document.from_text(TEXT, id="story").with_entities(
    [
        Entity(0, 10, "PER", "Ana Rivera", 0.5, 0),
        Entity(15, 21, "PER", "Bo Lim", 0.75, 1),
        Entity(25, 28, "LOC", "Rio", None),
        Entity(30, 36, "PER", "Rivera", 1.0, 0),
        Entity(42, 45, "LOC", "Rio", None),
    ]
)
HOSTILE = "</a></style><script>alert(1)</script><img src=x onerror=alert(1)> \" ' & \x00\x1b\ud800"


class Page(HTMLParser):
    """The tags of a page, the text of its documents, and the attributes of its mentions."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.mentions: list[dict[str, str | None]] = []
        self.cells: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        if values.get("class") == "words":
            self.words.append("")
        if "data-name" in values:
            self.mentions.append(values)
        if tag == "td":
            self.cells.append("")
        if tag not in ("meta",):
            self.open.append(values.get("class") or tag)

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "words" in self.open:
            self.words[-1] += data
        if "td" in self.open or "n" in self.open or "where" in self.open:
            self.cells[-1] += data


def written(*documents: Document) -> str:
    stream = io.BytesIO()
    write_documents(documents, stream, "html")
    return stream.getvalue().decode("utf-8")


def test_mentions_and_the_list_of_names():
    page = Page(written(STORY))
    assert page.words == [TEXT]
    assert [each["title"] for each in page.mentions] == [
        "PER, 50.0 %, mention 1 of 2", "PER, 75.0 %", "LOC, mention 1 of 2", "PER, 100.0 %, mention 2 of 2",
        "LOC, mention 2 of 2",
    ]  # fmt: skip
    assert page.cells == ["Ana Rivera", "PER", "75.0 %", "1 2", "Bo Lim", "PER", "75.0 %", "1", "Rio", "LOC", "", "1 2"]
    assert "table" not in Page(written(STORY.without_annotation())).tags
    assert Page(written()).words == []


def test_of_overlapping_entities_only_the_first_is_shown():
    document = Document.from_text("New York Times", id="x")
    both = [Entity(0, 14, "ORG", "New York Times"), Entity(0, 8, "LOC", "New York")]
    page = Page(written(document.with_entities(both)))
    assert page.words == ["New York Times"]
    assert [each["data-label"] for each in page.mentions] == ["ORG"]


@given(text=st.text(min_size=1), label=st.text(min_size=1), id=st.text())
def test_hostile_texts_labels_and_ids_stay_text(text: str, label: str, id: str):
    for words, tag, name in [(text, label, id), (HOSTILE, HOSTILE, HOSTILE)]:
        document = Document.from_text(words, id=name).with_entities([Entity(0, len(words), tag, words, 0.5)])
        page = Page(written(document))
        assert sorted(set(page.tags)) == sorted(set(Page(written(STORY)).tags))
        assert len(page.words[0]) == len(words.replace("\r\n", "\n"))
        assert len(page.mentions) == 1


def test_the_page_loads_nothing_and_runs_only_its_own_script():
    page = written(STORY)
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; script-src 'sha256-{digest}'" in page  # fmt: skip  # noqa: E501
    loads = re.findall(r"https?://\S+|@import|url\(|\bsrc=|<link\b", page)
    assert [each for each in loads if "www.w3.org/2000/svg" not in each] == []


def test_a_name_with_many_mentions_keeps_the_page_linear():
    def size(n: int) -> int:
        entities = [Entity(4 * i, 4 * i + 3, "PER", "Ada", 0.5, 0) for i in range(n)]
        return len(written(Document.from_text("Ada " * n).with_entities(entities)))

    assert size(2000) - size(1000) < 1.2 * (size(1100) - size(100))
    page = Page(written(Document.from_text("Ada " * 60).with_entities(
        [Entity(4 * i, 4 * i + 3, "PER", "Ada", 0.5, 0) for i in range(60)]
    )))  # fmt: skip
    assert page.cells[3].endswith(f"{MAX_MENTIONS} and 10 more")


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright, which drives the browser")
    if CHROMIUM is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The page on a phone in the dark. No complaint may appear, and nothing but the file is loaded."""
    (tmp_path / "page.html").write_text(written(STORY, STORY), encoding="utf-8")
    page = browser.new_page(viewport={"width": 360, "height": 700}, color_scheme="dark", has_touch=True)
    complaints, loaded = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: loaded.append(request.url))
    page.goto(f"file://{tmp_path / 'page.html'}")
    page.wait_for_selector(".link")
    yield page
    assert complaints == []
    assert len(loaded) == 1
    page.close()


@pytest.mark.slow
def test_a_phone_shows_the_text_and_steps_through_the_mentions(opened: Any):
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
    red, green, blue = map(int, re.findall(r"\d+", opened.evaluate("getComputedStyle(document.body).backgroundColor")))
    assert max(red, green, blue) < 60
    opened.locator("#d0-0").tap()
    tip = opened.locator("#tip")
    assert re.findall(r"Ana Rivera|50.0 %|mention 1 of 2", tip.inner_text()) == [
        "Ana Rivera", "50.0 %", "mention 1 of 2",
    ]  # fmt: skip
    assert opened.locator(".link.shown").count() == 1
    tip.get_by_text("next").tap()
    assert "mention 2 of 2" in tip.inner_text()
    assert opened.locator(".here").get_attribute("id") == "d0-3"
    tip.get_by_text("next").tap()
    assert opened.locator(".here").get_attribute("id") == "d0-0"
    opened.keyboard.press("Escape")
    assert tip.is_hidden()


@pytest.mark.slow
def test_paper_is_white_and_has_the_list_but_no_curves(opened: Any):
    opened.emulate_media(media="print", color_scheme="dark")
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.locator(".links").first.is_hidden()
    assert opened.locator("table").first.is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Any, tmp_path: Path, scheme: str):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    (tmp_path / "page.html").write_text(written(STORY), encoding="utf-8")
    page = browser.new_page(color_scheme=scheme)
    page.goto(f"file://{tmp_path / 'page.html'}")
    results = axe.Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    page.close()
