"""Tiny CRFs with links whose joint distribution can be enumerated."""

from __future__ import annotations

import numpy as np
from oracle import Oracle, factors_of

from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.objectives import Examples
from herdner.crf.templates import skip_chain_template

OFFSETS = np.array([0, 3, 4, 7])
ENDS = (np.array([[0, 3], [1, 4], [3, 6], [0, 2]], np.int32), np.array([[2, 5]], np.int32))


def tiny(seed: int = 0, n_labels: int = 3) -> tuple[SkipChainModel, Examples]:
    """Return a CRF with two link tables, and seven tokens of three sentences; one link lies within a sentence."""
    rng = np.random.default_rng(seed)
    nothing = np.zeros(n_labels)
    linked = tuple(LinkTable(skip_chain_template(), rng.normal(size=(n_labels, n_labels))) for _ in range(2))
    crf = SkipChainModel(rng.normal(size=(n_labels, n_labels)), nothing, nothing, linked)
    unary = rng.normal(size=(7, n_labels))
    marginals = crf.chain_marginals(unary, OFFSETS)
    return crf, Examples(unary, OFFSETS, rng.integers(0, n_labels, 7).astype(np.int32), ENDS, marginals)


def joint(crf: SkipChainModel, examples: Examples) -> Oracle:
    """Enumerate the joint distribution."""
    graph = crf.unroll(examples.unary, examples.sentence_offsets, examples.links)
    return Oracle.of(graph.domains.sizes, factors_of(graph))


def conditional(oracle: Oracle, states: np.ndarray, block: list[int]) -> float:
    """log P(these variables have their states | all others have theirs)."""
    others = np.setdiff1d(np.arange(len(states)), block)
    agree = (oracle.states[:, others] == states[others]).all(axis=1)
    right = (oracle.states == states).all(axis=1)
    return float(np.log(oracle.probabilities[right].sum() / oracle.probabilities[agree].sum()))


def many(n: int, coupling: float, seed: int = 0) -> tuple[SkipChainModel, Examples]:
    """Pairs of one-token sentences that a link joins, drawn from the model with this table; unaries are weak."""
    rng = np.random.default_rng(seed)
    table = coupling * np.eye(2)
    unary = rng.normal(size=(2 * n, 2))
    pairs = np.arange(2 * n, dtype=np.int32).reshape(n, 2)
    weights = np.exp(unary[pairs[:, 0], :, None] + unary[pairs[:, 1], None, :] + table).reshape(n, 4)
    cell = (weights.cumsum(axis=1) < rng.random((n, 1)) * weights.sum(axis=1, keepdims=True)).sum(axis=1)
    states = np.stack([cell // 2, cell % 2], axis=1).ravel().astype(np.int32)
    crf = SkipChainModel(
        np.zeros((2, 2)), np.zeros(2), np.zeros(2), (LinkTable(skip_chain_template(), np.zeros((2, 2))),)
    )
    offsets = np.arange(2 * n + 1)
    return crf, Examples(unary, offsets, states, (pairs,), crf.chain_marginals(unary, offsets))
