"""Which tokens of a document are linked: the links of a skip-chain CRF (Sutton and McCallum 2004), as values.

A rule reads tokens and sentence borders alone, no labels. Every mention is linked to its ``nearest`` earlier ones at
most, so that links, time and memory stay linear in the length of the document, even where one word fills it.

Rules may overlap: each is a template with a table of its own, and the log-potentials of several links between the same
two tokens add up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, lru_cache
from threading import Lock
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from herdner._ext.links import (
    capitalised_tokens,
    checked_borders,
    company_runs,
    documents_with_words,
    name_tokens,
    name_tokens_of_documents,
    same_words,
)
from herdner._ext.spellings import TokenSpellings, spell_tokens
from herdner.base.arrays import Int64s
from herdner.base.checks import check_integer
from herdner.base.options import parse_option, parse_pair

LONGEST_NAME = 4  # words of a full name, with titles
LONGEST_ACRONYM = 6
MOST_SKIPPED = 2  # small words in a row inside an expansion: "of the"
LONGEST_STEMMED = 64  # longer words are not words, and stemming takes more than linear time
# Words that end the full name of a company. As they are written: in other letters most of them are other words.
DESIGNATORS = frozenset(
    "AB AG ASA A/S BV B.V. Bhd CO. Co Co. COMPANY Company CORP CORP. CORPORATION Corp Corp. Corporation GmbH"  # noqa: SIM905
    " Group GROUP Holdings HOLDINGS INC INC. Inc Inc. Incorporated KG KGaA L.P. LIMITED LLC LLP LP LTD LTD. Limited Ltd"
    " Ltd. NV N.V. Oy Oyj PLC plc Plc Pte Pty S.A. S.p.A. SA SARL SE SpA Srl".split()
)
MOST_LINKS = 100  # links of one mention to earlier ones: a rule may come out of a file that nobody has checked


class Tokenized(Protocol):
    """Tokens in sentences, as a `Document` has them."""

    @property
    def tokens(self) -> Sequence[str]: ...

    @property
    def sentence_offsets(self) -> Int64s: ...


@runtime_checkable
class Rule(Protocol):
    """Which tokens of a document are linked. Fields of the (frozen) class are the options of the rule."""

    name: ClassVar[str]

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2]: linked tokens of one document, the earlier first, rows ascending, no row twice.

        Sentence s holds the tokens ``sentence_offsets[s]:sentence_offsets[s + 1]``. Any strings are tokens.
        """
        ...


