"""Viterbi, forward-backward and span probabilities for many sequences in one call.

Arguments common to all functions, in natural logarithms:

* ``unary``: float64[N, K], log-potentials of the states of all tokens.
* ``transition``: float64[K, K], log-potentials of consecutive states (row = left state), shared by all edges; or
  float64[T, K, K], tables that ``edge_table`` selects.
* ``offsets``: int64[S + 1]; sequence s holds the tokens ``offsets[s]`` to ``offsets[s + 1] - 1`` and may be empty.
* ``edge_table``: int32[N], the table of the edge from token t - 1 to t; ignored at the first token of a sequence.

An entry of -inf forbids a state or a pair of states. NaN, +inf and finite numbers beyond 1e300 raise ``ValueError``. A
sequence whose every labelling is forbidden raises `ImpossibleChain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import chain as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.checks import are_offsets

LARGEST = 1e300  # CHAIN_LARGEST of the compiled loops
_NO_FAULT = -1  # returned by the compiled loops on success
_OUT_OF_RANGE = f"holds NaN, +inf or numbers beyond {LARGEST:g}; log-potentials must be -inf or within +-{LARGEST:g}"


class ImpossibleChain(ValueError):
    """Error: every state sequence of a chain has log-potential -inf.

    Attributes:
        sequence: Index of the sequence.
    """

    def __init__(self, sequence: int, start: int, end: int) -> None:
        """Build the error message, which names the sequence and the range of its tokens.

        Args:
            sequence: Index of the sequence.
            start: Its first token.
            end: The token after its last one.
        """
        self.sequence = sequence
        super().__init__(
            f"sequence {sequence} (tokens {start} to {end - 1}): every labelling is forbidden by -inf entries;"
            " allow a state for each token and a transition between them"
        )


@dataclass(frozen=True, slots=True)
class ChainMarginals:
    """Result of forward-backward. Fields that were not requested are None.

    Attributes:
        log_z: float64[S], the logarithm of each sequence's partition function.
        nodes: float64[N, K], the marginals of all tokens.
        transition_counts: The edge marginals summed over the edges of each table, in the shape of ``transition``.
        edges: float64[N, K, K], P(token t - 1 has state i and token t has state j); 0 where t starts a sequence.
    """

    log_z: Floats
    nodes: Floats | None = None
    transition_counts: Floats | None = None
    edges: Floats | None = None


def viterbi(
    unary: ArrayLike, transition: ArrayLike, offsets: ArrayLike, edge_table: ArrayLike | None = None
) -> tuple[Int32s, Floats]:
    """Return the best state sequences, concatenated as int32[N], and the log-potential of each sequence, float64[S].

    Among equally good labellings, the function prefers the smallest state of the last token of a sequence, then of the
    preceding token, and so on, as CRFsuite does.

    Args:
        unary: float64[N, K], log-potentials of states.
        transition: float64[K, K] or float64[T, K, K], log-potentials of consecutive states.
        offsets: int64[S + 1], borders of the sequences.
        edge_table: int32[N], the table of each edge, if there are several.

    Raises:
        ValueError: An array has a wrong shape or a value out of range.
        ImpossibleChain: Every labelling of a sequence is forbidden.
    """
    return decode(*_convert_chain(unary, transition, offsets, edge_table))


def decode(unary: Floats, tables: Floats, offsets: Int64s, edge_table: Int32s | None) -> tuple[Int32s, Floats]:
    """Run `viterbi` on arrays that are already checked and converted.

    Args:
        unary: float64[N, K], log-potentials of states.
        tables: float64[T, K, K], log-potentials of consecutive states.
        offsets: int64[S + 1], borders of the sequences.
        edge_table: int32[N], the table of each edge; None is table 0.

    Returns:
        int32[N], the best states; and float64[S], the log-potential of each sequence.

    Raises:
        ImpossibleChain: Every labelling of a sequence is forbidden.
    """
    states, scores = np.empty(len(unary), np.int32), np.empty(len(offsets) - 1)
    if (fault := loops.viterbi(unary, tables, offsets, edge_table, states, scores)) != _NO_FAULT:
        raise _error(fault, offsets)
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
    """Return log Z of each sequence and, on request, marginals and expected transition counts (Rabiner 1989, Sec. III).

    Args:
        unary: float64[N, K], log-potentials of states.
        transition: float64[K, K] or float64[T, K, K], log-potentials of consecutive states.
        offsets: int64[S + 1], borders of the sequences.
        edge_table: int32[N], the table of each edge, if there are several.
        nodes: Compute the marginals of tokens.
        transition_counts: Compute the expected number of each transition.
        edges: Compute the marginals of edges.

    Raises:
        ValueError: An array has a wrong shape or a value out of range.
        ImpossibleChain: Every labelling of a sequence is forbidden.
    """
    arrays = _convert_chain(unary, transition, offsets, edge_table)
    result = smooth(*arrays, nodes=nodes, transition_counts=transition_counts, edges=edges)
    if result.transition_counts is not None and np.ndim(transition) == 2:
        return replace(result, transition_counts=result.transition_counts[0])
    return result


def smooth(
    unary: Floats,
    tables: Floats,
    offsets: Int64s,
    edge_table: Int32s | None,
    *,
    nodes: bool = True,
    transition_counts: bool = False,
    edges: bool = False,
    edges_out: Floats | None = None,
) -> ChainMarginals:
    """Run `forward_backward` on arrays that are already checked and converted.

    Args:
        unary: float64[N, K], log-potentials of states.
        tables: float64[T, K, K], log-potentials of consecutive states.
        offsets: int64[S + 1], borders of the sequences.
        edge_table: int32[N], the table of each edge; None is table 0.
        nodes: Compute the marginals of tokens.
        transition_counts: Compute the expected number of each transition, float64[T, K, K].
        edges: Compute the marginals of edges.
        edges_out: float64[N, K, K], receives the marginals of edges in place of a new array.

    Returns:
        The log partition function of each sequence and the requested marginals.

    Raises:
        ImpossibleChain: Every labelling of a sequence is forbidden.
    """
    result = ChainMarginals(
        np.empty(len(offsets) - 1),
        np.empty(unary.shape) if nodes else None,
        np.empty(tables.shape) if transition_counts else None,
        np.empty((len(unary), *tables.shape[1:])) if edges and edges_out is None else edges_out,
    )
    arrays = result.log_z, result.nodes, result.transition_counts, result.edges
    if (fault := loops.forward_backward(unary, tables, offsets, edge_table, *arrays)) != _NO_FAULT:
        raise _error(fault, offsets)
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
    """Return, for each of M spans, the log-probability that its tokens have the states in ``states``, float64[M].

    For the span of an entity, this is the logarithm of the confidence. Sequences without a span are skipped.

    Args:
        unary: float64[N, K], log-potentials of states.
        transition: float64[K, K] or float64[T, K, K], log-potentials of consecutive states.
        offsets: int64[S + 1], borders of the sequences.
        states: int32[N], the states whose probability is computed.
        span_starts: int64[M], the first token of each span, in any order.
        span_ends: int64[M], the token after the last one of each span, in the same sequence.
        edge_table: int32[N], the table of each edge, if there are several.

    Raises:
        ValueError: An array has a wrong shape or a value out of range, or a span is empty or not inside one sequence.
        ImpossibleChain: Every labelling of a sequence with a span is forbidden.
    """
    arrays = unary, _, offsets, _ = _convert_chain(unary, transition, offsets, edge_table)
    labelling = np.ascontiguousarray(states, np.int32)
    starts, ends = np.asarray(span_starts, np.int64), np.asarray(span_ends, np.int64)
    if labelling.shape != unary.shape[:1] or (
        labelling.size and not 0 <= labelling.min() <= labelling.max() < unary.shape[1]
    ):
        raise ValueError(
            f"states must hold one state from 0 to {unary.shape[1] - 1} for each of the {len(unary)} tokens, got"
            f" {labelling.tolist()!s:.80}"
        )
    if starts.ndim != 1 or starts.shape != ends.shape:
        raise ValueError(
            f"span_starts and span_ends must be lists of equal length, not {starts.shape} and {ends.shape}"
        )
    if not len(starts):
        return np.empty(0)
    next_sequence = np.searchsorted(offsets, starts, "right")
    wrong = np.flatnonzero((starts < 0) | (starts >= len(unary)) | (ends <= starts))
    if not len(wrong):
        wrong = np.flatnonzero(ends > offsets[next_sequence])
    if len(wrong):
        k = wrong[0]
        raise ValueError(f"span {k}, tokens {starts[k]} to {ends[k]} (exclusive), is empty or not inside one sequence")
    order, result = np.argsort(starts, kind="stable"), np.empty(len(starts))
    result[order] = score_spans(*arrays, labelling, starts[order], ends[order])
    return result


def score_spans(
    unary: Floats, tables: Floats, offsets: Int64s, edge_table: Int32s | None, states: Int32s, starts: Int64s,
    ends: Int64s,
) -> Floats:  # fmt: skip
    """Compute the results of `span_log_probability`, for checked arrays and spans that are already sorted by start.

    Args:
        unary: float64[N, K], log-potentials of states.
        tables: float64[T, K, K], log-potentials of consecutive states.
        offsets: int64[S + 1], borders of the sequences.
        edge_table: int32[N], the table of each edge; None is table 0.
        states: int32[N], the states whose probability is computed.
        starts: int64[M], the first token of each span, ascending.
        ends: int64[M], the token after the last one of each span, in the same sequence.

    Returns:
        float64[M], the log-probability of the states of each span.

    Raises:
        ImpossibleChain: Every labelling of a sequence with a span is forbidden.
    """
    result = np.empty(len(starts))
    fault = loops.span_log_probability(unary, tables, offsets, edge_table, states, starts, ends, result)
    if fault != _NO_FAULT:
        raise _error(fault, offsets)
    return result


def score_linked_spans(
    unary: Floats, total: Floats, tables: Floats, offsets: Int64s, states: Int32s, starts: Int64s, ends: Int64s,
    links: Sequence[Int32s], link_tables: Sequence[Floats], beliefs: Floats, borders: tuple[Floats, Floats] | None,
) -> tuple[NDArray[np.bool_], Floats]:  # fmt: skip
    """Return a mask of the spans with links, and the results of `score_spans` with and without link log-potentials.

    Args:
        unary: float64[N, K], log-potentials of states.
        total: float64[N, K], log-potentials without ``borders``; the log-potentials of the links are added to this
            array in place. It may be the same array as ``unary``.
        tables: float64[1, K, K], log-potentials of consecutive states.
        offsets: int64[S + 1], borders of the sequences.
        states: int32[N], the states whose probability is computed.
        starts: int64[M], the first token of each span, ascending.
        ends: int64[M], the token after the last one of each span, in the same sequence.
        links: For each link table int32[F, 2], the linked tokens.
        link_tables: float64[K, K], the link tables.
        beliefs: float64[N, K], probabilities of the states, under which the expectation of each link is taken.
        borders: Log-potentials of the first and the last state of each sequence, which are added to ``total`` after
            the log-potentials of the links; None adds nothing.

    Returns:
        bool[M], whether a link joins a token of the span; and float64[2, M], the results with and without links. Spans
        that are not linked have the result with links twice.

    Raises:
        ImpossibleChain: Every labelling of a sequence with a span is forbidden.
    """
    first, last = borders or (None, None)
    fault, linked, results = loops.linked_span_log_probability(
        unary, total, tables, offsets, states, starts, ends, links, list(link_tables), beliefs, first, last
    )
    if fault != _NO_FAULT:
        raise _error(fault, offsets)
    return linked, results


def _convert_chain(unary: ArrayLike, transition: ArrayLike, offsets: ArrayLike, edge_table: ArrayLike | None):
    """Convert the arrays of a chain to the types of the compiled loops; raise ``ValueError`` if one is invalid."""
    unary = np.ascontiguousarray(unary, np.float64)
    offsets = np.ascontiguousarray(offsets, np.int64)
    if unary.ndim != 2 or not unary.shape[1]:
        raise ValueError(f"unary must have shape [tokens, states] with at least one state, not {unary.shape}")
    n_tokens, n_states = unary.shape
    tables = check_tables(transition, n_states)
    if not are_offsets(offsets, n_tokens):
        raise ValueError(f"offsets must rise from 0 to the number of tokens, {n_tokens}, got {offsets.tolist()!s:.80}")
    if edge_table is None:
        if len(tables) > 1:
            raise ValueError(
                f"`transition` has {len(tables)} tables, so `edge_table` must contain the table index of each edge"
            )
        return unary, tables, offsets, None
    edges = np.ascontiguousarray(edge_table, np.int32)
    if edges.shape != (n_tokens,) or (n_tokens and not 0 <= edges.min() <= edges.max() < len(tables)):
        raise ValueError(
            f"edge_table must contain a table index from 0 to {len(tables) - 1} for each of the {n_tokens} tokens, got"
            f" {edges.tolist()!s:.80}"
        )
    return unary, tables, offsets, edges


def check_tables(transition: ArrayLike, n_states: int) -> Floats:
    """Convert transition tables to the type of the compiled loops.

    Args:
        transition: float64[K, K] or float64[T, K, K], log-potentials of consecutive states.
        n_states: Number of states K.

    Returns:
        float64[T, K, K].

    Raises:
        ValueError: The shape is wrong, or a number is out of range.
    """
    tables = np.ascontiguousarray(transition, np.float64)
    tables = tables[None] if tables.ndim == 2 else tables
    if tables.ndim != 3 or tables.shape[1:] != (n_states, n_states) or not len(tables):
        raise ValueError(
            f"transition must have shape [{n_states}, {n_states}], got {tables.shape}; `unary` determines the number of"
            " states"
        )
    if not ((np.abs(tables) <= LARGEST) | (tables == -np.inf)).all():
        raise ValueError(f"transition {_OUT_OF_RANGE}")
    return tables


def _error(fault: int, offsets: Int64s) -> ValueError:
    """Return the exception for ``fault``, the fault code of a compiled loop."""
    if fault < 0:
        return ValueError(f"unary {_OUT_OF_RANGE}")
    return ImpossibleChain(fault, int(offsets[fault]), int(offsets[fault + 1]))
