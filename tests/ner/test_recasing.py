"""Text in one case is read as it is usually written; all other text as it is."""

from __future__ import annotations

import json
import unicodedata
import zipfile
from dataclasses import asdict

import pytest
from data import news

import herdner
from herdner.crf.templates import linear_chain_template
from herdner.ner.features import FeaturePlan, default_plan
from herdner.ner.lexicon import Gazetteers, Lexicon, word_classes
from herdner.ner.recasing import Recaser, reader
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

CLASSES = {"the": 3, "Paris": 5, "NATO": 7, "met": 2, "paris": 1, "new": 4, "New": 6, "York": 9, "King": 8, "king": 8}
LISTS = {"city": [["New", "York"]], "title": [["new", "king"]]}
LEXICON = Lexicon(word_classes(CLASSES), Gazetteers.of(LISTS))
WANTED = ["NATO", "met", "King", "Zorvan", "the", "Xy", "in", "New", "York", ",", "new", "new", "Paris", "."]
WRITTEN = "nato met king zorvan the xy in new york , new new paris ."


def read(text: str, names: tuple[str, ...] = ("city",)) -> list[str]:
    return list(Recaser(LEXICON, names)(Tokenizer()(text)).tokens)


@pytest.mark.parametrize("how", [str.lower, str.upper])
def test_words_get_their_usual_case_and_names_their_capitals(how):
    found = read(how(WRITTEN))
    assert found == [w if w not in ("Xy", "in") else w.lower() for w in WANTED]


def test_only_the_lists_of_names_are_looked_at():
    assert read("the new king", ("city",)) == ["the", "new", "King"]
    assert read("the new king", ("title",)) == ["the", "New", "King"]
    assert read("in new york", ()) == ["in", "new", "York"]


def test_text_with_both_cases_is_read_as_it_is():
    document = Tokenizer()("nato met King")
    assert Recaser(LEXICON, ("city",))(document) is document


def test_headlines_in_title_case_are_read_as_they_are_usually_written():
    classes = {**CLASSES, "blocks": 10, "nominee": 11, "court": 12, "york": 13, "for": 14}
    lexicon = Lexicon(word_classes(classes), Gazetteers.of(LISTS))

    def read(text: str) -> list[str]:
        return list(Recaser(lexicon, ("city",))(Tokenizer()(text)).tokens)

    assert read("Zorvan Blocks Paris Nominee For New York Court\n\nIt met.") == (
        ["Zorvan", "blocks", "Paris", "nominee", "for", "New", "York", "court", "It", "met", "."]
    )
    others = (
        "Zorvan Blocks Court Nominee of King.",
        "Blocks, Court, Nominee, York",
        "Zorvan Blocks Paris Nominee",
        "Zorvan Blocks nominee and york King",
    )
    for text in others:
        assert read(text) == Tokenizer().tokens(text)


@pytest.mark.parametrize("text", ["", ".", "42 %", "łódź", "straße İ", "ﬁ ß"])
def test_any_text_can_be_read(text):
    for form in (text, text.lower(), text.upper()):
        document = Tokenizer()(form)
        assert len(Recaser(Lexicon(), ())(document).tokens) == document.n_tokens
        assert len(Recaser(LEXICON, ("city",))(document).tokens) == document.n_tokens


def test_without_a_plan_for_it_nothing_is_recased():
    document = Tokenizer()("nato met king")
    assert reader(default_plan(()), LEXICON)(document) is document


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    words = {token: 1 for document in news("train") for token in document.tokens}
    lexicon = Lexicon(word_classes(words))
    return Tagger(default_plan((), ()), lexicon, max_iterations=20, templates=(linear_chain_template(),)).fit(
        news("train")
    )


def test_names_are_found_in_small_letters_and_in_capitals(tagger):
    documents = [Document.from_text(document.text) for document in news("train")[:8]]
    right = sum(len(document.entities) for document in tagger.pipe(documents))
    for how in (str.lower, str.upper):
        texts = [how(document.text) for document in documents]
        found = list(tagger.pipe(texts))
        assert sum(len(document.entities) for document in found) > 0.7 * right
        for text, document in zip(texts, found, strict=True):
            assert document.text == text
            assert all(text[e.start : e.end] == e.text for e in document.entities)
            assert all(
                text[a:b] == t
                for a, b, t in zip(document.token_starts, document.token_ends, document.tokens, strict=True)
            )


def test_in_batches_and_saved_it_reads_the_same(tagger, tmp_path):
    texts = [document.text.lower() if i % 2 else document.text for i, document in enumerate(news("dev")[:8])]
    tagger.save(tmp_path / "m.herdner")
    loaded = herdner.load(tmp_path / "m.herdner")
    assert [d.entities for d in tagger.pipe(texts)] == [loaded.tag(text).entities for text in texts]


def test_a_model_file_says_which_texts_are_recased(tagger, tmp_path):
    values = asdict(default_plan(("city",)))
    assert FeaturePlan.from_dict(values) == default_plan(("city",))
    tagger.save(tmp_path / "m.herdner")
    with zipfile.ZipFile(tmp_path / "m.herdner") as archive:
        assert json.loads(archive.read("header.json"))["plan"]["recasing"] == []


def test_words_before_a_designator_are_a_name_wherever_they_occur_together():
    lexicon = Lexicon(word_classes({"vertex": 1, "shares": 2, "of": 3, "fell": 4, "said": 5}))
    recase = Recaser(lexicon, ())

    def words(text: str) -> list[str]:
        return list(recase(Tokenizer()(text)).tokens)

    assert words("VERTEX BIOLABS INC. SAID SHARES OF VERTEX BIOLABS FELL")[:2] == ["Vertex", "Biolabs"]
    assert words("VERTEX BIOLABS INC. SAID SHARES OF VERTEX BIOLABS FELL")[-3:-1] == ["Vertex", "Biolabs"]
    assert words("SHARES OF VERTEX FELL. BIOLABS FELL.")[2] == "vertex"
    assert words("VERTEX BIOLABS FELL. VERTEX BIOLABS FELL. VERTEX BIOLABS FELL.")[0] == "Vertex"
    assert words("SAID BIOLABS. SAID BIOLABS. SAID BIOLABS.")[0] == "said"
    assert words("INC. FELL.")[1] == "fell"


@pytest.mark.parametrize("convert", [str, str.upper])
def test_decomposed_characters_are_tagged_as_composed_ones(convert):
    tagger = herdner.load("en")
    text = convert("Angéla Merkel met René Amato in München. Amato wrote to Merkel.")
    decomposed = unicodedata.normalize("NFD", text)
    document = tagger.tag(decomposed)
    assert len(decomposed) > len(text)
    assert [document.text[each.start : each.end] for each in document.entities] == [
        unicodedata.normalize("NFD", each.text) for each in tagger.tag(text).entities
    ]
    assert len(document.entities) == 5
