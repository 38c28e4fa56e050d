"""Replacement of the names and structured identifiers of documents by pseudonyms."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Protocol

from herdner.base.representation import short_repr
from herdner.ner.pseudonyms.common_words import CommonWords
from herdner.ner.pseudonyms.identifiers import find_identifiers
from herdner.ner.pseudonyms.look_alikes import TERM
from herdner.ner.pseudonyms.pseudonym_map import PseudonymMap
from herdner.ner.pseudonyms.restoring import Restorer
from herdner.ner.pseudonyms.tokens import (
    TOKEN,
    UNSPACED_RUN,
    broken_words,
    fold,
    name_key,
    parts,
    widen,
    without_breaks,
    words,
)
from herdner.text.document import Document
from herdner.text.entity import Entity

PEOPLE = frozenset({"PER", "PERSON"})
CONTEXT = 20  # characters before a mention that a style may read, for titles such as "Mrs."
MIN_PART = 3  # letters of a part of a word, as "Ana" in "AnaRivera"


class Owner(NamedTuple):
    """Name or identifier to which replaced text belongs.

    Attributes:
        label: Entity type or kind of identifier.
        text: Fullest form.
        key: Key in the map (``name_key``).
    """

    label: str
    text: str
    key: str


class Piece(NamedTuple):
    """Range of a text that a pseudonym replaces.

    Attributes:
        start: Offset of the first character.
        end: Offset behind the last character.
        rank: 0 for an identifier, 1 for a mention, 2 for a repeated name that is no mention, 3 for text that looks
            like a pseudonym, 4 for such text that pseudonyms of the style may contain.
        owner: Name or identifier to which the text belongs.
    """

    start: int
    end: int
    rank: int
    owner: Owner


IDENTIFIER, MENTION, REPEAT, OTHER, KEPT = range(5)


class Replacement(NamedTuple):
    """Replaced range of a document.

    Attributes:
        start: Offset of the pseudonym in the new text.
        end: Offset behind the pseudonym.
        source_start: Offset of the original in the source text.
        source_end: Offset behind the original.
        label: Entity type or kind of identifier; "TERM" for text that looks like a pseudonym.
        pseudonym: The pseudonym.
        name: Pseudonym of the fullest form of the same name.
    """

    start: int
    end: int
    source_start: int
    source_end: int
    label: str
    pseudonym: str
    name: str


@dataclass(frozen=True, slots=True)
class RemainingWord:
    """Ordinary word (such as "Bank") that was part of a replaced name and still occurs in the document.

    Attributes:
        word: The word, folded.
        count: Number of its occurrences.
        names: Pseudonyms of the names that contain the word.
    """

    word: str
    count: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class PseudonymisedDocument:
    """Document in which names and identifiers are replaced by pseudonyms.

    Attributes:
        document: The new text. Its entities are the replaced names and identifiers.
        replacements: Replaced ranges in the order of the text.
        remaining: Words of replaced names that remain in the text, because they are common words.
        names: Map with which the document can be restored.
    """

    document: Document
    replacements: tuple[Replacement, ...]
    remaining: tuple[RemainingWord, ...]
    names: PseudonymMap

    __repr__ = short_repr

    @property
    def text(self) -> str:
        """Text of the document, with pseudonyms in place of names and identifiers."""
        return self.document.text


class PseudonymStyle(Protocol):
    """Protocol of a style of pseudonyms, such as `NumberedStyle`."""

    def pseudonym_of(self, label: str, text: str, key: str, form: str, context: str) -> str:
        """Return the pseudonym for one spelling (form) of a name. A new name or form is added to the map of the style.

        Args:
            label: Entity type or kind of identifier.
            text: Fullest form of the name.
            key: Key of the name.
            form: Text of the mention.
            context: Text before the mention, for titles such as "Mrs.".
        """
        ...

    def find(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """Return an iterator over the strings that look like a pseudonym.

        Each item has the start and end offsets, and whether the pseudonym of a name may contain such a string of the
        name, or a part of it, unchanged.

        Args:
            text: A text with pseudonyms.
        """
        ...


@dataclass(frozen=True, eq=False)
class Pseudonymiser:
    """Replacement of names and identifiers by pseudonyms, consistent over all documents.

    Attributes:
        names: Map to which new names of the documents are added.
        style: Style of new pseudonyms.
        common_words: Words that may remain in the text, such as "bank"; None: no words.
        has_identifiers: Also replace structured identifiers, such as e-mail addresses.
    """

    names: PseudonymMap
    style: PseudonymStyle
    common_words: CommonWords | None = None
    has_identifiers: bool = True

    def __call__(self, document: Document) -> PseudonymisedDocument:
        """Replace the names and identifiers of a document.

        All entities of the document are replaced, then every other occurrence of a form or a word of their names.
        Common words are replaced only where they are capitalised within a sentence and belong to a person. Ranges are
        widened to whole words. Text that looks like a pseudonym is replaced, so that restoring brings it back
        unchanged.

        Args:
            document: Document with entities. Without `name_id`, entities with equal label and text are one name.

        Returns:
            The document with pseudonyms.

        Raises:
            MissingExtra: A library that checks identifiers is not installed.
        """
        text = document.text
        pieces = _mention_pieces(document)
        if self.has_identifiers:
            pieces += [
                Piece(each.start, each.end, IDENTIFIER, Owner(each.label, text[each.start : each.end], each.key))
                for each in find_identifiers(text)
            ]
        pieces += (
            Piece(start, end, KEPT if is_kept else OTHER, Owner(TERM, text[start:end], text[start:end]))
            for start, end, is_kept in self.style.find(text)
        )
        repeats = _Repeats(document, pieces, self.common_words or CommonWords())
        pieces = disjoint(text, [*pieces, *repeats.forms(), *repeats.broken_names()])
        single_words, remaining = repeats.words(pieces)
        pieces = _join_repeats(text, disjoint(text, [*pieces, *single_words]))
        return self._replace(document, pieces, remaining)

    def _replace(
        self, document: Document, pieces: Sequence[Piece], remaining: dict[str, tuple[int, list[Owner]]]
    ) -> PseudonymisedDocument:
        """Replace disjoint ranges of a document by pseudonyms, and return the new document."""
        text, parts_of_text = document.text, list[str]()
        replacements: list[Replacement] = []
        last = length = 0
        for start, end, _, owner in pieces:
            context = text[max(0, start - CONTEXT) : start]
            pseudonym = self.style.pseudonym_of(*owner, text[start:end], context)
            parts_of_text += (text[last:start], pseudonym)
            length += start - last
            new_end = length + len(pseudonym)
            name = self._pseudonym(owner)
            replacements.append(Replacement(length, new_end, start, end, owner.label, pseudonym, name))
            last, length = end, new_end
        parts_of_text.append(text[last:])
        ids: dict[str, int] = {}
        entities = tuple(
            Entity(each.start, each.end, each.label, each.pseudonym, None, ids.setdefault(each.name, len(ids)))
            for each in replacements
            if each.label != TERM
        )
        fields = {name: value for name, value in document.fields.items() if name == "offset"}
        result = Document.from_text("".join(parts_of_text), id=document.id, fields=fields)
        result = replace(result, spans=[], entities=entities)
        report = tuple(
            RemainingWord(word, count, tuple(dict.fromkeys(map(self._pseudonym, owners))))
            for word, (count, owners) in remaining.items()
        )
        return PseudonymisedDocument(result, tuple(replacements), report, self.names)

    def _pseudonym(self, owner: Owner) -> str:
        """Return the pseudonym of the fullest form of a name; return an empty string if the map lacks the name."""
        name = self.names.find(owner.label, owner.key)
        return "" if name is None else name.pseudonym


def _mention_pieces(document: Document) -> list[Piece]:
    """Return the mentions of a document as ranges to replace, without white space at their borders."""
    owners = {name.id: Owner(name.label, name.text, name_key(name.text)) for name in document.names}
    pieces: list[Piece] = []
    for entity in document.entities:
        text = document.text[entity.start : entity.end]
        start = entity.start + len(text) - len(text.lstrip())
        if text := text.strip():
            own = Owner(entity.label, text, name_key(text))
            owner = own if entity.name_id is None else owners.get(entity.name_id, own)
            pieces.append(Piece(start, start + len(text), MENTION, owner))
    return pieces


def disjoint(text: str, pieces: Iterable[Piece]) -> list[Piece]:
    """Widen the ranges to replace to whole words, and join ranges that then overlap or touch.

    A joined range has the owner of the identifier in it or, without identifier, of its longest mention or repeat. Text
    that looks like a pseudonym is left out if it overlaps another range, because the pseudonym of that range changes
    it. If the pseudonym may keep it, the joined range belongs to this text instead of the mention.

    Args:
        text: The text.
        pieces: Ranges of the text, in any order.

    Returns:
        Disjoint ranges in the order of the text.
    """
    widened = sorted(_without_overlapped(text, [
        each._replace(start=start, end=end) for each in pieces for start, end in [widen(text, each.start, each.end)]
    ]))  # fmt: skip
    result: list[Piece] = []
    for piece in widened:
        if not result or piece.start > result[-1].end:
            result.append(piece)
            continue
        last = result[-1]
        best = min(last, piece, key=_precedence)
        result[-1] = Piece(last.start, max(last.end, piece.end), best.rank, best.owner)
    return result


def _without_overlapped(text: str, pieces: list[Piece]) -> list[Piece]:
    """Return the pieces without those that only look like a pseudonym and overlap another piece."""
    others = [piece for piece in pieces if piece.rank == OTHER]
    if not others:
        return pieces
    result = [piece for piece in pieces if piece.rank != OTHER]
    is_taken = bytearray(len(text))
    for piece in result:
        is_taken[piece.start : piece.end] = b"\1" * (piece.end - piece.start)
    return result + [piece for piece in others if not any(is_taken[piece.start : piece.end])]


def _precedence(piece: Piece) -> tuple[int, int, int]:
    group = {IDENTIFIER: 0, KEPT: 1, MENTION: 2, REPEAT: 2, OTHER: 3}[piece.rank]
    return group, piece.start - piece.end, piece.rank


def _join_repeats(text: str, pieces: Sequence[Piece]) -> list[Piece]:
    """Join adjacent ranges of one name, such as "Ana" and "Rivera", if one of them is a repeat of the name."""
    result: list[Piece] = []
    for piece in pieces:
        last = result[-1] if result else None
        if (
            last is not None
            and last.owner == piece.owner
            and REPEAT in (last.rank, piece.rank)
            and (gap := text[last.end : piece.start]).isspace()
            and gap.count("\n") < 2
            and not set(words(text[last.start : last.end])) & set(words(text[piece.start : piece.end]))
        ):
            result[-1] = last._replace(end=piece.end, rank=min(last.rank, piece.rank))
        else:
            result.append(piece)
    return result


def _offset(pair: tuple[int, Owner]) -> int:
    return pair[0]


class _Repeats:
    """Finder of names that are repeated outside the tagged mentions of a document: in full or as a single word.

    Args:
        document: The document.
        pieces: Ranges of the document to replace; ranges with the rank `MENTION` are mentions of names.
        common_words: Words that may remain.
    """

    def __init__(self, document: Document, pieces: Sequence[Piece], common_words: CommonWords) -> None:
        self.document = document
        self.common_words = common_words
        self.mentions = sorted(piece for piece in pieces if piece.rank == MENTION)
        self.owners: dict[str, list[tuple[int, Owner]]] = {}  # by word: offsets of mentions, and their owners
        for start, end, _, owner in self.mentions:
            begin, stop = widen(document.text, start, end)
            mention = document.text[begin:stop]
            self._add(f"{document.text[start:end]} {mention} {without_breaks(mention)} {owner.text}", start, owner)
        self._decisions: dict[str, str | None] = {}

    def _add(self, text: str, start: int, owner: Owner) -> bool:
        """Add the words of a mention to the search terms; return True if at least one of the words is new."""
        n_words = len(self.owners)
        for word in words(text):
            owners = self.owners.setdefault(word, [])
            i = bisect_right(owners, start, key=_offset)
            if i == 0 or owners[i - 1][1] != owner:
                owners.insert(i, (start, owner))
        return len(self.owners) > n_words

    def forms(self) -> Iterator[Piece]:
        """Find all occurrences of name forms that have two or more tokens.

        Each part of a form in a script without spaces, such as Chinese, also counts as a form.
        """
        text = self.document.text
        owners: dict[str, Owner] = {}
        for start, end, _, owner in self.mentions:
            for form in (text[start:end], owner.text):
                for part in {form, *UNSPACED_RUN.findall(form)}:
                    if len(TOKEN.findall(part)) > 1:
                        owners.setdefault(part, owner)
        if not owners:
            return iter(())
        ordered = list(owners.values())
        found = Restorer({form: str(i) for i, form in enumerate(owners)}, is_exact=True).find(text)
        return (Piece(each.start, each.end, REPEAT, ordered[int(each.original)]) for each in found)

    def broken_names(self) -> Iterator[Piece]:
        """Find the words of names that a soft hyphen or a hyphen at the end of a line divides."""
        for start, end, joined in broken_words(self.document.text):
            word = self._name_word(joined)
            if word is not None and word not in self.common_words:
                yield Piece(start, end, REPEAT, self._nearest(word, start))

    def words(self, pieces: Sequence[Piece]) -> tuple[list[Piece], dict[str, tuple[int, list[Owner]]]]:
        """Find the words that equal or contain a word of a name, outside of ``pieces``, the ranges found so far.

        Return the range (`Piece`) of each word to replace, and a dict from each common word that remains in the text to
        the number of its occurrences and the names that contain it.
        """
        text = self.document.text
        while True:
            repeats, remaining = self._scan(pieces)
            has_new_words = [self._add(text[each.start : each.end], each.start, each.owner) for each in repeats]
            if not any(has_new_words):
                return repeats, remaining
            self._decisions.clear()  # "AnaRivera" was found by "Rivera"; now "anarivera" is searched

    def _scan(self, pieces: Sequence[Piece]) -> tuple[list[Piece], dict[str, tuple[int, list[Owner]]]]:
        """Search the text once for all known words of names. Return what the method `words` returns for this search."""
        text = self.document.text
        repeats: list[Piece] = []
        counts: Counter[str] = Counter()
        borders = [0, *(border for piece in pieces for border in piece[:2]), len(text)]
        for start, end in zip(borders[::2], borders[1::2], strict=True):
            for match in TOKEN.finditer(text, start, end):
                word = self._name_word(match[0])
                if word is None:
                    continue
                owner = self._nearest(word, match.start())
                if self._may_remain(word, match[0], match.start(), owner):
                    counts[word] += 1
                else:
                    repeats.append(Piece(*match.span(), REPEAT, owner))
        remaining = {
            word: (count, list(dict.fromkeys(owner for _, owner in self.owners[word])))
            for word, count in sorted(counts.items())
        }
        return repeats, remaining

    def _name_word(self, token: str) -> str | None:
        """Return the word of a known name that matches ``token``, its singular or one of its parts, or None."""
        if token not in self._decisions:
            self._decisions[token] = self._find_name_word(token)
        return self._decisions[token]

    def _find_name_word(self, token: str) -> str | None:
        if len(token) < 2:
            return None
        word = fold(token)
        if word in self.owners:
            return word
        candidates = [word[: -len(suffix)] for suffix in ("s", "es") if word.endswith(suffix)]
        candidates += parts(token)
        for part in candidates:
            if len(part) >= MIN_PART and part in self.owners and part not in self.common_words:
                return part
        return None

    def _nearest(self, word: str, offset: int) -> Owner:
        """Return, among the names that contain ``word``, the last one mentioned before ``offset``, else the first."""
        owners = self.owners[word]
        return owners[max(bisect_right(owners, offset, key=_offset) - 1, 0)][1]

    def _may_remain(self, word: str, token: str, offset: int, owner: Owner) -> bool:
        """Return True if a word of a name may stay in the text, because it is used as a common word at this offset."""
        if word not in self.common_words:
            return False
        is_capitalised = token[:1].isupper() and token[1:].islower()
        if owner.label not in PEOPLE or not is_capitalised or word in self.common_words.calendar:
            return True
        return offset in self._first_words

    @cached_property
    def _first_words(self) -> set[int]:
        """Set of the character offsets at which the first words of the sentences begin."""
        tokens, starts = self.document.tokens, self.document.token_starts.tolist()
        firsts: set[int] = set()
        for begin, end in pairwise(self.document.sentence_offsets.tolist()):
            first = next((t for t in range(begin, end) if tokens[t][0].isalnum()), None)
            if first is not None:
                firsts.add(starts[first])
        return firsts
