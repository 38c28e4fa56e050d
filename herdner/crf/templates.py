"""Templates: rules that select which tokens of a document share a factor.

A template is a plain value. A `herdner.crf.model.SkipChainModel` has one tied table for each template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from herdner._ext.links import checked_borders
from herdner.base.arrays import Int32s, Int64s
from herdner.crf.link_rules import Rule, SameWord, find_links, rule_from_dict, rule_to_dict


@dataclass(frozen=True, slots=True)
class LinearChain:
    """Template for the edges between adjacent tokens of a sentence (Lafferty, McCallum and Pereira 2001)."""

    name = "linear-chain"

    def links(self, tokens: Sequence[str], sentence_offsets: Int64s) -> Int32s:
        """Return all pairs of tokens that are adjacent in a sentence of a document.

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

    def links(self, tokens: Sequence[str], sentence_offsets: Int64s) -> Int32s:
        """Return the links that the rule of the template finds in a document.

        Args:
            tokens: Tokens of the document.
            sentence_offsets: int64[S + 1], first token of each sentence, and the number of tokens.

        Returns:
            int32[F, 2], the earlier token of each link first.

        Raises:
            ValueError: A custom rule returns invalid links.
        """
        return find_links(self.rule, tokens, sentence_offsets)

    def to_dict(self) -> dict[str, Any]:
        """Return the link template as a dict of JSON values."""
        return {"rule": rule_to_dict(self.rule)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> SkipChain:
        """Build a link template from the dict that `to_dict` returns.

        Args:
            values: Values of `to_dict`.

        Returns:
            The link template.

        Raises:
            ValueError: The rule is unknown, or one of its options is invalid.
        """
        return SkipChain(rule_from_dict(values["rule"]))


Template = LinearChain | SkipChain

MOST_LINK_TABLES = 20
MOST_LINK_COST = 100_000  # with five rules, the tags of CoNLL cost 11,000 and those of OntoNotes 80,000


def check_link_costs(templates: Sequence[SkipChain], n_tags: int) -> None:
    """Raise `ValueError` if inference over the links of one mention could take too much time.

    A message along a link takes time in proportion to the squared number of tags, and a mention may have ``nearest``
    links by each rule. Model files are not trusted, so this cost is bounded.

    Args:
        templates: Link templates of a model.
        n_tags: Number of tags of the model.

    Raises:
        ValueError: There are too many templates, links or tags.
    """
    if len(templates) > MOST_LINK_TABLES:
        raise ValueError(f"a model must have at most {MOST_LINK_TABLES} link tables, got {len(templates)}")
    n_links = sum(int(getattr(template.rule, "nearest", 1)) for template in templates)
    if n_links * n_tags**2 > MOST_LINK_COST:
        raise ValueError(
            f"{n_links} links of a mention (the sum of `nearest` of all rules) with {n_tags} tags take too much time;"
            f" the product links * tags * tags must be at most {MOST_LINK_COST:,}; use fewer rules, a smaller"
            " `nearest` or fewer labels"
        )


def linear_chain_template() -> LinearChain:
    """Return the template for the edges between adjacent tokens of a sentence."""
    return LinearChain()


def skip_chain_template(rule: Rule | None = None) -> SkipChain:
    """Return the template for the links that a rule finds between tokens.

    Args:
        rule: Rule that finds the links. None is `SameWord()`: mentions of the same capitalised word.
    """
    return SkipChain(rule or SameWord())