@dataclass(frozen=True)
class SameWord:
    """Links the mentions of one capitalised word; two mentions of "Bill Clinton" first to first and last to last.

    A capital that its place asks for says nothing: at the beginning of a sentence, behind a quotation mark or a colon,
    in a headline in capitals. There a word is left out if the document has it in small letters too, which takes out
    "The" and "In" in any language, without a list of words; elsewhere "May" and "Bush" stay in.

    Source: Sutton and McCallum 2004, who link all pairs of mentions; here only the nearest, and without such words.

    Attributes:
        nearest: Each mention is linked to so many earlier ones, 1 to 100.
        min_length: Letters that a word has at least; 2 leaves out initials and "I".
        fold_case: "CLINTON" in a headline is "Clinton".
    """

    name: ClassVar[str] = "same-word"

    nearest: int = 3
    min_length: int = 2
    fold_case: bool = True

    def __post_init__(self) -> None:
        _check(self)

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2], see `Rule`. Linear in the number of tokens."""
        said = spell_tokens(list(tokens))
        return same_words(said, sentence_offsets, None, self.min_length, self.fold_case, self.nearest)

    def links_of_all(
        self, documents: Sequence[Tokenized], said: TokenSpellings, starts: Int64s, sentence_offsets: Int64s
    ) -> NDArray[np.int32]:
        """The links of all documents, one behind the other, see `herdner.crf.templates.SkipChain.links_of_all`."""
        return same_words(said, sentence_offsets, starts, self.min_length, self.fold_case, self.nearest)


@dataclass(frozen=True)
class SameStem:
    """Links capitalised words with one stem that are not the same word: "Russian" - "Russians", "Treasury" -
    "Treasuries".

    Snowball strips endings by rule and knows no words: "Iraq" and "Iraqi" stay apart, "Iraqi" and "Iraqis" meet, as do
    "House" and "Housing". Words in small letters take no part: in news, hardly any of them is a name.
    Pairs that `SameWord` links, the same but for case, are left to it.

    Attributes:
        nearest: Each mention is linked to so many earlier ones, 1 to 100.
        language: Of the Snowball stemmer (Porter 2001; package snowballstemmer), "english", "spanish", "dutch" ...
    """

    name: ClassVar[str] = "same-stem"

    nearest: int = 3
    language: str = "english"

    def __post_init__(self) -> None:
        _check(self)
        _stemmer(self.language)

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2], see `Rule`. Linear in the number of tokens, as no stem has many words."""
        tokens = list(tokens)
        stem = _stemmer(self.language)
        families: defaultdict[str, dict[str, deque[int]]] = defaultdict(dict)  # the latest mentions by stem and word
        pairs: list[tuple[int, int]] = []
        for token in name_tokens(spell_tokens(tokens), sentence_offsets, 2):
            word = tokens[token].casefold()
            family = families[stem(word)]
            if word not in family:
                family[word] = deque(maxlen=self.nearest)
            if len(family) > 1:
                others = [earlier for other, mentions in family.items() if other != word for earlier in mentions]
                pairs += [(earlier, token) for earlier in sorted(others)[-self.nearest :]]
            family[word].append(token)
        return _rows(pairs)


