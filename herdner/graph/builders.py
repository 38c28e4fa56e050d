"""Builders of common graphs. All log-potentials are natural logarithms, and each undirected edge is counted once."""

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
    """Linear chains with one tied transition table: the graph of a document under a chain CRF.

    Many short documents are decoded fastest as the sequences of one graph.

    Args:
        unary: [N, K].
        transition: [K, K], row = left label.
        offsets: [S + 1], sequence s holds the tokens ``offsets[s]`` to ``offsets[s + 1] - 1``; by default all tokens
            are one.
        start: [K], added at the first token of each sequence.
        end: [K], added at the last one.
    """
    unary = np.asarray(unary, np.float64)
    if unary.ndim != 2:
        raise ValueError(f"unary must have shape [tokens, labels], not {unary.shape}")
    n, n_states = unary.shape
    bounds = frozen([0, n] if offsets is None else offsets, np.int64, "offsets")
    if not are_offsets(bounds, n):
        raise ValueError(f"offsets must rise from 0 to the number of tokens, {n}")
    nodes = np.arange(n, dtype=np.int32)
    has_left = np.ones(n + 1, bool)
    has_left[bounds] = False
    right = nodes[has_left[:-1]]
    factors = [
        TableFactors(nodes[:, None], unary),
        TableFactors(np.stack([right - 1, right], axis=1), np.asarray(transition, np.float64)[None]),
    ]
    if start is not None:
        factors.append(TableFactors(nodes[~has_left[:-1], None], np.asarray(start, np.float64)[None]))
    if end is not None:
        factors.append(TableFactors(nodes[~has_left[1:], None], np.asarray(end, np.float64)[None]))
    return FactorGraph(np.full(n, n_states, np.int32), factors)


def ising(J: ArrayLike, h: ArrayLike = 0.0, shape: Sequence[int] | None = None, *, wrap: bool = False) -> FactorGraph:
    """An Ising model on a grid: sum of J_ij s_i s_j over the edges + sum of h_i s_i; s is -1 (label 0) or +1 (label 1).

    Args:
        J: One number, or one array per axis for the edges along it, of the grid's shape less 1 on that axis (the whole
            shape with ``wrap``, the last edge joining the last variable to the first).
        h: One number, or one for each variable.
        shape: The sides of the grid, of any number of axes, by default the shape of ``h``; variables count in row-major
            order.
        wrap: Join the last variable of each axis to the first.
    """
    scale = np.asarray(h, np.float64)
    sides = _sides(scale.shape if shape is None else shape, wrap)
    if scale.shape not in ((), sides):
        raise ValueError(f"h must be a number or have the grid's shape {sides}, not {scale.shape}")
    nodes = _nodes(math.prod(sides), len(sides))
    edges, counts = _grid_edges(nodes, sides, wrap)
    return _spins(nodes, edges, _couplings(J, counts, sides, wrap), np.broadcast_to(scale, sides), SPINS)


def boltzmann(
    weights: ArrayLike, biases: ArrayLike, states: tuple[float, float] = (0, 1), edges: ArrayLike | None = None
) -> FactorGraph:
    """A Boltzmann machine: sum of w_ij x_i x_j over the edges + sum of b_i x_i, each edge once.

    Args:
        weights: A symmetric matrix [V, V] with zero diagonal, whose entries other than zero are the edges; or [E] for
            ``edges``.
        biases: [V].
        states: The values of the labels 0 and 1, (0, 1) or (-1, 1).
        edges: [E, 2].
    """
    if tuple(states) not in ((0, 1), (-1, 1)):
        raise ValueError(f"states must be (0, 1) or (-1, 1), not {states}")
    bias = np.asarray(biases, np.float64)
    if bias.ndim != 1:
        raise ValueError(f"biases must be a list with a number for each variable, not of shape {bias.shape}")
    w = np.asarray(weights, np.float64)
    if edges is None:
        _check_symmetric(w, len(bias), "weights")
        joined = np.argwhere(np.triu(w)).astype(np.int32)
        w = w[tuple(joined.T)]
    else:
        joined = _checked_edges(edges)
        if w.shape != (len(joined),):
            raise ValueError(f"weights must have one entry for each of the {len(joined)} edges, not shape {w.shape}")
    return _spins(_nodes(len(bias)), joined, w, bias, (float(states[0]), float(states[1])))


