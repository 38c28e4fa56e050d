"""Descriptions of features, transitions and links in English, for `herdner.ner.explain`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from herdner._ext.features import TYPE_ATTRIBUTES, Extractor
from herdner.base.arrays import Int32s, Int64s
from herdner.ner.features import CompiledTemplate, FeaturePlan
from herdner.text.document import Document
from herdner.text.tags import Span

_ORDINALS = ("", "second ", "third ", "fourth ", "fifth ", "sixth ", "seventh ", "eighth ", "ninth ")
_LIST_POSITIONS = {1: "is in", 2: "begins a name in", 3: "is inside a name in", 4: "ends a name in"}
_FOLDED = "lower"
_LOWER = TYPE_ATTRIBUTES.index(_FOLDED)
MAX_EXAMPLES = 3  # example words in the description of a word class

# Example words for the descriptions of word classes. They are listed here because a model stores only hashes of the
# words of a class. A word without a class in a model is not used as an example.
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
    """Return the shape of a word: X for each upper-case letter, x for each lower-case letter, d for each digit.

    Other characters stay unchanged.

    Args:
        word: The word.
        longest: Maximum length of a run of equal characters of the shape; longer runs are shortened to it.
    """
    signs = "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)
    return "".join("".join(run)[:longest] for _, run in groupby(signs))


@dataclass(frozen=True, eq=False)
class Describer:
    """Descriptions, in English, of the features, transitions and links of a tagged document.

    Attributes:
        tokens: Tokens of the document.
        sentence_offsets: First token of each sentence, and the number of tokens.
        spans: Mentions of the document.
        names: Names of the A attributes.
        templates: Templates of the feature plan, in the order of their indices.
        attributes: uint64[n, A], attribute values of the tokens (`herdner._ext.features.Extractor.origins`).
        well_known: uint64[len(WELL_KNOWN), A], attribute values of the words `WELL_KNOWN`.
    """

    tokens: Sequence[str]
    sentence_offsets: Int64s
    spans: Sequence[Span]
    names: tuple[str, ...]
    templates: Sequence[CompiledTemplate]
    attributes: NDArray[np.uint64]
    well_known: NDArray[np.uint64]

    @classmethod
    def of(
        cls,
        document: Document,
        tokens: Sequence[str],
        spans: Sequence[Span],
        plan: FeaturePlan,
        extractor: Extractor,
        selected: Int64s,
    ) -> tuple[Describer, Int64s, NDArray[np.uint64], Int32s]:
        """Build the describer of a document, and compute the features of selected tokens.

        Args:
            document: The document.
            tokens: Tokens of the document as the tagger reads them, for example recased.
            spans: Entities of the document.
            plan: Feature plan of the model.
            extractor: Feature extractor of the model.
            selected: int64[M], ascending indices of tokens.

        Returns:
            The describer; and the starts, keys and origins of the features of the M tokens, as they are in the result
            of ``Extractor.origins``.
        """
        offsets = document.sentence_offsets
        starts, keys, origins, attributes = extractor.origins(tokens, offsets, selected)
        well_known = extractor.origins(WELL_KNOWN, np.array([0, len(WELL_KNOWN)]), np.empty(0, np.int64))[3]
        templates = plan.compiled_templates()
        describer = cls(document.tokens, offsets, spans, plan.attributes, templates, attributes, well_known)
        return describer, starts, keys, origins

    # --- features ---------------------------------------------------------------------------------------------------

    def feature(self, template: int, token: int, position: int) -> str:
        """Describe a feature of a token in English.

        Args:
            template: Index of its template.
            token: Index of the token that has the feature.
            position: Index of the token that the template reads: ``token`` itself, or a neighbour of another occurrence
                of the same word.

        Returns:
            The description.
        """
        items, side = self.templates[template]
        if side is not None:
            ((column, _),) = items
            start = f"also in sentence {self.sentence(position)}, {'after' if side == 'left' else 'before'}"
            predicate, quoted = self.attribute(column, position), f"'{self.tokens[position]}'"
            return f"{start} {quoted}" if predicate == f"is {quoted}" else f"{start} a word that {predicate} ({quoted})"
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
        return f"{_subject(offset)} {self.attribute(column, at)}"

    def attribute(self, column: int, token: int) -> str:
        """Describe the value of an attribute at a token by an English predicate, such as "is 'at'".

        Args:
            column: Index of the attribute.
            token: Index of the token.

        Returns:
            The predicate.
        """
        name, _, gazetteer = self.names[column].partition(":")
        return PREDICATES.get(name, _unknown)(self, column, token, gazetteer)

    # --- transitions and links --------------------------------------------------------------------------------------

    def transition(self, token: int) -> str:
        """Describe in English the transition from the previous token to ``token``.

        Args:
            token: Index of the second token.

        Returns:
            The description.
        """
        left, right = self.mention_at(token - 1), self.mention_at(token)
        if left is not None and left == right:
            return f"transition inside {left.label} from '{self.tokens[token - 1]}' to '{self.tokens[token]}'"
        pair = f"'{self.tokens[token - 1]}' ({_label(left)}) to '{self.tokens[token]}' ({_label(right)})"
        return f"transition from {pair}"

    def border(self, token: int, start: bool) -> str:
        """Describe in English that a sentence begins or ends with a token.

        Args:
            token: Index of the first or last token of the sentence.
            start: True for the first token of the sentence, False for the last one.

        Returns:
            The description.
        """
        verb = "begins" if start else "ends"
        return f"the sentence {verb} with '{self.tokens[token]}' ({_label(self.mention_at(token))})"

    def link(self, token: int, other: int, rule: str) -> str:
        """Describe in English a link between two tokens.

        Args:
            token: Index of a token of the mention.
            other: Index of the other linked token.
            rule: Name of the link rule.

        Returns:
            The description.
        """
        mention, target = self.mention_at(token), self.mention_at(other)
        if mention is not None and mention == target:
            return f"link between '{self.tokens[token]}' and '{self.tokens[other]}', both in this mention ({rule})"
        text = self.tokens[other] if target is None else " ".join(self.tokens[target.start : target.end])
        tagged = _label(target) if target is None else f"tagged {target.label}"
        return f"link to '{text}' in sentence {self.sentence(other)}, {tagged} ({rule})"

    # --- the document -----------------------------------------------------------------------------------------------

    def sentence(self, token: int) -> int:
        """Return the number of the sentence that contains a token. The first sentence has number 1.

        Args:
            token: Index of the token.
        """
        return self._sentence_numbers[token]

    @cached_property
    def _sentence_numbers(self) -> list[int]:
        lengths = np.diff(self.sentence_offsets)
        return np.repeat(np.arange(1, len(lengths) + 1), lengths).tolist()

    def borders(self, token: int) -> tuple[int, int]:
        """Return the index of the first token in a token's sentence, and the index after the sentence's last token.

        Args:
            token: Index of the token.
        """
        number = self.sentence(token)
        return self._borders[number - 1], self._borders[number]

    @cached_property
    def _borders(self) -> list[int]:
        return self.sentence_offsets.tolist()

    def mention_at(self, token: int) -> Span | None:
        """Return the mention that contains a token; return None if the token belongs to no mention.

        Args:
            token: Index of the token.
        """
        return self._mentions.get(token)

    @cached_property
    def _mentions(self) -> dict[int, Span]:
        return {token: span for span in self.spans for token in range(span.start, span.end)}

    def examples(self, column: int, token: int) -> list[str]:
        """Return up to `MAX_EXAMPLES` other words that share a token's attribute value, well-known words first.

        Args:
            column: Index of the attribute.
            token: Index of the token.
        """
        value, own = int(self.attributes[token, column]), self.tokens[token].casefold()
        if (column, value) not in self._shared_words:
            well_known = (WELL_KNOWN[i] for i in np.flatnonzero(self.well_known[:, column] == value).tolist())
            in_text = (self.tokens[i] for i in np.flatnonzero(self.attributes[:, column] == value).tolist())
            # Of words that differ only in case, only the first one is an example.
            distinct = {word.casefold(): word for word in reversed([*well_known, *in_text])}
            self._shared_words[column, value] = list(reversed(distinct.values()))[: MAX_EXAMPLES + 1]
        return [word for word in self._shared_words[column, value] if word.casefold() != own][:MAX_EXAMPLES]

    @cached_property
    def _shared_words(self) -> dict[tuple[int, int], list[str]]:
        return {}

    def word_of(self, column: int, token: int) -> str:
        """Return the word whose lower-case form has the hash ``attributes[token, column]``.

        Only the words of the token's sentence are compared. If several of these words have this hash, the word nearest
        to ``token`` is returned; if no word has it, "" is returned.

        Args:
            column: Index of an attribute that is the hash of a lower-case word.
            token: Index of the token.
        """
        first, end = self.borders(token)
        same = first + np.flatnonzero(self.attributes[first:end, _LOWER] == self.attributes[token, column])
        return self.tokens[int(same[np.abs(same - token).argmin()])] if len(same) else ""


def _label(mention: Span | None) -> str:
    return "no name" if mention is None else mention.label


def _subject(offset: int) -> str:
    if not offset:
        return "the word"
    return f"the {_ORDINALS[abs(offset) - 1]}word {'before' if offset < 0 else 'after'}"


def _outside(offset: int) -> str:
    """Describe in English that the position ``offset``, relative to a token, is outside of the token's sentence."""
    distance = abs(offset)
    if distance == 1:
        return "it begins the sentence" if offset < 0 else "it ends the sentence"
    words = "one word stands" if distance == 2 else f"{distance - 1} words stand"
    return f"at most {words} {'before' if offset < 0 else 'after'} it in the sentence"


