"""Rules that link tokens of a document, for skip-chain CRFs (Sutton and McCallum 2004).

A rule depends on tokens and sentence borders, but not on labels. It links a mention to at most ``nearest`` earlier
mentions. Therefore the number of links, the time and the memory are linear in the length of the document, even if all
its words are equal.

Rules may overlap. Each rule has its own table, and the log-potentials of several links between the same two tokens add
up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from herdner._ext.links import checked_borders, company_links, name_tokens, same_words
from herdner._ext.spellings import TokenSpellings, spell_tokens
from herdner.base.arrays import Int32s, Int64s
from herdner.base.checks import check_integer
from herdner.base.locks import ForkLock
from herdner.base.options import parse_option, parse_pair

LONGEST_NAME = 4  # maximum number of words of a full name, including titles
LONGEST_ACRONYM = 6  # maximum number of letters
MOST_SKIPPED = 2  # maximum number of adjacent lower-case words inside an expansion, such as "of the"
LONGEST_STEMMED = 64  # longer strings are not stemmed: they are not words, and stemming takes superlinear time
# Words at the end of a full company name. Case matters, because most of them are ordinary words in lower case.
DESIGNATORS = frozenset(
    "AB AG ASA A/S BV B.V. Bhd CO. Co Co. COMPANY Company CORP CORP. CORPORATION Corp Corp. Corporation GmbH"  # noqa: SIM905
    " Group GROUP Holdings HOLDINGS INC INC. Inc Inc. Incorporated KG KGaA L.P. LIMITED LLC LLP LP LTD LTD. Limited Ltd"
    " Ltd. NV N.V. Oy Oyj PLC plc Plc Pte Pty S.A. S.p.A. SA SARL SE SpA Srl".split()
)
# Words at the end of a full company name that describe its business. The first words of such names are rarely names of
# places or adjectives, unlike those of public institutions such as councils.
BUSINESS_WORDS = frozenset(
    "Airlines Airways Associates Bakery Bancorp Bank Brewery Brothers Capital Cement Chemicals Communications"  # noqa: SIM905
    " Consultants Consulting Electric Electronics Energy Enterprises Entertainment Ferries Films Financial Foods Gas"
    " Gold Holding Hotels Industries Insurance International Investments Laboratories Labs Logistics Media Medical"
    " Metals Minerals Mining Motor Motors Networks Oil Paper Partners Petroleum Pharma Pharmaceuticals Pictures Power"
    " Records Resources Retail Securities Semiconductor Services Software Solutions Sons Steel Stores Studios Systems"
    " Technologies Technology Telecom Textiles Therapeutics Toys Ventures Works".split()
)
_LAST_WORDS = DESIGNATORS | BUSINESS_WORDS
MOST_LINKS = 100  # maximum of ``nearest``, which bounds the memory for rules from untrusted files


class HasTokens(Protocol):
    """Interface of objects that have tokens and sentences, such as a `Document`."""

    @property
    def tokens(self) -> Sequence[str]:
        """Tokens of the document."""
        ...

    @property
    def sentence_offsets(self) -> Int64s:
        """Index of the first token of each sentence, followed by the number of tokens, int64[S + 1]."""
        ...


@runtime_checkable
class Rule(Protocol):
    """Interface of rules that link tokens.

    A rule is a frozen dataclass, and its fields are the options of the rule.
    """

    name: ClassVar[str]

    def links(self, tokens: Sequence[str], sentence_offsets: Int64s) -> Int32s:
        """Return the links between the tokens of a document.

        Args:
            tokens: Tokens of the document, any strings.
            sentence_offsets: int64[S + 1], first token of each sentence, and the number of tokens.

        Returns:
            int32[F, 2], the earlier token of each link first, rows ascending and distinct.
        """
        ...


@dataclass(frozen=True)
class _NameRule:
    """Base class of the link rules in this module. It checks their options and prepares the tokens of a document.

    Raises:
        ValueError: An option is invalid.
    """

    name: ClassVar[str]

    def __post_init__(self) -> None:
        """Raise `ValueError` if an option has the wrong type or is out of range."""
        for field in fields(self):
            value = getattr(self, field.name)
            if type(field.default) is int:
                check_integer(value, f"rule {self.name}: {field.name}", 1, MOST_LINKS)
            elif not isinstance(value, type(field.default)):
                expected = "true or false" if isinstance(field.default, bool) else "text"
                raise ValueError(f"rule {self.name}: {field.name} must be {expected}, got {value!r:.80}")

    def links(self, tokens: Sequence[str], sentence_offsets: Int64s) -> Int32s:
        """Return the links between the tokens of a document, in linear time.

        Args:
            tokens: Tokens of the document.
            sentence_offsets: int64[S + 1], first token of each sentence, and the number of tokens.

        Returns:
            int32[F, 2], the earlier token of each link first, rows ascending and distinct.
        """
        tokens = list(tokens)
        return self._links(tokens, spell_tokens(tokens), checked_borders(sentence_offsets, len(tokens)))

    def _links(self, tokens: list[str], spellings: TokenSpellings, sentence_offsets: Int64s) -> Int32s:
        raise NotImplementedError


@dataclass(frozen=True)
class SameWord(_NameRule):
    """Rule that links mentions of the same capitalised word.

    Two mentions of "Bill Clinton" are linked word by word. A capital letter is no evidence of a name at the beginning
    of a sentence, after a quotation mark or a colon, or in a headline in capitals. In these positions a word is ignored
    if it also occurs in lower case in the document. This excludes "The" and "In" in any language without a word list,
    and keeps "May" and "Bush" elsewhere.

    Source: Sutton and McCallum 2004, who link all pairs of mentions and ignore no words.

    Attributes:
        nearest: Number of earlier mentions to which each mention is linked, 1 to 100.
        min_length: Minimum number of letters of a word; 2 excludes initials and "I".
        fold_case: Ignore case, so that "CLINTON" in a headline is linked to "Clinton".

    Raises:
        ValueError: An option is out of range.
    """

    name: ClassVar[str] = "same-word"

    nearest: int = 3
    min_length: int = 2
    fold_case: bool = True

    def _links(self, tokens: list[str], spellings: TokenSpellings, sentence_offsets: Int64s) -> Int32s:
        return same_words(spellings, sentence_offsets, None, self.min_length, self.fold_case, self.nearest)


@dataclass(frozen=True)
class SameStem(_NameRule):
    """Rule that links different capitalised words with the same stem, such as "Russian" and "Russians".

    Snowball removes suffixes by rules without a dictionary. It separates "Iraq" from "Iraqi" and joins "House" and
    "Housing". Lower-case words are ignored, because in news they are rarely names. Words that differ only in case are
    not linked, because `SameWord` links them.

    Attributes:
        nearest: Number of earlier mentions to which each mention is linked, 1 to 100.
        language: Language of the Snowball stemmer (Porter 2001; package snowballstemmer), such as "english".

    Raises:
        ValueError: An option is out of range, or there is no stemmer for the language.
    """

    name: ClassVar[str] = "same-stem"

    nearest: int = 3
    language: str = "english"

    def __post_init__(self) -> None:
        """Raise `ValueError` if an option of the rule is invalid."""
        super().__post_init__()
        _stemmer(self.language)

    def _links(self, tokens: list[str], spellings: TokenSpellings, sentence_offsets: Int64s) -> Int32s:
        stem = _stemmer(self.language)
        families: defaultdict[str, dict[str, deque[int]]] = defaultdict(dict)  # latest mentions by stem and word
        pairs: list[tuple[int, int]] = []
        for token in name_tokens(spellings, sentence_offsets, 2):
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
class Acronym(_NameRule):
    """Rule that links an acronym to the words of its expansion: "IMF" to "International", "Monetary" and "Fund".

    An acronym is a word in capitals, with or without full stops ("U.N.", "OPEC"). An expansion is a sequence of
    capitalised words in one sentence whose initials spell the acronym. "Asia-Pacific" has two initials. Up to two short
    lower-case words may stand between capitalised words ("Bank of the West"). The next word after an expansion must not
    be capitalised. The initials of many word pairs spell an acronym of two letters by chance, so the word before such a
    pair must not be capitalised either.

    Attributes:
        nearest: Number of earlier expansions to which an acronym is linked, and of earlier acronyms to which an
            expansion is linked, 1 to 100.
        min_length: Minimum number of letters of an acronym; the maximum is six.
        small_word: Maximum number of letters of a lower-case word inside an expansion: 4 for "of the" or "de las", 5
            for "della".

    Raises:
        ValueError: An option is out of range.
    """

    name: ClassVar[str] = "acronym"

    nearest: int = 3
    min_length: int = 2
    small_word: int = 4

    def _links(self, tokens: list[str], spellings: TokenSpellings, sentence_offsets: Int64s) -> Int32s:
        mentions: defaultdict[str, list[int]] = defaultdict(list)
        initials: dict[int, str] = {}
        for token in name_tokens(spellings, sentence_offsets, 2):
            acronym = _acronym(tokens[token])
            if len(acronym) >= self.min_length:
                mentions[acronym].append(token)
            else:
                initials[token] = _initials(tokens[token])
        pairs: list[tuple[int, int]] = []
        for acronym, expansions in self._expansions(tokens, sentence_offsets.tolist(), initials, mentions).items():
            ends = [expansion[-1] for expansion in expansions]
            for token in mentions[acronym]:
                n_earlier = bisect_left(ends, token)
                near = expansions[max(n_earlier - self.nearest, 0) : n_earlier]
                pairs += [(word, token) for expansion in near for word in expansion]
            for expansion in expansions:
                n_earlier = bisect_left(mentions[acronym], expansion[0])
                near = mentions[acronym][max(n_earlier - self.nearest, 0) : n_earlier]
                pairs += [(token, word) for token in near for word in expansion]
        return _rows(pairs)

    def _expansions(
        self, tokens: list[str], borders: list[int], initials: Mapping[int, str], acronyms: Iterable[str]
    ) -> dict[str, list[list[int]]]:
        """Return the possible expansions of each acronym; each expansion is a list of token indices.

        The expansions of an acronym are in the order of their last tokens.
        """
        acronyms = set(acronyms)
        beginnings = {acronym[:n] for acronym in acronyms for n in range(1, len(acronym) + 1)}
        expansions: defaultdict[str, list[list[int]]] = defaultdict(list)
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
                    if text in acronyms and len(words) > 1 and closes and (opens or len(text) > 2):
                        expansions[text].append(words)
                elif skipped < MOST_SKIPPED and tokens[token].islower() and len(tokens[token]) <= self.small_word:
                    skipped += 1
                else:
                    break
        return expansions


@dataclass(frozen=True)
class LastName(_NameRule):
    """Rule that links a single capitalised word to the last word of earlier full names, as "Clinton" to "Bill Clinton".

    A full name is a run of two to four capitalised words: "Clinton" is linked to "President Bill Clinton". `SameWord`
    links these words only if the full name is among the nearest mentions. This rule finds the nearest full names, even
    if there are other mentions in between, and has its own table.

    Attributes:
        nearest: Number of earlier full names to which each mention is linked, 1 to 100.
        any_word: Link to the word at any position of the full name, for languages in which the surname is not the last
            word: "González" to "Felipe González Márquez", "Orbán" to "Orbán Viktor".

    Raises:
        ValueError: An option is out of range.
    """

    name: ClassVar[str] = "last-name"

    nearest: int = 3
    any_word: bool = False

    def _links(self, tokens: list[str], spellings: TokenSpellings, sentence_offsets: Int64s) -> Int32s:
        full: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=self.nearest))
        pairs: list[tuple[int, int]] = []
        for begin, end in _runs(name_tokens(spellings, sentence_offsets, 1), set(sentence_offsets.tolist())):
            word = tokens[begin].casefold()
            if end - begin == 1 and word in full:
                pairs += [(earlier, begin) for earlier in full[word]]
            elif 2 <= end - begin <= LONGEST_NAME:
                first = begin if self.any_word else end - 1
                for token in range(first, end):
                    if sum(map(str.isalpha, tokens[token])) >= 2:  # no initial
                        full[tokens[token].casefold()].append(token)
        return _rows(pairs)


@dataclass(frozen=True)
class Company(_NameRule):
    """Rule that links the words of a shortened company name to the same words in the full name.

    "Winam" is linked to "Winam Ferries Ltd." and to "Winam Foods". A full name is a run of capitalised words before one
    of ``DESIGNATORS``, optionally separated by "," or "&". The first run of several words that ends in one of
    ``BUSINESS_WORDS`` is a full name as well. A short form is a run of capitalised words with which a full name begins.
    At the beginning of a sentence, the run is tried with and without the first word. The table of this rule is learned
    from companies only. The table of `SameWord` is learned from all names.

    Attributes:
        nearest: Number of earlier full names with the same first word to which a short form is linked, 1 to 100. It is
            also the number of earlier short forms to which the first of these full names is linked.

    Raises:
        ValueError: An option is out of range.
    """

    name: ClassVar[str] = "company"

    nearest: int = 3

    def _links(self, tokens: list[str], spellings: TokenSpellings, sentence_offsets: Int64s) -> Int32s:
        return company_links(spellings, tokens, sentence_offsets, None, DESIGNATORS, _LAST_WORDS, self.nearest)


RULES: Mapping[str, type[Any]] = MappingProxyType(
    {
        "same-word": SameWord,
        "same-stem": SameStem,
        "acronym": Acronym,
        "last-name": LastName,
        "company": Company,
    }
)


def find_links(rule: Rule, tokens: Sequence[str], sentence_offsets: Int64s) -> Int32s:
    """Return the links that a rule finds in a document. Links of custom rules are checked.

    Args:
        rule: Link rule.
        tokens: Tokens of the document.
        sentence_offsets: int64[S + 1], first token of each sentence, and the number of tokens.

    Returns:
        int32[F, 2], the earlier token of each link first, rows ascending and distinct.

    Raises:
        ValueError: A custom rule returns invalid links.
    """
    links = rule.links(tokens, sentence_offsets)
    return links if type(rule) in RULES.values() else check_links(links, len(tokens), f"rule {rule.name}")


def find_links_of_all(
    rules: Iterable[Rule],
    documents: Sequence[HasTokens],
    tokens: list[str],
    spellings: TokenSpellings,
    starts: Int64s,
    sentence_offsets: Int64s,
) -> list[Int32s]:
    """Return the links that each rule finds in concatenated documents. No link joins two documents.

    Args:
        rules: Link rules.
        documents: D documents with tokens.
        tokens: Tokens of all documents.
        spellings: Spelling features of all tokens.
        starts: int64[D + 1], first token of each document, and the number of all tokens.
        sentence_offsets: int64[S + 1], first token of each sentence of all documents, and the number of all tokens.

    Returns:
        For each rule int32[F, 2], indices of tokens in the concatenated documents.

    Raises:
        ValueError: A custom rule returns invalid links.
    """
    links: list[Int32s] = []
    for rule in rules:
        if type(rule) is SameWord:
            found = same_words(spellings, sentence_offsets, starts, rule.min_length, rule.fold_case, rule.nearest)
        elif type(rule) is Company:
            found = company_links(spellings, tokens, sentence_offsets, starts, DESIGNATORS, _LAST_WORDS, rule.nearest)
        else:
            pairs = zip(documents, starts.tolist(), strict=False)
            parts = [find_links(rule, d.tokens, d.sentence_offsets) + np.int32(start) for d, start in pairs]
            found = np.concatenate([np.empty((0, 2), np.int32), *parts])
        links.append(found)
    return links


def check_links(value: object, n_tokens: int, name: str) -> Int32s:
    """Check links from a custom rule or a user, and return them sorted and without duplicates.

    Args:
        value: Links of shape [F, 2].
        n_tokens: Number of tokens of the document.
        name: Name of the rule for error messages.

    Returns:
        int32[F, 2], the indices of both tokens of each link in ascending order.

    Raises:
        ValueError: The value has another shape or type, or a link does not join two tokens in ascending order.
    """
    try:
        links: NDArray[Any] = np.asarray(value)
    except ValueError:  # a ragged list
        links = np.empty(0, object)[None]
    if links.shape == (0,):
        return np.empty((0, 2), np.int32)
    if links.ndim != 2 or links.shape[1] != 2 or (links.size and links.dtype.kind not in "iu"):
        raise ValueError(f"links of {name} must be integers of shape [links, 2], got {links.dtype} {links.shape}")
    invalid = ~((links[:, 0] >= 0) & (links[:, 0] < links[:, 1]) & (links[:, 1] < n_tokens))
    if invalid.any():
        a, b = links[invalid][0].tolist()
        raise ValueError(
            f"links of {name} must join two of the {n_tokens} tokens, the earlier one first, got {a} and {b}"
        )
    links = links.astype(np.int32)
    return links if _is_ascending(links) else np.unique(links, axis=0)


def _is_ascending(links: Int32s) -> bool:
    """Return True if the links are in strictly ascending order."""
    steps = np.diff(links, axis=0)
    return bool(((steps[:, 0] > 0) | ((steps[:, 0] == 0) & (steps[:, 1] > 0))).all())


def rule_to_dict(rule: Any) -> dict[str, Any]:
    """Return the name and the options of a link rule as a dict of JSON values.

    Args:
        rule: A rule of ``RULES``.
    """
    return {"name": rule.name, **asdict(rule)}


def rule_from_dict(values: Mapping[str, Any]) -> Rule:
    """Build a link rule from the dict that `rule_to_dict` returns.

    Args:
        values: Name and options; missing options have their defaults.

    Returns:
        The link rule.

    Raises:
        ValueError: The rule or an option is unknown, or an option is out of range.
    """
    mapping = isinstance(values, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]  # values may come from a file
    if not mapping or not isinstance(values.get("name"), str):
        raise ValueError(f"a link rule must have one of the names {', '.join(RULES)}, got {values!r:.80}")
    return _make_rule(values["name"], {key: value for key, value in values.items() if key != "name"})


def rule_from_text(text: str) -> Rule:
    """Parse a link rule such as ``same-word`` or ``same-word:nearest=3,fold_case=false``.

    Args:
        text: Name of the rule, and options after a colon.

    Returns:
        The link rule.

    Raises:
        ValueError: The rule or an option is unknown, or an option is out of range.
    """
    name, _, options_text = text.partition(":")
    name = name.strip()
    options: dict[str, Any] = {}
    for part in options_text.split(",") if options_text.strip() else []:
        pair = parse_pair(part)
        if pair is None:
            raise ValueError(f"rule {name}: expected option=value, got {part!r:.80}")
        key, value = pair
        if key in options:
            raise ValueError(f"rule {name}: {key} occurs twice; give it once")
        options[key] = parse_option(value, bool | int | str)  # the rule checks the type
    return _make_rule(name, options)


def _make_rule(name: str, options: Mapping[str, Any]) -> Rule:
    if name not in RULES:
        raise ValueError(f"unknown link rule {name!r:.80}; expected one of {', '.join(RULES)}")
    names = [field.name for field in fields(RULES[name])]
    for key in options:
        if key not in names:
            raise ValueError(f"rule {name} has no option {key!r:.80}; its options are {', '.join(names)}")
    return RULES[name](**options)


def _rows(pairs: list[tuple[int, int]]) -> Int32s:
    """Convert pairs of token indices to sorted, distinct links, int32[F, 2]."""
    return np.array(sorted(set(pairs)), np.int32).reshape(-1, 2)


def _runs(names: list[int], borders: Container[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and the exclusive end index of each run of adjacent capitalised tokens within a sentence."""
    begin = end = -1
    for token in names:
        if token != end or token in borders:
            if end > 0:
                yield begin, end
            begin = token
        end = token + 1
    if end > 0:
        yield begin, end


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    """Return a cached function that stems lower-case words of a language."""
    import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

    if language not in snowballstemmer.algorithms():
        languages = ", ".join(snowballstemmer.algorithms())
        raise ValueError(f"rule same-stem: language must be one of {languages}, got {language!r:.80}")
    stemmer = snowballstemmer.stemmer(language)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    stemmed, lock = cast(Callable[[str], str], stemmer.stemWord), ForkLock()  # pyright: ignore[reportUnknownMemberType]

    @lru_cache(maxsize=1 << 16)
    def stem(word: str) -> str:
        if len(word) > LONGEST_STEMMED:
            return word
        with lock.current:  # a stemmer is not thread-safe, because it stores the word as its state
            return stemmed(word)

    return stem


def _acronym(word: str) -> str:
    """Return the letters of an acronym without dots, or an empty string if the word is not an acronym."""
    if len(word) > 2 * LONGEST_ACRONYM:
        return ""
    letters = word.replace(".", "")
    is_dotted = len(word) - len(letters) >= len(letters) - 1
    is_upper = len(letters) <= LONGEST_ACRONYM and letters.isalpha() and letters.isupper()
    return letters if is_upper and (is_dotted or letters == word) else ""


def _initials(word: str) -> str:
    """Return the initial of a word, or the initials of all capitalised parts of a word such as "Asia-Pacific"."""
    if "-" not in word:
        return word[0]
    return "".join(part[0] for part in word.split("-", LONGEST_ACRONYM) if part[:1].isupper())
