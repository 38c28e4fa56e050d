"""Training objectives in closed form: pseudo-likelihood and piecewise likelihood.

An objective maps a model and `Examples` to a `LossGradient`: minus the log-likelihood and its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.extras import import_extra
from herdner.crf.model import SkipChainModel
from herdner.inference.linear_chain import forward_backward

_CELLS = 1 << 22  # maximum number of entries of an array that has one table for each link


@dataclass(frozen=True, eq=False)
class Examples:
    """Concatenated documents with gold tags, the training data for transition and link tables.

    Attributes:
        unary: float64[n, K], log-potentials of tags, including the log-potentials of sentence borders.
        sentence_offsets: int64[S + 1], first token of each sentence, and n.
        states: int32[n], gold tags as indices.
        links: One int32[F, 2] for each link table of the model, the earlier token of each link first.
        chain_marginals: float64[n, K], marginals of the chain without links.
    """

    unary: Floats
    sentence_offsets: Int64s
    states: Int32s
    links: tuple[Int32s, ...]
    chain_marginals: Floats

    @property
    def neighbours(self) -> Int64s:
        """Pairs of adjacent tokens, int64[P, 2]: the indices of the left and the right token of each pair.

        The tokens of a pair belong to the same sentence.
        """
        right = np.delete(np.arange(len(self.unary)), self.sentence_offsets[:-1])
        return np.stack([right - 1, right], axis=1)


class LossGradient(NamedTuple):
    """Training loss of a skip-chain model (minus the log-likelihood), and the gradient of the loss.

    Attributes:
        value: Minus the log-likelihood of the gold tags, in nats.
        transition: float64[K, K], derivatives with respect to the transition table.
        tables: Derivatives with respect to each link table, float64[K, K] each.
    """

    value: float
    transition: Floats
    tables: tuple[Floats, ...]


class _TiedLinks(NamedTuple):
    """Links that share one table of log-potentials, float64[K, K].

    Link f joins the tokens ``ends[f]``.
    """

    table: Floats
    ends: NDArray[Any]


Objective = Callable[[SkipChainModel, Examples], LossGradient]


@dataclass(frozen=True)
class PseudoLikelihood:
    """Pseudo-likelihood: the product over blocks of the probability of a block's gold tags, given all other gold tags.

    The source is Besag (1975).

    Attributes:
        blocks: "sentence" or "token". With "sentence", a block is the chain of a sentence, given the gold tags at the
            other ends of its links (a composite likelihood, Lindsay 1988); links within a sentence are ignored. With
            "token", a block is one token, given the gold tags of its neighbours and of the tokens linked to it.

    Raises:
        ValueError: ``blocks`` is neither "sentence" nor "token".
    """

    blocks: Literal["sentence", "token"] = "sentence"

    def __post_init__(self) -> None:
        """Raise `ValueError` if ``blocks`` is invalid."""
        if self.blocks not in ("sentence", "token"):
            raise ValueError(f"`blocks` must be 'sentence' or 'token', got {self.blocks!r}")

    def __call__(self, model: SkipChainModel, examples: Examples) -> LossGradient:
        """Return the negative log pseudo-likelihood of the gold tags, and its gradient with respect to the tables.

        Args:
            model: Tables at which the loss is evaluated.
            examples: Documents with gold tags.
        """
        return self._by_token(model, examples) if self.blocks == "token" else self._by_sentence(model, examples)

    def _by_token(self, model: SkipChainModel, examples: Examples) -> LossGradient:
        logsumexp = import_extra("scipy.special", "training needs SciPy").logsumexp

        y = examples.states
        logits = examples.unary.copy()
        edges = [_TiedLinks(model.transition, examples.neighbours), *_tied_links(model, examples)]
        for links in edges:
            _add_gold_tags(logits, links, y)
        log_z: Floats = logsumexp(logits, axis=1)
        value = float((log_z - logits[np.arange(len(y)), y]).sum())
        excess = _subtract_gold_tags(np.exp(logits - np.reshape(log_z, (-1, 1))), y)
        transition, *tables = (_table_gradient(links, y, excess) for links in edges)
        return LossGradient(value, transition, tuple(tables))

    def _by_sentence(self, model: SkipChainModel, examples: Examples) -> LossGradient:
        y, offsets = examples.states, examples.sentence_offsets
        sentence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        logits, edges = examples.unary.copy(), list[_TiedLinks]()
        for table, ends in _tied_links(model, examples):
            edges.append(_TiedLinks(table, ends[sentence[ends[:, 0]] != sentence[ends[:, 1]]]))
            _add_gold_tags(logits, edges[-1], y)
        value, nodes, transition = _chain_gradient(model, examples, logits)
        excess = _subtract_gold_tags(nodes, y)
        return LossGradient(value, transition, tuple(_table_gradient(links, y, excess) for links in edges))


@dataclass(frozen=True)
class Piecewise:
    """Piecewise likelihood: the product of the separate likelihoods of all chains and links (Sutton and McCallum 2005).

    The probability of a link's tags (a, b) is proportional to p(i, a) p(j, b) exp(table[a, b]), where p are the
    marginals of the chain. The objective is exact for two sentences joined by one link. If tokens have many links, the
    objective counts their evidence repeatedly, and the entries of the learned tables are too large.
    """

    def __call__(self, model: SkipChainModel, examples: Examples) -> LossGradient:
        """Return the negative log piecewise likelihood of the gold tags, and its gradient with respect to the tables.

        Args:
            model: Tables at which the loss is evaluated.
            examples: Documents with gold tags.
        """
        value, _, transition = _chain_gradient(model, examples, examples.unary)
        gradients: list[Floats] = []
        for table, ends in _tied_links(model, examples):
            gradient, n_links = np.zeros_like(table), max(1, _CELLS // table.size)
            for first in range(0, len(ends), n_links):
                loss, slope = _link_gradient(_TiedLinks(table, ends[first : first + n_links]), examples)
                value, gradient = value + loss, gradient + slope
            gradients.append(gradient)
        return LossGradient(value, transition, tuple(gradients))


OBJECTIVES: dict[str, Objective] = {
    "pseudo-likelihood": PseudoLikelihood(),
    "token-pseudo-likelihood": PseudoLikelihood("token"),
    "piecewise": Piecewise(),
}


def _tied_links(model: SkipChainModel, examples: Examples) -> list[_TiedLinks]:
    return [_TiedLinks(each.table, ends) for each, ends in zip(model.link_tables, examples.links, strict=True)]


def _link_gradient(links: _TiedLinks, examples: Examples) -> tuple[float, Floats]:
    """Return the piecewise loss of links that share a table, and the gradient of the loss with respect to the table."""
    earlier, later = links.ends.T
    a, b = examples.states[earlier], examples.states[later]
    joint = examples.chain_marginals[earlier][:, :, None] * examples.chain_marginals[later][:, None, :]  # [F, K, K]
    joint *= np.exp(links.table)
    z = joint.sum(axis=(1, 2))
    joint /= z[:, None, None]
    slope = joint.sum(axis=0)
    np.subtract.at(slope, (a, b), 1)
    return float(np.log(z).sum() - links.table[a, b].sum()), slope


def _add_gold_tags(logits: Floats, links: _TiedLinks, y: Int32s) -> None:
    """Add the log-potentials of each token's links to ``logits`` [n, K], given the gold tags of the linked tokens."""
    earlier, later = links.ends.T
    np.add.at(logits, later, links.table[y[earlier]])
    np.add.at(logits, earlier, links.table.T[y[later]])


