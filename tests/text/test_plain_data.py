"""Documents as plain data, HTML and data frames."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running_texts import running_texts

from herdner.text.document import Document
from herdner.text.entity import Entity, to_frame
from herdner.text.partial import PartialAnnotation, UnannotatedRange

STORY = Document.from_tokens(
    [["Ada", "met", "<b>Bo</b>"], ["Ada", "&", "Rio"]],
    [["B-PER", "O", "B-PER"], ["B-PER", "O", "B-LOC"]],
    id="a&b",
    fields={"source": {"page": 3}},
)


@given(document=running_texts(), opened=st.booleans())
def test_plain_data_restore_the_document(document, opened):
    if opened:
        places = (UnannotatedRange(0, len(document.text), "?"),) if document.text else ()
        document = document.with_spans([]).with_partial(PartialAnnotation(places, ("PER",)))
    for back in (Document.from_dict(document.to_dict()), Document.from_json(document.to_json())):
        assert back == document
        assert hash(back) == hash(document)
        assert back.spans == document.spans
        assert pickle.loads(pickle.dumps(back)) == document
    assert json.loads(document.to_json()) == document.to_dict()
    assert len({document, Document.from_dict(document.to_dict())}) == 1


def test_plain_data_of_texts_without_tokens_or_annotation():
    for document in (
        Document.from_text("Ada\n"),
        Document.from_text("Ada").with_entities([]),
        STORY.with_proposals(STORY.entities),
    ):
        assert Document.from_json(document.to_json()) == document
    assert Document.from_dict({"text": "Ada"}) == Document.from_text("Ada")


@pytest.mark.parametrize(
    ("json_text", "message"),
    [
        ("", "not JSON"),
        ('{"text": "Ada"', "not JSON"),
        ("[1]", "a JSON list; expected an object"),
        ("{}", "'text' is missing"),
        ('{"text": 3}', "the text must be a string"),
        ('{"text": "Ada", "texts": []}', "unknown key 'texts'; expected one of id, text"),
        ('{"text": "Ada", "tokens": ["Ada"]}', "must be a list of strings"),
        ('{"text": "Ada", "tokens": [["Bo"]]}', "the tokens do not match the text"),
        ('{"text": "Ada", "tokens": [["Ada"]], "tags": []}', "has 1 tokens but 0 tags"),
        ('{"text": "Ada", "entities": [{"start": 0, "end": 3, "label": "PER", "text": "Bob"}]}', "has the text 'Bob'"),
        ('{"text": "Ada", "entities": [{"start": 0, "end": 9, "label": "PER", "text": "Ada"}]}', "has 3 characters"),
        (
            '{"text": "Ada", "entities": [{"start": 0.0, "end": 3, "label": "PER", "text": "Ada"}]}',
            "integer offsets",
        ),
        ('{"text": "Ada", "entities": [{"begin": 0}]}', "unexpected keyword"),
        ('{"text": "Ada", "partial": {"unannotated": [{"start": 0, "end": 3, "tags": ""}]}}', "cannot read '' as tags"),
        ("[" * 100_000, "the JSON is nested too deeply"),
    ],
)
def test_invalid_documents_are_refused_in_one_line(json_text, message):
    with pytest.raises(ValueError, match=message) as caught:
        Document.from_json(json_text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


class Reading(HTMLParser):
    """The text, the tags and the hyperlinks of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags, self.ids, self.links = "", [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"].removeprefix("#")] if tag == "a" else []

    def handle_data(self, data):
        self.text += data


def test_html_marks_names_and_connects_their_mentions():
    sure = replace(STORY, entities=tuple(replace(e, confidence=0.93) for e in STORY.entities))
    page = Reading(html := sure._repr_html_())
    assert page.tags.count("mark") == 4
    assert set(page.tags) == {"div", "mark", "span", "a"}
    assert page.links == [page.ids[2], page.ids[0]]  # Ada to the next Ada, and back
    assert page.text.startswith("AdaPER ↓ met <b>Bo</b>PER\nAdaPER ↑ &")
    assert 'title="PER 93 %, mention 1 of 2"' in html
    assert 'dir="auto"' in html


@given(text=st.text(), label=st.text(min_size=1))
def test_html_escapes_all_text(text, label):
    entities = [Entity(0, max(1, len(text) // 2), label, text[: max(1, len(text) // 2)])] if text else []
    page = Reading(Document.from_text(text).with_entities(entities)._repr_html_())
    assert set(page.tags) <= {"div", "mark", "span"}


def test_html_of_long_texts_and_overlapping_entities():
    text = "Ada " * 50_000
    entities = [Entity(0, 3, "PER", "Ada"), Entity(0, 2, "LOC", "Ad"), Entity(199_996, 199_999, "PER", "Ada")]
    html = Document.from_text(text).with_entities(entities)._repr_html_()
    assert "… 150,000 more characters" in html
    assert html.count("<mark") == 1
    assert len(html) < 60_000


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_have_a_row_for_each_entity(backend):
    pytest.importorskip("narwhals")
    pytest.importorskip(backend)
    import narwhals as nw

    sure = Document.from_text("Ada", id="x").with_entities([Entity(0, 3, "PER", "Ada", 0.5, 7)])
    frame = nw.from_native(to_frame([STORY, sure], backend), eager_only=True)
    assert frame.columns == ["id", "start", "end", "label", "text", "confidence", "name_id"]
    assert frame["text"].to_list() == ["Ada", "<b>Bo</b>", "Ada", "Rio", "Ada"]
    assert frame["id"].to_list() == ["a&b"] * 4 + ["x"]
    assert frame["start"].to_list() == [e.start for e in (*STORY.entities, *sure.entities)]
    assert frame["confidence"].is_null().sum() + frame["confidence"].is_nan().sum() >= 4
    assert frame["confidence"].to_list()[-1] == 0.5
    assert frame["name_id"].is_null().to_list() == [True] * 4 + [False]
    assert frame["name_id"].to_list()[-1] == 7
    empty = nw.from_native(Document.from_text("Rain.").to_frame(backend), eager_only=True)
    assert (empty.shape, empty.columns) == ((0, 7), frame.columns)


def test_frames_name_missing_packages(monkeypatch):
    with pytest.raises(ValueError, match=r"`backend` must be one of pandas, polars.* got 'excel'"):
        STORY.to_frame("excel")
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[files\]'"):
        STORY.to_frame()
