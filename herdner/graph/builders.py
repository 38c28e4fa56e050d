"""Builders of common graphs. Log-potentials are natural logarithms; each undirected edge counts once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from herdner.base.arrays import Floats, Int32s, constant, frozen, sealed
from herdner.base.checks import are_offsets
from herdner.base.memory import check_memory
from herdner.graph.factors import TableFactors
from herdner.graph.graph import FactorGraph

SPINS = (-1.0, 1.0)


def chain_graph(
    unary: ArrayLike,
    transition: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    start: ArrayLike | None = None,
    end: ArrayLike | None = None,
) -> FactorGraph:
    """Build a graph of linear chains that share one transition table.

    A linear-chain CRF defines such a graph for each document. Many short documents are decoded fastest if one graph
    contains all of them as sequences.

    Args:
        unary: float[N, K], log-potentials of the states of each variable.
        transition: float[K, K], log-potentials of consecutive states; row = left state.
        offsets: int[S + 1]; sequence s holds the variables ``offsets[s]`` to ``offsets[s + 1] - 1``. None is one
            sequence.
        start: float[K], added at the first variable of each sequence.
        end: float[K], added at the last variable of each sequence.

    Returns:
        The graph of N variables.

    Raises:
        ValueError: The shapes do not fit, an entry is NaN or +inf, or ``offsets`` does not rise from 0 to N.
    """
    unary = np.asarray(unary, np.float64)
    if unary.ndim != 2:
        raise ValueError(f"unary must have shape [variables, states], not {unary.shape}")
    for name, values in {"unary": unary, "transition": transition, "start": start, "end": end}.items():
        if values is not None:
            _check_log_potentials(name, np.asarray(values, np.float64))
    n, n_states = unary.shape
    bounds = frozen([0, n] if offsets is None else offsets, np.int64, "offsets")
    if not are_offsets(bounds, n):
        raise ValueError(f"offsets must rise from 0 to the number of variables, {n}, got {bounds.tolist()!s:.80}")
    nodes = np.arange(n, dtype=np.int32)
    has_left = np.ones(n + 1, bool)
    has_left[bounds] = False
    right = nodes[has_left[:-1]]
    factors = [
        TableFactors(nodes[:, None], unary),
        TableFactors(np.stack([right - 1, right], axis=1), np.asarray(transition, np.float64)[None]),
    ]
    for values, has_neighbour in ((start, has_left[:-1]), (end, has_left[1:])):
        if values is not None:
            factors.append(TableFactors(nodes[~has_neighbour, None], np.asarray(values, np.float64)[None]))
    return FactorGraph(np.full(n, n_states, np.int32), factors)


def ising(J: ArrayLike, h: ArrayLike = 0.0, shape: Sequence[int] | None = None, *, wrap: bool = False) -> FactorGraph:
    """Build an Ising model on a grid: log p(s) = sum of J_ij s_i s_j over the edges + sum of h_i s_i - log Z.

    The spin s_i is -1 in state 0 and +1 in state 1.

    Args:
        J: Coupling of all edges, or one array per axis with the couplings of the edges along it. An array has the
            grid's shape; along its own axis it is shorter by 1 unless the grid wraps around.
        h: Field of all variables, or an array of the grid's shape.
        shape: Sides of the grid, for any number of axes; None is the shape of ``h``. The variables are numbered in
            row-major order.
        wrap: Join the last variable along each axis to the first.

    Returns:
        The graph.

    Raises:
        ValueError: The shapes do not fit, a number is not finite, or a side is below 1 (below 3 with ``wrap``).
        NotEnoughMemory: The grid does not fit into memory.
    """
    fields = np.asarray(h, np.float64)
    _check_finite("h", fields)
    sides = _sides(fields.shape if shape is None else shape, wrap)
    if fields.shape not in ((), sides):
        raise ValueError(f"h must be a number or have the grid's shape {sides}, not {fields.shape}")
    nodes = _nodes(math.prod(sides), len(sides))
    edges, counts = _grid_edges(nodes, sides, wrap)
    return _spins(nodes, edges, _couplings(J, counts, sides, wrap), np.broadcast_to(fields, sides), SPINS, sides)


def boltzmann_machine(
    weights: ArrayLike, biases: ArrayLike, states: tuple[float, float] = (0, 1), edges: ArrayLike | None = None
) -> FactorGraph:
    """Build a Boltzmann machine: log p(x) = sum of w_ij x_i x_j over the edges + sum of b_i x_i - log Z.

    Args:
        weights: float[V, V], symmetric with zero diagonal; its non-zero entries are the edges. With ``edges``:
            float[E], the weight of each edge.
        biases: float[V], the bias of each variable.
        states: Values of x in state 0 and state 1: (0, 1) or (-1, 1).
        edges: int[E, 2], the variables of each edge.

    Returns:
        The graph of V variables.

    Raises:
        ValueError: The shapes do not fit, a number is not finite, the matrix is not symmetric, or an edge is listed
            twice.
    """
    if tuple(states) not in ((0, 1), (-1, 1)):
        raise ValueError(f"states must be (0, 1) or (-1, 1), not {states}")
    bias = np.asarray(biases, np.float64)
    if bias.ndim != 1:
        raise ValueError(f"biases must have one entry for each variable, not the shape {bias.shape}")
    w = np.asarray(weights, np.float64)
    _check_finite("biases", bias)
    _check_finite("weights", w)
    if edges is None:
        _check_symmetric(w, len(bias), "weights")
        pairs = np.argwhere(np.triu(w)).astype(np.int32)
        w = w[tuple(pairs.T)]
    else:
        pairs = _check_edges(edges)
        if w.shape != (len(pairs),):
            raise ValueError(f"weights must have one entry for each of the {len(pairs)} edges, not shape {w.shape}")
    return _spins(_nodes(len(bias)), pairs, w, bias, (float(states[0]), float(states[1])))


def complete_graph(J: ArrayLike, h: ArrayLike = 0.0, n_variables: int | None = None) -> FactorGraph:
    """Build an Ising model with an edge between every two variables, even if its coupling is 0.

    The spin is -1 in state 0 and +1 in state 1.

    Args:
        J: Coupling of all edges, or float[V, V], symmetric with zero diagonal.
        h: Field of all variables, or float[V].
        n_variables: Number of variables V, needed if ``J`` and ``h`` are numbers.

    Returns:
        The graph of V variables.

    Raises:
        ValueError: The shapes do not fit, a number is not finite, or the number of variables is missing.
        NotEnoughMemory: The V (V - 1) / 2 edges do not fit into memory.
    """
    couplings, fields = np.asarray(J, np.float64), np.asarray(h, np.float64)
    _check_finite("J", couplings)
    _check_finite("h", fields)
    n = next((n for n in (n_variables, *couplings.shape, *fields.shape) if n is not None), 0)
    if n < 1:
        raise ValueError(f"n_variables must be at least 1 if J and h are numbers, got {n_variables}")
    if fields.shape not in ((), (n,)):
        raise ValueError(f"h must be a number or have the shape ({n},), not {fields.shape}")
    if couplings.ndim:
        _check_symmetric(couplings, n, "J")
    _check_size(n, n * (n - 1) / 2, 3)  # 3 copies: the indices of numpy.triu_indices have 64 bits
    left, right = np.triu_indices(n, 1)
    edges, couplings = np.stack([left, right], axis=1).astype(np.int32), np.broadcast_to(couplings, (n, n))[left, right]
    return _spins(_nodes(n), edges, couplings, np.broadcast_to(fields, n), SPINS)


def potts(J: ArrayLike, unary: ArrayLike, edges: ArrayLike | None = None, *, wrap: bool = False) -> FactorGraph:
    """Build a Potts model: log p(x) = sum of unary[i, x_i] + sum of J_ij over edges of equal states - log Z.

    Args:
        J: Coupling of all edges; or float[E] with ``edges``; or one array per axis of a grid, as in `ising`.
        unary: float[V, K], log-potentials of the states of each variable; on a grid float[side, .., side, K].
        edges: int[E, 2], the variables of each edge; None is a grid.
        wrap: Join the last variable along each axis of a grid to the first.

    Returns:
        The graph.

    Raises:
        ValueError: The shapes do not fit, ``J`` is not finite, an entry of ``unary`` is NaN or +inf, or an edge is
            listed twice.
        NotEnoughMemory: The graph does not fit into memory.
    """
    u = np.asarray(unary, np.float64)
    if u.ndim < 2:
        raise ValueError(
            f"unary must have shape [variables, states], or a grid's shape followed by states, not {u.shape}"
        )
    _check_log_potentials("unary", u)
    n_states = u.shape[-1]
    check_memory(16 * n_states**2, f"the table of {n_states:,} x {n_states:,} states", "use fewer states")
    nodes = _nodes(u[..., 0].size, u.ndim - 1 if edges is None else 0)
    if edges is None:
        sides = _sides(u.shape[:-1], wrap)
        pairs, counts = _grid_edges(nodes, sides, wrap)
        scale = _couplings(J, counts, sides, wrap)
    else:
        pairs, scale = _check_edges(edges), np.asarray(J, np.float64)
        _check_finite("J", scale)
        if u.ndim != 2 or scale.shape not in ((), (len(pairs),)):
            raise ValueError(
                f"if `edges` is set, `unary` must have shape [variables, states], and `J` must be a number or have the"
                f" shape ({len(pairs)},); got `unary` of shape {u.shape} and `J` of shape {scale.shape}"
            )
    factors = [
        TableFactors(nodes[:, None], u.reshape(-1, n_states)),
        TableFactors(pairs, np.eye(n_states)[None], scale=np.broadcast_to(scale, len(pairs))),
    ]
    shape = u.shape[:-1] if edges is None else None
    return FactorGraph(sealed([np.full(len(nodes), n_states, np.int32)]), factors, shape=shape)


def graph_from_joint(probabilities: ArrayLike) -> FactorGraph:
    """Build a graph with a single factor, the table of a joint distribution.

    Args:
        probabilities: float[K1, .., KV], at least 0, not all 0; they need not sum to 1.

    Returns:
        The graph of V variables.

    Raises:
        ValueError: A probability is negative or not finite, or all are 0.
    """
    table = np.asarray(probabilities, np.float64)
    if not table.size or not ((table >= 0) & (table < np.inf)).all() or not table.any():
        raise ValueError(f"probabilities must be finite and at least 0, and not all 0, got {table.tolist()!s:.80}")
    with np.errstate(divide="ignore"):
        factor = TableFactors(np.arange(table.ndim, dtype=np.int32)[None], np.log(table)[None])
    return FactorGraph(np.array(table.shape, np.int32), [factor])


def _spins(
    nodes: Int32s, edges: Int32s, couplings: Floats, fields: Floats, states: tuple[float, float],
    shape: tuple[int, ...] | None = None,
) -> FactorGraph:  # fmt: skip
    """Build a graph of two-state variables with log-potentials field * value_i and coupling * value_i * value_j."""
    values = np.array(states)
    fields = fields.reshape(-1) if any(fields.strides) else constant(fields.flat[0], fields.size, np.float64)
    factors = [
        TableFactors(nodes[:, None], values[None], scale=fields),
        TableFactors(edges, np.outer(values, values)[None], scale=couplings),
    ]
    return FactorGraph(sealed([np.full(len(nodes), 2, np.int32)]), factors, shape=shape)


def _nodes(n: int, edges_each: int = 0) -> Int32s:
    """Return the indices 0 to ``n - 1``; raise an error if a graph of this size does not fit into memory.

    Returns:
        int32[n].
    """
    if n > np.iinfo(np.int32).max:
        raise ValueError(f"a graph can have at most {np.iinfo(np.int32).max} variables (32-bit indices), not {n}")
    _check_size(n, n * edges_each)
    return sealed([np.arange(n, dtype=np.int32)])


def _check_size(n: int, n_edges: float, copies: int = 1) -> None:
    """Raise `NotEnoughMemory` unless the variable indices and ``copies`` copies of the edge list fit into memory."""
    check_memory(8 * (n + copies * n_edges), f"a graph of {n:,} variables and {n_edges:,.0f} edges", "make it smaller")


def _sides(shape: Sequence[int], wrap: bool) -> tuple[int, ...]:
    sides = tuple(int(side) for side in shape) if np.ndim(shape) else ()
    if not sides or min(sides) < 1:
        raise ValueError(
            f"shape must have at least one axis and sides of at least 1, not {shape}; give shape=(rows, columns)"
        )
    if wrap and min(sides) < 3:
        raise ValueError(
            f"shape must have sides of at least 3 if wrap=True, not {sides}: shorter sides would join a pair twice"
        )
    return sides


def _grid_edges(nodes: Int32s, sides: tuple[int, ...], wrap: bool) -> tuple[Int32s, list[int]]:
    """Return the edges [E, 2] of a grid, sorted by axis, and the number of edges along each axis."""
    counts = [len(nodes) if wrap else len(nodes) // side * (side - 1) for side in sides]
    return sealed([_fill_edges(nodes, sides, wrap, counts)]), counts


def _fill_edges(nodes: Int32s, sides: tuple[int, ...], wrap: bool, counts: list[int]) -> Int32s:
    """Return the edges [E, 2] of a grid with ``counts`` edges along each axis."""
    edges, end = np.empty((sum(counts), 2), np.int32), 0
    grid = nodes.reshape(sides)
    for axis, (side, count) in enumerate(zip(sides, counts, strict=True)):
        before, rows = (slice(None),) * axis, side if wrap else side - 1
        step = math.prod(sides[axis + 1 :])
        pairs = edges[end : end + count].reshape(*sides[:axis], rows, *sides[axis + 1 :], 2)
        pairs[..., 0] = grid[(*before, slice(rows))]
        np.add(pairs[..., 0], step, out=pairs[..., 1])
        if wrap:
            pairs[(*before, -1, ..., 1)] -= side * step
        end += count
    return edges


def _couplings(J: ArrayLike, counts: list[int], sides: tuple[int, ...], wrap: bool) -> Floats:
    """Return the coupling of each edge of a grid, in the order of `_grid_edges`."""
    if not isinstance(J, (list, tuple)) and np.ndim(J) == 0:
        _check_finite("J", np.asarray(J, np.float64))
        return constant(J, sum(counts), np.float64)
    arrays = [np.asarray(part, np.float64) for part in J]  # type: ignore[union-attr]
    shapes = [tuple(n - (a == axis and not wrap) for a, n in enumerate(sides)) for axis in range(len(sides))]
    if (found := [a.shape for a in arrays]) != shapes:
        raise ValueError(f"J must be a number or one array per axis, of shapes {shapes}, not {found}")
    for array in arrays:
        _check_finite("J", array)
    return sealed([np.concatenate([a.ravel() for a in arrays])])


def _check_finite(name: str, values: Floats) -> None:
    """Raise ``ValueError`` unless all values of an argument are finite."""
    for value in (values.min(initial=0.0), values.max(initial=0.0)):  # NaN if any value is
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")


def _check_log_potentials(name: str, values: Floats) -> None:
    """Raise ``ValueError`` unless all values of an argument are finite or -inf."""
    value = values.max(initial=0.0)
    if not value < math.inf:
        raise ValueError(f"{name} must be finite or -inf, got {value}")


def _check_symmetric(matrix: Floats, n: int, name: str) -> None:
    if matrix.shape != (n, n):
        raise ValueError(f"{name} must be a matrix of shape ({n}, {n}), not {matrix.shape}")
    if np.diagonal(matrix).any() or not np.array_equal(matrix, matrix.T):
        raise ValueError(
            f"{name} must be symmetric with a zero diagonal, because the entries [i, j] and [j, i] belong to the same"
            f" edge; got {matrix.tolist()!s:.80}"
        )


def _check_edges(edges: ArrayLike) -> Int32s:
    pairs = frozen(edges, np.int32, "edges")
    pairs = pairs if pairs.size else pairs.reshape(0, 2)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"`edges` must have shape [edges, 2], not {pairs.shape}")
    if len(np.unique(np.sort(pairs, axis=1), axis=0)) < len(pairs):
        raise ValueError("`edges` contains a pair of variables twice; list each undirected edge once")
    return pairs
