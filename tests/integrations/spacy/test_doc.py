"""Documents from spaCy's Docs, and entities back into them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import spacy
from data import REPOSITORY
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from herdner.integrations.spacy.component import ComponentError, errors_name
from herdner.integrations.spacy.doc import document_of, register_extension, set_entities
from herdner.text.tags import Span as TokenSpan
from herdner.text.tokenize import Tokenizer

ARTICLE = Path(REPOSITORY, "corpora", "article.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("en")


def test_text_tokens_and_their_places_are_those_of_the_doc(nlp):
    doc = nlp("  Ada  Lovelace\n\nmet\tCharles Babbage .\u00a0\u2003\n")
    document, places = document_of(doc)
    assert document.text == doc.text
    assert document.tokens == [token.text for token in doc if not token.is_space]
    assert places.tolist() == [token.i for token in doc if not token.is_space]
    assert document.token_starts.tolist() == [doc[place].idx for place in places.tolist()]
    slices = zip(document.token_starts.tolist(), document.token_ends.tolist(), strict=True)
    assert [document.text[start:end] for start, end in slices] == document.tokens


def test_white_space_is_found_in_a_bare_vocabulary_too():
    """A Vocab without a language's attributes does not know which of its words are white space."""
    doc = Doc(Vocab(), words=["\n", "Ada", " \t", "sang"], spaces=[False, True, False, False])
    assert not doc[0].is_space
    document, places = document_of(doc)
    assert (document.text, document.tokens, places.tolist()) == ("\nAda  \tsang", ["Ada", "sang"], [1, 3])


@pytest.mark.parametrize("words", [[], ["\n"], [" ", "\n\n"]])
def test_a_doc_without_words_is_a_document_without_sentences(words):
    document, places = document_of(Doc(Vocab(), words=words))
    assert (document.n_tokens, document.sentence_offsets.tolist(), len(places)) == (0, [0], 0)


def test_sentences_of_the_doc(nlp):
    words = ["\n", "One", "two", "\n", "three", " ", "\n", "four"]
    begins = [True, False, False, True, False, True, False, True]
    document, _ = document_of(Doc(nlp.vocab, words=words, sent_starts=begins))
    assert list(map(list, document.sentences())) == [["One", "two"], ["three"], ["four"]]


def test_sentences_of_a_hook_and_of_the_caller(nlp):
    doc = Doc(nlp.vocab, words=["One", "two", "three", "four"])
    given = np.array([True, False, False, True])
    assert document_of(doc, sentence_starts=given).document.sentence_offsets.tolist() == [0, 3, 4]
    doc.user_hooks["sents"] = lambda doc: [doc[:1], doc[1:]]
    assert document_of(doc).document.sentence_offsets.tolist() == [0, 1, 4]


def test_without_sentences_they_are_those_of_the_rules(nlp):
    document, _ = document_of(nlp(ARTICLE))
    own = Tokenizer()(ARTICLE)
    assert document.n_sentences > 5
    assert document.token_starts[document.sentence_offsets[:-1]].tolist() == (
        own.token_starts[own.sentence_offsets[:-1]].tolist()
    )


def test_spans_there_and_back(nlp):
    aligned = document_of(Doc(nlp.vocab, words=["\n", "New", "\n", "York", "sang", " "]))
    assert aligned.to_doc_spans([TokenSpan(0, 2, "LOC")]) == [TokenSpan(1, 4, "LOC")]
    assert aligned.to_document_range(1, 4) == (0, 2)
    assert aligned.to_document_range(2, 3) == (1, 1)
    assert aligned.to_document_range(4, 6) == (2, 3)


def annotated(nlp) -> Doc:
    doc = Doc(nlp.vocab, words=["Ada", "Lovelace", "met", "Charles", "Babbage", "in", "London", "."])
    old = [Span(doc, 1, 2, "PERSON", kb_id="Q7259"), Span(doc, 6, 7, "GPE")]
    doc.set_ents(old, blocked=[doc[5:6]], default="missing")
    return doc


NEW = [TokenSpan(0, 2, "PER"), TokenSpan(3, 5, "PER"), TokenSpan(5, 6, "LOC")]


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        ("keep", [("Lovelace", "PERSON"), ("Charles Babbage", "PER"), ("London", "GPE")]),
        ("overwrite", [("Ada Lovelace", "PER"), ("Charles Babbage", "PER"), ("in", "LOC"), ("London", "GPE")]),
        ("replace", [("Ada Lovelace", "PER"), ("Charles Babbage", "PER"), ("in", "LOC")]),
    ],
)
def test_what_becomes_of_entities_that_are_there(nlp, existing, expected):
    register_extension()
    doc = annotated(nlp)
    set_entities(doc, NEW, [0.9, 0.8, 0.7], existing=existing)
    assert [(entity.text, entity.label_) for entity in doc.ents] == expected
    confidences = {"Ada Lovelace": 0.9, "Charles Babbage": 0.8, "in": 0.7}
    assert [entity._.confidence for entity in doc.ents] == [confidences.get(text) for text, _ in expected]
    assert {token.ent_iob_ for token in doc if not token.ent_type} <= {"O", "B"}  # nothing is left unknown
    kept = [entity.kb_id_ for entity in doc.ents if entity.label_ == "PERSON"]
    assert kept == (["Q7259"] if existing == "keep" else [])
    assert (doc[5].ent_iob_, doc[5].ent_type_) == (("B", "") if existing == "keep" else ("B", "LOC"))


def test_a_group_of_spans_holds_all_of_them_with_their_scores(nlp):
    doc = annotated(nlp)
    before = doc.ents
    set_entities(doc, NEW, [0.9, 0.8, 0.7], spans_key="names", annotate_ents=False)
    assert [(span.text, span.label_) for span in doc.spans["names"]] == [
        ("Ada Lovelace", "PER"), ("Charles Babbage", "PER"), ("in", "LOC")
    ]  # fmt: skip
    assert doc.spans["names"].attrs["scores"].tolist() == [0.9, 0.8, 0.7]
    assert doc.ents == before
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert again.spans["names"].attrs["scores"].tolist() == [0.9, 0.8, 0.7]


def test_errors_carry_the_name_once():
    with pytest.raises(ComponentError, match=r"^my_ner: seed is wrong$"), errors_name("other"), errors_name("my_ner"):
        raise ValueError("seed is wrong")


def test_names_become_an_attribute_and_a_group() -> None:
    doc = Doc(spacy.blank("en").vocab, words=["Ana", "Rivera", "met", "Rivera"])
    set_entities(doc, [TokenSpan(0, 2, "PER"), TokenSpan(3, 4, "PER")], [0.5, 0.5], [0, 0])
    assert [ent._.name_id for ent in doc.ents] == [0, 0]
    assert [(span.text, span._.name_id) for span in doc.spans["names"]] == [("Ana Rivera", 0), ("Rivera", 0)]
    set_entities(doc, [TokenSpan(0, 2, "PER")], [0.5], [3], spans_key="names")
    assert [span.text for span in doc.spans["names"]] == ["Ana Rivera"]
