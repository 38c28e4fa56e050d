"""Rules that link tokens: against their definitions spelled out pair by pair, on any strings, and in linear time."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from dataclasses import dataclass, fields, replace
from itertools import combinations, pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
import snowballstemmer
from data import shared_data
from hypothesis import example, given
from hypothesis import strategies as st

from herdner import SkipChainLayer
from herdner._ext.spellings import spell_tokens
from herdner.crf.link_rules import (
    BUSINESS_WORDS,
    DESIGNATORS,
    MOST_LINKS,
    RULES,
    Acronym,
    Company,
    LastName,
    SameStem,
    SameWord,
    find_links,
    find_links_of_all,
    rule_from_dict,
    rule_from_text,
    rule_to_dict,
)
from herdner.crf.templates import linear_chain_template, skip_chain_template

WORDS = ["Clinton", "CLINTON", "clinton", "JAPAN", "U.S.", "The", "the", "THE", "May", "may", "I", "says", "1996"]
WORDS += ["``", ".", ","]
STRANGE = ["", "\x00", "A\u0301", "\u0301", "\u01c5a", "\u0130stanbul", "istanbul", "Stra\u00dfe", "STRASSE"]
STRANGE += ["\U00010400a", "\U00010428a"]  # capital and small, beyond 16 bits
STEMS = ["Russian", "Russians", "RUSSIAN", "russians", "House", "Houses", "Housing", "Iraqi", "Iraq", "said"]
FIRMS = ["Winam", "WINAM", "Ferries", "Ltd.", "plc", "LLC", "Co", "Then", "Bill", "said", "&", ",", "in"]
NAMES = ["Bill", "Clinton", "CLINTON", "clinton", "J.", "Mr.", "said", ","]
PHRASES = [
    "IMF",
    "I.M.F.",
    "UN",
    "U.N.",
    "United Nations",
    "Unit of the North",
    "International Monetary Fund",
    "of",
    "the",
]
PHRASES += ["In-Motion Fund", "United", "Nations", "IN", "in", "FUND", "fully"]
MARKS = ".!?\u2026:;\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u00a1\u00bf\u2022*\u2014"


def documents(words: st.SearchStrategy[str], max_size: int = 24):
    """Tokens and sentence offsets."""
    sentences = st.lists(st.lists(words, min_size=1, max_size=8), max_size=max_size // 4)
    return sentences.map(document)


def phrased():
    """Documents of acronyms and the words that spell them."""
    sentences = st.lists(st.lists(st.sampled_from(PHRASES), min_size=1, max_size=6), max_size=4)
    return sentences.map(lambda sentences: document([" ".join(phrases).split() for phrases in sentences]))


def document(sentences):
    tokens = [token for sentence in sentences for token in sentence]
    return tokens, np.cumsum([0, *map(len, sentences)])


def rules():
    """Any rule with any options."""
    options = {"nearest": st.integers(1, 4), "min_length": st.integers(1, 3), "fold_case": st.booleans()}
    options |= {"small_word": st.integers(1, 6), "any_word": st.booleans()}
    options["language"] = st.sampled_from(["english", "spanish", "dutch", "turkish", "arabic"])
    made = []
    for rule in RULES.values():
        named = {field.name: options[field.name] for field in fields(rule) if field.name in options}
        made.append(st.builds(rule, **named))
    return st.one_of(made)


def n_letters(word):
    return sum(character.isalpha() for character in word)


def own_capital(tokens, offsets, i, min_length=2):
    """Return True if the capital of token i is not due to its position: the definition, token by token."""
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


def nearest_pairs(n, nearest, linked):
    """Each token with the last ``nearest`` earlier ones to which ``linked(earlier, later)`` holds."""
    rows = []
    for later in range(n):
        partners = [earlier for earlier in range(later) if linked(earlier, later)]
        rows += [[earlier, later] for earlier in partners[-nearest:]]
    return sorted(rows)


def same_word(rule, tokens, offsets):
    own = [own_capital(tokens, offsets, i, rule.min_length) for i in range(len(tokens))]
    keys = [token.casefold() if rule.fold_case else token for token in tokens]
    return nearest_pairs(len(tokens), rule.nearest, lambda i, j: own[i] and own[j] and keys[i] == keys[j])


def same_stem(rule, tokens, offsets):
    stemmer = snowballstemmer.stemmer(rule.language)
    own = [own_capital(tokens, offsets, i) for i in range(len(tokens))]
    keys = [token.casefold() for token in tokens]
    stems = [stemmer.stemWord(key) for key in keys]
    return nearest_pairs(
        len(tokens),
        rule.nearest,
        lambda i, j: own[i] and own[j] and keys[i] != keys[j] and stems[i] == stems[j],
    )


def last_name(rule, tokens, offsets):
    own = [own_capital(tokens, offsets, i, 1) for i in range(len(tokens))]
    begins = set(offsets.tolist())

    def run(i):
        """First token and end of the run of capitalised words that token i is in; (i, i) where it is in none."""
        if not own[i]:
            return i, i
        first, end = i, i + 1
        while first not in begins and own[first - 1]:
            first -= 1
        while end < len(tokens) and own[end] and end not in begins:
            end += 1
        return first, end

    runs = [run(i) if n_letters(token) > 1 else (i, i) for i, token in enumerate(tokens)]
    lengths = [end - first for first, end in runs]
    keys = [token.casefold() for token in tokens]
    full = [2 <= lengths[i] <= 4 and (rule.any_word or i + 1 == runs[i][1]) for i in range(len(tokens))]
    return nearest_pairs(len(tokens), rule.nearest, lambda i, j: keys[i] == keys[j] and lengths[j] == 1 and full[i])


def company(rule, tokens, offsets):
    own = [own_capital(tokens, offsets, i, 1) for i in range(len(tokens))]
    begins = set(offsets.tolist())
    keys = [token.casefold() for token in tokens]
    found = []  # first word of each run, its end, and whether it is certainly and possibly a full name
    for begin, end in pairwise(offsets.tolist()):
        kinds = "".join(  # D: a designator, N: another name, j: what may stand between the two
            "D" if tokens[i] in DESIGNATORS else "N" if own[i] else "j" if tokens[i] in (",", "&") else "."
            for i in range(begin, end)
        )
        for match in re.finditer("N+", kinds):
            first, last = begin + match.start(), begin + match.end()
            designated = re.match("j?D", kinds[match.end() :]) is not None
            inner = [first + 1] if first in begins and first + 1 < last else []
            ends = tokens[last - 1] in BUSINESS_WORDS
            found += [(i, last, designated, ends and last > i + 1) for i in [first, *inner]]
    for n, (i, end, designated, ends) in enumerate(found):  # only the first possible full name is one
        earlier = any(full and keys[j] == keys[i] for j, _, full in found[:n])
        found[n] = i, end, designated or (ends and not earlier)
    rows = set()
    for n, (i, end, full) in enumerate(found):
        same = [other for other in found[:n] if keys[other[0]] == keys[i]]
        names, shorts = [x for x in same if x[2]], [x for x in same if not x[2]]
        if not full:
            near = [(j, i, end - i, stop - j) for j, stop, _ in names[-rule.nearest :]]
        else:
            near = [] if names else [(j, i, stop - j, end - i) for j, stop, _ in shorts[-rule.nearest :]]
        for j, k, length, longer in near:
            if length <= longer and keys[j : j + length] == keys[k : k + length]:
                rows |= {(j + step, k + step) for step in range(length)}
    return sorted(map(list, rows))


def acronym(rule, tokens, offsets):
    own = [own_capital(tokens, offsets, i) for i in range(len(tokens))]
    letters = {}
    for i, token in enumerate(tokens):
        match = re.fullmatch(r"[A-Z]{2,6}|([A-Z]\.)+[A-Z]\.?|[A-Z]{2}\.", token)
        if own[i] and match and n_letters(token) >= rule.min_length:
            letters[i] = token.replace(".", "")
    capital = [own[i] and i not in letters for i in range(len(tokens))]
    found = []
    for begin, end in pairwise(offsets.tolist()):
        for a, b in combinations(range(begin, end + 1), 2):
            words = [i for i in range(a, b) if capital[i]]
            between = "".join(
                "X" if capital[i] else "x" if re.fullmatch(f"[a-z]{{1,{rule.small_word}}}", tokens[i]) else "."
                for i in range(a, b)
            )
            if not re.fullmatch("X(x{0,2}X)+", between) or (b < end and capital[b]):
                continue
            text = "".join(part[0] for i in words for part in tokens[i].split("-") if part[0].isupper())
            if len(text) > 2 or a == begin or not capital[a - 1]:
                found.append((a, b, text, words))
    found.sort()
    rows = set()
    for i, text in letters.items():
        rows |= {
            (w, i)
            for _, b, t, words in [x for x in found if x[1] <= i and x[2] == text][-rule.nearest :]
            for w in words
        }
    for a, _, text, words in found:
        mentions = [i for i, t in letters.items() if t == text and i < a]
        rows |= {(i, w) for i in mentions[-rule.nearest :] for w in words}
    return sorted(map(list, rows))


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
    assert rule.links(tokens, offsets).tolist() == same_word(rule, tokens, offsets)


@given(documents(st.sampled_from(STEMS)), st.builds(SameStem, st.integers(1, 3)))
def test_same_stem_is_its_definition(case, rule):
    assert rule.links(*case).tolist() == same_stem(rule, *case)


@given(documents(st.sampled_from(NAMES)), st.builds(LastName, st.integers(1, 3), st.booleans()))
def test_last_name_is_its_definition(case, rule):
    assert rule.links(*case).tolist() == last_name(rule, *case)


@given(
    documents(st.sampled_from(FIRMS), 40),
    st.builds(Company, st.integers(1, 3)),
)
@example(document([["Winam", "Ferries", "Ltd.", "and", "Winam"], ["Then", "Winam", ",", "LLC"]]), Company())
def test_company_is_its_definition(case, rule):
    assert rule.links(*case).tolist() == company(rule, *case)


@given(phrased(), st.builds(Acronym, st.integers(1, 3), st.integers(1, 3), st.integers(1, 5)))
def test_acronym_is_its_definition(case, rule):
    assert rule.links(*case).tolist() == acronym(rule, *case)


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


@given(st.one_of(phrased(), documents(st.sampled_from(WORDS + STEMS + NAMES))), rules())
def test_a_mention_is_linked_to_so_many_earlier_ones_at_most(case, rule):
    links = rule.links(*case)
    most = rule.nearest * {Acronym: 30, Company: 2}.get(
        type(rule), 1
    )  # expansions of six words with five each; two runs
    assert np.bincount(links[:, 1], minlength=1).max() <= most
    more = replace(rule, nearest=rule.nearest + 1).links(*case)
    assert {tuple(row) for row in links.tolist()} <= {tuple(row) for row in more.tolist()}


@given(documents(st.sampled_from(WORDS + STEMS)))
def test_words_and_stems_never_link_the_same_tokens(case):
    words, stems = (rule.links(*case).tolist() for rule in (SameWord(nearest=100), SameStem(nearest=100)))
    assert not {tuple(row) for row in words} & {tuple(row) for row in stems}


@given(st.lists(documents(st.sampled_from(WORDS + STRANGE + FIRMS)), max_size=4), rules())
def test_documents_together_are_linked_as_each_alone(several, rule):
    starts = np.cumsum([0, *(len(tokens) for tokens, _ in several)])
    borders = np.concatenate(
        [[0], *(offsets[1:] + start for (_, offsets), start in zip(several, starts, strict=False))]
    )
    tokens = [token for own, _ in several for token in own]
    documents = [Tokens(*each) for each in several]
    (found,) = find_links_of_all([rule], documents, tokens, spell_tokens(tokens), starts, borders)
    alone = [find_links(rule, *each) + start for each, start in zip(several, starts, strict=False)]
    assert found.tolist() == [pair for links in alone for pair in links.tolist()]


class Tokens(NamedTuple):
    tokens: list[str]
    sentence_offsets: np.ndarray


@given(documents(st.sampled_from(NAMES)))
def test_last_names_are_mentions_of_the_same_word(case):
    words, names = (rule.links(*case).tolist() for rule in (SameWord(nearest=100), LastName(nearest=100)))
    assert {tuple(row) for row in names} <= {tuple(row) for row in words}


@given(documents(st.sampled_from(FIRMS), 40))
def test_words_of_companies_are_mentions_of_the_same_word(case):
    words, firms = (rule.links(*case).tolist() for rule in (SameWord(nearest=100, min_length=1), Company(nearest=100)))
    assert {tuple(row) for row in firms} <= {tuple(row) for row in words}


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


def test_two_words_in_capitals_are_no_headline():
    assert pairs(SameWord(), "JAPAN FOR", "to FOR", "for all") == [(1, 3, "FOR", "FOR")]
    assert pairs(SameWord(), "JAPAN FOR BUSH", "to FOR", "for all") == []


def test_a_headline_is_linked_to_the_text_where_case_is_folded():
    text = "CLINTON VISITS CHINA", "President Clinton came"
    assert pairs(SameWord(), *text) == [(0, 4, "CLINTON", "Clinton")]
    assert pairs(SameWord(fold_case=False), *text) == []


def test_stems():
    text = "Some Russians met a Russian", "Then RUSSIANS and the russian Treasury met Treasuries"
    assert pairs(SameStem(), *text) == [
        (1, 4, "Russians", "Russian"),
        (4, 6, "Russian", "RUSSIANS"),
        (10, 12, "Treasury", "Treasuries"),
    ]
    assert pairs(SameStem(language="dutch"), "een Prijs en twee Prijzen") == [(1, 4, "Prijs", "Prijzen")]


def test_a_last_name_that_stands_alone_is_linked_to_the_full_name():
    text = "President Bill Clinton spoke", "Hillary Clinton and Clinton left", "Smith saw CLINTON"
    assert pairs(LastName(), *text) == [
        (2, 7, "Clinton", "Clinton"),
        (2, 11, "Clinton", "CLINTON"),
        (5, 7, "Clinton", "Clinton"),
        (5, 11, "Clinton", "CLINTON"),
    ]
    assert pairs(LastName(nearest=1), *text) == [(5, 7, "Clinton", "Clinton"), (5, 11, "Clinton", "CLINTON")]
    assert pairs(LastName(), "One Two Three Four Clinton spoke", "so Clinton said") == []


def test_the_short_form_of_a_company_is_linked_to_its_full_name():
    text = "Shares of Winam Ferries Ltd. rose", "Without Winam , it", "Winam Ferries and Henry Winam left"
    first, second = (2, "Winam"), (3, "Ferries")
    assert pairs(Company(), *text) == [(first[0], i, "Winam", "Winam") for i in (7, 10)] + [
        (second[0], 11, "Ferries", "Ferries")
    ]
    assert pairs(Company(), "Harlan cut jobs", "Harlan & Co. said so") == [(0, 3, "Harlan", "Harlan")]
    assert pairs(Company(), "Zorvan , Inc. and Zorvan") == [(0, 4, "Zorvan", "Zorvan")]
    assert pairs(Company(), "Zorvan Park and Zorvan") == []
    assert pairs(Company(), "Zorvan Foods and Zorvan") == [(0, 3, "Zorvan", "Zorvan")]
    assert pairs(Company(), "Zorvan Council and Zorvan") == []


def test_rules_that_other_languages_need():
    text = "Felipe González Márquez habló", "dijo González"
    assert pairs(LastName(), *text) == []
    assert pairs(LastName(any_word=True), *text) == [(1, 5, "González", "González")]
    text = "la Banca Nazionale della Ricerca ( BNR )"
    assert pairs(Acronym(), text) == []
    assert [row[2] for row in pairs(Acronym(small_word=5), text)] == ["Banca", "Nazionale", "Ricerca"]


def test_an_acronym_is_linked_to_the_words_that_spell_it():
    text = "the International Monetary Fund ( IMF ) and IMF again"
    expansion = [(1, "International"), (2, "Monetary"), (3, "Fund")]
    assert pairs(Acronym(), text) == [(i, j, word, "IMF") for i, word in expansion for j in (5, 8)]
    assert pairs(Acronym(), "OPEC , the Organization of the Petroleum Exporting Countries") == [
        (0, i, "OPEC", word) for i, word in [(3, "Organization"), (6, "Petroleum"), (7, "Exporting"), (8, "Countries")]
    ]
    assert [row[2:] for row in pairs(Acronym(), "in the United Nations", "the U.N. and UN said")] == [
        ("United", "U.N."),
        ("United", "UN"),
        ("Nations", "U.N."),
        ("Nations", "UN"),
    ]
    assert pairs(Acronym(), "the Asia-Pacific Economic Cooperation", "an APEC summit") == [
        (1, 5, "Asia-Pacific", "APEC"),
        (2, 5, "Economic", "APEC"),
        (3, 5, "Cooperation", "APEC"),
    ]


def test_words_that_spell_an_acronym_by_chance():
    assert pairs(Acronym(), "all from Unions in Big United Steel", "the US said") == []
    assert pairs(Acronym(), "the International Monetary", "Fund of IMF") == []
    assert pairs(Acronym(), "the Inter without any other Money Fund and IMF") == []
    assert pairs(Acronym(), "the Internal Money Fund Group of IMF") == []


def test_initials_take_part_on_request_only():
    assert pairs(SameWord(), "George W. Bush and W. Clinton") == []
    assert pairs(SameWord(min_length=1), "George W. Bush and W. Clinton") == [(1, 4, "W.", "W.")]


@pytest.mark.slow
@pytest.mark.parametrize("word", ["Clinton", "The", "IMF", "clinton", "\u0130", "."])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_hundred_thousand_times_one_word_takes_little_longer_than_to_sort_them_by_words_in_python(rule, word):
    tokens, offsets = [word] * 100_000, np.array([0, 100_000])

    def by_words():
        places = defaultdict(list)
        for t, token in enumerate(tokens):
            places[token.casefold()].append(t)

    def seconds(function):
        began = time.process_time()
        function()
        return time.process_time() - began

    taken = [(seconds(lambda: rule().links(tokens, offsets)), seconds(by_words)) for _ in range(5)]
    assert len(rule().links(tokens, offsets)) <= rule().nearest * len(tokens)
    assert min(own for own, _ in taken) < 12 * min(python for _, python in taken)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_tokens_of_a_million_characters(rule):
    tokens = ["A" * 10**6, "a" * 10**6, "A" * 10**6, "\u0301" * 10**6, "A." * 10**6]
    links = np.asarray(rule().links(tokens, np.array([0, 3, 5])))
    assert links.shape[1:] == (2,)
    assert (links[:, 0] != links[:, 1]).all()


@given(rules())
def test_rules_survive_json_and_the_command_line(rule):
    values = rule_to_dict(rule)
    assert rule_from_dict(json.loads(json.dumps(values))) == rule
    options = ",".join(f"{key}={str(value).lower()}" for key, value in values.items() if key != "name")
    assert rule_from_text(f"{rule.name}:{options}") == rule
    assert rule_from_text(rule.name) == rule_from_dict({"name": rule.name}) == type(rule)()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "same-thing"}, "unknown link rule 'same-thing'; expected one of same-word"),
        ({"nearest": 3}, "a link rule must have one of the names"),
        ({"name": 3}, "a link rule must have one of the names"),
        ([], "a link rule must have one of the names"),
        (
            {"name": "same-word", "farthest": 3},
            "same-word has no option 'farthest'; its options are nearest, min_length, fold_case",
        ),
        ({"name": "same-word", "nearest": 0}, "nearest must be a whole number from 1 to 100, not 0"),
        ({"name": "same-word", "nearest": True}, "nearest must be a whole number"),
        ({"name": "same-word", "nearest": 2.0}, "nearest must be a whole number"),
        ({"name": "same-word", "nearest": 10**9}, "nearest must be a whole number"),
        ({"name": "same-stem", "language": "klingon"}, "language must be one of arabic, .*, got 'klingon'"),
        ({"name": "same-stem", "language": ["english"]}, "language must be text, got"),
        ({"name": "same-word", "fold_case": 1}, "fold_case must be true or false, got 1"),
    ],
)
def test_bad_values_raise_an_error_of_one_line(values, message):
    with pytest.raises(ValueError, match=message) as error:
        rule_from_dict(values)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown link rule ''"),
        ("same-word:3", "expected option=value, got '3'"),
        ("same-word:nearest=3,nearest=4", "nearest occurs twice; give it once"),
        ("same-word:nearest=-1", "nearest must be a whole number"),
        ("same-word:nearest=" + "9" * 5000, "nearest must be a whole number"),
        ("same-word:fold_case=perhaps", "fold_case must be true or false"),
        ("same-word:name=same-word", "no option 'name'"),
    ],
)
def test_bad_text_raises_an_error_of_one_line(text, message):
    with pytest.raises(ValueError, match=message) as error:
        rule_from_text(text)
    assert len(str(error.value)) < 300
    assert "\n" not in str(error.value)


def test_most_links_is_allowed():
    tokens = ["Clinton"] * 300
    rule = replace(SameWord(), nearest=MOST_LINKS)
    assert len(rule.links(tokens, np.array([0, 300]))) == sum(min(i, MOST_LINKS) for i in range(300))


def linked_labels(rule, path, format):
    """Return the numbers of links between names of one label, of two labels, and of tokens outside names."""
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "path", "format", "share", "links"),
    [
        (SameWord(), "ner/conll2003/eng.testa", "conll2003", 0.92, 5000),
        (SameWord(), "ner/conll2002/ned.testa", "conll2002", 0.94, 2000),
        (SameStem(), "ner/conll2003/eng.testa", "conll2003", 0.85, 100),
        (Acronym(), "ner/conll2003/eng.testa", "conll2003", 0.93, 300),
        (Acronym(), "ner/conll2002/ned.testa", "conll2002", 0.96, 250),
        (LastName(), "ner/conll2003/eng.testa", "conll2003", 0.95, 500),
        (Company(), "ner/conll2003/eng.testa", "conll2003", 0.9, 30),
    ],
)
def test_linked_names_have_one_label_in_news(rule, path, format, share, links):
    equal, different, outside = linked_labels(rule, path, format)
    assert equal + different >= links
    assert equal / (equal + different) > share
    assert outside < 0.15 * equal


@pytest.mark.parametrize("rule", [SameWord(), SameStem(), Acronym(), LastName(), Company()], ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    "offsets", [[], [0], [0, 3], [1, 6], [0, 7], [0, 4, 2, 6], [0, -3, 6], [0, 10**12, 6], [-(2**63), 6], [0.0, 6.0], 6]
)
def test_sentence_offsets_that_are_none_are_told(rule, offsets):
    words = ["Paris", "and", "paris", "by", "Paris", "IMF"]
    with pytest.raises(ValueError, match=r"^sentence offsets must "):
        rule.links(words, np.array(offsets))
    with pytest.raises(ValueError, match=r"^sentence offsets must "):
        linear_chain_template().links(words, np.array(offsets))


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("token", [None, 7, b"Paris", np.str_("Paris")], ids=repr)
def test_tokens_that_are_no_strings_are_told(rule, token):
    """None before a capital at the beginning of a sentence was once read as if it were a string."""
    words = [token, "Acme", "Inc.", "acme", "IMF"]
    message = rf"^a token is of type {type(token).__name__}; tokens are plain strings \(str\)$"
    for tokens in (words, words[1:] + words[:1]):
        with pytest.raises(ValueError, match=message):
            rule().links(tokens, np.array([0, 5]))


@dataclass(frozen=True)
class Returning:
    """A rule of somebody's own, which returns this."""

    found: object
    name: ClassVar[str] = "own"

    def links(self, tokens, sentence_offsets):
        return self.found


