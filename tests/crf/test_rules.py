"""Rules that link tokens: against their definitions spelled out pair by pair, on any strings, and in linear time."""

from __future__ import annotations

import json
import time
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from data import shared_data
from hypothesis import example, given
from hypothesis import strategies as st

from herdner.crf.rules import MOST_LINKS, RULES, SameWord, rule_from_dict, rule_from_text, rule_to_dict

WORDS = ["Clinton", "CLINTON", "clinton", "JAPAN", "U.S.", "The", "the", "THE", "May", "may", "I", "says", "1996"]
WORDS += ["``", ".", ","]
STRANGE = ["", "\x00", "A\u0301", "\u0301", "\u01c5a", "\u0130stanbul", "istanbul", "Stra\u00dfe", "STRASSE"]
STRANGE += ["\U00010400a", "\U00010428a"]  # capital and small, beyond 16 bits
MARKS = ".!?\u2026:;\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u00a1\u00bf\u2022*\u2014"


def documents(words: st.SearchStrategy[str], max_size: int = 24):
    """Tokens and sentence offsets."""
    sentences = st.lists(st.lists(words, min_size=1, max_size=8), max_size=max_size // 4)
    return sentences.map(document)


def document(sentences):
    tokens = [token for sentence in sentences for token in sentence]
    return tokens, np.cumsum([0, *map(len, sentences)])


def rules():
    """Any rule with any options."""
    options = {"nearest": st.integers(1, 4), "min_length": st.integers(1, 3), "fold_case": st.booleans()}
    made = []
    for rule in RULES.values():
        named = {field.name: options[field.name] for field in fields(rule) if field.name in options}
        made.append(st.builds(rule, **named))
    return st.one_of(made)


def n_letters(word):
    return sum(character.isalpha() for character in word)


def own_capital(tokens, offsets, i, min_length=2):
    """Whether token i begins with a capital that is its own: the definition, token by token."""
    word = tokens[i]
    if not word or not word[0].isupper() or n_letters(word) < min_length:
        return False
    if word.lower() not in tokens:
        return True
    begin, end = next((b, e) for b, e in pairwise(offsets) if b <= i < e)
    before = tokens[begin:i]
    lettered = [other for other in tokens[begin:end] if n_letters(other)]
    headline = (
        len(lettered) >= 3
        and not any(other[0].islower() for other in lettered)
        and sum(other.isupper() and len(other) > 1 for other in lettered) * 2 > len(lettered)
    )
    quoted = before and all(character in MARKS for character in before[-1])
    return not (headline or quoted or (len(before) <= 3 and not any(map(n_letters, before))))


def same_word(rule, tokens, offsets):
    rows = []
    for later in range(len(tokens)):
        partners = [
            earlier
            for earlier in range(later)
            if all(own_capital(tokens, offsets, i, rule.min_length) for i in (earlier, later))
            and (
                tokens[earlier].casefold() == tokens[later].casefold()
                if rule.fold_case
                else tokens[earlier] == tokens[later]
            )
        ]
        rows += [(earlier, later) for earlier in partners[-rule.nearest :]]
    return sorted(rows)


def pairs(rule, *sentences):
    """The linked words of sentences written with spaces."""
    tokens, offsets = document([sentence.split() for sentence in sentences])
    return [(int(i), int(j), tokens[i], tokens[j]) for i, j in rule.links(tokens, offsets)]


ANY_WORD = st.one_of(st.sampled_from(WORDS + STRANGE), st.text(max_size=4))


@given(
    documents(st.sampled_from(WORDS + STRANGE)),
    st.builds(SameWord, st.integers(1, 3), st.integers(1, 3), st.booleans()),
)
def test_same_word_is_its_definition(case, rule):
    tokens, offsets = case
    assert rule.links(tokens, offsets).tolist() == [list(row) for row in same_word(rule, tokens, offsets)]


@given(documents(ANY_WORD), rules())
@example(([], np.zeros(1, np.int64)), SameWord())
def test_links_are_a_sorted_set_of_pairs_of_tokens(case, rule):
    tokens, offsets = case
    links = rule.links(tokens, offsets)
    assert links.dtype == np.int32
    assert links.shape == (len(links), 2)
    rows = links.tolist()
    assert rows == [list(row) for row in sorted({tuple(row) for row in rows})]
    assert all(0 <= earlier < later < len(tokens) for earlier, later in rows)
    assert np.array_equal(rule.links(tuple(tokens), offsets), links)
    assert np.array_equal(rule.links(tokens, offsets.astype(np.int32)), links)


@given(documents(st.sampled_from(WORDS)), st.integers(1, 4))
def test_a_mention_is_linked_to_so_many_earlier_ones_at_most(case, nearest):
    links = SameWord(nearest=nearest).links(*case)
    assert np.bincount(links[:, 1], minlength=1).max() <= nearest
    more = SameWord(nearest=nearest + 1).links(*case)
    assert {tuple(row) for row in links.tolist()} <= {tuple(row) for row in more.tolist()}


@given(documents(st.sampled_from(["Anna", "Boris", "goes", "Clara", "clara", "."])))
def test_links_do_not_depend_on_which_names_they_are(case):
    tokens, offsets = case
    renamed = {"Anna": "Dora", "Boris": "Anna", "Clara": "Egon", "clara": "egon"}
    assert np.array_equal(
        SameWord().links(tokens, offsets), SameWord().links([renamed.get(t, t) for t in tokens], offsets)
    )


def test_a_capital_at_the_beginning_of_a_sentence_is_doubted():
    assert pairs(SameWord(), "The May vote", "The vote of May", "in the end") == [(1, 6, "May", "May")]
    assert pairs(SameWord(), "Bush said so", "Bush left") == [(0, 3, "Bush", "Bush")]
    assert pairs(SameWord(), "Bush said `` But no", "But why", "all but one") == []
    assert pairs(SameWord(), "ASIA BUT NOT JAPAN", "Soon But came to JAPAN", "all but one") == [
        (3, 8, "JAPAN", "JAPAN")
    ]


def test_a_headline_is_linked_to_the_text_where_case_is_folded():
    text = "CLINTON VISITS CHINA", "President Clinton came"
    assert pairs(SameWord(), *text) == [(0, 4, "CLINTON", "Clinton")]
    assert pairs(SameWord(fold_case=False), *text) == []


def test_initials_take_part_on_request_only():
    assert pairs(SameWord(), "George W. Bush and W. Clinton") == []
    assert pairs(SameWord(min_length=1), "George W. Bush and W. Clinton") == [(1, 4, "W.", "W.")]


@pytest.mark.parametrize("word", ["Clinton", "The", "IMF", "clinton", "\u0130", "."])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_hundred_thousand_times_one_word_takes_a_fifth_of_a_second(rule, word):
    tokens, offsets = [word] * 100_000, np.array([0, 100_000])
    seconds = []
    for _ in range(5):
        began = time.process_time()
        links = rule().links(tokens, offsets)
        seconds.append(time.process_time() - began)
    assert len(links) <= rule().nearest * len(tokens)
    assert min(seconds) < 0.2


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_tokens_of_a_million_characters(rule):
    tokens = ["A" * 10**6, "a" * 10**6, "A" * 10**6, "\u0301" * 10**6, "A." * 10**6]
    rule().links(tokens, np.array([0, 3, 5]))


@given(rules())
def test_rules_survive_json_and_the_command_line(rule):
    values = rule_to_dict(rule)
    assert rule_from_dict(json.loads(json.dumps(values))) == rule
    options = ",".join(f"{key}={str(value).lower()}" for key, value in values.items() if key != "name")
    assert rule_from_text(f"{rule.name}:{options}") == rule
    assert rule_from_text(rule.name) == rule_from_dict({"name": rule.name}) == type(rule)()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"name": "same-thing"}, "there is no rule 'same-thing'; there is same-word"),
        ({"nearest": 3}, "a rule needs a name"),
        ({"name": 3}, "a rule needs a name"),
        ([], "a rule needs a name"),
        (
            {"name": "same-word", "farthest": 3},
            "same-word has no option 'farthest'; it has nearest, min_length, fold_case",
        ),
        ({"name": "same-word", "nearest": 0}, "nearest must be a whole number from 1 to 100, not 0"),
        ({"name": "same-word", "nearest": True}, "nearest must be a whole number"),
        ({"name": "same-word", "nearest": 2.0}, "nearest must be a whole number"),
        ({"name": "same-word", "nearest": 10**9}, "nearest must be a whole number"),
        ({"name": "same-word", "fold_case": 1}, "fold_case must be true or false, not 1"),
    ],
)
def test_bad_values_are_told_in_one_line(values, told):
    with pytest.raises(ValueError, match=told) as error:
        rule_from_dict(values)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no rule ''"),
        ("same-word:3", "expected option=value, not '3'"),
        ("same-word:nearest=3,nearest=4", "nearest is given twice"),
        ("same-word:nearest=-1", "nearest must be a whole number"),
        ("same-word:nearest=" + "9" * 5000, "nearest must be a whole number"),
        ("same-word:fold_case=perhaps", "fold_case must be true or false"),
        ("same-word:name=same-word", "no option 'name'"),
    ],
)
def test_bad_text_is_told_in_one_line(text, told):
    with pytest.raises(ValueError, match=told) as error:
        rule_from_text(text)
    assert len(str(error.value)) < 300
    assert "\n" not in str(error.value)


