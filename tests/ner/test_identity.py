"""Mentions of one name in a document get one name id."""

from __future__ import annotations

import json
import random
from importlib.resources import files
from itertools import accumulate

import pytest
from cpu import cpu_seconds

import herdner
from herdner._ext.identity import FEATURES, MATCHES, NameCluster, NameWeights, cluster_mentions, match, read_forms
from herdner.ner.identity import with_names
from herdner.ner.identity.forms import bare_word, parse_any_form, parse_form
from herdner.text.document import Document
from herdner.text.entity import Entity

WEIGHTS = json.loads((files("herdner") / "data" / "identity.json").read_text(encoding="utf-8"))["weights"]


def named(text: str, *names: tuple[str, str]) -> list[list[str]]:
    """Cluster mentions that are given in the order of the text; return the texts of each name."""
    entities: list[Entity] = []
    end = 0
    for name, label in names:
        start = text.index(name, end)
        end = start + len(name)
        entities.append(Entity(start, end, label, name, 0.9))
    document = with_names(Document.from_text(text).with_proposals(entities))
    return [[document.entities[i].text for i in name.mentions] for name in document.names]


def people(text: str, *names: str) -> list[list[str]]:
    return named(text, *((name, "PER") for name in names))


def test_tagged_documents_have_names() -> None:
    document = herdner.load("en").tag("Ada Reyes met Bo Lim. Ada Reyes left. Reyes and Lim stayed in touch.")
    assert [(name.id, name.label, name.text) for name in document.names] == [
        (0, "PER", "Ada Reyes"),
        (1, "PER", "Bo Lim"),
    ]
    assert [entity.name_id for entity in document.entities] == [0, 1, 0, 0, 1]


def test_a_surname_belongs_to_the_full_name() -> None:
    text = "Ana Rivera met Bo Lim. Mr. Lim spoke. Rivera listened to Lim."
    assert people(text, "Ana Rivera", "Bo Lim", "Lim", "Rivera", "Lim") == [
        ["Ana Rivera", "Rivera"],
        ["Bo Lim", "Lim", "Lim"],
    ]


def test_a_short_form_may_precede_the_full_name() -> None:
    assert people("Rivera won. Ana Rivera was glad.", "Rivera", "Ana Rivera") == [["Rivera", "Ana Rivera"]]


def test_other_first_names_are_other_people() -> None:
    text = "Ana Rivera met Luis Rivera. Ana left, Luis stayed."
    assert people(text, "Ana Rivera", "Luis Rivera", "Ana", "Luis") == [["Ana Rivera", "Ana"], ["Luis Rivera", "Luis"]]


def test_titles_separate_a_couple() -> None:
    text = "Mr. Bennet sat down. Mrs. Bennet talked. Mr. Bennet was silent. Mrs. Bennet was not."
    assert people(text, "Bennet", "Bennet", "Bennet", "Bennet") == [["Bennet", "Bennet"], ["Bennet", "Bennet"]]
    assert people(text, "Mr. Bennet", "Mrs. Bennet", "Mr. Bennet") == [["Mr. Bennet", "Mr. Bennet"], ["Mrs. Bennet"]]


def test_forms_of_address_separate_relatives() -> None:
    text = "Miss Marsh sat down. Mrs. Marsh talked to Miss Marsh. Dr. Marsh was silent. Miss Marsh left Mrs. Marsh."
    names = ["Miss Marsh", "Mrs. Marsh", "Miss Marsh", "Miss Marsh", "Mrs. Marsh"]
    assert people(text, *names) == [["Miss Marsh"] * 3, ["Mrs. Marsh"] * 2]


def test_a_title_with_the_other_gender_than_the_first_name_is_another_person() -> None:
    text = "Charlotte Temple wrote. Mr. Temple read it. Charlotte Temple and Henry Temple left."
    names = ["Charlotte Temple", "Mr. Temple", "Charlotte Temple", "Henry Temple"]
    assert people(text, *names) == [["Charlotte Temple"] * 2, ["Mr. Temple", "Henry Temple"]]


def test_abbreviations_of_countries_are_written_out() -> None:
    text = "The U.S. Congress met. The United States agreed. The United States Congress closed. The US was glad."
    names = [(name, "ORG" if "Congress" in name else "LOC") for name in (
        "U.S. Congress", "United States", "United States Congress", "US"
    )]  # fmt: skip
    assert named(text, *names) == [["U.S. Congress", "United States Congress"], ["United States", "US"]]


def test_a_saint_in_a_surname_is_no_title() -> None:
    text = "Monsieur St. Aubert spoke. Madame St. Aubert listened to M. St. Aubert."
    names = ["Monsieur St. Aubert", "Madame St. Aubert", "M. St. Aubert"]
    assert people(text, *names) == [["Monsieur St. Aubert", "M. St. Aubert"], ["Madame St. Aubert"]]


