"""Forms of names: the text of a mention, split into titles and the words of the name."""

from __future__ import annotations

import importlib.resources
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from herdner._ext.identity import PUNCTUATION, MentionForm, SimpleNames, is_person_label
from herdner.crf.link_rules import DESIGNATORS

MALE_TITLES = frozenset(
    "abbé baron brother count don duke earl emperor father friar herr king lord marquis master mister monsieur mr pa"  # noqa: SIM905
    " prince señor signor sir sultan uncle viscount".split()
)
FEMALE_TITLES = frozenset(
    "aunt baroness citoyenne countess dame donna doña duchess empress frau fräulein lady ma'am madam madame"  # noqa: SIM905
    " mademoiselle miss mistress mlle mme mother mrs ms princess queen señora señorita signora signorina sister"
    " widow".split()
)
OTHER_TITLES = frozenset(
    "admiral ambassador archbishop bishop cap'n capt captain cardinal chairman chancellor chief"  # noqa: SIM905
    " citizen citoyen coach col colonel commander comrade corporal deacon dean detective doctor dr"
    " farmer gen general gov governor hon honorable honourable inspector judge justice lieutenant lt"
    " m maj major mayor minister monsignor nurse officer parson pastor pope president private prof"
    " professor pvt rabbi rep representative rev reverend secretary sen senator sergeant sgt"
    " sheriff squire".split()
)
ADJECTIVES = frozenset("dear little old poor young".split())  # noqa: SIM905
TITLES = MALE_TITLES | FEMALE_TITLES | OTHER_TITLES | ADJECTIVES
# Form of address of each title. Texts rarely use two of them for one person.
_ADDRESSES = {
    title: address
    for address, titles in {
        "Mr": "herr m mister monsieur mr señor signor",
        "Mrs": "frau madame mistress mme mrs señora signora",
        "Miss": "fräulein mademoiselle miss mlle señorita signorina",
    }.items()
    for title in titles.split()
}
# Abbreviations and their full forms, so that "U.S. Congress" equals "United States Congress".
_WRITTEN_OUT = {
    abbreviation: full.split()
    for full, abbreviations in {"United States": "US U.S U.S.A USA", "United Kingdom": "UK U.K"}.items()
    for abbreviation in abbreviations.split()
}
SUFFIXES = frozenset("esq frs jr md phd sr".split())  # noqa: SIM905
ARTICLES = frozenset(("a", "an", "the"))
# Words that may stand in lower case inside a name.
SMALL_WORDS = ARTICLES | frozenset(
    "& al and at bin da das de del della der des di do dos du el et for ibn in la las le los of on to und van von y zu".split()  # noqa: SIM905, E501
)
# Words that end the name of a person: a clause or phrase begins there.
_CLAUSE_WORDS = frozenset("as at by for from in of on that to which who whom whose with".split())  # noqa: SIM905
_DESIGNATORS = frozenset(word.rstrip(".").casefold() for word in DESIGNATORS) - {"group"}
_POSSESSIVES = ("'s", "’s", "'", "’")
_NUMBER = re.compile(r"\d+")
MOST_WORDS = 12  # longer names are compared by their first words, so that the time stays linear
LONGEST_ACRONYM = 8
N_CACHED = 10_000  # forms in the cache, because names recur in later documents


@cache
def nicknames() -> Mapping[str, frozenset[str]]:
    """Return a dict from first names to their nicknames and from nicknames to their first names, in lower case."""
    path = importlib.resources.files("herdner") / "data" / "nicknames.json"
    table: dict[str, set[str]] = {}
    for name, short_names in json.loads(path.read_text(encoding="utf-8"))["nicknames"].items():
        for short in short_names:
            table.setdefault(name, set()).add(short)
            table.setdefault(short, set()).add(name)
    return {name: frozenset(others) for name, others in table.items()}


@cache
def genders() -> Mapping[str, str]:
    """Return a dict from first names in lower case to the gender of most of their bearers, "m" or "f"."""
    path = importlib.resources.files("herdner") / "data" / "genders.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    return {name: gender for gender in ("m", "f") for name in values[gender].split()}


def bare_word(token: str) -> str:
    """Return a token without punctuation at its ends and without a possessive ending.

    Args:
        token: The token.
    """
    word = token.strip(PUNCTUATION)
    return word[:-2] if word.endswith(("'s", "’s")) else word


def fold(word: str) -> str:
    """Return a word case-folded and without accents.

    Args:
        word: The word.
    """
    word = word.casefold()
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


@lru_cache(N_CACHED)
def parse_form(text: str, label: str, word_before: str = "") -> MentionForm:
    """Split the text of a mention into titles and the words of the name.

    Args:
        text: Text of the mention. It may contain articles, titles and relative clauses.
        label: Label of the mention.
        word_before: Word before the mention. If it is a title, a person without another title gets it.

    Returns:
        The form. It has at least one word, an empty string if the text contains none.
    """
    before = bare_word(word_before).casefold() if word_before else ""
    return _simple_names().parse(text, label, before) or parse_any_form(text, label, before)


@cache
def _simple_names() -> SimpleNames:
    special = TITLES | SUFFIXES | _DESIGNATORS | SMALL_WORDS | _CLAUSE_WORDS | set(map(str.casefold, _WRITTEN_OUT))
    titles = {
        title: ("" if title in ADJECTIVES else title, _gender([title]), _ADDRESSES.get(title, "")) for title in TITLES
    }
    return SimpleNames(special, titles, dict(nicknames()), dict(genders()))


