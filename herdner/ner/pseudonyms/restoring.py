"""Restoration of the original names in texts with pseudonyms, also in streams."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from herdner.ner.pseudonyms.tokens import TOKEN_OR_SPACE, is_joined

MAX_SPACES = 8  # most white space characters between two words of one pseudonym, for example after a line break
CHUNK = 1 << 16  # characters that are processed at a time
MAX_UNKNOWN = 1000  # largest number of distinct unknown pseudonyms to count

ENDINGS = ("s", "es")
"""Endings of plurals, which may follow a pseudonym and remain behind the original."""

_SPACES = re.compile(r"\s+")
_LEAF = ""  # key of the originals in a node; no token is empty


class Restoration(NamedTuple):
    """Position of a pseudonym in a text, with the original text that the pseudonym replaced.

    Attributes:
        start: Offset of the pseudonym in the text with pseudonyms.
        end: Offset behind the pseudonym.
        original: Original text.
    """

    start: int
    end: int
    original: str


class Restorer:
    """Replacement of pseudonyms by their originals, in whole texts or chunk by chunk.

    Tokens are compared, so "Person 1" does not match within "Person 12". Of several pseudonyms that begin at one token,
    the longest matches. White space within a pseudonym may have changed.

    Args:
        originals: Original text of each pseudonym.
        look_alikes: Pattern of text that looks like a pseudonym. Such text without an original is counted as unknown.
        is_exact: Compare tokens exactly. False: case is ignored, as in "PERSON 1B", except that an invented name does
            not match in lower case. One of ``ENDINGS`` may follow a pseudonym, as in "Person 1bs" for "Riveras".

    Attributes:
        n_restored: Number of pseudonyms that were replaced.
        unknown: Number of occurrences of each string that looks like a pseudonym but has no original.
    """

    def __init__(
        self, originals: Mapping[str, str], look_alikes: re.Pattern[str] | None = None, is_exact: bool = False
    ) -> None:
        """Build a prefix tree of the token sequences of all pseudonyms."""
        self.n_restored = 0
        self.unknown: Counter[str] = Counter()
        self._look_alikes = look_alikes
        self._endings = () if is_exact else ENDINGS
        self._key: Callable[[str], str] = str if is_exact else str.lower
        self._root: dict[str, Any] = {}
        self._longest = MAX_SPACES  # characters of the longest token that a pseudonym can contain
        for pseudonym, original in originals.items():
            node = self._root
            for match in TOKEN_OR_SPACE.finditer(pseudonym):
                key = " " if match[0].isspace() else self._key(match[0])
                self._longest = max(self._longest, len(key) + len(ENDINGS[-1]))
                node = node.setdefault(key, {})
            node.setdefault(_LEAF, {})[pseudonym] = original

    def __call__(self, text: str) -> str:
        """Replace the pseudonyms of a text by their originals.

        Args:
            text: A text with pseudonyms, which may have been edited.

        Returns:
            The text with originals.
        """
        return "".join(self.stream(text[i : i + CHUNK] for i in range(0, len(text), CHUNK)))

    def stream(self, chunks: Iterable[str]) -> Iterator[str]:
        """Replace the pseudonyms of a stream by their originals. A pseudonym may extend over several chunks.

        Args:
            chunks: Consecutive pieces of one text, of any length.

        Yields:
            Consecutive pieces of the text with originals. Each piece contains all text that the chunks so far
            determine.
        """
        rest = before = ""  # undecided text, and the character before it
        for chunk in chunks:
            rest += chunk
            pieces, done = self._restore(rest, before, is_end=False)
            rest, before = rest[done:], rest[done - 1] if done else before
            if piece := "".join(pieces):
                yield piece
        if piece := "".join(self._restore(rest, before, is_end=True)[0]):
            yield piece

    def find(self, text: str) -> list[Restoration]:
        """Find the pseudonyms in a text, and return each with its original, in the order of the text.

        Args:
            text: A text with pseudonyms.
        """
        restorations: list[Restoration] = []
        self._restore(text, "", is_end=True, restorations=restorations)
        return restorations

    def _restore(
        self, text: str, before: str, is_end: bool, restorations: list[Restoration] | None = None
    ) -> tuple[list[str], int]:
        """Restore a text up to, but not including, the first pseudonym that the next chunk of text could lengthen.

        ``before`` is the character before the text. Return the restored pieces, and the length of the restored part.
        """
        matches = list(TOKEN_OR_SPACE.finditer(text))
        pieces: list[str] = []
        done = 0
        i = int(bool(before and matches) and is_joined(before + text[0], 1))  # no pseudonym begins within a token
        while i < len(matches):
            token = matches[i][0]
            key = self._key(token)
            if (
                key not in self._root
                and i + 1 < len(matches)
                and not (token[0].isupper() or (key[-1] == "s" and self._singular(key, self._root)))
            ):
                i += 1  # a quick decision for most tokens
                continue
            stop, end, original = self._match(text, matches, i, is_end)
            start = matches[i].start()
            if stop < 0:
                pieces.append(text[done:start])
                return pieces, start
            if stop:
                pieces += (text[done:start], original)
                done = end
                self.n_restored += 1
                if restorations is not None:
                    restorations.append(Restoration(start, end, original))
            i = stop or i + 1
        pieces.append(text[done:])
        return pieces, len(text)

    def _match(self, text: str, matches: list[re.Match[str]], first: int, is_end: bool) -> tuple[int, int, str]:
        """Find the longest pseudonym that begins at the token ``first``.

        Return the index of the token after the pseudonym, the offset of the end of the pseudonym, and the original. The
        index is 0 if there is no pseudonym, and -1 if further text could change the result.
        """
        node: dict[str, Any] = self._root
        best = end = 0
        originals: dict[str, str] = {}
        for i in range(first, len(matches)):
            token = matches[i][0]
            is_last = i + 1 == len(matches)
            if is_last and not is_end and self._may_grow(token, node, i == first):
                return -1, 0, ""
            key = " " if token.isspace() and len(token) <= MAX_SPACES else self._key(token)
            child: dict[str, Any] | None = node.get(key)
            if child is not None and _LEAF in child:
                best, end, originals = i + 1, matches[i].end(), child[_LEAF]
            elif singular := self._singular(key, node):
                best, end, originals = i + 1, matches[i].start() + len(singular), node[singular][_LEAF]
            if child is None:
                break
            node = child
            if is_last and not is_end and len(node) > (_LEAF in node):
                return -1, 0, ""
        start = matches[first].start()
        match = text[start:end]
        if not best:
            self._count_unknown(text, start)
        if not best or (match not in originals and match[0].islower() and match.replace(" ", "").isalpha()):
            return 0, 0, ""  # "miller" is a word, but "MILLER" is the invented name "Miller"
        return best, end, _select_original(match, originals)

    def _singular(self, key: str, node: dict[str, Any]) -> str:
        """Return the singular of the plural word ``key`` if a pseudonym ends with it; else return an empty string."""
        for ending in self._endings:
            singular = key.removesuffix(ending)
            if len(singular) < len(key) and _LEAF in node.get(singular, ()):
                return singular
        return ""

    def _may_grow(self, token: str, node: dict[str, Any], is_first: bool) -> bool:
        """Return True if further text could extend ``token``, the last token so far, to a token of a pseudonym."""
        if token.isspace():
            return not is_first and " " in node and len(token) <= MAX_SPACES
        return len(token) <= self._longest and is_joined(token + "a", len(token))

    def _count_unknown(self, text: str, start: int) -> None:
        if self._look_alikes is not None:
            match = self._look_alikes.match(text, start)
            if match is not None and (len(self.unknown) < MAX_UNKNOWN or match[0] in self.unknown):
                self.unknown[match[0]] += 1


def _select_original(match: str, originals: Mapping[str, str]) -> str:
    """Return the original text for a match, which is a pseudonym with possibly changed white space or case.

    Args:
        match: Matched text, whose white space, case or both may have changed.
        originals: Pseudonyms whose words are equal except for their case, with their originals.
    """
    if match in originals:
        return originals[match]
    words = match.split()
    pseudonym = next((each for each in originals if each.split() == words), next(iter(originals)))
    return _copy_spacing(match, pseudonym, originals[pseudonym])


def _copy_spacing(match: str, pseudonym: str, original: str) -> str:
    """Return ``original`` with the white space of ``match``, the occurrence of ``pseudonym`` in the text.

    The original is returned unchanged if it has another number of gaps between words than the match or the pseudonym.
    """
    gaps = _SPACES.findall(match)
    words = original.split(" ")
    if len(gaps) != len(words) - 1 or len(_SPACES.findall(pseudonym)) != len(gaps):
        return original
    return "".join(part for pair in zip(words, [*gaps, ""], strict=True) for part in pair)