def complete_graph(J: ArrayLike, h: ArrayLike = 0.0, n_variables: int | None = None) -> FactorGraph:
    """An Ising model (s = -1, +1) in which every pair of variables is joined, with zero couplings too.

    Args:
        J: One number or a symmetric matrix [V, V] with zero diagonal.
        h: One number or [V].
        n_variables: Needed where both are numbers.
    """
    couplings, fields = np.asarray(J, np.float64), np.asarray(h, np.float64)
    n = next((n for n in (n_variables, *couplings.shape, *fields.shape) if n is not None), 0)
    if n < 1:
        raise ValueError("n_variables is needed where J and h are numbers")
    if fields.shape not in ((), (n,)):
        raise ValueError(f"h must be a number or hold {n} of them, not have shape {fields.shape}")
    if couplings.ndim:
        _check_symmetric(couplings, n, "J")
    _check_size(n, n * (n - 1) / 2, 3)  # the pairs are found by numbers of 64 bits
    left, right = np.triu_indices(n, 1)
    return _spins(
        _nodes(n),
        np.stack([left, right], axis=1).astype(np.int32),
        np.broadcast_to(couplings, (n, n))[left, right],
        np.broadcast_to(fields, n),
        SPINS,
    )


def potts(J: ArrayLike, unary: ArrayLike, edges: ArrayLike | None = None, *, wrap: bool = False) -> FactorGraph:
    """A Potts model: sum of J_ij [x_i = x_j] over the edges + sum of unary_i[x_i], over K labels.

    ``unary`` [V, K] with ``edges`` [E, 2] and ``J`` one number or [E]; or ``unary`` [side, .., side, K]
    for a grid, with J as in `ising`.
    """
    u = np.asarray(unary, np.float64)
    if u.ndim < 2:
        raise ValueError(f"unary must have shape [variables, labels], or a grid's shape and then labels, not {u.shape}")
    n_states = u.shape[-1]
    check_memory(16 * n_states**2, f"the table of {n_states:,} x {n_states:,} labels", "use fewer labels")
    nodes = _nodes(u[..., 0].size, u.ndim - 1 if edges is None else 0)
    if edges is None:
        sides = _sides(u.shape[:-1], wrap)
        joined, counts = _grid_edges(nodes, sides, wrap)
        scale = _couplings(J, counts, sides, wrap)
    else:
        joined, scale = _checked_edges(edges), np.asarray(J, np.float64)
        if u.ndim != 2 or scale.shape not in ((), (len(joined),)):
            raise ValueError(
                f"with edges, unary must have shape [V, K], not {u.shape}, and J be a number or hold {len(joined)} of"
                f" them, not have shape {scale.shape}"
            )
    factors = [
        TableFactors(nodes[:, None], u.reshape(-1, n_states)),
        TableFactors(joined, np.eye(n_states)[None], scale=np.broadcast_to(scale, len(joined))),
    ]
    return FactorGraph(_filled(len(nodes), n_states), factors)


def from_joint(probabilities: ArrayLike) -> FactorGraph:
    """One factor that holds a joint distribution: ``probabilities`` [K1, .., KV] >= 0, not all 0, of any sum."""
    table = np.asarray(probabilities, np.float64)
    if not table.size or not ((table >= 0) & (table < np.inf)).all() or not table.any():
        raise ValueError("a joint holds a finite probability of at least 0 for each state, and not only zeros")
    with np.errstate(divide="ignore"):
        factor = TableFactors(np.arange(table.ndim, dtype=np.int32)[None], np.log(table)[None])
    return FactorGraph(np.array(table.shape, np.int32), [factor])


