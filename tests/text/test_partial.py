"""Partial annotation: reading, writing, renaming and copying."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace

import pytest

from herdner.corpora.formats import read_documents, write_documents
from herdner.evaluation.scores import evaluate
from herdner.text.document import Document
from herdner.text.io import delimited, parquet
from herdner.text.io.source import FormatError
from herdner.text.io.write import write_spacy
from herdner.text.labels import rename_labels
from herdner.text.partial import PartialAnnotation, UnannotatedRange

TAGS = ["B-PER", "?", "O", "PER|ORG", "B-LOC|O"]


def partly() -> Document:
    return Document.from_tokens([["Ada", "Byron", "of", "Acme", "Kent"]], [TAGS], id="d")


def read(text: str, format: str, **options) -> list[Document]:
    return list(read_documents(io.StringIO(text), format, **options))


def written(document: Document, format: str) -> str:
    stream = io.StringIO()
    write_documents([document], stream, format)
    return stream.getvalue()


def test_ambiguous_tags_become_a_partial_annotation():
    document = partly()
    assert document.tags == ["B-PER", "O", "O", "O", "O"]
    assert document.unannotated_tokens() == {1: "?", 3: "PER|ORG", 4: "B-LOC|O"}
    assert document.partial == PartialAnnotation(
        (UnannotatedRange(4, 9, "?"), UnannotatedRange(13, 17, "PER|ORG"), UnannotatedRange(18, 22, "B-LOC|O"))
    )
    assert [entity.text for entity in document.entities] == ["Ada"]


def test_copies_keep_the_partial_annotation():
    document = partly()
    assert pickle.loads(pickle.dumps(document)) == document
    assert document.with_tags(document.tags or ()) == document
    assert document != replace(document, partial=None)
    assert document.with_spans([]).partial is None


def test_columns_and_json_lines_keep_the_partial_annotation():
    document = partly()
    assert read(written(document, "conll"), "conll")[0].partial == document.partial
    again = read(
        written(replace(document, partial=replace(document.partial, annotated_labels=("PER",))), "jsonl"), "jsonl"
    )[0]
    assert again.partial == PartialAnnotation(partly().partial.unannotated, ("PER",))
    assert again.entities == document.entities


def test_json_lines_list_annotated_labels():
    line = '{"text": "Ada in Kent", "entities": [{"start": 0, "end": 3, "label": "PER"}],'
    line += '"annotated_labels": ["PER", "LOC"]}'
    (document,) = read(line, "jsonl")
    assert document.partial == PartialAnnotation((), ("PER", "LOC"))
    assert not document.fields


def test_labels_of_a_partial_annotation_are_renamed():
    document = rename_labels(partly(), {"PER": "person", "ORG": None}, "iob2")
    assert document.unannotated_tokens() == {1: "?", 3: "person|O", 4: "B-LOC|O"}
    inside = rename_labels(Document.from_tokens([["Ada", "Byron"]], [["?", "I-PER"]]), {"PER": "person"})
    assert inside.tags == ["O", "I-person"], "the name may have begun where the tag is open"
    some = replace(partly(), partial=PartialAnnotation((), ("PER", "ORG")))
    assert rename_labels(some, {"PER": "person", "ORG": None}).partial == PartialAnnotation((), ("person",))


def test_a_token_of_two_words_is_unannotated_twice():
    document = read("New York\tB-LOC|PER\nx\tO\n", "conll")[0]
    assert document.unannotated_tokens() == {0: "LOC|PER", 1: "LOC|PER"}


@pytest.mark.parametrize("tag", ["|", "PER|", "PER|?", "PER"])
def test_invalid_ambiguous_tags_are_refused(tag):
    with pytest.raises(FormatError, match=":1: "):
        read(f"Ada\t{tag}\n", "conll")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('"annotated_labels": ["LOC"]', "the entity at 0..3 is a PER, which is not among the annotated labels"),
        ('"annotated_labels": ["PER", "PER"]', "the annotated labels contain PER twice"),
        ('"annotated_labels": "PER"', "`annotated_labels` must be a list of labels"),
        ('"unannotated": [{"start": 1, "end": 2, "tags": "?"}]', "the entity at 0..3 overlaps an unannotated range"),
        ('"unannotated": [{"start": 7, "end": 70, "tags": "?"}]', "item 0 of `unannotated` is"),
        ('"unannotated": [{"start": 7, "end": 9, "tags": "PER|"}]', "cannot read 'PER|' as tags"),
    ],
)
def test_contradictory_json_is_refused_in_one_line(keys, message):
    line = f'{{"text": "Ada in Kent", "entities": [{{"start": 0, "end": 3, "label": "PER"}}], {keys}}}'
    with pytest.raises(FormatError) as error:
        read(line, "jsonl")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert "document '" not in str(error.value)  # the position is given once


def test_formats_without_partial_annotation_refuse_it():
    some = replace(partly(), partial=PartialAnnotation((), ("PER",)))
    with pytest.raises(ValueError, match="write JSON lines"):
        written(some, "conll")
    with pytest.raises(ValueError, match="write JSON lines"):
        write_documents([some], io.BytesIO(), "spacy")


@pytest.mark.parametrize("write", [write_spacy, delimited.write_table, parquet.write_table])
def test_writers_without_partial_annotation_refuse_it(write):
    with pytest.raises(ValueError, match="cannot represent a partial annotation; write JSON lines"):
        write([replace(partly(), partial=PartialAnnotation((), ("PER",)))], io.BytesIO())


def test_partial_annotation_is_not_scored():
    with pytest.raises(ValueError, match="partially annotated"):
        evaluate([partly()], [partly()])