# --- predicates of attributes

Predicate = Callable[[Describer, int, int, str], str]
"""Function that describes an attribute of a token by an English predicate.

Its arguments are the describer, the index of the attribute, the index of the token, and the name of a gazetteer.
"""


def _unknown(describer: Describer, column: int, token: int, gazetteer: str) -> str:
    return f"has {describer.names[column]}"  # an attribute without a description


def _word(describer: Describer, column: int, token: int, gazetteer: str) -> str:
    return f"is '{describer.tokens[token]}'"


def _lower(describer: Describer, column: int, token: int, gazetteer: str) -> str:
    word = describer.tokens[token]
    return f"is '{word}'" if word == word.lower() else f"is '{word.lower()}', ignoring case"


def _digits(describer: Describer, column: int, token: int, gazetteer: str) -> str:
    word = describer.tokens[token]
    plain = "".join("0" if c.isdigit() else c for c in word.lower())
    return f"is '{plain}' with any digits" if plain != word.lower() else _lower(describer, column, token, gazetteer)


def _shape(longest: int) -> Predicate:
    return lambda describer, column, token, gazetteer: f"looks like {brief(describer.tokens[token], longest)}"


def _prefix(length: int) -> Predicate:
    return lambda describer, column, token, gazetteer: f"begins with '{describer.tokens[token].lower()[:length]}-'"


