"""Templates: which tokens of a document share a factor, and how strongly.

A template is a plain value; a CRF holds one tied table for each (`herdner.crf.model`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from herdner._ext.links import checked_borders
from herdner._ext.spellings import Spelled
from herdner.base.arrays import Int64s
from herdner.crf.link_rules import (
    RULES,
    Company,
    Rule,
    SameWord,
    Tokenized,
    checked_links,
    rule_from_dict,
    rule_to_dict,
)

STEPS = 8  # a scale is a multiple of 1 / STEPS, so that links share tables
LEAST_SCALE, MOST_SCALE = 1 / STEPS, 4.0


@dataclass(frozen=True, slots=True)
class LinearChain:
    """Joins each token with the next one of its sentence (Lafferty, McCallum and Pereira 2001)."""

    name = "linear-chain"

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2]: the joined tokens, the left one first."""
        borders = checked_borders(sentence_offsets, len(tokens))
        right = np.setdiff1d(np.arange(len(tokens), dtype=np.int32), borders)
        return np.stack([right - 1, right], axis=1)


@dataclass(frozen=True, slots=True)
class SkipChain:
    """Joins tokens of one document that a rule links (Sutton and McCallum 2004).

    Attributes:
        scaled: The links have a learned `EdgeScale` each.
    """

    rule: Rule = field(default_factory=SameWord)
    scaled: bool = False

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    def links(self, tokens: Sequence[str], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[F, 2]: the linked tokens, the earlier one first.

        Raises:
            ValueError: A rule of your own returns what cannot be links.
        """
        found = self.rule.links(tokens, sentence_offsets)
        return found if type(self.rule) in RULES.values() else checked_links(found, len(tokens), f"rule {self.name}")

    def links_of_all(
        self, documents: Sequence[Tokenized], said: Spelled, starts: Int64s, sentence_offsets: Int64s
    ) -> NDArray[np.int32]:
        """`links` of documents one behind the other: document d has the tokens ``starts[d]:starts[d + 1]`` of all, of
        which ``said`` has what rules read of their letters, in sentences, int64[S + 1].
        """
        if type(self.rule) in (SameWord, Company):
            return cast("SameWord | Company", self.rule).links_of_all(documents, said, starts, sentence_offsets)
        placed = zip(documents, starts.tolist(), strict=False)
        found = [self.links(document.tokens, document.sentence_offsets) + np.int32(start) for document, start in placed]
        return np.concatenate([np.empty((0, 2), np.int32), *found])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"rule": rule_to_dict(self.rule), "scaled": self.scaled}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> SkipChain:
        """The inverse of `to_dict`; ValueError says what is wrong."""
        return SkipChain(rule_from_dict(values["rule"]), bool(values["scaled"]))


Template = LinearChain | SkipChain


def linear_chain_template() -> LinearChain:
    """The template of neighbours in a sentence."""
    return LinearChain()


def skip_chain_template(rule: Rule | None = None, *, scaled: bool = False) -> SkipChain:
    """The template of tokens that ``rule`` links, by default those of one capitalised word."""
    return SkipChain(rule or SameWord(), scaled)


@dataclass(frozen=True, slots=True)
class EdgeScale:
    """The factor by which a link's table counts: exp of a sum over features of both of its ends (0 each: one for all).

    The scale lies between 1/8 and 4, in steps of 1/8.

    Attributes:
        distance: Times log10 of the tokens between its ends + 1.
        sentence_start: Times the number of its ends that begin a sentence.
        surer: Times the log-probability of the label that the chain thinks most probable, at the end where it is surer.
        less_sure: The same at the other end.
    """

    distance: float = 0.0
    sentence_start: float = 0.0
    surer: float = 0.0
    less_sure: float = 0.0

    @staticmethod
    def features(
        links: NDArray[np.int32], sentence_offsets: NDArray[np.int64], beliefs: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """float64[F, 4], the features in the order of the fields; ``beliefs`` [n, K] are the chain's marginals."""
        starts = np.zeros(len(beliefs))
        starts[sentence_offsets[:-1]] = 1
        sure = np.log(np.maximum(beliefs.max(axis=1), 1e-6))[links]
        distance = np.log10(1.0 + links[:, 1] - links[:, 0])
        return np.stack([distance, starts[links].sum(axis=1), sure.max(axis=1), sure.min(axis=1)], axis=1)

    def weights(self) -> NDArray[np.float64]:
        """[4]: the fields."""
        return np.array([getattr(self, each.name) for each in fields(self)])

    def __call__(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[F]: the scale of each link."""
        return np.round(STEPS * np.exp(clipped(features @ self.weights()))) / STEPS

    def to_dict(self) -> dict[str, float]:
        """Plain data for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> EdgeScale:
        """The inverse of `to_dict`.

        Raises:
            ValueError: A weight is not a finite number below 1e100.
        """
        weights = {each.name: float(values[each.name]) for each in fields(EdgeScale)}
        if not (np.abs(list(weights.values())) < 1e100).all():
            raise ValueError("the weights of an edge scale are finite numbers below 1e100")
        return EdgeScale(**weights)


def clipped(log_scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of scales, kept between those of LEAST_SCALE and MOST_SCALE."""
    return np.clip(log_scale, np.log(LEAST_SCALE), np.log(MOST_SCALE))
