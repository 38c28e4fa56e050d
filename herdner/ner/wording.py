"""What features, transitions and links say, in words: `herdner.ner.explain` puts numbers to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from herdner._ext.features import TYPE_ATTRIBUTES

if TYPE_CHECKING:
    from herdner.ner.features import Enumerated
    from herdner.text.tags import Span

_PLACES = ("", "second ", "third ", "fourth ", "fifth ", "sixth ", "seventh ", "eighth ", "ninth ")
_IN_LIST = {1: "is in", 2: "begins a name in", 3: "is inside a name in", 4: "ends a name in"}
_FOLDED = "lower"
_LOWER = TYPE_ATTRIBUTES.index(_FOLDED)
MOST_SHARING = 3  # words that are named for a word class

# Well-known words, by which a class of words is named: a model holds classes by the hashes of words alone. Those that a
# model has in no class are passed over.
_WELL_KNOWN = """
Reuters Bloomberg Microsoft Toyota Siemens Boeing Samsung Nestle Inc. Ltd. Corp. Co. Bank University Ministry Party
Council Union Committee Court Police Parliament Senate Congress NATO FBI IMF Manchester Barcelona Chelsea Yankees
John Mary David Maria Ahmed Peter Anna Smith Johnson Garcia Kim Singh Clinton Obama Merkel Einstein Shakespeare
Mr. Mrs. Dr. President Minister Professor General Judge London Paris Berlin Nairobi Tokyo Chicago Texas California
Kenya Germany China India France Africa Europe Asia Street River Island Lake Mount County American German Chinese
French Islamic Christian Monday January Internet Olympics said told announced bought visited played won the a of in at
on from by with and or but he she they who which company city country president team game
"""
WELL_KNOWN = tuple(_WELL_KNOWN.split())


def brief(word: str, longest: int) -> str:
    """Capitals as X, small letters as x, digits as d; runs of one sign are cut to ``longest``."""
    signs = "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)
    return "".join("".join(run)[:longest] for _, run in groupby(signs))


@dataclass(frozen=True, eq=False)
class Words:
    """The words of a document, and what there is to say of them.

    Attributes:
        attributes: uint64[n, A], the columns named ``names``, as `herdner._ext.features.Extractor.origins` gives them.
        known: The same of `WELL_KNOWN`.
        templates: Those of the feature plan, by number.
    """

    tokens: Sequence[str]
    sentence_offsets: NDArray[np.int64]
    spans: Sequence[Span]
    names: tuple[str, ...]
    templates: Sequence[Enumerated]
    attributes: NDArray[np.uint64]
    known: NDArray[np.uint64]

    # --- features ---------------------------------------------------------------------------------------------------

    def feature(self, template: int, token: int, place: int) -> str:
        """What a feature of a token says; ``place`` is that of the word beside another occurrence, else the token."""
        items, side = self.templates[template]
        if side is not None:
            ((column, _),) = items
            there = f"also in sentence {self.sentence(place)}, {'after' if side == 'left' else 'before'}"
            said, quoted = self.says(column, place), f"'{self.tokens[place]}'"
            return f"{there} {quoted}" if said == f"is {quoted}" else f"{there} a word that {said} ({quoted})"
        return " and ".join(dict.fromkeys(self._item(column, token, offset) for column, offset in items))

    def _item(self, column: int, token: int, offset: int) -> str:
        first, end = self.borders(token)
        name, at = self.names[column], token + offset
        if name == "bias":
            return "how common the label is"
        if not first <= at < end:
            return _outside(offset)
        if name == "headline":
            return "the sentence is a headline in capitals"
        return f"{_subject(offset)} {self.says(column, at)}"

    def says(self, column: int, token: int) -> str:
        """What an attribute says of a token, with the word itself left out: "is 'at'"."""
        name, _, of = self.names[column].partition(":")
        return SAYINGS.get(name, _unknown)(self, column, token, of)

    # --- transitions and links --------------------------------------------------------------------------------------

    def neighbours(self, token: int) -> str:
        """The step from the token before to this one, as they are tagged."""
        left, right = self.mention_at(token - 1), self.mention_at(token)
        if left is not None and left == right:
            return f"transition inside {left.label} from '{self.tokens[token - 1]}' to '{self.tokens[token]}'"
        said = f"'{self.tokens[token - 1]}' ({_tagged(left)}) to '{self.tokens[token]}' ({_tagged(right)})"
        return f"transition from {said}"

    def border(self, token: int, start: bool) -> str:
        """The first or the last token of a sentence, as it is tagged."""
        where = "begins" if start else "ends"
        return f"the sentence {where} with '{self.tokens[token]}' ({_tagged(self.mention_at(token))})"

    def link(self, token: int, other: int, rule: str) -> str:
        """A link from a mention's token, as its other end is tagged."""
        mention, there = self.mention_at(token), self.mention_at(other)
        if mention is not None and mention == there:
            return f"link between '{self.tokens[token]}' and '{self.tokens[other]}', both in this mention ({rule})"
        text = self.tokens[other] if there is None else " ".join(self.tokens[there.start : there.end])
        tagged = _tagged(there) if there is None else f"tagged {there.label}"
        return f"link to '{text}' in sentence {self.sentence(other)}, {tagged} ({rule})"

    def given(self, settled: bool) -> str:
        """What the user has said of a mention."""
        return "the names that you gave leave no choice" if settled else "the names that you gave"

    # --- the document -----------------------------------------------------------------------------------------------

    def sentence(self, token: int) -> int:
        """The number of the token's sentence, from 1."""
        return self._sentence_numbers[token]

    @cached_property
    def _sentence_numbers(self) -> list[int]:
        lengths = np.diff(self.sentence_offsets)
        return np.repeat(np.arange(1, len(lengths) + 1), lengths).tolist()

    def borders(self, token: int) -> tuple[int, int]:
        """The first token of the sentence, and the one behind its last."""
        number = self.sentence(token)
        return self._borders[number - 1], self._borders[number]

    @cached_property
    def _borders(self) -> list[int]:
        return self.sentence_offsets.tolist()

    def mention_at(self, token: int) -> Span | None:
        """The mention that a token is part of."""
        return self._mentions.get(token)

    @cached_property
    def _mentions(self) -> dict[int, Span]:
        return {token: span for span in self.spans for token in range(span.start, span.end)}

    def sharing(self, column: int, token: int) -> list[str]:
        """Other words with this attribute, well-known ones first."""
        value, own = int(self.attributes[token, column]), self.tokens[token].casefold()
        if (column, value) not in self._shared:
            famous = (WELL_KNOWN[i] for i in np.flatnonzero(self.known[:, column] == value).tolist())
            here = (self.tokens[i] for i in np.flatnonzero(self.attributes[:, column] == value).tolist())
            different = {word.casefold(): word for word in reversed([*famous, *here])}  # the first of each
            self._shared[column, value] = list(reversed(different.values()))[: MOST_SHARING + 1]
        return [word for word in self._shared[column, value] if word.casefold() != own][:MOST_SHARING]

    @cached_property
    def _shared(self) -> dict[tuple[int, int], list[str]]:
        return {}

    def spelled(self, column: int, token: int) -> str:
        """The word of the token's sentence whose small form is the value of an attribute, as it stands there."""
        first, end = self.borders(token)
        same = first + np.flatnonzero(self.attributes[first:end, _LOWER] == self.attributes[token, column])
        return self.tokens[int(same[np.abs(same - token).argmin()])] if len(same) else ""


