"""What the learning of tied tables maximises, where it can be written down: pseudo-likelihood and piecewise likelihood.

An objective is called with a CRF and `Examples`, and returns a `Slope`: minus the log-likelihood, and its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from herdner.crf.model import SkipChainModel
from herdner.crf.templates import clipped
from herdner.inference.linear_chain import forward_backward

_CELLS = 1 << 22  # numbers held at once in tables of single links


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled documents, one after the other.

    Attributes:
        unary: float64[n, K], log-potentials of tags, those of sentence borders added.
        sentence_offsets: int64[S + 1].
        states: int32[n], the right tags.
        links: For each link table of the CRF int32[F, 2].
        features: For each the features of its links, float64[F, 4] (`EdgeScale.features`), or None where its links are
            not scaled.
        beliefs: float64[n, K], the marginals of the chain.
    """

    unary: NDArray[np.float64]
    sentence_offsets: NDArray[np.int64]
    states: NDArray[np.int32]
    links: tuple[NDArray[np.int32], ...]
    features: tuple[NDArray[np.float64] | None, ...]
    beliefs: NDArray[np.float64]

    @property
    def neighbours(self) -> NDArray[np.int64]:
        """[T, 2]: each token and the next one of its sentence."""
        right = np.delete(np.arange(len(self.unary)), self.sentence_offsets[:-1])
        return np.stack([right - 1, right], axis=1)


class Slope(NamedTuple):
    """``value``, and its derivatives by the transition table [K, K], by each table of links and by the weights [4]
    of each scale.
    """

    value: float
    transition: NDArray[np.float64]
    tables: tuple[NDArray[np.float64], ...]
    scales: tuple[NDArray[np.float64], ...]


class ScaledLinks(NamedTuple):
    """The links of one table: ``ends`` [F, 2], ``scale`` [F, 1], and its derivatives by the weights, [F, 4]."""

    table: NDArray[np.float64]
    ends: NDArray[Any]
    scale: NDArray[np.float64]
    scale_slope: NDArray[np.float64]

    def only(self, kept: NDArray[np.bool_] | slice) -> ScaledLinks:
        """These links alone."""
        return ScaledLinks(self.table, self.ends[kept], self.scale[kept], self.scale_slope[kept])


Objective = Callable[[SkipChainModel, Examples], Slope]