def test_the_city_and_the_general_stay_apart() -> None:
    text = (
        "George Washington crossed the river. Washington is a city. Washington was a general. He lived near Washington."
    )
    names = [("George Washington", "PER"), ("Washington", "LOC"), ("Washington", "PER"), ("Washington", "LOC")]
    assert named(text, *names) == [["George Washington", "Washington"], ["Washington", "Washington"]]


def test_organisations_are_joined_with_their_acronym_and_without_designator() -> None:
    text = "The International Monetary Fund lent money. Winam Ltd. thanked the IMF. Winam grew."
    names = [("International Monetary Fund", "ORG"), ("Winam Ltd.", "ORG"), ("IMF", "ORG"), ("Winam", "ORG")]
    assert named(text, *names) == [["International Monetary Fund", "IMF"], ["Winam Ltd.", "Winam"]]


def test_figures_with_other_numbers_are_other_names() -> None:
    text = "Boeing 737 and Boeing 747 flew. Boeing 737 landed."
    names = [("Boeing 737", "MISC"), ("Boeing 747", "MISC"), ("Boeing 737", "MISC")]
    assert named(text, *names) == [["Boeing 737", "Boeing 737"], ["Boeing 747"]]


@pytest.mark.parametrize("text", ["علي حسن قابل علي حسن", "王小明见了王小明", "ада рейес ада рейес"])
def test_any_script(text: str) -> None:
    half = len(text) // 2
    name = text.split()[0] if " " in text else text[:3]
    first, last = text.index(name), text.rindex(name)
    assert first < half <= last + 1
    entities = [Entity(i, i + len(name), "PER", name) for i in (first, last)]
    assert len(with_names(Document.from_text(text).with_proposals(entities)).names) == 1


def test_names_without_letters_are_clustered() -> None:
    assert people("... and ''' and ...", "...", "'''", "...") == [["...", "..."], ["'''"]]
    assert with_names(Document.from_text("")).names == ()


@pytest.mark.parametrize("seed", range(40))
def test_names_by_weights_are_those_by_sums_of_features(seed: int) -> None:
    choice = random.Random(seed).choice
    words = ["Ana", "Rivera", "Bo", "Lim", "WHO", "Oslo", "Mr. Lim", "World Health Organization", "Luis", "Deb", "Berg"]
    entities: list[Entity] = []
    text = ""
    for _ in range(choice([1, 2, 5, 12])):
        name = choice([choice(words), f"{choice(words)} {choice(words)}"])
        entities.append(Entity(len(text), len(text) + len(name), choice(["PER", "PER", "ORG"]), name, 0.9))
        text += f"{name} said that he {'was' * choice([1, 300])} there. "
    document = Document.from_text(text).with_proposals(entities)

    def choose(_mention: int, candidates: list[NameCluster], rows: list[list[str]]) -> NameCluster:
        scores = [sum(WEIGHTS.get(feature, 0.0) for feature in row) for row in rows] or [0.0]
        assert len(scores) == 1 + len(candidates)
        best = max(range(len(scores)), key=scores.__getitem__)
        return candidates[best - 1] if best else NameCluster()

    assert with_names(document).entities == with_names(document, choose).entities


def test_a_function_must_choose_a_cluster() -> None:
    document = Document.from_text("Ada").with_proposals([Entity(0, 3, "PER", "Ada")])
    with pytest.raises(TypeError, match="`choose` must return a NameCluster, got str"):
        with_names(document, lambda *_: "Ada")  # pyright: ignore[reportArgumentType]


def test_arguments_of_the_compiled_loops_are_checked() -> None:
    text, weights = "Ada met Bo", NameWeights({})
    entities = (Entity(0, 3, "PER", "Ada"), Entity(8, 10, "PER", "Bo"))
    forms = [parse_form(entity.text, entity.label) for entity in entities]
    assert cluster_mentions(text, entities, forms, weights) == [0, 1]
    with pytest.raises(ValueError, match="1 forms and 2 entities"):
        cluster_mentions(text, entities, forms[:1], weights)
    with pytest.raises(ValueError, match="in the order of the text, but 0 follows 8"):
        cluster_mentions(text, entities[::-1], forms, weights)
    with pytest.raises(TypeError, match="MentionForm, got str"):
        cluster_mentions(text, entities, ["Ada", "Bo"], weights)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="not in the text"):
        read_forms("", entities, parse_form, frozenset())