def parse_any_form(text: str, label: str, before: str) -> MentionForm:
    """Split the text of a mention into titles and words, without the fast path of `parse_form` for simple names.

    Args:
        text: Text of the mention.
        label: Label of the mention.
        before: Word before the mention, in lower case. If it is a title, a person without another title gets it.

    Returns:
        The parsed form.
    """
    is_person = is_person_label(label)
    tokens = text.split()
    if len(tokens) == 1 and text.isalnum():  # most mentions
        titles, words, is_group = [], tokens, False
    else:
        titles, words, is_group = _split(tokens, is_person)
    if not is_person and not _WRITTEN_OUT.keys().isdisjoint(words):
        words = [full for word in words for full in _WRITTEN_OUT.get(word, (word,))]
    if is_person and not titles and before in TITLES:
        titles = [before]
    words = words or [""]
    capitalised = [word for word in words if word.casefold() not in SMALL_WORDS]
    initials = fold("".join(word[0] for word in capitalised)) if len(capitalised) > 1 else ""
    acronym, folded = _acronym(words), tuple(map(fold, words))
    title = next((title for title in reversed(titles) if title not in ADJECTIVES), "")
    first = folded[0]
    similar = nicknames().get(first, frozenset())
    content = frozenset(folded) - SMALL_WORDS
    keys = _keys(folded, acronym, initials, [first, *similar] if is_person else [])
    is_full = is_person and len(folded) > 1
    gender = genders().get(first, "") if is_full else ""
    return MentionForm(
        folded, label, is_person, title, _gender(titles), frozenset(_NUMBER.findall(text)), is_group, initials,
        acronym, content, keys, similar, _ADDRESSES.get(title, ""), gender, bool(gender or (is_full and similar)),
    )  # fmt: skip


def _keys(words: Sequence[str], acronym: str, initials: str, first_names: Sequence[str]) -> tuple[str, ...]:
    """Return the index keys of a form (way to write a name). Two forms match only if they have a key in common.

    Args:
        words: Words of the name.
        acronym: Lower-case acronym if the name consists of one acronym, else an empty string.
        initials: Initials of the capitalised words.
        first_names: First word of a person's name, and its nicknames; empty for other labels.
    """
    keys = [word for word in words if word not in SMALL_WORDS]
    if acronym:
        keys.append(f"acronym {acronym}")
    elif 2 <= len(initials) <= 6:
        keys.append(f"acronym {initials}")
    if first_names and len(first_names[0]) > 2:
        keys += [f"beginning {first_names[0][:3]}", *(f"nickname {name}" for name in first_names)]
    return tuple(dict.fromkeys(keys))


def _gender(titles: Sequence[str]) -> str:
    if not MALE_TITLES.isdisjoint(titles):
        return "m"
    return "" if FEMALE_TITLES.isdisjoint(titles) else "f"


def _acronym(words: Sequence[str]) -> str:
    letters = words[0].replace(".", "") if len(words) == 1 else ""
    return letters.casefold() if letters.isupper() and 1 < len(letters) <= LONGEST_ACRONYM else ""


def _split(tokens: list[str], is_person: bool) -> tuple[list[str], list[str], bool]:
    """Return the titles and the words of a name, and a flag: True for a name of several persons, else False."""
    if is_person:  # "Tom's Aunt Polly" is a name of the aunt
        owners = [i for i, token in enumerate(tokens[:-1]) if token.endswith(("'s", "’s")) or token in _POSSESSIVES]
        tokens = tokens[owners[-1] + 1 :] if owners else tokens
    begin = next((i for i, token in enumerate(tokens) if _may_begin(token)), 0)
    if tokens[begin : begin + 1] and tokens[begin][0].isdigit():
        begin = 0
    titles, words, is_group = _scan(tokens[begin:], is_person)
    while words and words[-1].casefold() in SMALL_WORDS:
        words.pop()
    endings = SUFFIXES if is_person else SUFFIXES | _DESIGNATORS
    while len(words) > 1 and words[-1].casefold() in endings:
        words.pop()
    if not words:
        titles, words = [], [bare_word(token) or token for token in tokens[begin:]]
    return titles, words[:MOST_WORDS], is_group


def _may_begin(token: str) -> bool:
    """Return True if a token may begin a name: a capitalised word, a number or a word of a caseless script."""
    return not token[:1].islower() and token.casefold() not in ARTICLES and any(map(str.isalnum, token))


def _scan(tokens: Sequence[str], is_person: bool) -> tuple[list[str], list[str], bool]:
    """Return the titles and the words of a name, and a flag: True for a name of several persons, else False.

    The name ends at the first comma or opening bracket. A name of a person also ends before a word such as "who" or
    "of" (`_CLAUSE_WORDS`), any other name before a lower-case word that is not in `SMALL_WORDS`. A person's name that
    follows lower-case words replaces the words before them: "American philosopher Noam Chomsky" gives "Noam Chomsky".
    """
    titles: list[str] = []
    words: list[str] = []
    is_group = is_interrupted = False
    for token in tokens:
        word = bare_word(token)
        lower = word.casefold()
        if words and token[0] in ",([":
            return titles, words, is_person and (is_group or "and" in tokens)
        is_group = is_group or lower in ("and", "&")
        if words and lower not in SMALL_WORDS and token[0].islower():
            if not is_person or lower in _CLAUSE_WORDS:
                break
            is_interrupted = True
            continue
        if is_person and words and lower in _CLAUSE_WORDS:
            break
        if not word or token in _POSSESSIVES:
            continue
        if is_interrupted and lower not in SMALL_WORDS:
            titles, words, is_group, is_interrupted = [], [], False, False
        if not words and (lower in TITLES if is_person else lower in FEMALE_TITLES or lower in ("mr", "dr", "mister")):
            titles.append(lower)
        elif not is_interrupted:
            words.append(word)
        if token[-1] == ",":
            break
    return titles, words, is_person and is_group