LinkSlope = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The derivatives by one table of links and by the weights of its scale."""


@dataclass(frozen=True)
class PseudoLikelihood:
    """The probability of each block given the right tags of all other tokens (Besag 1975).

    Attributes:
        blocks: "sentence", each sentence's chain given the tags at the other ends of its links (a composite likelihood,
            Lindsay 1988), those within the sentence left out; "token", each token by itself, given its neighbours too.
    """

    blocks: Literal["sentence", "token"] = "sentence"

    def __post_init__(self) -> None:
        if self.blocks not in ("sentence", "token"):
            raise ValueError(f"blocks must be 'sentence' or 'token', not {self.blocks!r}")

    def __call__(self, crf: SkipChainModel, examples: Examples) -> Slope:
        return self._by_token(crf, examples) if self.blocks == "token" else self._by_sentence(crf, examples)

    def _by_token(self, crf: SkipChainModel, examples: Examples) -> Slope:
        from scipy.special import logsumexp  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        y = examples.states
        logits, neighbours = examples.unary.copy(), _unscaled(crf.transition, examples.neighbours)
        linked = [neighbours, *scaled_links(crf, examples)]
        for links in linked:
            _add_right_tags(logits, links, y)
        log_z = cast("NDArray[np.float64]", logsumexp(logits, axis=1))
        value = float((log_z - logits[np.arange(len(y)), y]).sum())
        excess = _without_right_tags(np.exp(logits - np.reshape(log_z, (-1, 1))), y)
        (transition, _), *slopes = (_pull(links, y, excess) for links in linked)
        return _slope(value, transition, slopes)

    def _by_sentence(self, crf: SkipChainModel, examples: Examples) -> Slope:
        y, offsets = examples.states, examples.sentence_offsets
        sentence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        linked = [
            links.only(sentence[links.ends[:, 0]] != sentence[links.ends[:, 1]])
            for links in scaled_links(crf, examples)
        ]
        logits = examples.unary.copy()
        for links in linked:
            _add_right_tags(logits, links, y)
        value, nodes, transition = _chains(crf, examples, logits)
        excess = _without_right_tags(nodes, y)
        return _slope(value, transition, [_pull(links, y, excess) for links in linked])


@dataclass(frozen=True)
class Piecewise:
    """The product of the likelihoods of pieces (Sutton and McCallum 2005): each sentence's chain, and each link.

    A link is normalised together with what the chain believes of both of its ends: p(a, b) in proportion to
    beliefs[i, a] beliefs[j, b] exp(scale table[a, b]), which is exact for two sentences that one link joins. Where
    tokens have many links their evidence is counted more than once, so that tables come out too large.
    """

    def __call__(self, crf: SkipChainModel, examples: Examples) -> Slope:
        value, _, transition = _chains(crf, examples, examples.unary)
        slopes: list[LinkSlope] = []
        for links in scaled_links(crf, examples):
            table, scale, n_held = np.zeros_like(links.table), np.zeros(4), max(1, _CELLS // links.table.size)
            for at in range(0, len(links.ends), n_held):
                piece = self._pieces(links.only(slice(at, at + n_held)), examples)
                value, table, scale = value + piece[0], table + piece[1], scale + piece[2]
            slopes.append((table, scale))
        return _slope(value, transition, slopes)

    @staticmethod
    def _pieces(links: ScaledLinks, examples: Examples) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        earlier, later = links.ends.T
        a, b = examples.states[earlier], examples.states[later]
        joint = np.exp(links.scale[:, :, None] * links.table)  # [F, K, K]
        joint *= examples.beliefs[earlier][:, :, None] * examples.beliefs[later][:, None, :]
        z = joint.sum(axis=(1, 2))
        joint /= z[:, None, None]
        value = float(np.log(z).sum() - (links.scale[:, 0] * links.table[a, b]).sum())
        slope = np.einsum("f,fab->ab", links.scale[:, 0], joint)
        np.subtract.at(slope, (a, b), links.scale[:, 0])
        by_scale = np.einsum("fab,ab->f", joint, links.table) - links.table[a, b]
        return value, slope, by_scale @ links.scale_slope


OBJECTIVES: dict[str, Objective] = {
    "pseudo-likelihood": PseudoLikelihood(),
    "token-pseudo-likelihood": PseudoLikelihood("token"),
    "piecewise": Piecewise(),
}


def scaled_links(crf: SkipChainModel, examples: Examples) -> list[ScaledLinks]:
    """The links of each link table with their scales, which are not rounded here, so that they have derivatives."""
    linked: list[ScaledLinks] = []
    for each, ends, features in zip(crf.link_tables, examples.links, examples.features, strict=True):
        if each.scale is None or features is None:
            linked.append(_unscaled(each.table, ends))
            continue
        logs = features @ each.scale.weights()
        scale, inside = np.exp(clipped(logs)), clipped(logs) == logs
        linked.append(ScaledLinks(each.table, ends, scale[:, None], (scale * inside)[:, None] * features))
    return linked


def _unscaled(table: NDArray[np.float64], ends: NDArray[Any]) -> ScaledLinks:
    return ScaledLinks(table, ends, np.ones((len(ends), 1)), np.zeros((len(ends), 4)))


def _add_right_tags(logits: NDArray[np.float64], links: ScaledLinks, y: NDArray[np.int32]) -> None:
    """What the right tags at the other ends of links add to the log-potentials of each token."""
    earlier, later = links.ends.T
    np.add.at(logits, later, links.scale * links.table[y[earlier]])
    np.add.at(logits, earlier, links.scale * links.table.T[y[later]])


def _without_right_tags(probabilities: NDArray[np.float64], y: NDArray[np.int32]) -> NDArray[np.float64]:
    """[n, K]: the derivatives of minus the log-likelihood by the log-potentials of tokens."""
    probabilities[np.arange(len(y)), y] -= 1
    return probabilities


def _pull(links: ScaledLinks, y: NDArray[np.int32], excess: NDArray[np.float64]) -> LinkSlope:
    """The derivatives by the table and by the weights of the scale, from those by the log-potentials of tokens."""
    earlier, later = links.ends.T
    table, turned = np.zeros_like(links.table), np.zeros_like(links.table)
    np.add.at(table, y[earlier], links.scale * excess[later])
    np.add.at(turned, y[later], links.scale * excess[earlier])
    if not links.scale_slope.any():
        return table + turned.T, np.zeros(4)
    by_scale = (links.table[y[earlier]] * excess[later] + links.table.T[y[later]] * excess[earlier]).sum(axis=1)
    return table + turned.T, by_scale @ links.scale_slope


def _chains(
    crf: SkipChainModel, examples: Examples, unary: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Minus the log-likelihood of the chains with these unaries, their marginals [n, K], and the derivatives by the
    transition table.
    """
    y = examples.states
    left, right = y[examples.neighbours].T
    chains = forward_backward(unary, crf.transition, examples.sentence_offsets, transition_counts=True)
    assert chains.nodes is not None
    assert chains.transition_counts is not None
    right_score = unary[np.arange(len(y)), y].sum() + crf.transition[left, right].sum()
    transition = chains.transition_counts.copy()
    np.subtract.at(transition, (left, right), 1)
    return float(chains.log_z.sum() - right_score), chains.nodes, transition


def _slope(value: float, transition: NDArray[np.float64], slopes: Sequence[LinkSlope]) -> Slope:
    return Slope(value, transition, tuple(table for table, _ in slopes), tuple(scale for _, scale in slopes))
