"""Phrases of tokens found in a text: as many as there may be, in time that grows with the text alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

# What is a token of its own in most corpora: the 's of a possessive, words, and each mark.
_PIECES = re.compile(r"['\u2019]s?(?!\w)|\w+|[^\w\s]")
_MOST_DIVIDED = 4  # words of one name that may each be in pieces or not


class Trie:
    """Phrases with values; `matches` says where they stand."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}  # the node behind the first token of a phrase
        self._next: dict[tuple[int, str], int] = {}  # the node behind a node and a token
        self._values: dict[int, list[int]] = {}  # of the phrases that end at a node
        self._inner: set[int] = set()  # nodes behind which phrases go on
        self._n_nodes = 0

    def add(self, tokens: Sequence[str], value: int) -> None:
        """A phrase of one token or more."""
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
        """Start, end and values of each phrase among the tokens, the longer behind the shorter."""
        first, follow, values, inner = self._first.get, self._next.get, self._values, self._inner
        begun = [(i, node) for i, token in enumerate(tokens) if (node := first(token)) is not None]
        for start, node in begun:
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


def readings(name: str) -> Iterable[tuple[str, ...]]:
    """The ways in which corpora may have cut a name into tokens: each of its words whole, or in pieces."""
    words = name.split()
    ways = [list(dict.fromkeys([(word,), tuple(_PIECES.findall(word)) or (word,)])) for word in words]
    if sum(len(way) > 1 for way in ways) > _MOST_DIVIDED:
        chosen = [[way[0] for way in ways], [way[-1] for way in ways]]
    else:
        chosen = product(*ways)
    return (tuple(token for part in parts for token in part) for parts in chosen)
