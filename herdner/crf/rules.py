"""Which tokens of a document are linked: the skip edges of a skip-chain CRF (Sutton and McCallum 2004), as values.

A rule reads tokens and sentence borders alone, no labels. Every mention is linked to its ``nearest`` earlier ones at
most, so that links, time and memory stay linear in the length of the document, even where one word fills it.

Rules may overlap: each is a template with a table of its own, and the log-potentials of several links between the same
two tokens add up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from herdner._ext.links import capitalised, nearest_links

MOST_BULLETS = 3  # tokens without letters before the first word of a sentence: "1 .", "--", "(4)"
MOST_LINKS = 100  # links of one mention to earlier ones: a rule may come out of a file that nobody has checked
# Behind these a capital may be that of a sentence inside a sentence: "said: `` The ...", bullets, three full stops.
OPENINGS = ".!?\u2026:;\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u00a1\u00bf\u2022*\u2014"


class Rule(Protocol):
    """Which tokens of a document are linked. Fields of the (frozen) class are the options of the rule."""

    @property
    def name(self) -> str: ...

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2]: linked tokens of one document, the earlier first, rows ascending, no row twice.

        Sentence s holds the tokens ``sentence_offsets[s]:sentence_offsets[s + 1]``. Any strings are tokens.
        """
        ...


@dataclass(frozen=True)
class SameWord:
    """Links the mentions of one capitalised word; two mentions of "Bill Clinton" first to first and last to last.

    nearest: each mention is linked to so many earlier ones, 1 to 100.
    min_length: letters that a word has at least; 2 leaves out initials and "I".
    fold_case: "CLINTON" in a headline is "Clinton".

    A capital that its place asks for says nothing: at the beginning of a sentence, behind a quotation mark or a colon,
    in a headline in capitals. There a word is left out if the document has it in small letters too, which takes out
    "The" and "In" in any language, without a list of words; elsewhere "May" and "Bush" stay in.
    """

    name: ClassVar[str] = "same-word"

    nearest: int = 3
    min_length: int = 2
    fold_case: bool = True

    def __post_init__(self) -> None:
        _check(self)

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2], see `Rule`. Linear in the number of tokens."""
        tokens = list(tokens)
        mentions = _names(tokens, sentence_offsets, self.min_length)
        words = [tokens[token] for token in mentions]
        keys = map(str.casefold, words) if self.fold_case else words
        numbers: dict[str, int] = {}
        groups = [numbers.setdefault(key, len(numbers)) for key in keys]
        return nearest_links(_int32(mentions), _int32(groups), len(numbers), self.nearest)


RULES: Mapping[str, type[Rule]] = MappingProxyType({rule.name: rule for rule in (SameWord,)})


def rule_to_dict(rule: Rule) -> dict[str, Any]:
    """Plain data for JSON: the rule's name and its options."""
    return {"name": rule.name, **asdict(rule)}  # type: ignore[call-overload]


def rule_from_dict(values: Mapping[str, Any]) -> Rule:
    """The inverse of `rule_to_dict`; options that are left out have their defaults. ValueError says what is wrong."""
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
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
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(f"rule {name}: expected option=value, not {part!r:.80}")
        if key in options:
            raise ValueError(f"rule {name}: {key} is given twice")
        options[key] = _parsed(value)
    return _made(name, options)


def _made(name: str, options: Mapping[str, Any]) -> Rule:
    if name not in RULES:
        raise ValueError(f"there is no rule {name!r:.80}; there is {', '.join(RULES)}")
    known = [field.name for field in fields(RULES[name])]  # type: ignore[arg-type]
    for key in options:
        if key not in known:
            raise ValueError(f"rule {name} has no option {key!r:.80}; it has {', '.join(known)}")
    return RULES[name](**options)


def _parsed(text: str) -> bool | int | str:
    """The value that ``text`` writes; whether it fits the option is for the rule to say."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


def _check(rule: Any) -> None:
    """ValueError where an option of a rule is not of its kind or out of its range."""
    for field in fields(rule):
        value, wanted = getattr(rule, field.name), ""
        if isinstance(field.default, bool):
            wanted = "" if isinstance(value, bool) else "true or false"
        elif isinstance(field.default, int):
            whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_LINKS
            wanted = "" if whole else f"a whole number from 1 to {MOST_LINKS}"
        if wanted:
            raise ValueError(f"rule {rule.name}: {field.name} must be {wanted}, not {value!r:.80}")


def _int32(values: list[int]) -> NDArray[np.int32]:
    return np.array(values, np.int32)


def _names(tokens: list[str], sentence_offsets: NDArray[np.int64], min_length: int) -> list[int]:
    """The tokens that begin with a capital of their own, ascending."""
    found = capitalised(tokens, min_length)
    lowered = [tokens[token].lower() for token in found]
    small = set(lowered).intersection(tokens)
    if not small:
        return found
    due = _Places(tokens, sentence_offsets.tolist())
    return [token for token, word in zip(found, lowered, strict=True) if word not in small or not due(token)]


class _Places:
    """Whether a token's place asks for a capital, whatever the word is."""

    def __init__(self, tokens: Sequence[str], borders: Sequence[int]) -> None:
        self.tokens, self.borders = tokens, borders
        self.headlines: dict[int, bool] = {}  # by sentence, for those that were asked for

    def __call__(self, token: int) -> bool:
        sentence = bisect_right(self.borders, token) - 1
        begin = self.borders[sentence]
        if token == begin or not self.tokens[token - 1].strip(OPENINGS):
            return True
        if token - begin <= MOST_BULLETS and not any(map(_has_letter, self.tokens[begin:token])):
            return True
        if sentence not in self.headlines:
            self.headlines[sentence] = _is_headline(self.tokens[begin : self.borders[sentence + 1]])
        return self.headlines[sentence]


def _is_headline(sentence: Sequence[str]) -> bool:
    """Three or more words, none of which begins with a small letter and most of which are in capitals."""
    words = [word for word in sentence if _has_letter(word)]
    if len(words) < 3 or any(word[0].islower() for word in words):
        return False
    return 2 * sum(word.isupper() and len(word) > 1 for word in words) > len(words)


def _has_letter(word: str) -> bool:
    return any(map(str.isalpha, word))
