"""Formats of annotation tools: documented examples, round trips, and invalid input."""

from __future__ import annotations

import io
import json
import logging
import sys
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.corpora.formats import read_documents, read_items, write_documents
from herdner.corpora.reading import ANNOTATION_OPTIONS
from herdner.text.document import Document, Failure
from herdner.text.entity import Entity
from herdner.text.io.source import FormatError
from herdner.text.tokenize import Tokenizer, tokenize_documents

TOKENIZER = Tokenizer()
TOOLS = ("label-studio", "doccano", "prodigy", "brat")
TEXT = "Ada Lovelace met Dr. Müller 🙂 in Paris."


def read(content: str | bytes, format: str, **options) -> list[Document]:
    return list(
        read_documents(io.BytesIO(content.encode() if isinstance(content, str) else content), format, **options)
    )


def written(documents, format: str, **options) -> bytes:
    stream = io.BytesIO()
    write_documents(documents, stream, format, **options)
    return stream.getvalue()


def marks(document: Document) -> list[tuple[int, int, str]]:
    return [(entity.start, entity.end, entity.label) for entity in document.entities]


def region(start, end, label, text=None, **more):
    value = {"start": start, "end": end, "labels": [label]} | ({} if text is None else {"text": text})
    return {"id": "x", "from_name": "label", "to_name": "text", "type": "labels", "value": value, **more}


@st.composite
def annotated_texts(draw):
    """Draw texts with disjoint entities whose labels contain spaces; none begins or ends with white space."""
    words = draw(st.lists(st.text("aBé🙂\u0645", min_size=1, max_size=4), max_size=12))
    spaces = draw(st.lists(st.sampled_from([" ", "\n", "\t ", "  "]), min_size=len(words), max_size=len(words)))
    text, entities, begin = "", [], None
    for word, space in zip(words, spaces, strict=True):
        end = len(text) + len(word)
        begin = len(text) if begin is None else begin
        if draw(st.booleans()):
            entities.append((begin, end, draw(st.sampled_from(["PER", "Job title", "a-b"]))))
            begin = None
        elif draw(st.booleans()):
            begin = None
        text += word + space
    return Document.from_text(text).with_entities(Entity(s, e, label, text[s:e]) for s, e, label in entities)


@pytest.mark.slow
@pytest.mark.parametrize("format", TOOLS)
@given(documents=st.lists(annotated_texts(), min_size=1, max_size=3))
def test_annotations_are_read_back(format, documents):
    documents = [Document.from_text(d.text, id=f"d{i}").with_entities(d.entities) for i, d in enumerate(documents)]
    back = read(written(documents, format, **ANNOTATION_OPTIONS.get(format, {})), format)
    assert [d.id for d in back] == [d.id for d in documents]
    assert [d.text for d in back] == [d.text for d in documents]
    for ours, theirs in zip(documents, back, strict=True):
        spaced = [(s, e, label.replace(" ", "_") if format == "brat" else label) for s, e, label in marks(ours)]
        assert marks(theirs) == spaced
        assert (theirs.tags is None) == (format == "brat" and not spaced)  # brat's empty files are not begun yet


@pytest.mark.parametrize("format", TOOLS)
def test_documents_without_annotation_are_read_back(format):
    documents = [Document.from_text(TEXT, id="a"), Document.from_text(TEXT, id="b").with_entities([]), TOKENIZER(TEXT)]
    for options in ({}, ANNOTATION_OPTIONS.get(format, {})):
        first, second, third = read(written(documents, format, **options), format)
        assert (first.tags, first.entities, third.tags) == (None, (), None)
        assert (second.tags is None) == (format == "brat" or (format == "label-studio" and not options))


@pytest.mark.parametrize("format", TOOLS)
def test_predictions_are_read_back_as_proposals_with_confidence(format):
    tagged = TOKENIZER(TEXT).with_entities([Entity(0, 12, "PER", TEXT[:12], 0.875)])
    (back,) = read(written([tagged], format), format)
    assert marks(back) == marks(tagged)
    assert back.text == TEXT
    if format in ("label-studio", "brat"):
        assert back.entities[0].confidence == 0.875
    assert (back.tags is None) == (format == "label-studio")  # which alone tells guesses from annotations