@dataclass(frozen=True)
class Acronym:
    """Links an acronym to each word of an expansion that gives it a letter: "IMF" - "International Monetary Fund".

    An acronym is a word in capitals, with or without full stops ("U.N.", "OPEC"). Its expansion is in one sentence:
    capitalised words whose initials spell it (of "Asia-Pacific" both), with two short words in small letters in between
    at most ("Bank of the West"), up to the end of a run of capitalised words. To an acronym of two letters, which many
    words spell by chance, only a whole run is an expansion.

    Attributes:
        nearest: An acronym is linked to so many earlier expansions, and an expansion to so many earlier acronyms, 1 to
            100.
        min_length: Letters of an acronym; at most they are six.
        small_word: Letters that a small word inside an expansion has at most: 4 for "of the" or "de las", 5 for
            "della".
    """

    name: ClassVar[str] = "acronym"

    nearest: int = 3
    min_length: int = 2
    small_word: int = 4

    def __post_init__(self) -> None:
        _check(self)

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2], see `Rule`. Linear in the number of tokens."""
        tokens = list(tokens)
        borders = checked_borders(sentence_offsets, len(tokens))
        mentions: defaultdict[str, list[int]] = defaultdict(list)
        initials: dict[int, str] = {}
        for token in name_tokens(spell_tokens(tokens), borders, 2):
            acronym = _acronym(tokens[token])
            if len(acronym) >= self.min_length:
                mentions[acronym].append(token)
            else:
                initials[token] = _initials(tokens[token])
        pairs: list[tuple[int, int]] = []
        for acronym, expansions in self._expansions(tokens, borders.tolist(), initials, mentions).items():
            ends = [expansion[-1] for expansion in expansions]
            for token in mentions[acronym]:
                past = bisect_left(ends, token)
                near = expansions[max(past - self.nearest, 0) : past]
                pairs += [(word, token) for expansion in near for word in expansion]
            for expansion in expansions:
                past = bisect_left(mentions[acronym], expansion[0])
                near = mentions[acronym][max(past - self.nearest, 0) : past]
                pairs += [(token, word) for token in near for word in expansion]
        return _rows(pairs)

    def _expansions(
        self, tokens: list[str], borders: list[int], initials: Mapping[int, str], wanted: Iterable[str]
    ) -> dict[str, list[list[int]]]:
        """The expansions of each wanted acronym, as the tokens that give it letters: ascending, as are their ends."""
        wanted = set(wanted)
        beginnings = {acronym[:n] for acronym in wanted for n in range(1, len(acronym) + 1)}
        found: defaultdict[str, list[list[int]]] = defaultdict(list)
        for start in initials:
            if initials[start][0] not in beginnings:
                continue
            sentence = bisect_right(borders, start)
            opens = start == borders[sentence - 1] or start - 1 not in initials
            text, skipped = "", 0
            words: list[int] = []
            for token in range(start, borders[sentence]):
                if token in initials:
                    text, words, skipped = text + initials[token], [*words, token], 0
                    closes = token + 1 == borders[sentence] or token + 1 not in initials
                    if text not in beginnings:
                        break
                    if text in wanted and len(words) > 1 and closes and (opens or len(text) > 2):
                        found[text].append(words)
                elif skipped < MOST_SKIPPED and tokens[token].islower() and len(tokens[token]) <= self.small_word:
                    skipped += 1
                else:
                    break
        return found


@dataclass(frozen=True)
class LastName:
    """Links a capitalised word that stands alone to the last word of earlier runs of two to four capitalised words:
    "Clinton" to "President Bill Clinton".

    `SameWord` links the same pairs where the nearest mentions are such runs; as a rule of its own it has a table of its
    own, and reaches past other mentions to those that say more.

    Attributes:
        nearest: Each mention is linked to so many earlier ones, 1 to 100.
        any_word: To that word wherever it stands in such a run, as people are not called by their last word everywhere:
            "González" to "Felipe González Márquez", "Orbán" to "Orbán Viktor".
    """

    name: ClassVar[str] = "last-name"

    nearest: int = 3
    any_word: bool = False

    def __post_init__(self) -> None:
        _check(self)

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2], see `Rule`. Linear in the number of tokens."""
        tokens = list(tokens)
        full: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=self.nearest))
        pairs: list[tuple[int, int]] = []
        borders = checked_borders(sentence_offsets, len(tokens))
        for begin, end in _runs(name_tokens(spell_tokens(tokens), borders, 1), set(borders.tolist())):
            word = tokens[begin].casefold()
            if end - begin == 1 and word in full:
                pairs += [(earlier, begin) for earlier in full[word]]
            elif 2 <= end - begin <= LONGEST_NAME:
                first = begin if self.any_word else end - 1
                for token in capitalised_tokens(tokens[first:end], 2):
                    full[tokens[first + token].casefold()].append(first + token)
        return _rows(pairs)