def test_ids_count_from_0_in_the_order_of_first_mentions() -> None:
    document = with_names(
        Document.from_text("b a b").with_proposals([Entity(i, i + 1, "LOC", "bab"[i // 2]) for i in (0, 2, 4)])
    )
    assert [entity.name_id for entity in document.entities] == [0, 1, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["Rivera"],
        ["Ana Rivera", "Rivera"],
        ["A Rivera", "B Rivera", "C Rivera", "Rivera"],
        [f"Rivera{i} Smith" for i in range(20_000)],
    ],
    ids=lambda words: f"{len(words)} names",
)
def test_the_time_for_many_mentions_is_linear(words: list[str]) -> None:
    n = 100_000 if len(words) < 10 else len(words)  # less than a second; quadratic time would exceed the limit
    names = [words[i % len(words)] for i in range(n)]
    starts = [0, *accumulate(len(name) + 1 for name in names)]
    entities = [Entity(start, start + len(name), "PER", name) for name, start in zip(names, starts, strict=False)]
    document = Document.from_text(" ".join(names)).with_proposals(entities)
    assert cpu_seconds(lambda: with_names(document)) < 10.0


@pytest.mark.parametrize(
    ("text", "label", "before", "words", "title", "gender"),
    [
        ("Mr. Peter Pett", "PER", "", ("peter", "pett"), "mr", "m"),
        ("Rivera", "PER", "Ms.", ("rivera",), "ms", "f"),
        ("the unfortunate Lady Belmont", "PER", "", ("belmont",), "lady", "f"),
        ("activist and philosopher Noam Chomsky", "PER", "", ("noam", "chomsky"), "", ""),
        ("Mary Chaworth , whom he met", "person", "", ("mary", "chaworth"), "", ""),
        ("Tom's Aunt Polly", "PER", "", ("polly",), "aunt", "f"),
        ("Antonín Dvořák 's", "PER", "", ("antonin", "dvorak"), "", ""),
        ("Winam Ferries Ltd.", "ORG", "the", ("winam", "ferries"), "", ""),
        ("the Bank of the West", "ORG", "", ("bank", "of", "the", "west"), "", ""),
        ("Mr", "PER", "", ("mr",), "", ""),
    ],
)  # fmt: skip
def test_titles_and_words(text: str, label: str, before: str, words: tuple[str, ...], title: str, gender: str) -> None:
    form = parse_form(text, label, before)
    assert (form.words, form.title, form.gender) == (words, title, gender)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("Ana Rivera", "Ana  Rivera", "same words"),
        ("Rivera", "Ana Rivera", "last word"),
        ("Ana Rivera", "Rivera", "has last word"),
        ("Deb", "Deborah Wolfe", "similar to first word"),
        ("A. Rivera", "Ana Rivera", "last word and similar first word"),
        ("Bill Rivera", "William Rivera", "last word and similar first word"),
        ("Luis Rivera", "Ana Rivera", "last word and other first word"),
        ("Ana Maria Rivera", "Ana Rivera", "all words and same ends"),
        ("Bo Lim", "Ana Rivera", ""),
        ("the Riveras", "Rivera", ""),
    ],
)
def test_matches(a: str, b: str, expected: str) -> None:
    assert expected in MATCHES
    assert match(parse_form(a, "PER"), parse_form(b, "PER")) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("Bill", "William", True), ("W", "William", True), ("Anna", "Bill", False), ("Blaines", "Blaine", False)],
)
def test_nicknames_and_initials_are_similar(a: str, b: str, expected: bool) -> None:
    assert match(parse_form(a, "PER"), parse_form(b, "PER")) == "similar words" * expected


WORDS_OF_NAMES = [
    "Ana",
    "Bill",
    "RIVERA",
    "de",
    "Mr",
    "Miss",
    "US",
    "Bank",
    "of",
    "Ltd",
    "St",
    "Jr",
    "The",
    "Who",
    "I",
    "O'Hara",
]
ATTRIBUTES = (
    "words", "label", "title", "gender", "numbers", "initials", "acronym", "content", "nicknames", "is_person",
    "is_group", "is_full",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_simple_names_have_the_forms_of_the_general_parser(seed: int) -> None:
    rng = random.Random(seed)
    n_simple = 0
    for _ in range(200):
        text = " ".join(rng.choices(WORDS_OF_NAMES, k=rng.choice([1, 1, 2, 2, 3, 5])))
        label, before = rng.choice(["PER", "ORG"]), rng.choice(["", "", "Mrs.", "said", "dear"])
        form, general = parse_form(text, label, before), parse_any_form(text, label, bare_word(before).casefold())
        assert [getattr(form, name) for name in ATTRIBUTES] == [getattr(general, name) for name in ATTRIBUTES], text
        assert sorted(form.keys) == sorted(general.keys)
        n_simple += all(word in ("Ana", "Bill", "RIVERA", "Who", "I") for word in text.split())
        if general.is_full and form.is_person:  # genders of first names act in clusters only
            other = Entity(len(text) + 2, len(text) + 12, "PER", "Mr. Rivera")
            document = Document.from_text(f"{text}, {other.text}").with_proposals(
                [Entity(0, len(text), "PER", text), other]
            )
            forms = [form, general], [parse_form(other.text, "PER")] * 2
            clusters = [
                cluster_mentions(document.text, document.entities, list(pair), NameWeights(WEIGHTS))
                for pair in zip(*forms, strict=True)
            ]
            assert clusters[0] == clusters[1]
    assert n_simple > 5


def test_every_weight_is_a_number() -> None:
    assert all(isinstance(weight, float) for weight in WEIGHTS.values())
    assert set(WEIGHTS) <= set(FEATURES)
    assert WEIGHTS["other gender"] < 0 < WEIGHTS["same label"]