def test_label_studio_as_documented():
    tasks = [
        {"id": 7, "data": {"text": TEXT, "source": "diary"}, "created_at": "2021-03-09T21:52:49.513742Z",
         "annotations": [
             {"id": 1, "was_cancelled": True, "result": [region(0, 3, "LOC")]},
             {"id": 2, "was_cancelled": False, "ground_truth": True,
              "result": [region(0, 12, "Famous person", "Ada Lovelace"), {"type": "choices", "value": {}}]},
             {"id": 3, "result": []}],
         "predictions": [{"model_version": "m", "score": 0.3, "result": [region(0, 3, "ORG", score=0.3)]}]},
        {"id": 8, "data": {"text": "Rain.", "id": "rain-1"}, "annotations": [{"result": []}]},
        {"id": 9, "data": {"text": TEXT}, "annotations": [{"was_cancelled": True, "result": []}], "predictions": []},
        {"data": {"comment": TEXT}, "predictions": [{"result": [region(0, 12, "PER", score=0.25)]}]},
    ]  # fmt: skip
    first, empty, skipped, guessed = read(json.dumps(tasks), "label-studio")
    assert (first.id, first.fields, marks(first)) == ("7", {"source": "diary"}, [(0, 12, "Famous person")])
    assert (empty.id, empty.tags, empty.entities) == ("rain-1", [], ())
    assert (skipped.tags, skipped.entities) == (None, ())
    assert (guessed.tags, guessed.entities) == (None, (Entity(0, 12, "PER", "Ada Lovelace", 0.25),))
    assert guessed.id == "<stream>#4"


def test_several_annotations_of_a_task_are_reported_with_their_count(caplog):
    annotated = {"data": {"text": TEXT}, "annotations": [{"result": []}, {"result": [region(0, 12, "PER")]}]}
    proposed = {"data": {"text": TEXT}, "predictions": [{"result": []}, {"result": [region(0, 12, "PER")]}]}
    with caplog.at_level(logging.WARNING):
        documents = read(json.dumps([annotated, proposed, annotated]), "label-studio")
    assert [marks(document) for document in documents] == [[(0, 12, "PER")]] * 3
    assert caplog.messages == [
        "<stream>: document 1: of several annotations of a task only the ground truth is read, or else the last one,"
        " 2 in all",
        "<stream>: document 2: of several predictions of a task only the last one is read",
    ]


def test_label_studio_flat_export_and_its_utf16_offsets():
    at = TEXT.index("Paris")
    flat = [
        {"id": 3, "text": TEXT, "annotator": 1, "annotation_id": 12, "lead_time": 1.5, "label": [
            {"start": at + 1, "end": at + 6, "text": "Paris", "labels": ["LOC"]}]},
        {"id": 4, "text": TEXT, "annotation_id": 13},
    ]  # fmt: skip
    found, empty = read(json.dumps(flat), "label-studio")
    assert found.entities == (Entity(at, at + 5, "LOC", "Paris"),)
    assert empty.tags == []


def test_doccano_as_documented():
    lines = [
        {"id": 1, "text": TEXT, "label": [[0, 12, "Person name"], [33, 38, "LOC"]], "Comments": ["?"]},
        {"doc_id": 33, "text": TEXT, "labels": [[0, 3, "PER"]], "username": "admin"},
        {"id": 3, "text": TEXT, "entities": [{"id": 9, "label": "PER", "start_offset": 0, "end_offset": 12}],
         "relations": [{"id": 1, "from_id": 9, "to_id": 9, "type": "is"}]},
        {"id": 4, "text": "Rain.", "label": []},
        {"text": "Sun."},
    ]  # fmt: skip
    first, old, related, empty, bare = read("\n".join(map(json.dumps, lines)), "doccano")
    assert marks(first) == [(0, 12, "Person name"), (33, 38, "LOC")]
    assert first.fields == {"Comments": ["?"]}
    assert (old.id, marks(old)) == ("33", [(0, 3, "PER")])
    assert marks(related) == [(0, 12, "PER")]
    assert (empty.tags, bare.tags, bare.id) == ([], None, "<stream>#5")