@pytest.mark.parametrize(
    "found",
    [
        [[0, 6]], [[-1, 2]], [[3, 2]], [[2, 2]], [[0, 2**40]], [[0.0, 1.0]], [[0, 1, 2]], [0, 1], None, [[0, 1], [2]],
        [["a", "b"]], np.zeros((2, 2), bool), np.array([[0, 2**64 - 1]], np.uint64), [[np.nan, 1]],
    ],
    ids=str,
)  # fmt: skip
def test_what_a_rule_of_one_s_own_returns_is_checked(found):
    words, offsets = ["Paris"] * 6, np.array([0, 6])
    with pytest.raises(ValueError, match=r"^links of rule own must "):
        skip_chain_template(Returning(found)).links(words, offsets)
    layer = SkipChainLayer(["O", "B-LOC", "I-LOC"], [Returning(found)])
    with pytest.raises(ValueError, match=r"^links of rule own must "):
        layer.apply(np.zeros((6, 3)), words, offsets)


def test_links_of_a_rule_of_one_s_own_are_sorted_and_each_stands_once():
    found = skip_chain_template(Returning([[1, 3], [0, 2], [1, 3]])).links(["Paris"] * 6, np.array([0, 6]))
    assert (found.dtype, found.tolist()) == (np.int32, [[0, 2], [1, 3]])
    for nothing in ([], np.empty((0, 2)), np.empty((0, 2), np.int64)):
        assert skip_chain_template(Returning(nothing)).links(["Paris"] * 6, np.array([0, 6])).shape == (0, 2)
