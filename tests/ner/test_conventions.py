"""The annotation guide of corpora/README.md in short texts of many genres that no model was trained on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import herdner

TEXTS = {
    model: (Path(__file__).parent / name).read_text(encoding="utf-8").removeprefix("# ").split("\n# ")
    for model, name in (("en", "trial_texts.txt"), ("de", "trial_texts_de.txt"))
}
_NAME = re.compile(r"\[(PER|LOC|ORG) ([^\]]+)\]")


def parse_text(block: str) -> tuple[str, str, set[tuple[int, int, str]]]:
    """Return title, text and entities of a text whose names are written as ``[PER Ada Brand]``."""
    title, _, body = block.partition("\n")
    text, gold, position = "", set[tuple[int, int, str]](), 0
    for match in _NAME.finditer(body := body.strip()):
        text += body[position : match.start()]
        gold.add((len(text), len(text) + len(match[2]), match[1]))
        text += match[2]
        position = match.end()
    return title, text + body[position:], gold


@pytest.fixture(scope="module")
def tagger() -> herdner.Tagger:
    return herdner.load("en")


@pytest.mark.parametrize("model", TEXTS)
def test_f1_of_the_trial_texts(model: str) -> None:
    tagger = herdner.load(model)
    texts = [parse_text(block) for block in TEXTS[model]]
    found = [{(e.start, e.end, e.label) for e in tagger.tag(text).entities} for _, text, _ in texts]
    n_right = sum(len(gold & names) for (_, _, gold), names in zip(texts, found, strict=True))
    n = sum(len(gold) + len(names) for (_, _, gold), names in zip(texts, found, strict=True))
    assert len(texts) == 10
    assert 2 * n_right / n > 0.90


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cllr Doyle and Councillors Amin and Whitcombe agreed.", ["Doyle", "Amin", "Whitcombe"]),
        ("We dined with the Hendersons. The Hendersons own a mill.", []),
        ("Mr and Mrs Keller were angry. The Kellers wrote to the council.", ["Keller"]),
        ("Dear Nadia,\n\nThank you for your letter. Tom read it.", ["Nadia", "Tom"]),
        ("She works for Tarn Homes GmbH. He does not.", ["Tarn Homes GmbH."]),
        ("Q: Dr Osei, who taught you?\n\nA: Professor Adwoa Mensah did.", ["Osei", "Adwoa Mensah"]),
        ("Ada Smith\nPeter Jones\nMaria Gonzalez", ["Ada Smith", "Peter Jones", "Maria Gonzalez"]),
        ("Ada Smith\tHarwick Ltd.\tLeeds", ["Ada Smith", "Harwick Ltd.", "Leeds"]),
        ("Kappa S.p.A. sued Delta Pte. Ltd. of Singapore.", ["Kappa S.p.A.", "Delta Pte. Ltd.", "Singapore"]),
        ("Barclays Cuts Jobs at London Office", ["Barclays", "London"]),
        ("Peter Baker Named New Chief Executive of Brightwater Foods", ["Peter Baker", "Brightwater Foods"]),
        ("Present: Ada Smith, Peter Baker, Mary Cook", ["Ada Smith", "Peter Baker", "Mary Cook"]),
        ("Prime Minister Jan Zielinski met President Tavares.", ["Jan Zielinski", "Tavares"]),
    ],
)
def test_rules_of_the_guide(tagger: herdner.Tagger, text: str, expected: list[str]) -> None:
    assert [entity.text for entity in tagger.tag(text).entities] == expected


def test_representations_are_short(tagger: herdner.Tagger) -> None:
    document = tagger.tag("Ada Lovelace met Charles Babbage.")
    graph = herdner.ising(0.5, 0.1, (3, 3))
    result = herdner.make_backend("exact").infer(graph)
    for value in (tagger, document, graph, result):
        assert repr(value).startswith(type(value).__name__)
        assert len(repr(value)) < (250 if value is result else 200)
    assert repr(herdner.Tagger(c2=0.1)) == "Tagger(c2=0.1)"