@dataclass(frozen=True)
class Company:
    """Links the short form of a company's name to the same words of its full name: "Winam" to "Winam Ferries Ltd."

    A full name is a run of capitalised words before one of ``DESIGNATORS``, with "," or "&" in between or without. A
    short form is a run that a full name begins with. The word that begins a sentence may belong to a run or stand
    before it. What `SameWord` learns of the words of all longer names, this learns of companies alone.

    Attributes:
        nearest: A short form is linked to the last so many full names before it that have its first word, and the first
            of these to so many short forms before it, 1 to 100.
    """

    name: ClassVar[str] = "company"

    nearest: int = 3

    def __post_init__(self) -> None:
        _check(self)

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2], see `Rule`. Linear in the number of tokens."""
        tokens = list(tokens)
        return self._links(tokens, name_tokens(spell_tokens(tokens), sentence_offsets, 1), sentence_offsets)

    def links_of_all(
        self, documents: Sequence[Tokenized], said: TokenSpellings, starts: Int64s, sentence_offsets: Int64s
    ) -> NDArray[np.int32]:
        """The links of all documents, one behind the other, see `herdner.crf.templates.SkipChain.links_of_all`."""
        found, all_names = [np.empty((0, 2), np.int32)], name_tokens_of_documents(said, sentence_offsets, starts, 1)
        for d in documents_with_words(said, DESIGNATORS, starts):
            start, own = np.int32(starts[d]), slice(*all_names[1][d : d + 2].tolist())
            own_names = (all_names[0][own] - start).tolist()
            found.append(self._links(list(documents[d].tokens), own_names, documents[d].sentence_offsets) + start)
        return np.concatenate(found)

    def _links(self, tokens: list[str], said: list[int], sentence_offsets: Int64s) -> NDArray[np.int32]:
        full: defaultdict[str, deque[range]] = defaultdict(lambda: deque(maxlen=self.nearest))
        early: defaultdict[str, deque[range]] = defaultdict(lambda: deque(maxlen=self.nearest))
        pairs: list[tuple[int, int]] = []
        for begin, end, designated in company_runs(said, tokens, sentence_offsets, DESIGNATORS):
            run, key = range(begin, end), tokens[begin].casefold()
            if not designated:
                pairs += [pair for name in full[key] for pair in _beginning(tokens, name, run, run)]
                early[key].append(run)
            else:
                near = () if full[key] else early[key]
                pairs += [pair for short in near for pair in _beginning(tokens, short, run, short)]
                full[key].append(run)
        return _rows(pairs)


_CLASSES = [
    SameWord,
    SameStem,
    Acronym,
    LastName,
    Company,
]
RULES: Mapping[str, type[Any]] = MappingProxyType({rule.name: rule for rule in _CLASSES})


def checked_links(found: object, n_tokens: int, name: str) -> NDArray[np.int32]:
    """What a rule has returned for a document of so many tokens, sorted and each link once.

    Raises:
        ValueError: They cannot be links.
    """
    try:
        links: NDArray[Any] = np.asarray(found)
    except ValueError:  # a ragged list
        links = np.empty(0, object)[None]
    if links.shape == (0,):
        return np.empty((0, 2), np.int32)
    if links.ndim != 2 or links.shape[1] != 2 or (links.size and links.dtype.kind not in "iu"):
        raise ValueError(f"links of {name} must be whole numbers of shape [links, 2], not {links.dtype} {links.shape}")
    wrong = ~((links[:, 0] >= 0) & (links[:, 0] < links[:, 1]) & (links[:, 1] < n_tokens))
    if wrong.any():
        row = links[wrong][0].tolist()
        raise ValueError(
            f"links of {name} must join two of the {n_tokens} tokens, the earlier one first, not {row[0]} and {row[1]}"
        )
    links = links.astype(np.int32)
    return links if _ascending(links) else np.unique(links, axis=0)


def _ascending(links: NDArray[np.int32]) -> bool:
    """Whether links int32[F, 2] ascend, none twice."""
    steps = np.diff(links, axis=0)
    return bool(((steps[:, 0] > 0) | ((steps[:, 0] == 0) & (steps[:, 1] > 0))).all())


def rule_to_dict(rule: Any) -> dict[str, Any]:
    """Plain data for JSON: the rule's name and its options."""
    return {"name": rule.name, **asdict(rule)}


def rule_from_dict(values: Mapping[str, Any]) -> Rule:
    """The inverse of `rule_to_dict`; options that are left out have their defaults. ValueError says what is wrong."""
    mapping = isinstance(values, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]  # it may be out of a file
    if not mapping or not isinstance(values.get("name"), str):
        raise ValueError(f"a rule needs a name, one of {', '.join(RULES)}, not {values!r:.80}")
    return _made(values["name"], {key: value for key, value in values.items() if key != "name"})


