"""Readers of English corpora with other guidelines, and filled templates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from english_corpora import gum_entities, gum_names, gum_sentences, read_gum, read_litbank
from filled_templates import NameLists, add_tags, fill, fill_templates
from train_en import TEMPLATES

from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

GUM = """# newdoc id = GUM_news_toy
1\tAfghan\t_\tADJ\tNNP\t_\t_\t_\t_\tEntity=(1-person-new-x-cf1-2,5,6,7,8-coref
2\tAmbassador\t_\tPROPN\tNNP\t_\t_\t_\t_\t_
3\tto\t_\tADP\tIN\t_\t_\t_\t_\t_
4\tthe\t_\tDET\tDT\t_\t_\t_\t_\tEntity=(2-place-new-x-cf2-2,3-coref
5\tUnited\t_\tADJ\tNNP\t_\t_\t_\t_\t_
6\tStates\t_\tPROPN\tNNPS\t_\t_\t_\t_\tEntity=2)
7\tHamdullah\t_\tPROPN\tNNP\t_\t_\t_\t_\t_
8\tMohib\t_\tPROPN\tNNP\t_\t_\t_\t_\tEntity=1)
9\tmet\t_\tVERB\tVBD\t_\t_\t_\t_\t_
10\tthe\t_\tDET\tDT\t_\t_\t_\t_\tEntity=(3-person-new-x-cf3-2-coref
11\tKellers\t_\tPROPN\tNNPS\t_\t_\t_\t_\tEntity=3)
12\tin\t_\tADP\tIN\t_\t_\t_\t_\t_
13\tDurban\t_\tPROPN\tNNP\t_\t_\t_\t_\tEntity=(4-place-new-x-cf4-1-coref
14\t,\t_\tPUNCT\t,\t_\t_\t_\t_\t_
15\tSouth\t_\tADJ\tNNP\t_\t_\t_\t_\tEntity=(5-place-new-x-cf5-1,2-coref
16\tAfrica\t_\tPROPN\tNNP\t_\t_\t_\t_\tEntity=5)4)

"""
LITBANK = "Mr. Tulkinghorn met the Blaines in Lincoln 's Inn .\n"
MENTIONS = [
    "MENTION\tT1\t0\t0\t0\t1\tMr. Tulkinghorn\tPER\tPROP",
    "MENTION\tT2\t0\t3\t0\t4\tthe Blaines\tPER\tPROP",
    "MENTION\tT3\t0\t6\t0\t8\tLincoln 's Inn\tFAC\tPROP",
    "MENTION\tT4\t0\t6\t0\t6\tLincoln\tPER\tPROP",
    "COREF\tT1\tTulkinghorn-0",
]
NAMES = NameLists(["Ada Brand", "Bo Lim", "Cy Moss"], ["Lamu", "Porto"], ["Odero Shipping", "Tarn Homes"])


def names(document: Document) -> list[tuple[str, str]]:
    return [(" ".join(document.tokens[s.start : s.end]), s.label) for s in document.spans or ()]


def test_names_of_gum_have_no_titles_and_families_are_no_names(tmp_path: Path) -> None:
    (tmp_path / "GUM_news_toy.conllu").write_text(GUM)
    (document,) = read_gum(tmp_path)
    assert names(document) == [
        ("United States", "LOC"), ("Hamdullah Mohib", "PER"), ("Durban", "LOC"), ("South Africa", "LOC"),
    ]  # fmt: skip
    ((words, tags, spans),) = gum_sentences(tmp_path / "GUM_news_toy.conllu")
    assert len(words) == 16
    assert len(list(gum_names(words, tags, spans))) == 4


def test_a_whole_document_of_gum_opens_each_entity_that_it_closes() -> None:
    rows = [["1", "Keller", "_", "PROPN", "NNP", "_", "_", "_", "_", "Entity=3)"]]
    assert list(gum_entities(rows)) == []
    with pytest.raises(ValueError, match="row 0: the entity 3 is closed, but was not opened"):
        list(gum_entities(rows, is_whole=True))


def test_names_of_litbank_are_the_longest_without_titles(tmp_path: Path) -> None:
    (tmp_path / "toy.txt").write_text(LITBANK)
    (tmp_path / "toy.ann").write_text("\n".join(MENTIONS))
    (document,) = read_litbank(tmp_path)
    assert names(document) == [("Tulkinghorn", "PER"), ("Lincoln 's Inn", "LOC")]


def test_templates_follow_the_annotation_guide() -> None:
    template = "Cllr {p1} of {o1} met the {p2.last.plural}. They own {p2.last} {d1}. {p1.last.upper} left {l1}."
    document = fill(template, NAMES, np.random.default_rng(0), Tokenizer(), "toy")
    found = names(document)
    assert [label for _, label in found] == ["PER", "ORG", "ORG", "PER", "LOC"]
    assert document.text.startswith("Cllr")
    assert found[3][0] == found[0][0].split()[-1].upper()
    assert found[2][0].split()[0] + "s" in document.tokens
    assert "Cllr" not in " ".join(name for name, _ in found)


def test_an_entity_in_which_no_token_begins_has_no_tags() -> None:
    document = Tokenizer()("Ada Brand left.")
    assert names(add_tags(document, [(0, 9, "PER"), (12, 13, "LOC")], "toy")) == [("Ada Brand", "PER")]
    with pytest.raises(ValueError, match="spans must be disjoint"):
        add_tags(document, [(0, 9, "PER"), (4, 9, "LOC")], "toy")


def test_all_templates_can_be_filled() -> None:
    documents = list(fill_templates(TEMPLATES, NAMES, 1))
    assert len(documents) == documents[-1][0] + 1 > 30
    assert all("{" not in document.text and document.spans for _, document in documents)