def _spins(nodes: Int32s, edges: Int32s, couplings: Floats, fields: Floats, states: tuple[float, float]) -> FactorGraph:
    """Two-valued variables: one tied table of products and one of values, scaled by the couplings and the fields."""
    values = np.array(states)
    fields = fields.reshape(-1) if any(fields.strides) else constant(fields.flat[0], fields.size, np.float64)
    factors = [
        TableFactors(nodes[:, None], values[None], scale=fields),
        TableFactors(edges, np.outer(values, values)[None], scale=couplings),
    ]
    return FactorGraph(_filled(len(nodes), 2), factors)


def _nodes(n: int, edges_each: int = 0) -> Int32s:
    """int32[n], read-only: the numbers of the variables, each of which brings so many edges with it."""
    if n > np.iinfo(np.int32).max:
        raise ValueError(f"{n} variables are more than the {np.iinfo(np.int32).max} that 32 bits can number")
    _check_size(n, n * edges_each)
    return sealed(np.arange(n, dtype=np.int32))


def _check_size(n: int, n_edges: float, copies: int = 1) -> None:
    """NotEnoughMemory where there is none for the numbers of variables and labels, and for pairs of numbers."""
    check_memory(8 * (n + copies * n_edges), f"a graph of {n:,} variables and {n_edges:,.0f} edges", "make it smaller")


def _filled(n: int, value: int) -> Int32s:
    return sealed(np.full(n, value, np.int32))


def _sides(shape: Sequence[int], wrap: bool) -> tuple[int, ...]:
    sides = tuple(int(side) for side in shape)
    if not sides or min(sides) < 1:
        raise ValueError(
            f"a grid needs at least one axis and sides of at least 1, not the shape {sides}; give shape=(rows, columns)"
        )
    if wrap and min(sides) < 3:
        raise ValueError(
            f"a grid that wraps around needs sides of at least 3, not {sides}: shorter ones would join a pair twice"
        )
    return sides


def _grid_edges(nodes: Int32s, sides: tuple[int, ...], wrap: bool) -> tuple[Int32s, list[int]]:
    """The edges [E, 2], axis by axis, each axis in row-major order of the first variables; how many each axis has."""
    counts = [len(nodes) if wrap else len(nodes) // side * (side - 1) for side in sides]
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
    return sealed(edges), counts


def _couplings(J: ArrayLike, counts: list[int], sides: tuple[int, ...], wrap: bool) -> Floats:
    """One coupling per edge, axis by axis."""
    if not isinstance(J, (list, tuple)) and np.ndim(J) == 0:
        return constant(J, sum(counts), np.float64)
    arrays = [np.asarray(part, np.float64) for part in J]  # type: ignore[union-attr]
    wanted = [tuple(n - (a == axis and not wrap) for a, n in enumerate(sides)) for axis in range(len(sides))]
    if [a.shape for a in arrays] != wanted:
        raise ValueError(
            f"J must be a number or one array per axis, of shapes {wanted}, not {[a.shape for a in arrays]}"
        )
    return sealed(np.concatenate([a.ravel() for a in arrays]))


def _check_symmetric(matrix: Floats, n: int, name: str) -> None:
    if matrix.shape != (n, n):
        raise ValueError(f"{name} must be a matrix of shape ({n}, {n}), not {matrix.shape}")
    if np.diagonal(matrix).any() or not np.array_equal(matrix, matrix.T):
        raise ValueError(
            f"{name} must be symmetric with a zero diagonal; entry [i, j] and [j, i] are the same edge, counted once"
        )


def _checked_edges(edges: ArrayLike) -> Int32s:
    joined = frozen(edges, np.int32, "edges")
    joined = joined if joined.size else joined.reshape(0, 2)
    if joined.ndim != 2 or joined.shape[1] != 2:
        raise ValueError(f"edges must have shape [E, 2], not {joined.shape}")
    if len(np.unique(np.sort(joined, axis=1), axis=0)) < len(joined):
        raise ValueError("edges names a pair of variables twice; each undirected edge is counted once")
    return joined