def rule_from_text(text: str) -> Rule:
    """A rule as a command line has it: ``same-word`` or ``same-word:nearest=3,fold_case=false``.

    ValueError says what is wrong.
    """
    name, _, listed = text.partition(":")
    name = name.strip()
    options: dict[str, Any] = {}
    for part in listed.split(",") if listed.strip() else []:
        found = parse_pair(part)
        if found is None:
            raise ValueError(f"rule {name}: expected option=value, not {part!r:.80}")
        key, value = found
        if key in options:
            raise ValueError(f"rule {name}: {key} is given twice")
        options[key] = parse_option(value, bool | int | str)  # whether it fits the option is for the rule to say
    return _made(name, options)


def _made(name: str, options: Mapping[str, Any]) -> Rule:
    if name not in RULES:
        raise ValueError(f"there is no rule {name!r:.80}; there is {', '.join(RULES)}")
    known = [field.name for field in fields(RULES[name])]
    for key in options:
        if key not in known:
            raise ValueError(f"rule {name} has no option {key!r:.80}; it has {', '.join(known)}")
    return RULES[name](**options)


def _check(rule: Any) -> None:
    """ValueError where an option of a rule is not of its kind or out of its range."""
    for field in fields(rule):
        value, wanted = getattr(rule, field.name), ""
        if isinstance(field.default, bool):
            wanted = "" if isinstance(value, bool) else "true or false"
        elif isinstance(field.default, int):
            check_integer(value, f"rule {rule.name}: {field.name}", 1, MOST_LINKS)
        elif not isinstance(value, str):
            wanted = "text"
        if wanted:
            raise ValueError(f"rule {rule.name}: {field.name} must be {wanted}, not {value!r:.80}")


def _rows(pairs: list[tuple[int, int]]) -> NDArray[np.int32]:
    """int32[F, 2]: the pairs, ascending, none twice."""
    return np.array(sorted(set(pairs)), np.int32).reshape(-1, 2)


def _runs(names: list[int], borders: Container[int]) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of names within a sentence."""
    begin = end = -1
    for token in names:
        if token != end or token in borders:
            if end > 0:
                yield begin, end
            begin = token
        end = token + 1
    if end > 0:
        yield begin, end


def _beginning(tokens: list[str], earlier: range, later: range, short: range) -> Iterator[tuple[int, int]]:
    """The words of a short form and of the longer name, pair by pair; none where that does not begin with it."""
    pairs = list(zip(earlier, later, strict=False))
    if len(pairs) == len(short) and all(tokens[i].casefold() == tokens[j].casefold() for i, j in pairs):
        yield from pairs


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    """The stem of a lower-cased word, remembered."""
    import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

    if language not in snowballstemmer.algorithms():
        known = ", ".join(snowballstemmer.algorithms())
        raise ValueError(f"rule same-stem: language must be one of {known}, not {language!r:.80}")
    stemmer = snowballstemmer.stemmer(language)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    stemmed, lock = cast(Callable[[str], str], stemmer.stemWord), Lock()  # pyright: ignore[reportUnknownMemberType]

    @lru_cache(maxsize=1 << 16)
    def stem(word: str) -> str:
        if len(word) > LONGEST_STEMMED:
            return word
        with lock:  # a stemmer keeps the word it works on
            return stemmed(word)

    return stem


def _acronym(word: str) -> str:
    """The letters of an acronym, or nothing where the word is none."""
    if len(word) > 2 * LONGEST_ACRONYM:
        return ""
    letters = word.replace(".", "")
    dotted = len(word) - len(letters) >= len(letters) - 1
    fits = len(letters) <= LONGEST_ACRONYM and letters.isalpha() and letters.isupper()
    return letters if fits and (dotted or letters == word) else ""


def _initials(word: str) -> str:
    """The first letter, or those of the capitalised parts of "Asia-Pacific"."""
    if "-" not in word:
        return word[0]
    return "".join(part[0] for part in word.split("-", LONGEST_ACRONYM) if part[:1].isupper())
