"""Documents that are partially annotated: read, written, renamed, and kept."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace

import pytest

from herdner.corpora.formats import read_documents, write_documents
from herdner.evaluation.scores import evaluate
from herdner.text.document import Document
from herdner.text.io.source import FormatError
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


def test_open_tags_are_kept_beside_the_known_ones():
    document = partly()
    assert document.tags == ["B-PER", "O", "O", "O", "O"]
    assert document.unannotated_tokens() == {1: "?", 3: "PER|ORG", 4: "B-LOC|O"}
    assert document.partial == PartialAnnotation(
        (UnannotatedRange(4, 9, "?"), UnannotatedRange(13, 17, "PER|ORG"), UnannotatedRange(18, 22, "B-LOC|O"))
    )
    assert [entity.text for entity in document.entities] == ["Ada"]


def test_copies_keep_what_is_open_and_predictions_do_not():
    document = partly()
    assert pickle.loads(pickle.dumps(document)) == document
    assert document.with_tags(document.tags or ()) == document
    assert document != replace(document, partial=None)
    assert document.with_spans([]).partial is None


def test_columns_and_json_lines_say_what_is_open():
    document = partly()
    assert read(written(document, "conll"), "conll")[0].partial == document.partial
    again = read(
        written(replace(document, partial=replace(document.partial, annotated_labels=("PER",))), "jsonl"), "jsonl"
    )[0]
    assert again.partial == PartialAnnotation(partly().partial.unannotated, ("PER",))
    assert again.entities == document.entities


def test_json_lines_name_the_annotated_classes():
    line = '{"text": "Ada in Kent", "entities": [{"start": 0, "end": 3, "label": "PER"}],'
    line += '"annotated_labels": ["PER", "LOC"]}'
    (document,) = read(line, "jsonl")
    assert document.partial == PartialAnnotation((), ("PER", "LOC"))
    assert not document.fields


def test_classes_are_renamed_where_they_are_open_too():
    document = rename_labels(partly(), {"PER": "person", "ORG": None}, "iob2")
    assert document.unannotated_tokens() == {1: "?", 3: "person|O", 4: "B-LOC|O"}
    inside = rename_labels(Document.from_tokens([["Ada", "Byron"]], [["?", "I-PER"]]), {"PER": "person"})
    assert inside.tags == ["O", "I-person"], "the name may have begun where the tag is open"
    some = replace(partly(), partial=PartialAnnotation((), ("PER", "ORG")))
    assert rename_labels(some, {"PER": "person", "ORG": None}).partial == PartialAnnotation((), ("person",))


def test_a_token_of_two_words_is_open_twice():
    document = read("New York\tB-LOC|PER\nx\tO\n", "conll")[0]
    assert document.unannotated_tokens() == {0: "LOC|PER", 1: "LOC|PER"}


@pytest.mark.parametrize("tag", ["|", "PER|", "PER|?", "PER"])
def test_what_is_no_open_tag_is_refused(tag):
    with pytest.raises(FormatError, match=":1: "):
        read(f"Ada\t{tag}\n", "conll")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('"annotated_labels": ["LOC"]', "the entity at 0..3 is a PER, which is not among the annotated labels"),
        ('"annotated_labels": ["PER", "PER"]', "the annotated labels name PER twice"),
        ('"annotated_labels": "PER"', "annotated_labels must be a list of labels"),
        ('"unannotated": [{"start": 1, "end": 2, "tags": "?"}]', "the entity at 0..3 overlaps an unannotated range"),
        ('"unannotated": [{"start": 7, "end": 70, "tags": "?"}]', "unannotated range 0 is"),
        ('"unannotated": [{"start": 7, "end": 9, "tags": "PER|"}]', "cannot read 'PER|' as tags"),
    ],
)
def test_json_that_contradicts_itself_is_refused_in_one_line(keys, message):
    line = f'{{"text": "Ada in Kent", "entities": [{{"start": 0, "end": 3, "label": "PER"}}], {keys}}}'
    with pytest.raises(FormatError) as error:
        read(line, "jsonl")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_formats_that_cannot_say_it_refuse():
    some = replace(partly(), partial=PartialAnnotation((), ("PER",)))
    with pytest.raises(ValueError, match="write JSON lines"):
        written(some, "conll")
    with pytest.raises(ValueError, match="write JSON lines"):
        write_documents([some], io.BytesIO(), "spacy")


def test_partial_annotation_is_not_scored():
    with pytest.raises(ValueError, match="partially annotated"):
        evaluate([partly()], [partly()])
