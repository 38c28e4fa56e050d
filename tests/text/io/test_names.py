"""Files keep which mentions belong to one name."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from herdner.corpora.formats import write_documents
from herdner.corpora.reading import read
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.html_view import write_html
from herdner.text.io.prodigy import read_prodigy, write_prodigy
from herdner.text.io.write import write_jsonl
from herdner.text.tokenize import Tokenizer

TEXT = "Ana Rivera met Bo Lim. Rivera left."
ENTITIES = [
    Entity(0, 10, "PER", TEXT[:10], 0.5, 0),
    Entity(15, 21, "PER", "Bo Lim", 0.5, 1),
    Entity(23, 29, "PER", "Rivera", 0.5, 0),
]


def story() -> Document:
    return Tokenizer()(TEXT, id="story").with_entities(ENTITIES)


@pytest.mark.parametrize(
    ("format", "file"),
    [
        ("jsonl", "x.jsonl"), ("csv", "x.csv"), ("tsv", "x.tsv"), ("parquet", "x.parquet"), ("brat", "x.tgz"),
        ("label-studio", "x.json"), ("prodigy", "x.jsonl"), ("spacy", "x.spacy"),
    ],
)  # fmt: skip
def test_names_survive_a_file(format: str, file: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    write_documents([story()], stream, format)
    (tmp_path / file).write_bytes(stream.getvalue())
    (document,) = read(f"{tmp_path / file}:{format}")
    assert [entity.name_id for entity in document.entities] == [0, 1, 0]
    assert [name.mentions for name in document.names] == [(0, 2), (1,)]


def test_other_relations_of_prodigy_are_kept() -> None:
    other = {"head": 1, "child": 4, "label": "KNOWS"}
    document = replace(story(), fields={"relations": [other]})
    stream = io.StringIO()
    write_prodigy([document], stream)
    written = json.loads(stream.getvalue())["relations"]
    assert [(each["head"], each["child"], each["label"]) for each in written] == [(1, 4, "KNOWS"), (1, 6, "COREF")]
    assert written[1]["head_span"] == {"start": 0, "end": 10, "label": "PER", "token_start": 0, "token_end": 1,
                                       "score": 0.5}  # fmt: skip
    (again,) = read_prodigy(io.BytesIO(stream.getvalue().encode()))
    assert isinstance(again, Document)
    assert again.fields["relations"] == [other]
    assert [entity.name_id for entity in again.entities] == [0, 1, 0]


@pytest.mark.parametrize("relations", ["COREF", [1], [{"label": "COREF"}], [{"label": "COREF", "head_span": 1}]])
def test_relations_without_spans_join_no_names(relations: object) -> None:
    task = {"text": "Ada", "spans": [{"start": 0, "end": 3, "label": "PER"}], "relations": relations}
    (document,) = read_prodigy(io.BytesIO(json.dumps(task).encode()))
    assert isinstance(document, Document)
    assert document.entities[0].name_id is None
    assert document.fields["relations"] == relations


def test_spacy_reads_name_ids_as_ids_of_entities() -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import DocBin

    stream = io.BytesIO()
    write_documents([story()], stream, "spacy")
    (doc,) = DocBin().from_bytes(stream.getvalue()).get_docs(spacy.blank("en").vocab)
    assert [(ent.text, ent.ent_id_) for ent in doc.ents] == [("Ana Rivera", "0"), ("Bo Lim", "1"), ("Rivera", "0")]


def test_without_names_the_key_is_left_out() -> None:
    stream = io.StringIO()
    write_jsonl([Document.from_text("Ada").with_entities([Entity(0, 3, "PER", "Ada")])], stream)
    assert "name_id" not in stream.getvalue()


@pytest.mark.parametrize("value", ["0", True, -1, 1.5, 1 << 70])
def test_a_bad_name_id_is_an_error(value: object, tmp_path: Path) -> None:
    record = {"text": "Ada", "entities": [{"start": 0, "end": 3, "label": "PER", "name_id": value}]}
    (tmp_path / "x.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(ValueError, match=r"the name_id of entity 0 is .*; expected an integer of at least 0"):
        list(read(f"{tmp_path / 'x.jsonl'}:jsonl"))


def test_brat_has_an_equivalence_for_each_name_with_several_mentions() -> None:
    stream = io.BytesIO()
    write_documents([story()], stream, "brat")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(stream.getvalue()))) as archive:
        member = archive.extractfile("story.ann")
        assert member is not None
        assert re.findall(r"^\*.*$", member.read().decode(), re.M) == ["*\tEquiv T1 T3"]


def test_brat_joins_equivalences_that_share_a_mention(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("A B C D")
    spans = "".join(f"T{i}\tPER {2 * i - 2} {2 * i - 1}\t{'ABCD'[i - 1]}\n" for i in (1, 2, 3, 4))
    (tmp_path / "x.ann").write_text(spans + "*\tEquiv T1 T2\n*\tEquiv T4 T2\n")
    (document,) = read(f"{tmp_path / 'x.ann'}:brat")
    assert [entity.name_id for entity in document.entities] == [0, 0, 1, 0]


def test_label_studio_has_a_relation_between_the_mentions_of_a_name() -> None:
    stream = io.StringIO()
    write_documents([story()], stream, "label-studio")
    (task,) = json.loads(stream.getvalue())
    (result,) = [each["result"] for each in task.get("predictions", task.get("annotations"))]
    assert [each for each in result if each["type"] == "relation"] == [
        {"type": "relation", "from_id": "0", "to_id": "2", "direction": "bi", "labels": ["same name"]}
    ]


def test_html_links_a_mention_to_the_next_mention_of_its_name() -> None:
    stream = io.StringIO()
    write_html([story(), story()], stream)
    marks = re.findall(r'id="([^"]*)" href="#([^"]*)" data-name="(\d+)"', stream.getvalue())
    assert marks == [
        (f"d{n}-{i}", f"d{n}-{following}", name)
        for n in (0, 1)
        for i, following, name in [(0, 2, "0"), (1, 1, "1"), (2, 0, "0")]
    ]


def test_notebooks_link_a_mention_to_the_next_mention_of_its_name() -> None:
    page = story()._repr_html_()
    assert re.findall(r'title="([^"]*)"', page) == [
        "PER 50 %, mention 1 of 2", "next mention", "PER 50 %", "PER 50 %, mention 2 of 2", "next mention",
    ]  # fmt: skip
