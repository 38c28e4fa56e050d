"""Templates: rules that select which tokens of a document share a factor.

A template is a plain value. A `herdner.crf.model.SkipChainModel` has one tied table for each template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from herdner._ext.links import checked_borders
from herdner._ext.spellings import TokenSpellings
from herdner.base.arrays import Int64s
from herdner.crf.link_rules import (
    RULES,
    Company,
    Rule,
    SameWord,
    Tokenized,
    check_links,
    rule_from_dict,
    rule_to_dict,
)


@dataclass(frozen=True, slots=True)
class LinearChain:
    """Template for the edges between adjacent tokens of a sentence (Lafferty, McCallum and Pereira 2001)."""

    name = "linear-chain"

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return all pairs of adjacent tokens of the sentences of a document.

        Args:
            tokens: Tokens of a document.
            sentence_offsets: int64[S + 1], first token of each sentence, and the number of tokens.

        Returns:
            int32[F, 2], the left token of each pair first.
        """
        borders = checked_borders(sentence_offsets, len(tokens))
        right = np.setdiff1d(np.arange(len(tokens), dtype=np.int32), borders)
        return np.stack([right - 1, right], axis=1)


@dataclass(frozen=True, slots=True)
class SkipChain:
    """Template for the links that a rule finds between tokens (Sutton and McCallum 2004).

    Attributes:
        rule: Rule that finds the links.
    """

    rule: Rule = field(default_factory=SameWord)

    @property
    def name(self) -> str:
        """Name of the link rule of the template."""
        return self.rule.name

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the links that the rule of the template finds in a document.

        Args:
            tokens: Tokens of the document.
            sentence_offsets: int64[S + 1], first token of each sentence, and the number of tokens.

        Returns:
            int32[F, 2], the earlier token of each link first.

        Raises:
            ValueError: A custom rule returns invalid links.
        """
        links = self.rule.links(tokens, sentence_offsets)
        return links if type(self.rule) in RULES.values() else check_links(links, len(tokens), f"rule {self.name}")

    def links_of_all(
        self, documents: Sequence[Tokenized], spellings: TokenSpellings, starts: Int64s, sentence_offsets: Int64s
    ) -> NDArray[np.int32]:
        """Return the links between the tokens of concatenated documents.

        No link joins two documents.

        Args:
            documents: D documents with tokens.
            spellings: Spelling features of all tokens, which rules read.
            starts: int64[D + 1], first token of each document, and the number of all tokens.
            sentence_offsets: int64[S + 1], first token of each sentence of all documents, and the number of all tokens.

        Returns:
            int32[F, 2], indices of tokens in the concatenated documents.

        Raises:
            ValueError: A custom rule returns invalid links.
        """
        if type(self.rule) in (SameWord, Company):
            return cast("SameWord | Company", self.rule).links_of_all(documents, spellings, starts, sentence_offsets)
        pairs = zip(documents, starts.tolist(), strict=False)
        links = [self.links(document.tokens, document.sentence_offsets) + np.int32(start) for document, start in pairs]
        return np.concatenate([np.empty((0, 2), np.int32), *links])

    def to_dict(self) -> dict[str, Any]:
        """Return the link template as a dict of JSON values."""
        return {"rule": rule_to_dict(self.rule)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> SkipChain:
        """Build a link template from the dict that `to_dict` returns.

        Args:
            values: Values of `to_dict`.

        Raises:
            ValueError: The rule is unknown, or one of its options is invalid.
        """
        return SkipChain(rule_from_dict(values["rule"]))


Template = LinearChain | SkipChain


def linear_chain_template() -> LinearChain:
    """Return the template for the edges between adjacent tokens of a sentence."""
    return LinearChain()


def skip_chain_template(rule: Rule | None = None) -> SkipChain:
    """Return the template for the links that a rule finds between tokens.

    Args:
        rule: Rule that finds the links. None is `SameWord()`: mentions of the same capitalised word.
    """
    return SkipChain(rule or SameWord())