def _suffix(length: int) -> Predicate:
    return lambda describer, column, token, gazetteer: f"ends in '-{describer.tokens[token].lower()[-length:]}'"


def _similar(text: str) -> Predicate:
    def describe(describer: Describer, column: int, token: int, gazetteer: str) -> str:
        shared = describer.examples(column, token)
        return f"{text} {', '.join(shared or [describer.tokens[token]])}"

    return describe


def _describe_case(describer: Describer, column: int, token: int, gazetteer: str) -> str:
    value = int(describer.attributes[token, column])
    if not value & 32:
        return "is in lower case here and capitalised elsewhere"
    text = "is in capitals" if value & 16 else "is capitalised"
    if value & 8:
        text += " in a headline"
    if value & 4:
        text += " at the start of the sentence"
    elsewhere = {0: "no other occurrence", 1: "lower case elsewhere", 2: "elsewhere too", 3: "elsewhere both"}
    return f"{text} ({elsewhere[value & 3]})"


def _run(describer: Describer, column: int, token: int, gazetteer: str) -> str:
    value = int(describer.attributes[token, column]) - 1
    length, has_left, has_right = value >> 2, value & 2, value & 1
    if length == 1:
        return "is capitalised, but its neighbours are not"
    number = f"{length} or more" if length == 6 else str(length)
    place = "inside" if has_left and has_right else "the last of" if has_left else "the first of"
    return f"is {place} {number} capitalised words in a row"


def _run_with(relation: str) -> Predicate:
    def describe(describer: Describer, column: int, token: int, gazetteer: str) -> str:
        word = describer.word_of(column, token)
        border = "the beginning of the sentence" if describer.attributes[token, column] == 1 else "its end"
        return f"is in a run of capitalised words that {relation} " + (f"'{word}'" if word else border)

    return describe


def _describe_list(describer: Describer, column: int, token: int, gazetteer: str) -> str:
    return f"{_LIST_POSITIONS.get(int(describer.attributes[token, column]), 'is in')} the list {gazetteer}"


def _topic(describer: Describer, column: int, token: int, gazetteer: str) -> str:
    number, most = describer.attributes[token, column], describer.names[column].removeprefix("topic")
    return f"is in a document on topic {number} of {most}"


PREDICATES: dict[str, Predicate] = {
    "word": _word, _FOLDED: _lower, "digits": _digits, "shape": _shape(4), "brief_shape": _shape(1),
    **{f"prefix{n}": _prefix(n) for n in range(1, 6)}, **{f"suffix{n}": _suffix(n) for n in range(1, 6)},
    **{f"class{n}": _similar("has the word class of") for n in (4, 6, 10, 20)},
    **{f"vector{n}": _similar("occurs in similar texts as") for n in (32, 128, 512, 2048)},
    "casing": _describe_case, "headline": _unknown, "run": _run, "bias": _unknown,
    "run_first": _run_with("begins with"), "run_last": _run_with("ends with"),
    "run_before": _run_with("comes after"), "run_after": _run_with("comes before"),
    "topic8": _topic, "topic24": _topic, "topic64": _topic,
    "gazetteer": _describe_list,
}  # fmt: skip