def _tagged(mention: Span | None) -> str:
    return "no name" if mention is None else mention.label


def _subject(offset: int) -> str:
    if not offset:
        return "the word"
    return f"the {_PLACES[abs(offset) - 1]}word {'before' if offset < 0 else 'after'}"


def _outside(offset: int) -> str:
    """What it says that a place is outside the sentence."""
    distance = abs(offset)
    if distance == 1:
        return "it begins the sentence" if offset < 0 else "it ends the sentence"
    words = "one word stands" if distance == 2 else f"{distance - 1} words stand"
    return f"at most {words} {'before' if offset < 0 else 'after'} it in the sentence"


# --- what each attribute says of a token

Saying = Callable[[Words, int, int, str], str]
"""Of a document's words: an attribute's column and a token; and, of a gazetteer, its name."""


def _unknown(words: Words, column: int, token: int, of: str) -> str:
    return f"has {words.names[column]}"  # an attribute that is too new for words


def _word(words: Words, column: int, token: int, of: str) -> str:
    return f"is '{words.tokens[token]}'"


def _lower(words: Words, column: int, token: int, of: str) -> str:
    word = words.tokens[token]
    return f"is '{word}'" if word == word.lower() else f"is '{word.lower()}', in small letters or not"


def _digits(words: Words, column: int, token: int, of: str) -> str:
    word = words.tokens[token]
    plain = "".join("0" if c.isdigit() else c for c in word.lower())
    return f"is '{plain}' with whatever digits" if plain != word.lower() else _lower(words, column, token, of)