def test_prodigy_as_documented():
    at = TEXT.index("Paris")
    span = {"start": 0, "end": 12, "token_start": 0, "token_end": 1, "label": "PER"}
    task = {"text": TEXT, "meta": {"id": "s1"}, "_input_hash": 1, "_task_hash": -2, "spans": [span]}
    lines = [
        {
            **task,
            "answer": "accept",
            "_view_id": "ner_manual",
            "tokens": [{"text": "Ada", "start": 0, "end": 3, "id": 0}],
        },
        {**task, "answer": "reject", "_view_id": "ner_manual"},
        {**task, "answer": "ignore"},
        {"text": TEXT, "answer": "accept"},
        {"text": TEXT},
        {**task, "spans": [{"start": at, "end": at + 5, "label": "LOC"}], "answer": "accept", "_view_id": "ner"},
    ]
    yes, no, ignored, empty, bare, binary = read("\n".join(map(json.dumps, lines)), "prodigy")
    assert (yes.id, marks(yes), yes.fields) == ("s1", [(0, 12, "PER")], {"meta": {"id": "s1"}})
    assert [d.tags for d in (no, ignored, bare)] == [None] * 3
    assert empty.tags == []
    (cut,) = tokenize_documents([binary], TOKENIZER)
    opened = cut.unannotated_tokens()
    assert {cut.tokens[t] for t in opened} == {"Ada", "Lovelace", "met", "Dr.", "Müller", "🙂", "in"}
    assert cut.tags[cut.tokens.index("Paris")] == "B-LOC"


def test_brat_as_documented(tmp_path, caplog):
    text = "Sony formed a joint venture with Ericsson, a mobile phone company based in Sweden.\nSony said today ..."
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(text)
    (tmp_path / "in" / "a.ann").write_text(
        "T1\tOrganization 0 4\tSony\nT2\tMERGE-ORG 14 27\tjoint venture\nT3\tOrganization 33 41\tEricsson\n"
        "E1\tMERGE-ORG:T2 Org1:T1 Org2:T3\nT4\tCountry 75 81\tSweden\nR1\tOrigin Arg1:T3 Arg2:T4\n*\tEquiv T1 T5\n"
        "T6\tPart 5 11;20 27\tformed venture\nA1\tNegation E1\n#1\tAnnotatorNotes T1\tof Tokyo\n"
    )
    (tmp_path / "in" / "b.txt").write_text("Rain.")
    (tmp_path / "in" / "b.ann").write_text("")
    with caplog.at_level(logging.WARNING):
        first, second = read_documents(tmp_path, "brat")
    assert [(text[s:e], label) for s, e, label in marks(first)] == [
        ("Sony", "Organization"), ("joint venture", "MERGE-ORG"), ("Ericsson", "Organization"), ("Sweden", "Country"),
    ]  # fmt: skip
    assert "a.ann:8: a span of several pieces with words between them is left out" in caplog.text
    assert second.tags is None
    assert list(read_documents(tmp_path / "in" / "a.ann", "brat")) == list(
        read_documents(tmp_path / "in" / "a.txt", "brat")
    )
    packed = tmp_path / "out.tar.gz"
    packed.write_bytes(written([first, second], "brat"))
    assert packed.read_bytes() == written([first, second], "brat")
    with tarfile.open(packed) as archive:
        names = [f"{name}.{end}" for name in map(_stem, (first, second)) for end in ("txt", "ann")]
        assert archive.getnames() == names
    assert [marks(d) for d in read_documents(packed, "brat")] == [marks(first), []]


