"""Chains in bulk: Viterbi, forward-backward and span probabilities for many sequences in one call.

Arguments common to all functions: ``unary`` float64[N, K], the log-potentials of all tokens, sequence s being the rows
``offsets[s]`` to ``offsets[s + 1]`` (int64[S + 1], empty sequences allowed); ``transition`` float64[K, K], row = left
label, tied over all edges; or float64[T, K, K] with ``edge_table`` int32[N] naming the table of the edge from token
t - 1 to t (ignored at the first token of a sequence). Natural logarithms throughout. -inf forbids a label or a pair of
labels; NaN, +inf and finite numbers beyond 1e300 are refused. A sequence in which every labelling is forbidden is an
`ImpossibleChain`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from herdner._ext import chain as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.checks import are_offsets

LARGEST = 1e300  # CHAIN_LARGEST of chain.h
_UNFIT = f"holds NaN, +inf or numbers beyond {LARGEST:g}; log-potentials are smaller, or -inf"


class ImpossibleChain(ValueError):
    """Every labelling of a sequence has log-potential -inf; ``sequence`` is its index."""

    def __init__(self, sequence: int, start: int, end: int) -> None:
        self.sequence = sequence
        super().__init__(
            f"sequence {sequence} (tokens {start} to {end - 1}): every labelling is forbidden by -inf entries;"
            " allow a label for each token and a transition between them"
        )


@dataclass(frozen=True, slots=True)
class ChainMarginals:
    """What forward-backward gives; fields that were not asked for are None.

    log_z float64[S]; nodes float64[N, K]; transition_counts: the edge marginals summed over the edges of each table,
    in the shape of ``transition``; edges float64[N, K, K]: P(token t - 1 has label i and token t has label j), zero
    where t starts a sequence.
    """

    log_z: Floats
    nodes: Floats | None = None
    transition_counts: Floats | None = None
    edges: Floats | None = None


def viterbi(
    unary: ArrayLike, transition: ArrayLike, offsets: ArrayLike, edge_table: ArrayLike | None = None
) -> tuple[Int32s, Floats]:
    """The labellings of largest log-potential: states int32[N] and their log-potentials float64[S].

    Ties go to the smallest label, decided from the last token of a sequence to the first (CRFsuite's rule).
    """
    arrays = _checked(unary, transition, offsets, edge_table)
    states, scores = np.empty(len(arrays[0]), np.int32), np.empty(len(arrays[2]) - 1)
    _raise_on(loops.viterbi(*arrays, states, scores), arrays[2])
    return states, scores


def forward_backward(
    unary: ArrayLike,
    transition: ArrayLike,
    offsets: ArrayLike,
    edge_table: ArrayLike | None = None,
    *,
    nodes: bool = True,
    transition_counts: bool = False,
    edges: bool = False,
) -> ChainMarginals:
    """log Z and, as asked, node marginals, expected transition counts and edge marginals (Rabiner 1989, Sec. III)."""
    arrays = unary, tables, offsets, _ = _checked(unary, transition, offsets, edge_table)
    result = ChainMarginals(
        np.empty(len(offsets) - 1),
        np.empty(unary.shape) if nodes else None,
        np.empty(tables.shape) if transition_counts else None,
        np.empty((len(unary), *tables.shape[1:])) if edges else None,
    )
    counts = result.transition_counts
    _raise_on(loops.forward_backward(*arrays, result.log_z, result.nodes, counts, result.edges), offsets)
    if counts is not None and np.ndim(transition) == 2:
        return replace(result, transition_counts=counts[0])
    return result


def span_log_probability(
    unary: ArrayLike,
    transition: ArrayLike,
    offsets: ArrayLike,
    states: ArrayLike,
    span_starts: ArrayLike,
    span_ends: ArrayLike,
    edge_table: ArrayLike | None = None,
) -> Floats:
    """float64[M]: the log-probability that each span's tokens take exactly the labels they have in ``states`` int32[N].

    Spans are token ranges start..end-1, not empty, in any order, each inside one sequence. Only sequences that
    hold a span are worked on. For the span of an entity this is the chain's confidence in it.
    """
    arrays = unary, _, offsets, _ = _checked(unary, transition, offsets, edge_table)
    labels = np.ascontiguousarray(states, np.int32)
    starts, ends = np.asarray(span_starts, np.int64), np.asarray(span_ends, np.int64)
    if labels.shape != unary.shape[:1] or (labels.size and not 0 <= labels.min() <= labels.max() < unary.shape[1]):
        raise ValueError(
            f"states must hold one label from 0 to {unary.shape[1] - 1} for each of the {len(unary)} tokens"
        )
    if starts.ndim != 1 or starts.shape != ends.shape:
        raise ValueError(
            f"span_starts and span_ends must be lists of equal length, not {starts.shape} and {ends.shape}"
        )
    if not len(starts):
        return np.empty(0)
    home = np.searchsorted(offsets, starts, "right")
    wrong = np.flatnonzero((starts < 0) | (starts >= len(unary)) | (ends <= starts))
    if not len(wrong):
        wrong = np.flatnonzero(ends > offsets[home])
    if len(wrong):
        k = wrong[0]
        raise ValueError(f"span {k}, tokens {starts[k]} to {ends[k]} (exclusive), is empty or not inside one sequence")
    order = np.argsort(starts, kind="stable")
    out, result = np.empty(len(starts)), np.empty(len(starts))
    failed = loops.span_log_probability(*arrays, labels, starts[order], ends[order], out)
    _raise_on(failed, offsets)
    result[order] = out
    return result


def _checked(unary: ArrayLike, transition: ArrayLike, offsets: ArrayLike, edge_table: ArrayLike | None):
    """The four arrays as the loops want them, or a ValueError that says what is wrong."""
    unary = np.ascontiguousarray(unary, np.float64)
    tables = np.ascontiguousarray(transition, np.float64)
    offsets = np.ascontiguousarray(offsets, np.int64)
    if unary.ndim != 2 or not unary.shape[1]:
        raise ValueError(f"unary must have shape [tokens, labels] with at least one label, not {unary.shape}")
    n_tokens, n_states = unary.shape
    tables = tables[None] if tables.ndim == 2 else tables
    if tables.ndim != 3 or tables.shape[1:] != (n_states, n_states) or not len(tables):
        raise ValueError(
            f"transition must have shape [{n_states}, {n_states}] as unary has {n_states} labels, not {tables.shape}"
        )
    if not are_offsets(offsets, n_tokens):
        raise ValueError(f"offsets must rise from 0 to the number of tokens, {n_tokens}")
    if not ((np.abs(tables) <= LARGEST) | (tables == -np.inf)).all():
        raise ValueError(f"transition {_UNFIT}")
    if edge_table is None:
        if len(tables) > 1:
            raise ValueError(f"edge_table must say which of the {len(tables)} transition tables each edge uses")
        return unary, tables, offsets, None
    edges = np.ascontiguousarray(edge_table, np.int32)
    if edges.shape != (n_tokens,) or (n_tokens and not 0 <= edges.min() <= edges.max() < len(tables)):
        raise ValueError(f"edge_table must name a table from 0 to {len(tables) - 1} for each of the {n_tokens} tokens")
    return unary, tables, offsets, edges


def _raise_on(fault: int, offsets: Int64s) -> None:
    """What a loop returned, as an error."""
    if fault == -2:
        raise ValueError(f"unary {_UNFIT}")
    if fault >= 0:
        raise ImpossibleChain(fault, int(offsets[fault]), int(offsets[fault + 1]))