def _shape(words: Words, column: int, token: int, of: str) -> str:
    return f"looks like {brief(words.tokens[token], 4)}"


def _brief_shape(words: Words, column: int, token: int, of: str) -> str:
    return f"looks like {brief(words.tokens[token], 1)}"


def _prefix(length: int) -> Saying:
    return lambda words, column, token, of: f"begins with '{words.tokens[token].lower()[:length]}-'"


def _suffix(length: int) -> Saying:
    return lambda words, column, token, of: f"ends in '-{words.tokens[token].lower()[-length:]}'"


def _class(words: Words, column: int, token: int, of: str) -> str:
    shared = words.sharing(column, token)
    return f"has the word class of {', '.join(shared or [words.tokens[token]])}"


def _vector(words: Words, column: int, token: int, of: str) -> str:
    shared = words.sharing(column, token)
    return f"stands in such texts as {', '.join(shared or [words.tokens[token]])}"


def _casing(words: Words, column: int, token: int, of: str) -> str:
    value = int(words.attributes[token, column])
    if not value & 32:
        return "is in small letters here and capitalised elsewhere"
    said = "is in capitals" if value & 16 else "is capitalised"
    if value & 8:
        said += " in a headline"
    if value & 4:
        said += " at the start of the sentence"
    elsewhere = {0: "nowhere else to compare", 1: "elsewhere small", 2: "elsewhere too", 3: "elsewhere both"}
    return f"{said} ({elsewhere[value & 3]})"


def _run(words: Words, column: int, token: int, of: str) -> str:
    value = int(words.attributes[token, column]) - 1
    length, has_left, has_right = value >> 2, value & 2, value & 1
    if length == 1:
        return "is capitalised, those beside it are not"
    number = f"{length} or more" if length == 6 else str(length)
    place = "inside" if has_left and has_right else "the last of" if has_left else "the first of"
    return f"is {place} {number} capitalised words in a row"


def _run_with(where: str) -> Saying:
    def says(words: Words, column: int, token: int, of: str) -> str:
        word = words.spelled(column, token)
        border = "the beginning of the sentence" if words.attributes[token, column] == 1 else "its end"
        return f"is in a run of capitalised words that {where} " + (f"'{word}'" if word else border)

    return says


def _listed(words: Words, column: int, token: int, of: str) -> str:
    return f"{_IN_LIST.get(int(words.attributes[token, column]), 'is in')} the list {of}"


def _topic(words: Words, column: int, token: int, of: str) -> str:
    number, most = words.attributes[token, column], words.names[column].removeprefix("topic")
    return f"stands in a document on topic {number} of {most}"


SAYINGS: dict[str, Saying] = {
    "word": _word, _FOLDED: _lower, "digits": _digits, "shape": _shape, "brief_shape": _brief_shape,
    **{f"prefix{n}": _prefix(n) for n in range(1, 6)}, **{f"suffix{n}": _suffix(n) for n in range(1, 6)},
    **{f"class{n}": _class for n in (4, 6, 10, 20)}, **{f"vector{n}": _vector for n in (32, 128, 512, 2048)},
    "casing": _casing, "headline": _unknown, "run": _run, "bias": _unknown,
    "run_first": _run_with("begins with"), "run_last": _run_with("ends with"),
    "run_before": _run_with("comes after"), "run_after": _run_with("comes before"),
    "topic8": _topic, "topic24": _topic, "topic64": _topic,
    "gazetteer": _listed,
}  # fmt: skip
