"""What the influence bounds are made of, read off table factors: ranges, couplings, fields, sets of interaction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from herdner._ext import conditionals as loops
from herdner.base.arrays import Floats, Int32s
from herdner.graph.factors import TableFactors
from herdner.graph.linked_chains import pair_keys
from herdner.graph.tables import TableGraph


def log_ranges(factors: Sequence[TableFactors]) -> tuple[Int32s, Floats]:
    """Each pair of variables of each factor, int32[P, 2], and its R of Theorem 10: the largest (t[a, x] - t[a, y]) -
    (t[b, x] - t[b, y]), infinite where the table holds -inf.

    The tables of a pair that several factors of two variables join are added up first: R stands with the first of them.
    """
    pairs, ranges = [np.empty((0, 2), np.int32)], [np.empty(0)]
    twos = [group for group in factors if group.arity == 2 and len(group)]
    for group in twos:
        pairs.append(group.scopes)
        ranges.append(np.abs(group.scale) * _ranges(group.tables)[group.table_of_factor])
    joined, found = np.concatenate(pairs), np.concatenate(ranges)
    _merge_repeated(twos, joined, found)
    pairs, ranges = [joined], [found]
    for group in factors:
        for a, b in combinations(range(group.arity if group.arity > 2 else 0), 2):
            tables = np.moveaxis(group.tables, (a + 1, b + 1), (-2, -1))
            flat = tables.reshape(-1, *tables.shape[-2:])
            largest = _ranges(flat).reshape(len(tables), -1).max(axis=1, initial=0.0)
            pairs.append(group.scopes[:, [a, b]])
            ranges.append(np.abs(group.scale) * largest[group.table_of_factor])
    return np.ascontiguousarray(np.concatenate(pairs)), np.concatenate(ranges)


def pair_couplings(factors: Sequence[TableFactors]) -> tuple[Int32s, Floats]:
    """The pairs int32[P, 2] of factors of two variables of two labels, and theta_ij of each (DoGS17 eq. 3), infinite
    where the table holds -inf.
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
    """float64[V]: theta_i of eq. 3, of unary factors and of what pair tables say of one of their variables alone."""
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
            own[~np.isfinite(own)] = 0.0  # beside an infinite coupling fields say nothing
            if own.any():
                weights = group.scale * own[group.table_of_factor]
                fields += np.bincount(group.scopes[:, a], weights, len(fields))
    return fields


def interactions(compiled: TableGraph) -> tuple[list[tuple[Int32s, Floats]], Floats]:
    """The form of Theorem 12 of a graph of two labels: for each size the sets S int32[F, a] and theta_S; the fields.

    A table is taken apart into products of states -1 and +1; what is infinite in one makes all its theta_S infinite.
    """
    fields = np.zeros(len(compiled.sizes))
    by_size: dict[int, tuple[list[Int32s], list[Floats]]] = {}
    for group in compiled.factors:
        if not len(group) or not group.arity:
            continue
        parts = _products(group.tables)
        for members in (m for n in range(1, group.arity + 1) for m in combinations(range(group.arity), n)):
            cell = tuple(int(a in members) for a in range(group.arity))
            theta = group.scale * parts[(slice(None), *cell)][group.table_of_factor]
            if len(members) == 1:
                fields += np.bincount(group.scopes[:, members[0]], theta, len(fields))
            elif theta.any():
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
    """[T, 2, ..]: cell (s_1, ..) is the coefficient of the product of the states whose s is 1."""
    infinite = ~np.isfinite(tables).all(axis=tuple(range(1, tables.ndim)))
    parts = np.where(np.isfinite(tables), tables, 0.0)
    for axis in range(1, parts.ndim):
        low, high = np.take(parts, 0, axis), np.take(parts, 1, axis)
        parts = np.stack([(low + high) / 2, (high - low) / 2], axis)
    for cell in np.ndindex(*parts.shape[1:]):
        if sum(cell) and parts.ndim > 2:
            parts[(infinite, *cell)] = np.inf if sum(cell) > 1 else 0.0
    if parts.ndim == 2:  # unary: infinite odds
        with np.errstate(invalid="ignore"):
            parts[:, 1] = (tables[:, 1] - tables[:, 0]) / 2
    return parts


def _ranges(tables: Floats) -> Floats:
    """R of each of the tables [T, K, L]."""
    largest = np.zeros(len(tables))
    with np.errstate(invalid="ignore"):
        for x in range(tables.shape[2]):
            change = tables[:, :, x, None] - tables
            np.maximum(largest, (change.max(axis=1) - change.min(axis=1)).max(axis=1), out=largest)
    largest[~np.isfinite(tables).all(axis=(1, 2))] = np.inf
    return largest


def _merge_repeated(groups: Sequence[TableFactors], pairs: Int32s, ranges: Floats) -> None:
    """Where several factors join one pair, ``ranges`` of the first becomes that of their sum, those of the others 0."""
    keys = pair_keys(pairs)
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if not len(again):
        return
    ends = np.cumsum([len(group) for group in groups])
    sums: dict[int, Floats] = {}
    firsts: dict[int, int] = {}
    for f in map(int, order[np.union1d(again, again + 1)]):
        g = int(np.searchsorted(ends, f, side="right"))
        at = f - int(ends[g]) + len(groups[g])
        table = groups[g].scale[at] * groups[g].tables[groups[g].table_of_factor[at]]
        table = table if pairs[f, 0] < pairs[f, 1] else table.T
        key = int(keys[f])
        if key in sums:
            sums[key], ranges[f] = sums[key] + table, 0.0
        else:
            sums[key], firsts[key] = table, f
    for key, f in firsts.items():
        ranges[f] = _ranges(sums[key][None])[0]
