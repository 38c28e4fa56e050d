"""Styles of pseudonyms with a number or with a keyed hash value."""

from __future__ import annotations

import base64
import hmac
from collections import Counter
from collections.abc import Iterable, Iterator

from herdner.ner.pseudonyms.look_alikes import StyleName, look_alikes, noun, prefix
from herdner.ner.pseudonyms.pseudonym_map import MappedName, PseudonymMap
from herdner.ner.pseudonyms.tokens import name_key

MIN_KEY_BYTES = 16


def letters(n: int) -> str:
    """Return the n-th of the letter sequences "b", "c", ..., "z", "aa", "ab", ..., which mark further forms of a name.

    Args:
        n: Index, counted from 1.
    """
    result = ""
    n += 1
    while n:
        n, digit = divmod(n - 1, 26)
        result = chr(ord("a") + digit) + result
    return result


class _ProposingStyle:
    """Base class of the styles that propose pseudonyms for names and forms; the first unused proposal is taken."""

    def __init__(self, names: PseudonymMap, style: StyleName, labels: Iterable[str]) -> None:
        self._names = names
        self._pattern = look_alikes(style, {*labels, *names.labels})

    def propose_name(self, label: str, text: str) -> Iterator[str]:
        """Yield candidate pseudonyms for the fullest form of a new name.

        Args:
            label: Entity type or kind of identifier.
            text: Fullest form of the name.
        """
        raise NotImplementedError

    def propose_form(self, name: MappedName, form: str) -> Iterator[str]:
        """Yield candidate pseudonyms for another form of a name.

        Args:
            name: The name, which already has a pseudonym.
            form: The new form.
        """
        raise NotImplementedError

    def find(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """Return an iterator over the strings that look like a pseudonym; see `PseudonymStyle.find`.

        Args:
            text: The text.
        """
        return ((*match.span(), False) for match in self._pattern.finditer(text))

    def pseudonym_of(self, label: str, text: str, key: str, form: str, context: str) -> str:
        """Return the pseudonym for one spelling (form) of a name. A new name or form is added to the map of the style.

        Args:
            label: Entity type or kind of identifier.
            text: Fullest form of the name.
            key: Key of the name.
            form: Text of the mention.
            context: Not used.
        """
        names = self._names
        name = names.find(label, key)
        if name is None:
            pseudonym = next(each for each in self.propose_name(label, text) if each not in names.originals)
            name = MappedName(label, text, pseudonym, {text: pseudonym})
            names.add(name, key)
        if form not in name.forms:
            pseudonym = next(each for each in self.propose_form(name, form) if each not in names.originals)
            name.forms[form] = pseudonym
            names.connect(pseudonym, form)
        return name.forms[form]


class NumberedStyle(_ProposingStyle):
    """Style of numbered pseudonyms: "Person 12" for the fullest form of a name, "Person 12b" for another form.

    Args:
        names: Map to which new names are added. New numbers follow the highest number of the map.
        labels: Labels of the texts, in addition to those of the map and of ``NOUNS``.
    """

    def __init__(self, names: PseudonymMap, labels: Iterable[str] = ()) -> None:
        """Find the highest number of each noun in the numbered pseudonyms of ``names``, such as 3 of "Person 3"."""
        super().__init__(names, "numbered", labels)
        self._last: Counter[str] = Counter()
        for name in names.names:
            first, _, number = name.pseudonym.rpartition(" ")
            if number.isdecimal():
                self._last[first] = max(self._last[first], int(number))

    def propose_name(self, label: str, text: str) -> Iterator[str]:
        """Yield pseudonyms for a new name, with ascending numbers that no other name has.

        Args:
            label: Entity type or kind of identifier.
            text: Not used.
        """
        first = noun(label)
        while True:
            self._last[first] += 1
            yield f"{first} {self._last[first]}"

    def propose_form(self, name: MappedName, form: str) -> Iterator[str]:
        """Yield the pseudonym of the name with a letter or letters appended, such as "Person 12b".

        No such pseudonym ends in "s", which readers of "Person 12s" would take for a plural.

        Args:
            name: The name.
            form: Not used.
        """
        n = len(name.forms)
        while True:
            if not (ending := letters(n)).endswith("s"):
                yield name.pseudonym + ending
            n += 1


class KeyedHash(_ProposingStyle):
    """Style of pseudonyms such as "PER_q2k7...", computed by HMAC-SHA256 with a secret key.

    Equal keys give equal pseudonyms for equal names, also without a common map.

    Args:
        names: Map to which new names are added.
        key: Secret key of at least 16 bytes.
        labels: Labels of the texts, in addition to those of the map and of ``NOUNS``.

    Raises:
        ValueError: The key is too short.
    """

    def __init__(self, names: PseudonymMap, key: bytes, labels: Iterable[str] = ()) -> None:
        """Store the secret key ``key`` and the map ``names``; raise `ValueError` if the key is too short."""
        super().__init__(names, "hash", labels)
        if len(key) < MIN_KEY_BYTES:
            raise ValueError(f"the key must have at least {MIN_KEY_BYTES} bytes, got {len(key)}")
        self._key = key

    def propose_name(self, label: str, text: str) -> Iterator[str]:
        """Yield candidate pseudonyms for a new name, with longer and longer prefixes of one hash value.

        Args:
            label: Entity type or kind of identifier.
            text: Fullest form of the name.
        """
        digest = self._digest(label, name_key(text))
        for length in range(10, len(digest) + 1):
            yield f"{prefix(label)}_{digest[:length]}"

    def propose_form(self, name: MappedName, form: str) -> Iterator[str]:
        """Yield candidate pseudonyms for another form of a name; each ends in one more character of the form's hash.

        A candidate consists of the pseudonym of the name, "_", and a prefix of the hash of this pseudonym and the form.

        Args:
            name: The name.
            form: Another form of the name.
        """
        digest = self._digest(name.pseudonym, form)
        for length in range(4, len(digest) + 1):
            yield f"{name.pseudonym}_{digest[:length]}"

    def _digest(self, *values: str) -> str:
        message = "\0".join(values).encode("utf-8", "surrogatepass")
        return base64.b32encode(hmac.digest(self._key, message, "sha256")).decode().rstrip("=").lower()
