"""Parameters of table factors that influence bounds need: log ranges, couplings, fields, and interaction sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from herdner._ext import conditionals as loops
from herdner.base.arrays import Floats, Int32s
from herdner.graph.edges import pair_keys
from herdner.graph.factors import TableFactors
from herdner.graph.tables import TableGraph

_EPSILON = float(np.finfo(np.float64).eps)
_NEGLIGIBLE = 1e-13  # smaller rounding errors of log-potentials are ignored


def sizes_by_variable(compiled: TableGraph, base: float = 1.0) -> tuple[Floats, Floats]:
    """Return, for each variable, the sum of its factors' largest absolute log-potentials, and its number of factors.

    The size of a factor is its largest finite log-potential in absolute value. In both results, a factor of ``a``
    variables is counted ``base ** a`` times.

    Args:
        compiled: The graph.
        base: The base of the power, at least 1.

    Returns:
        The sums of sizes and the numbers of factors, float64[V] each.
    """
    size, count = np.zeros(len(compiled.sizes)), np.zeros(len(compiled.sizes))
    for group in compiled.factors:
        rows = np.where(np.isfinite(group.rows), np.abs(group.rows), 0.0).max(axis=1, initial=0.0)
        sizes = np.abs(group.scale) * rows[group.table_of_factor] * base**group.arity
        for a in range(group.arity):
            size += np.bincount(group.scopes[:, a], sizes, len(size))
            count += np.bincount(group.scopes[:, a], minlength=len(size)) * base**group.arity
    return size, count


def rounding_errors(compiled: TableGraph) -> Floats:
    """Return, for each variable, a bound on the rounding errors in sums of its log-potentials, float64[V].

    A sum of n numbers of total size S has a rounding error of at most about n S 2^-52. The total size is that of all
    factors with the variable; a table of ``a`` variables counts 2^a times, as often as an expansion into spin products
    uses it. Errors below 1e-13 become 0, so that ordinary bounds do not depend on them.

    Args:
        compiled: The graph.
    """
    if _EPSILON * sum(2.0**group.arity * group.reach * (len(group) + 8) for group in compiled.factors) < _NEGLIGIBLE:
        return np.zeros(len(compiled.sizes))
    size, count = sizes_by_variable(compiled, 2.0)
    errors = _EPSILON * (count + 8) * size
    return np.where(errors > _NEGLIGIBLE, errors, 0.0)


def log_ranges(factors: Sequence[TableFactors]) -> tuple[Int32s, Floats]:
    """Return the variable pairs of all factors, and the log-range R of each pair (DoGS17, Theorem 10).

    R is the largest (t[a, x] - t[a, y]) - (t[b, x] - t[b, y]) of the table t. It is infinite if the table holds -inf.
    If several two-variable factors have the same pair, R is computed for the sum of their tables. The first of these
    factors gets this R, and the others get 0. Rounding does not make R too small.

    Args:
        factors: Groups of table factors.

    Returns:
        The pairs, int32[P, 2], and R of each pair, float64[P].
    """
    pairs, ranges = [np.empty((0, 2), np.int32)], [np.empty(0)]
    twos = [group for group in factors if group.arity == 2 and len(group)]
    for group in twos:
        pairs.append(group.scopes)
        ranges.append(np.abs(group.scale) * _ranges(group.tables)[group.table_of_factor])
    pairs, ranges = [np.concatenate(pairs)], [np.concatenate(ranges)]
    _merge_repeated(twos, pairs[0], ranges[0])
    for group in factors:
        for a, b in combinations(range(group.arity if group.arity > 2 else 0), 2):
            tables = np.moveaxis(group.tables, (a + 1, b + 1), (-2, -1))
            flat = tables.reshape(-1, *tables.shape[-2:])
            largest = _ranges(flat).reshape(len(tables), -1).max(axis=1, initial=0.0)
            pairs.append(group.scopes[:, [a, b]])
            ranges.append(np.abs(group.scale) * largest[group.table_of_factor])
    return np.ascontiguousarray(np.concatenate(pairs)), np.concatenate(ranges)


def pair_couplings(factors: Sequence[TableFactors]) -> tuple[Int32s, Floats]:
    """Return the variables and the coupling theta_ij of each factor of two binary variables (DoGS17, eq. 3).

    Args:
        factors: Groups of table factors over binary variables.

    Returns:
        The pairs, int32[P, 2], and the couplings, float64[P]. A coupling is infinite if the table holds -inf.
    """
    groups = [group for group in factors if group.arity == 2 and len(group)]
    if not groups:
        return np.empty((0, 2), np.int32), np.empty(0)
    thetas: list[Floats] = []
    for group in groups:
        t = group.tables
        with np.errstate(invalid="ignore"):
            coupling = (t[:, 0, 0] - t[:, 0, 1] - t[:, 1, 0] + t[:, 1, 1]) / 4
        coupling[~np.isfinite(t).all(axis=(1, 2))] = np.inf
        thetas.append(group.scale * (coupling[group.table_of_factor] if len(coupling) > 1 else coupling[0]))
    if len(groups) == 1:
        return groups[0].scopes, thetas[0]
    return np.concatenate([group.scopes for group in groups]), np.concatenate(thetas)


def binary_fields(compiled: TableGraph) -> Floats:
    """Return the field theta_i of each binary variable (DoGS17, eq. 3).

    Args:
        compiled: A graph of binary variables. Unary and pair tables contribute to the fields.

    Returns:
        float64[V].
    """
    odds = np.zeros(len(compiled.sizes))
    for group in compiled.factors:
        if group.arity == 1:
            loops.add_unary(odds, None, group.scopes, group.table_of_factor, group.scale, group.tables)
    fields = -0.5 * odds
    for group in compiled.factors:
        if group.arity != 2:
            continue
        for a in range(2):
            t = np.moveaxis(group.tables, a + 1, 1)
            with np.errstate(invalid="ignore"):
                own = (t[:, 1] - t[:, 0]).sum(axis=1) / 4
            own[~np.isfinite(own)] = 0.0  # no field matters beside an infinite coupling
            if own.any():
                weights = group.scale * own[group.table_of_factor]
                fields += np.bincount(group.scopes[:, a], weights, len(fields))
    return fields


def interactions(compiled: TableGraph) -> tuple[list[tuple[Int32s, Floats]], Floats]:
    """Expand the tables of a binary graph into products of spins; return the coefficients theta_S (DoGS17, Theorem 12).

    The coefficients of single spins are returned as fields.

    Each table is expanded into products of spins -1 and +1. An infinite entry makes all theta_S of its table infinite.

    Args:
        compiled: A graph of binary variables.

    Returns:
        For each set size a, the sets S, int32[F, a], with theta_S, float64[F]; and the fields, float64[V].
    """
    fields = np.zeros(len(compiled.sizes))
    by_size: dict[int, tuple[list[Int32s], list[Floats]]] = {}
    for group in compiled.factors:
        if not len(group) or not group.arity:
            continue
        parts, is_rounded = _products(group.tables), 2.0**group.arity * group.reach * _EPSILON > _NEGLIGIBLE
        for members in (m for n in range(1, group.arity + 1) for m in combinations(range(group.arity), n)):
            cell = tuple(int(a in members) for a in range(group.arity))
            theta = group.scale * parts[(slice(None), *cell)][group.table_of_factor]
            if len(members) == 1:
                fields += np.bincount(group.scopes[:, members[0]], theta, len(fields))
            elif theta.any() or is_rounded:  # rounding may reduce a non-zero interaction to 0
                sets, thetas = by_size.setdefault(len(members), ([], []))
                sets.append(np.sort(group.scopes[:, members], axis=1))
                thetas.append(theta)
    merged: list[tuple[Int32s, Floats]] = []
    for sets, thetas in by_size.values():
        distinct, which = np.unique(np.concatenate(sets), axis=0, return_inverse=True)
        summed = np.bincount(which.reshape(-1), np.concatenate(thetas), len(distinct))
        merged.append((distinct, summed.astype(np.float64, copy=False)))
    return merged, fields


def _products(tables: Floats) -> Floats:
    """Expand each of T tables into products of spins; return the coefficients of the products, float64[T, 2, ..].

    Cell (s_1, .., s_a) is the coefficient of the product of the spins with s = 1.
    """
    infinite = ~np.isfinite(tables).all(axis=tuple(range(1, tables.ndim)))
    parts = np.where(np.isfinite(tables), tables, 0.0)
    for axis in range(1, parts.ndim):
        low, high = np.take(parts, 0, axis), np.take(parts, 1, axis)
        parts = np.stack([(low + high) / 2, (high - low) / 2], axis)
    for cell in np.ndindex(*parts.shape[1:]):
        if sum(cell) and parts.ndim > 2:
            parts[(infinite, *cell)] = np.inf if sum(cell) > 1 else 0.0
    if parts.ndim == 2:  # unary tables: the log-odds may be infinite
        with np.errstate(invalid="ignore"):
            parts[:, 1] = (tables[:, 1] - tables[:, 0]) / 2
    return parts


def _ranges(tables: Floats) -> Floats:
    """Return the log-range R (DoGS17, Theorem 10) of each of T tables [K, L], increased by its rounding error."""
    largest, widest = np.zeros(len(tables)), np.zeros(len(tables))
    with np.errstate(invalid="ignore"):
        for x in range(tables.shape[2]):
            change = tables[:, :, x, None] - tables
            np.maximum(largest, (change.max(axis=1) - change.min(axis=1)).max(axis=1), out=largest)
            np.maximum(widest, np.abs(change).max(axis=(1, 2)), out=widest)
    largest[~np.isfinite(tables).all(axis=(1, 2))] = np.inf
    return largest + _allowance(2 * widest + largest)


def _allowance(size: Floats) -> Floats:
    """Bound the rounding errors of sums whose terms have the absolute sum ``size``; tiny bounds become 0."""
    errors = 2 * _EPSILON * size
    return np.where(errors > _NEGLIGIBLE, errors, 0.0)


def _merge_repeated(groups: Sequence[TableFactors], pairs: Int32s, ranges: Floats) -> None:
    """Merge, in place, the log-ranges R of all factors that join the same pair of variables into one log-range.

    The first range of such a pair becomes the range of the sum of its tables, and its other ranges become 0.
    """
    keys = pair_keys(pairs)
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if not len(again):
        return
    ends = np.cumsum([len(group) for group in groups])
    merged: dict[int, tuple[int, Floats, float]] = {}  # the first factor of each pair, the sum of the tables, its size
    for f in map(int, order[np.union1d(again, again + 1)]):
        g = int(np.searchsorted(ends, f, side="right"))
        at = f - int(ends[g]) + len(groups[g])
        table: Floats = groups[g].scale[at] * groups[g].tables[groups[g].table_of_factor[at]]
        table = table if pairs[f, 0] < pairs[f, 1] else table.T
        first, total, size = merged.get(int(keys[f]), (f, np.zeros(table.shape), 0.0))
        size += len(again) * float(np.abs(table[np.isfinite(table)]).max(initial=0.0))
        merged[int(keys[f])], ranges[f] = (first, total + table, size), 0.0
    for first, total, size in merged.values():
        ranges[first] = _ranges(total[None])[0] + _allowance(np.array(4 * size))