def _subtract_gold_tags(probabilities: Floats, y: Int32s) -> Floats:
    """Return the gradient of the loss with respect to unary log-potentials: probabilities, minus 1 for gold tags.

    The array ``probabilities`` is overwritten.
    """
    probabilities[np.arange(len(y)), y] -= 1
    return probabilities


def _table_gradient(links: _TiedLinks, y: Int32s, excess: Floats) -> Floats:
    """Return the gradient of the loss with respect to the table of the links, float64[K, K].

    ``excess`` is the gradient with respect to the unary log-potentials.
    """
    earlier, later = links.ends.T
    table, transposed = np.zeros_like(links.table), np.zeros_like(links.table)
    np.add.at(table, y[earlier], excess[later])
    np.add.at(transposed, y[later], excess[earlier])
    return table + transposed.T


def _chain_gradient(model: SkipChainModel, examples: Examples, unary: Floats) -> tuple[float, Floats, Floats]:
    """Return the loss of the linear chains, the marginals, and the gradient of the loss for the transition table."""
    y = examples.states
    left, right = y[examples.neighbours].T
    chains = forward_backward(unary, model.transition, examples.sentence_offsets, transition_counts=True)
    assert chains.nodes is not None
    assert chains.transition_counts is not None
    gold_score = unary[np.arange(len(y)), y].sum() + model.transition[left, right].sum()
    transition = chains.transition_counts.copy()
    np.subtract.at(transition, (left, right), 1)
    return float(chains.log_z.sum() - gold_score), chains.nodes, transition