def test_most_links_is_allowed():
    tokens = ["Clinton"] * 300
    rule = replace(SameWord(), nearest=MOST_LINKS)
    assert len(rule.links(tokens, np.array([0, 300]))) == sum(min(i, MOST_LINKS) for i in range(300))


def linked_labels(rule, path, format):
    """How many links join two names of one label, two labels, and no names at all."""
    from herdner import read_documents

    equal = different = outside = 0
    for doc in read_documents(shared_data(path), format):
        labels = np.array([tag if tag == "O" else tag[2:] for tag in doc.tags or ()])
        links = rule.links(doc.tokens, doc.sentence_offsets)
        earlier, later = labels[links[:, 0]], labels[links[:, 1]]
        outside += int(((earlier == "O") & (later == "O")).sum())
        equal += int(((earlier == later) & (earlier != "O")).sum())
        different += int((earlier != later).sum())
    return equal, different, outside


@pytest.mark.parametrize(
    ("path", "format", "share"),
    [("ner/conll2003/eng.testa", "conll2003", 0.92), ("ner/conll2002/ned.testa", "conll2002", 0.94)],
)
def test_mentions_of_a_word_have_one_label_in_news(path, format, share):
    equal, different, outside = linked_labels(SameWord(), path, format)
    assert equal > 2000
    assert equal / (equal + different) > share
    assert outside < 0.15 * equal