def _stem(document: Document) -> str:
    return (document.id or "").replace("/", "_")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("T1\tPER 0 3\tBob", "span 0 has the text 'Bob', but the text at 0..3 is 'Ada'"),
        ("T1\tP\u2028R 0 3\tAda", "the label of span 0 is 'P\\u2028R'"),
    ],
)
def test_brat_errors_name_the_annotation_file(tmp_path, line, message):
    (tmp_path / "a.txt").write_text("Ada met Bob.")
    (tmp_path / "a.ann").write_text(line + "\n")
    with pytest.raises(FormatError) as raised:
        list(read_documents(tmp_path / "a.ann", "brat"))
    assert str(raised.value).startswith(f"{tmp_path / 'a.ann'}: {message}")


def test_brat_file_names_and_labels_are_unique():
    twins = [Document.from_text("Ada", id="a/b.txt"), Document.from_text("Bob", id="a b"), Document.from_text("C")]
    assert [d.text for d in read(written(twins, "brat"), "brat")] == ["Ada", "Bob", "C"]
    clash = [Document.from_text("Ada Bob").with_entities([Entity(0, 3, "a b", "Ada"), Entity(4, 7, "a_b", "Bob")])]
    with pytest.raises(ValueError, match="the labels 'a b' and 'a_b' would both be written as a_b; rename one"):
        written(clash, "brat")


@pytest.mark.parametrize("format", TOOLS)
def test_the_longer_of_overlapping_spans_is_read_with_a_warning(format, caplog):
    spans = [(0, 12, "PER"), (4, 12, "LOC"), (0, 12, "ORG"), (0, 12, "PER"), (13, 16, "ORG")]
    content: str | bytes = {
        "label-studio": json.dumps(
            [{"data": {"text": TEXT}, "annotations": [{"result": [region(*s) for s in spans]}]}]
        ),
        "doccano": json.dumps({"text": TEXT, "label": spans}),
        "prodigy": json.dumps(
            {"text": TEXT, "spans": [dict(zip(("start", "end", "label"), s, strict=True)) for s in spans]}
        ),
        "brat": "",
    }[format]
    if format == "brat":
        ann = "".join(f"T{i}\t{label} {s} {e}\t{TEXT[s:e]}\n" for i, (s, e, label) in enumerate(spans))
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, data in (("x.txt", TEXT.encode()), ("x.ann", ann.encode())):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        content = stream.getvalue()
    with caplog.at_level(logging.WARNING):
        (document,) = read(content, format)
    assert marks(document) == [(0, 12, "PER"), (13, 16, "ORG")]
    (line,) = caplog.messages
    assert line.endswith(": a span that overlaps a longer or earlier one is left out, 2 in all")
    with pytest.raises(
        FormatError, match="overlaps a longer or earlier one is left out; this is an error in strict mode"
    ):
        read(content, format, strict=True)


def test_documents_after_an_invalid_one_are_read():
    lines = ['{"text": "Ada"}', '{"text": 3}', "{", '{"text": "Bo"}']
    tasks = [{"data": {"text": "Ada"}}, {"data": {"text": "Ada"}, "annotations": 3}, 7, {"data": {"text": "Bo"}}]
    for format, content in (
        ("doccano", "\n".join(lines)),
        ("prodigy", "\n".join(lines)),
        ("label-studio", json.dumps(tasks)),
    ):
        found = list(read_items(io.BytesIO(content.encode()), format, "utf-8"))
        assert [item.text for item in found if isinstance(item, Document)] == ["Ada", "Bo"]
        assert [(item.is_truncated, "<stream>" in item.message) for item in found if isinstance(item, Failure)] == [
            (False, True)
        ] * 2


def task(result) -> str:
    return json.dumps([{"data": {"text": "Ada"}, "annotations": [{"result": result}]}])


