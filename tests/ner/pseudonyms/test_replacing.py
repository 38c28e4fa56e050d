"""Replacement: restored texts equal the source, no word of a replaced name remains, pseudonyms are consistent."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdner.ner.lexicon import Gazetteers, Lexicon
from herdner.ner.pseudonyms.common_words import CommonWords
from herdner.ner.pseudonyms.look_alikes import StyleName
from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
from herdner.ner.pseudonyms.pseudonymise import pseudonymise
from herdner.ner.pseudonyms.realistic import Realistic
from herdner.ner.pseudonyms.replacing import PseudonymisedDocument, Pseudonymiser
from herdner.ner.pseudonyms.styles import KeyedHash, NumberedStyle
from herdner.ner.pseudonyms.tokens import fold, widen
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.tokenize import Tokenizer

COMMON = CommonWords({"will", "may", "bank", "of", "the", "left", "for", "in", "met", "and"}, {"may"})
KEY = b"sixteen bytes of secret"


def pseudonymiser(style: StyleName = "numbered", names: PseudonymMap | None = None) -> Pseudonymiser:
    names = names or PseudonymMap(style)
    labels = ["PER", "LOC", "ORG"]
    made = {
        "numbered": lambda: NumberedStyle(names, labels),
        "hash": lambda: KeyedHash(names, KEY, labels),
        "realistic": lambda: Realistic(names, labels, COMMON),
    }[style]()
    return Pseudonymiser(names, made, COMMON)


def marked(text: str, **fields: object) -> Document:
    """A document whose entities are marked as [Ana Rivera PER], or [Rivera PER 0] with the id of the name."""
    plain, entities = "", []
    for part in re.split(r"(\[[^]]*\])", text):
        match = re.fullmatch(r"\[(.*?) ([A-Z]+)(?: (\d+))?\]", part, re.DOTALL)
        if match is None:
            plain += part
            continue
        start, name_id = len(plain), None if match[3] is None else int(match[3])
        plain += match[1]
        entities.append(Entity(start, len(plain), match[2], match[1], 0.9, name_id))
    return replace(Tokenizer()(plain).with_entities(entities), **fields)


def test_common_words_of_a_model_can_be_pickled() -> None:
    gazetteers = Gazetteers.of({"month_day": [["may"]]})
    copy = pickle.loads(pickle.dumps(CommonWords.of(Lexicon(gazetteers=gazetteers))))
    assert "may" in copy
    assert "may" not in copy.lower
    assert "lima" not in copy


def test_common_words_may_be_none() -> None:
    names = PseudonymMap()
    assert Pseudonymiser(names, NumberedStyle(names), None)(marked("[Ana Rivera PER] left")).text == "Person 1 left"


def run(text: str, style: StyleName = "numbered") -> PseudonymisedDocument:
    result = pseudonymiser(style)(document := marked(text))
    assert result.names.restore(result.text) == document.text
    for each in result.replacements:
        assert result.text[each.start : each.end] == each.pseudonym
        original = document.text[each.source_start : each.source_end]
        assert result.names.restore(each.pseudonym) == original
    return result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Ana Rivera PER 0] met [Bo Lim PER 1]. [Rivera PER 0] left.", "Person 1 met Person 2. Person 1b left."),
        ("[Ana Rivera PER] met [Bo Lim PER]. Rivera! RIVERA!", "Person 1 met Person 2. Person 1b! Person 1c!"),
        ("[Ana Rivera PER]: Ana Rivera, Ana\nRivera", "Person 1: Person 1, Person 1b"),
        ("[Ana Rivera PER]'s Riveras, #AnaRivera, rivera_2", "Person 1's Person 1b, #Person 1c, Person 1d"),
        ("[José Núñez PER], Jose, NUN\u0303EZ", "Person 1, Person 1b, Person 1c"),
        ("[Rivera PER]-led, x[Rivera PER]y", "Person 1-led, Person 1b"),
        ("[Washington LOC 0] and [Washington PER 1]", "Place 1 and Person 1"),
        ("[Bank of Oslo ORG]: the Bank of Bergen; Oslo", "Organisation 1: the Bank of Bergen; Organisation 1b"),
        ("[Theresa May PER] left in May for May Hill", "Person 1 left in May for May Hill"),
        ("Then [Will Rivera PER] met Will. Will will. [Will PER]", "Then Person 1 met Person 1b. Will will. Person 2"),
        ("Person 12, Person  3, Person\n4b; Organisation 1", "Term 1, Term 2, Term 3; Term 4"),
        ("in place 3, PERSON 4S; [Rivera PER] 7", "in Term 1, Term 2; Person 1 7"),
        ("phone +44 20 7031 3000, place [7 Oaks LOC]", "phone Phone 1, place Place 1"),
        ("[  PER][ Ana PER]", "  Person 1"),
        ("[Rivera PER]: #WeStandByRivera, #westandbyrivera", "Person 1: #Person 1b, #Person 1c"),
        ("[Natsu (樋口 奈津) PER], 樋口", "Person 1, Person 1b"),
        ("Ana [Rivera PER 0], Ana[Ana PER 0]", "Person 1b, Person 1c"),
        ("פגשתי את [דוד כהן PER 0] ב[תל אביב LOC 1]. כהן הלך.", "פגשתי את Person 1 Place 1b. Person 1b הלך."),
        ("التقى [محمد علي PER 0] مع [سارة PER 1]، ثم قال عليّ نعم", "التقى Person 1 مع Person 2، ثم قال Person 1b نعم"),
        ("[山田 PER]さんは山田です", "Person 1さんはPerson 1です"),
        (
            "[Eva Lindqvist PER]: Lind-\nqvist, LIND\u00adQVIST, Lind\u200bqvists",
            "Person 1: Person 1b, Person 1c, Person 1d",
        ),
        (
            "[Lindqvist PER 0] met [Lind PER 1]-\r\n  qvist and Eva-Lind-\nqvist",
            "Person 1 met Person 1b and Eva-Person 1c",
        ),
        ("[Lind-\nqvist PER], Lindqvist, Lind-\nblom, qvist-", "Person 1, Person 1b, Person 1c-\nblom, Person 1d-"),
        ("[Jo\u00adhan\u00adnes PER]! Johannes, Jo-\nhan\u00adnes", "Person 1! Person 1b, Person 1c"),
        ("[山田 PER]Ana, x[-Ana PER]", "Person 1b, Person 2b"),
        ("", ""),
    ],
)  # fmt: skip
def test_numbered_pseudonyms(text: str, expected: str) -> None:
    assert run(text).text == expected


def test_remaining_common_words_are_reported() -> None:
    result = run("[Bank of Oslo ORG]: the Bank of Bergen, a bank of trust.")
    assert [(word.word, word.count, word.names) for word in result.remaining] == [
        ("bank", 2, ("Organisation 1",)), ("of", 2, ("Organisation 1",)),
    ]  # fmt: skip


def test_names_are_consistent_across_documents_by_full_form_and_label() -> None:
    work = pseudonymiser()
    texts = ["[Ana Rivera PER 0], [Rivera PER 0]", "[ANA  RIVERA PER 0]", "[Rivera PER 0]", "[Ana Rivera ORG]"]
    results = [work(marked(text)) for text in texts]
    assert [result.text for result in results] == ["Person 1, Person 1b", "Person 1c", "Person 2", "Organisation 1"]
    names = results[0].names
    assert [names.restore(result.text) for result in results] == [marked(text).text for text in texts]


def test_standoff_has_no_original() -> None:
    result = run("Hello [Ana Rivera PER], call +44 20 7031 3000.")
    assert "Rivera" not in repr(result.replacements)
    assert [(each.label, each.source_start, each.source_end) for each in result.replacements] == [
        ("PER", 6, 16), ("PHONE", 23, 39),
    ]  # fmt: skip
    assert [(entity.label, entity.text) for entity in result.document.entities] == [
        ("PER", "Person 1"), ("PHONE", "Phone 1"),
    ]  # fmt: skip


def test_identifiers_have_one_pseudonym_in_all_spellings() -> None:
    result = run("GB29 NWBK 6016 1331 9268 19, GB29NWBK60161331926819; Ana@Example.org, ana@example.org")
    assert result.text == "IBAN 1, IBAN 1b; Email 1, Email 1b"


def test_name_that_overlaps_an_identifier() -> None:
    assert run("Write to [ana.rivera PER]@example.org or [Ana Rivera www.rivera.org PER].").text == (
        "Write to Email 1 or URL 1b."
    )


def test_keyed_hash_depends_on_the_key_alone() -> None:
    text = "[Ana Rivera PER 0] met [Bo Lim PER 1]. [Rivera PER 0] left."
    first, second = run(text, "hash").text, run("[Bo Lim PER] " + text, "hash").text
    assert second.endswith(first)
    assert re.fullmatch(r"(PER_[a-z2-7]{10}) met PER_[a-z2-7]{10}\. \1_[a-z2-7]{4} left\.", first)
    with pytest.raises(ValueError, match="at least 16 bytes"):
        KeyedHash(PseudonymMap("hash"), b"short")


def test_realistic_names_have_the_gender_and_script_of_the_original() -> None:
    from faker.providers.person.en_US import Provider

    result = run("Mrs. [Rivera PER 0], [Anna Rivera PER 0] and [Анна Иванова PER 1] of [Oslo LOC]. RIVERA", "realistic")
    short, full, russian, place, upper = (each.pseudonym for each in result.replacements)
    first, last = full.split()
    assert first in Provider.first_names_female
    assert last in Provider.last_names
    assert (short, upper) == (last, last.upper())
    assert all("CYRILLIC" in __import__("unicodedata").name(letter) for letter in russian.replace(" ", ""))
    assert len({short, place, *russian.split()}) == 4


def test_realistic_names_are_not_words_of_the_texts() -> None:
    from faker.providers.person.en_US import Provider

    surnames = list(Provider.last_names)
    text = " ".join(surnames[:-3]) + ". [Ana Rivera PER] and [Bo Lim PER]"
    assert {each.pseudonym.split()[-1] for each in run(text, "realistic").replacements} <= set(surnames[-3:])
    work = pseudonymiser("realistic")
    first = work(marked("[Ana Rivera PER]"))
    second = work(marked(f"The Art of {first.text}"))
    assert second.text != "The Art of " + first.text
    assert work.names.restore(second.text) == "The Art of " + first.text


@pytest.mark.parametrize(
    "texts",
    [
        ["[Miller 1 PER] and [miller 1 PER]"],  # forms that differ only in case
        ["[Ana PER 0] of Organisation [1 PER 0]", "[J. ORG]"],  # words of names that realistic pseudonyms keep
    ],
)
def test_realistic_names_are_restored_beside_numbered_ones(texts: list[str]) -> None:
    work = pseudonymiser("realistic")
    results = [(marked(text).text, work(marked(text)).text) for text in texts]
    loaded = PseudonymMap.from_dict(work.names.to_dict())
    for text, result in results:
        assert work.names.restore(result) == loaded.restore(result) == text


WORDS = st.sampled_from([
    "Ana", "Rivera", "rivera", "ANA", "José", "Jose\u0301", "Bank", "of", "Oslo", "Will", "May", "J.", "Person", "1",
    "12", "Person 1", "Person 2b", "Organisation\n1", "person 1", "PERSON 2BS", "place", "millers", "Millers", "s",
    "MILLER", "per_ABCDEFGHIJs", "山田", "さん", "שרה", "لندن", "a@b.org", "+44 20 7031 3000",
    "'s", "-",    "x_y", "Term 1", "PER_abcdefghij", "Miller", "Smith", "IP 3", "10.0.0.1", "Иван",
])  # fmt: skip
GAPS = st.sampled_from([" ", " ", "\n", "", "  ", ", ", ". "])


@pytest.mark.parametrize("style", ["numbered", "hash", "realistic"])
@given(data=st.data())
def test_restoring_inverts_replacement_and_no_word_remains(style: StyleName, data: st.DataObject) -> None:
    work = pseudonymiser(style)
    documents, results = [], []
    for _ in range(data.draw(st.integers(1, 3))):
        pieces = data.draw(
            st.lists(st.tuples(WORDS, GAPS, st.sampled_from([None, None, "PER", "LOC", "ORG"])), max_size=12)
        )
        text, entities, end = "", [], 0
        for word, gap, label in pieces:
            if label is not None:
                name_id = data.draw(st.sampled_from([None, None, 0, 1]))
                entities.append(Entity(len(text), len(text) + len(word), label, word, None, name_id))
            text += word + gap
            end = len(text)
        assert end == len(text)
        document = replace(Document.from_text(text), entities=tuple(entities))
        documents.append(document)
        results.append(work(document))
    loaded = PseudonymMap.from_dict(work.names.to_dict())
    for document, result in zip(documents, results, strict=True):
        assert work.names.restore(result.text) == document.text
        assert loaded.restore(result.text) == document.text
        chunks = [result.text[i : i + 3] for i in range(0, len(result.text), 3)]
        assert "".join(loaded.restore_stream(chunks)) == document.text
        if style != "realistic":
            rest = fold(re.sub(r"\w+ \d+[a-z]*|[A-Z]+_[a-z2-7_]+", "", result.text))
            for entity in document.entities:
                for word in re.findall(r"[a-z]{2,}", fold(entity.text)):
                    assert word in COMMON or not re.search(rf"(?<!\w){word}(?!\w)", rest)


@pytest.mark.slow
def test_many_mentions_of_one_name() -> None:
    text = "Rivera ran. " * 20_000
    entities = tuple(Entity(i * 12, i * 12 + 6, "PER", "Rivera", 0.9, 0) for i in range(20_000))
    result = pseudonymiser()(replace(Document.from_text(text), entities=entities))
    assert result.text == "Person 1 ran. " * 20_000
    assert result.names.restore(result.text) == text


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (0, -(2**31)), (2**62, 2**62 + 1), (3, 3), (0, 6)])
def test_ranges_outside_a_text_are_not_widened(start, end):
    assert widen("an Ada", 4, 5) == (3, 6)
    with pytest.raises(ValueError, match=f"within the 5 characters of the text, got {start} to {end}"):
        widen("a b c", start, end)


@pytest.mark.parametrize("wrong", [None, 3, b"Ada Lovelace", ["Ada Lovelace sang."]])
def test_other_values_than_texts_and_documents_are_refused(wrong) -> None:
    with pytest.raises(TypeError, match="`source` must be a text or a Document, got"):
        pseudonymise(wrong)


def test_a_dict_is_no_map() -> None:
    with pytest.raises(TypeError, match="`names` must be a PseudonymMap or None, got dict"):
        pseudonymise("Ada", {"Ada": "Bob"})
