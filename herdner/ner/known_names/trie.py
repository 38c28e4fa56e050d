"""Search for many phrases of tokens at once. The time does not depend on the number of phrases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

# Tokens of most corpora: the 's of a possessive, words, and single punctuation marks.
_PIECES = re.compile(r"['\u2019]s?(?!\w)|\w+|[^\w\s]")
_MAX_DIVIDED = 4  # if more words of a name can be split, only two tokenizations are tried: all whole, all split


class Trie:
    """Prefix tree (trie) of tokenized phrases; each phrase has one or more integer values."""

    def __init__(self) -> None:
        """Create an empty prefix tree."""
        self._first: dict[str, int] = {}  # node after the first token of a phrase
        self._next: dict[tuple[int, str], int] = {}  # next node, by node and token
        self._values: dict[int, list[int]] = {}  # values of the phrases that end at a node
        self._inner: set[int] = set()  # nodes with a next node
        self._n_nodes = 0

    def add(self, tokens: Sequence[str], value: int) -> None:
        """Add a tokenized phrase with an integer value to the prefix tree.

        Args:
            tokens: One token or more.
            value: Value of the phrase.
        """
        node = self._first.setdefault(tokens[0], self._n_nodes)
        self._n_nodes += node == self._n_nodes
        for token in tokens[1:]:
            self._inner.add(node)
            node = self._next.setdefault((node, token), self._n_nodes)
            self._n_nodes += node == self._n_nodes
        values = self._values.setdefault(node, [])
        if value not in values:
            values.append(value)

    def matches(self, tokens: Sequence[str]) -> Iterator[tuple[int, int, list[int]]]:
        """Yield (start, end, values) for each phrase that occurs in a sequence of tokens, sorted by start and end.

        Args:
            tokens: Tokens of a text.
        """
        first, follow, values, inner = self._first.get, self._next.get, self._values, self._inner
        starts = [(i, node) for i, token in enumerate(tokens) if (node := first(token)) is not None]
        for start, node in starts:
            end = start + 1
            while True:
                if node in values:
                    yield start, end, values[node]
                if node not in inner or end == len(tokens):
                    break
                after = follow((node, tokens[end]))
                if after is None:
                    break
                node, end = after, end + 1


def tokenizations(name: str) -> Iterable[tuple[str, ...]]:
    """Return the usual tokenizations of a name: each word is either whole or split at punctuation.

    Args:
        name: The name.
    """
    words = name.split()
    ways = [list(dict.fromkeys([(word,), tuple(_PIECES.findall(word)) or (word,)])) for word in words]
    if sum(len(way) > 1 for way in ways) > _MAX_DIVIDED:
        combinations = [[way[0] for way in ways], [way[-1] for way in ways]]
    else:
        combinations = product(*ways)
    return (tuple(token for part in parts for token in part) for parts in combinations)
