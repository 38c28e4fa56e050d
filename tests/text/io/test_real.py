"""Readers on real corpora, compared with independent counts."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
import spacy
from data import shared_data
from seqeval.metrics.sequence_labeling import get_entities
from spaces import by_space

from herdner.corpora.formats import read_documents
from herdner.text.document import Document, project
from herdner.text.tokenize import tokenize_documents

COLUMNS = [
    ("conll2003", "conll2003/eng.train", 946),
    ("conll2003", "conll2003/eng.testa", 216),
    ("conll2002", "conll2002/esp.train", 1),
    ("conll2002", "conll2002/esp.testa", 1),
    ("conll2002", "conll2002/ned.train", 287),
    ("conll2002", "conll2002/ned.testa", 74),
    ("wnut17", "wnut17/wnut17train.conll", 3394),
    ("wnut17", "wnut17/emerging.dev.conll", 1009),
    ("btc", "btc/btc.train", 6338),
    ("btc", "btc/btc.dev", 1000),
    ("worldwide", "worldwide/train", 876),
    ("worldwide", "worldwide/dev", 101),
    ("uner", "uner_ewt/en_ewt-ud-dev.iob2", 318),
]


def simple_sentences(path, format):
    """Return (tokens, tags) of each sentence by a minimal reader."""
    token, tag = {"uner": (1, 2), "worldwide": (0, 1)}.get(format, (0, -1))
    for block in re.split(
        r"\n[ \t]*\n", "\n" + path.read_text(encoding="utf-8").replace("-DOCSTART-", "\n\n-DOCSTART-")
    ):
        rows = [re.split(r"\t" if "\t" in line else " +", line) for line in block.split("\n") if line.strip()]
        rows = [row for row in rows if not row[0].startswith("-DOCSTART-") and not (format == "uner" and len(row) == 1)]
        rows = [row for row in rows if not (format == "uner" and row[0].startswith("#"))]
        rows = [row for row in rows if row[token].strip()]
        if rows:
            yield [row[token] for row in rows], [row[tag].strip() for row in rows]


def without_address(sentences):
    (first, tags), *rest = sentences
    if not first[0].startswith(("http", "www")):
        return sentences
    is_cut = len(first) == 1 or not first[1][0].isalnum()
    return rest if is_cut else [(first[1:], tags[1:]), *rest]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "path", "n_documents"),
    [pytest.param(*corpus, marks=pytest.mark.slow if "train" in corpus[1] else ()) for corpus in COLUMNS],
)
def test_columns(format, path, n_documents):
    where = shared_data(f"ner/{path}")
    documents = list(read_documents(where, format))
    expected = []
    for file in sorted(where.glob("*.tsv")) if where.is_dir() else [where]:
        sentences = list(simple_sentences(file, format))
        expected += without_address(sentences) if format == "worldwide" else sentences
    assert len(documents) == n_documents
    assert sum(d.n_sentences for d in documents) == len(expected)
    assert [w for d in documents for w in d.tokens] == [w for tokens, _ in expected for t in tokens for w in t.split()]
    found = Counter(entity.label for document in documents for entity in document.entities)
    assert found == Counter(label for _, tags in expected for label, *_ in get_entities(tags))
    for document in documents:
        starts, ends = document.token_starts.tolist(), document.token_ends.tolist()
        assert [document.text[a:b] for a, b in zip(starts, ends, strict=True)] == list(document.tokens)
        assert all(document.text[e.start : e.end] == e.text for e in document.entities)
        assert project(document.entities, document)[1:] == (0, 0)


def test_uner_text_is_that_of_the_comments():
    where = shared_data("ner/uner_ewt/en_ewt-ud-dev.iob2")
    texts = re.findall(r"^# text = (.*)$", where.read_text(encoding="utf-8"), re.MULTILINE)
    assert [line for d in read_documents(where, "uner") for line in d.text.split("\n")] == [t.strip() for t in texts]


def test_ieer():
    where = shared_data("ner/ieer")
    raw = "".join(file.read_text(encoding="utf-8") for file in sorted(where.glob("*_[0-9]*")))
    documents = list(read_documents(where, "ieer", tokenizer=by_space))
    assert len(documents) == raw.count("<DOC>") == 56
    marks = Counter(re.findall(r'<b_enamex type="(\w{3})', raw))
    assert Counter(e.label for d in documents for e in d.entities) == marks
    optional = sum(a.get("status") == "opt" for d in documents for a in d.fields["entity_attributes"].values())
    assert optional == len(re.findall(r'<b_enamex [^>]*status="opt"', raw))
    without = list(read_documents(where, "ieer", optional=False))
    assert sum(len(d.entities) for d in without) == sum(marks.values()) - optional
    spans = re.findall(r"<b_enamex [^>]*>(.*?)<e_enamex>", raw, re.DOTALL)
    bare = [re.sub(r"<[be]_\w+[^>]*>", "", span).replace("&AMP;", "&") for span in spans]
    assert Counter(e.text for d in documents for e in d.entities) == Counter(bare)
    texts = [re.sub(r"<[^<>]*>", "", text).strip("\n") for text in re.findall(r"<TEXT>(.*?)</TEXT>", raw, re.DOTALL)]
    for document, text in zip(documents, texts, strict=True):
        assert document.text.rstrip("\n").endswith(text.replace("&AMP;", "&"))
        assert not re.search(r"[be]_enamex|AMP;", document.text)


def test_tokenizing_by_spacy_meets_nearly_all_borders():
    nlp = spacy.blank("en")

    def tokenizer(text):
        words = [(t.idx, t.text) for t in nlp.make_doc(text) if not t.is_space]
        base = Document.from_tokens([[word for _, word in words]])
        starts = np.array([start for start, _ in words], np.int64)
        lengths = base.token_ends - base.token_starts
        return Document(text, base.tokens, starts, starts + lengths, base.sentence_offsets)

    documents = list(tokenize_documents(read_documents(shared_data("ner/ieer"), "ieer"), tokenizer))
    widened = sum(project(d.entities, d).n_widened for d in documents)
    total = sum(len(d.entities) for d in documents)
    assert all(project(d.entities, d).n_dropped == 0 for d in documents)
    assert widened < 0.01 * total


@pytest.mark.slow
def test_scheme_of_the_files():
    first = next(read_documents(shared_data("ner/conll2003/eng.train"), "conll2003"))
    assert {tag[0] for tag in first.tags} == {"O", "I"}
    (document, *_) = read_documents(shared_data("ner/conll2003/eng.train"), "conll2003", scheme="iobes")
    assert {tag[0] for tag in document.tags} == {"O", "B", "I", "E", "S"}