WRONG = [
    ("label-studio", "", "is empty; expected a list of Label Studio's tasks"),
    ("label-studio", '[{"data": {"text": "Ada"}, "annotations": [{"resu', "not JSON"),
    ("label-studio", "7", "a JSON int; expected a list"),
    ("label-studio", "[7]", "task 1: the task is 7; expected an object with `data`"),
    ("label-studio", '[{"data": {"image": 1}}]', r"task 1: no text in the data of the task \(image\)"),
    ("label-studio", task([region(0, 9, "PER")]), "0..9; expected"),
    ("label-studio", task([region(0, 3, "P", "Bob")]), "has the text 'Bob'"),
    ("label-studio", task([region("/p[1]", "/p[1]", "P")]), "XPath"),
    ("label-studio", "[" * 100_000, "nested too deeply|not JSON"),
    ("doccano", "", "the file is empty; expected one JSON object on each line"),
    ("doccano", '{"text": "Ada", "label": [[0, 3', "<stream>:1: not JSON"),
    ("doccano", '{"text": "Ada", "label": ["sports"]}', r"expected \[start, end, label\]"),
    ("doccano", '{"data": "Ada"}', "<stream>:1: no text; expected"),
    ("doccano", '{"text": "Ada", "label": [[0, 3, " "]]}', "the label of span 0 is ' '"),
    ("prodigy", "", "is empty"),
    ("prodigy", '{"text": "Ada", "spans": 3}', "spans are 3; expected a list"),
    ("prodigy", '{"text": "Ada", "spans": [3]}', "span 0 is 3; expected an object"),
    ("prodigy", '{"text": "Ada", "answer": "maybe"}', "`answer` is \"maybe\"; expected one of accept, reject, ignore"),
    ("brat", b"", "not a tar archive"),
    ("brat", b"Ada" * 1000, "not a tar archive"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "content", "message"), WRONG, ids=[f"{f}-{m[:20]}" for f, _, m in WRONG])
def test_bad_input_is_one_clear_line(format, content, message):
    with pytest.raises(FormatError, match=message) as caught:
        read(content, format)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


def test_brat_bad_folders(tmp_path):
    (tmp_path / "a.ann").write_text("T1\tPER 0 3\tAda\n")
    with pytest.raises(FormatError, match=r"a\.txt is missing; put it in the same folder"):
        list(read_documents(tmp_path, "brat"))
    (tmp_path / "a.txt").write_text("Ad")
    with pytest.raises(FormatError, match=r"a.ann:1: the span 0..3 exceeds the text, which has 2 characters"):
        list(read_documents(tmp_path, "brat"))
    (tmp_path / "a.ann").write_text("T1 PER 0 3 Ada\n")
    with pytest.raises(FormatError, match=r"a\.ann:1: .* is not a span; expected T1 TAB LABEL START END TAB TEXT"):
        list(read_documents(tmp_path, "brat"))
    half = written([Document.from_text("Ada" * 5000, id="x")], "brat")
    with pytest.raises(FormatError):
        read(half[: len(half) // 2], "brat")


def test_many_spans_are_read_in_linear_time():
    text = "a " * 10_000
    spans = [[2 * i, 2 * i + 1, "PER"] for i in range(10_000)] + [[0, 20_000, "LOC"]]
    (document,) = read(json.dumps({"text": text, "label": spans}), "doccano")
    assert marks(document) == [(0, 20_000, "LOC")]


@pytest.mark.slow
@pytest.mark.parametrize("format", ["jsonl", "doccano", "prodigy", "label-studio"])
def test_values_nested_almost_too_deeply_are_read_or_refused(format: str) -> None:
    for depth in range(max(sys.getrecursionlimit() - 100, 0), sys.getrecursionlimit()):
        nested = "[" * depth + "]" * depth
        for record in (
            f'{{"text": {nested}}}',
            f'{{"text": "A", "label": {nested}, "spans": {nested}, "entities": {nested}}}',
            f'{{"text": "\\ud800", "data": {nested}}}',
            f'{{"data": {{"text": "A"}}, "annotations": {nested}}}',
        ):
            with suppress(FormatError):
                list(read_documents(io.BytesIO(record.encode()), format, strict=True))
