"""Dobrushin's influence matrix: how much one variable can change the full conditional of another (DoGS17 Sec. 3, 4.1).

C_ij, the influence of variable j on variable i, is the largest total variation distance between two conditionals of i
whose conditions differ at j alone (Definition 6). What is computed here are entrywise upper bounds of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import influence as loops
from herdner.base.arrays import Floats, Int32s, Int64s, frozen, sealed
from herdner.base.checks import rises
from herdner.dobrushin.interactions import binary_fields, interactions, log_ranges, pair_couplings
from herdner.graph.tables import Graph, TableGraph, compile_tables

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

_POWER_STEPS = 100
_POWER_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Influence:
    """An upper bound of Dobrushin's matrix C, row by row: ``sources[starts[i] : starts[i + 1]]`` are the variables j
    that C_ij is given for, in ``values``; all others do not influence i.

    Entry (i, j) is there where (j, i) is (it may be 0), and no variable influences itself.

    Attributes:
        starts: int64[V + 1].
        sources: int32[nnz].
        values: float64[nnz], at least 0.
        theorem: Where the bound comes from.
        graph: What it is a bound of, None for a matrix of one's own; the order of a checkerboard scan depends on it.
    """

    starts: Int64s
    sources: Int32s
    values: Floats
    theorem: str
    graph: TableGraph | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, dtype in (("starts", np.int64), ("sources", np.int32), ("values", np.float64)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, f"the {name} of an influence matrix"))
        check_entries(self.starts, self.sources, self.values, "an influence matrix")
        n = self.n_variables
        if len(self.sources) and not 0 <= self.sources.min() <= self.sources.max() < n:
            raise ValueError(f"sources of an influence matrix must be variables, 0 to {n - 1}")

    @classmethod
    def of_matrix(cls, matrix: ArrayLike | csr_array, theorem: str = "given") -> Influence:
        """A matrix of one's own, [V, V], dense or sparse: entry [i, j] bounds the influence of j on i."""
        from scipy.sparse import coo_array, issparse  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        given: Any = coo_array(matrix if issparse(matrix) else np.asarray(matrix, np.float64))
        if given.ndim != 2 or given.shape[0] != given.shape[1]:
            raise ValueError(f"an influence matrix has as many rows as columns, not the shape {given.shape}")
        given.sum_duplicates()
        rows, columns = (axis.astype(np.int64) for axis in given.coords)
        if (given.data[rows == columns] != 0).any():
            raise ValueError("an influence matrix has a zero diagonal: no variable influences itself")
        apart = rows != columns
        return cls._of_entries(given.shape[0], rows[apart], columns[apart], given.data[apart], theorem)

    @classmethod
    def _of_entries(cls, n: int, rows: Int64s, columns: Int64s, values: Floats, theorem: str) -> Influence:
        """The entries of a matrix, all different, and 0 for those whose mirror image alone is there."""
        keys = np.concatenate([rows, columns]) * n + np.concatenate([columns, rows])
        keys, at = np.unique(keys, return_inverse=True)
        complete = np.zeros(len(keys))
        complete[at.reshape(-1)[: len(rows)]] = values
        owners, sources = np.divmod(keys, max(n, 1))
        starts = np.searchsorted(owners, np.arange(n + 1)).astype(np.int64)
        return cls(starts, sources.astype(np.int32), complete, theorem)

    def _keys(self) -> Int64s:
        """A number for each entry, the same wherever the same two variables meet."""
        owners = np.repeat(np.arange(self.n_variables), np.diff(self.starts))
        return owners * self.n_variables + self.sources

    def smaller(self, other: Influence) -> Influence:
        """Entry by entry the smaller of two bounds of one graph; an entry that ``other`` has not is 0."""
        _, a, b = np.intersect1d(self._keys(), other._keys(), return_indices=True)
        values = np.zeros(len(self.values))
        values[a] = np.minimum(self.values[a], other.values[b])
        return replace(self, values=values, theorem=f"{self.theorem}, {other.theorem}")

    @property
    def n_variables(self) -> int:
        """V."""
        return len(self.starts) - 1

    def to_scipy(self) -> csr_array:
        """The matrix [V, V] as a SciPy sparse array."""
        from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

        return csr_array((self.values, self.sources, self.starts), (self.n_variables, self.n_variables))

    def scaled(self, factor: float) -> Influence:
        """The same matrix times a number: a looser bound where it is above 1 (DoGS17 Sec. 5.6), none where below."""
        if not (np.isfinite(factor) and factor >= 0):
            raise ValueError(f"an influence matrix is scaled by a number of at least 0, not {factor}")
        return replace(self, values=self.values * factor, theorem=f"{factor:g} x {self.theorem}")

    @cached_property
    def total(self) -> TotalInfluence:
        """Its norms."""
        return TotalInfluence(self._largest_sum(False), self._largest_sum(True), self._spectral())

    def total_rows(self) -> float:
        """The infinity norm alone."""
        return self._largest_sum(True)

    def _largest_sum(self, of_rows: bool) -> float:
        sums, ones = np.empty(self.n_variables), np.ones(self.n_variables)
        multiply = loops.multiply if of_rows else loops.multiply_transposed
        multiply(self, ones, sums)
        return float(sums.max(initial=0.0))

    def _spectral(self) -> float:
        """An upper bound of the spectral norm: the largest (C^T C x)_i / x_i bounds the eigenvalues of C^T C for any
        x > 0 (Collatz and Wielandt), and power iteration brings it down.
        """
        x, y, z = np.ones(self.n_variables), np.empty(self.n_variables), np.empty(self.n_variables)
        largest = np.inf
        for _ in range(_POWER_STEPS):
            loops.multiply(self, x, y)
            loops.multiply_transposed(self, y, z)
            positive = x > 0  # the others influence nothing
            before, largest = largest, min(largest, float((z[positive] / x[positive]).max(initial=0.0)))
            if not largest or before - largest <= _POWER_TOLERANCE * largest:
                break
            x, z = z / z.max(), x
        return float(np.sqrt(largest))


def check_entries(starts: Int64s, sources: Int32s | Int64s, values: Floats, what: str) -> None:
    """ValueError where these are not the rows of a sparse matrix of finite numbers of at least 0."""
    if sources.ndim != 1 or values.shape != sources.shape:
        raise ValueError(f"sources and values of {what} are rows of one length")
    if not rises(starts, len(sources)):
        raise ValueError(f"starts of {what} must rise from 0 to the number of its entries, {len(sources)}")
    if len(values) and not 0 <= values.min() <= values.max() < np.inf:
        raise ValueError(f"{what} holds finite numbers of at least 0")


@dataclass(frozen=True, slots=True)
class TotalInfluence:
    """Norms of an influence matrix: the largest column sum, the largest row sum, the largest singular value (that from
    above, to about 1e-4). Where one of them is below 1, the Dobrushin variation of systematic and uniform random scans
    goes to 0 (DoGS17 Proposition 9, after Hayes 2006).
    """

    one: float
    infinity: float
    spectral: float

    @property
    def smallest(self) -> float:
        """The smallest of them."""
        return min(self.one, self.infinity, self.spectral)

    def __str__(self) -> str:
        norms = f"1-norm {self.one:.4g}, infinity norm {self.infinity:.4g}, spectral norm {self.spectral:.4g}"
        if self.smallest < 1:
            return f"total influence is below 1 ({norms}): systematic and uniform random scans converge geometrically"
        return f"total influence is not below 1 ({norms}): no scan is sure to converge by this bound"


def pairwise_bound(graph: Graph) -> Influence:
    """Theorem 10: C_ij <= tanh(R / 4), R = the largest (t[a, x] - t[a, y]) - (t[b, x] - t[b, y]) of the table t.

    For any numbers of labels. Factors of more than two variables, which the theorem leaves out, are taken at the labels
    of their other variables that make R largest, and the R of all factors of a pair are added up: the proof is the
    same. Where a factor of a pair holds -inf the bound is 1. Time O(factors + cells of the tables x labels).
    """
    compiled = compile_tables(graph)
    starts, sources, values = _rows(len(compiled.sizes), *log_ranges(compiled.factors))
    loops.bound_pairwise(values)
    return _sealed(compiled, starts, sources, values, "Theorem 10")


def binary_pairwise_bound(graph: Graph) -> Influence:
    """Theorem 11: the influences of a graph of two labels and pairs; exact where the b of the theorem is not 1.

    Pair tables of any form are taken apart into couplings and fields of the states -1 (label 0) and +1 (label 1). Time
    O(factors), one exponential for each entry.

    Raises:
        ValueError: The graph has other variables or factors.
    """
    compiled = compile_tables(graph)
    _check_binary(compiled)
    wide = next((g for g in compiled.factors if g.arity > 2 and len(g)), None)
    if wide is not None:
        raise ValueError(
            f"Theorem 11 is about factors of two variables, not of {wide.arity}; use binary_bound or tightest_influence"
        )
    starts, sources, values = _rows(len(compiled.sizes), *pair_couplings(compiled.factors))
    loops.bound_binary(starts, values, binary_fields(compiled), False)
    return _sealed(compiled, starts, sources, values, "Theorem 11")


def binary_bound(graph: Graph, *, as_printed: bool = True) -> Influence:
    """Theorem 12: a graph of two labels with factors of any arity.

    ``as_printed`` False leaves out the last step of the theorem's proof, which puts both factors of its denominator at
    their smallest: the bound is then never larger, and that of Theorem 11 where all factors are pairs.

    Raises:
        ValueError: There are other numbers of labels.
    """
    compiled = compile_tables(graph)
    _check_binary(compiled)
    starts, sources, values, fields = _interaction_rows(compiled)
    loops.bound_binary(starts, values, fields, as_printed)
    return _sealed(compiled, starts, sources, values, "Theorem 12" if as_printed else "Theorem 12, sharpened")


def exact_influence(graph: Graph, max_states: int = 2**16) -> Influence:
    """Definition 6 itself, by enumeration of each variable's blanket.

    Conditions under which no label is possible count as different from all others (influence 1): with hard constraints
    the bounds of scans need it, as their proof walks through such conditions.

    Raises:
        ValueError: A blanket has more states.
    """
    compiled = compile_tables(graph)
    starts, sources, _ = _rows(len(compiled.sizes), *log_ranges(compiled.factors))
    values = np.zeros(len(sources))
    left = overwrite_exact_entries(compiled, starts, sources, values, max_states)
    if left >= 0:
        raise ValueError(
            f"the blanket of variable {left} has more than {max_states} states; raise max_states or use a bound"
        )
    return Influence(starts, sources, values, "Definition 6", compiled)


def tightest_influence(graph: Graph, exact_states: int = 0) -> Influence:
    """Entry by entry the smallest of all bounds that fit the graph.

    Args:
        exact_states: Variables whose blanket has at most so many states are enumerated, which takes about as many steps
            each; 0 enumerates none.
    """
    compiled = compile_tables(graph)
    binary = bool((compiled.sizes == 2).all())
    if binary and all(g.arity <= 2 or not len(g) for g in compiled.factors):
        best = binary_pairwise_bound(compiled)  # never above Theorem 10
    else:
        best = pairwise_bound(compiled)
        if binary:
            best = best.smaller(binary_bound(compiled, as_printed=False))
    if exact_states:
        values = best.values.copy()
        overwrite_exact_entries(compiled, best.starts, best.sources, values, exact_states)
        values = np.minimum(values, best.values)
        best = replace(best, values=values, theorem=f"{best.theorem}, Definition 6")
    return best


def _sealed(compiled: TableGraph, starts: Int64s, sources: Int32s, values: Floats, theorem: str) -> Influence:
    """Of arrays that nobody else has, which need no copy."""
    return Influence(sealed(starts), sealed(sources), sealed(values), theorem, compiled)


def _check_binary(compiled: TableGraph) -> None:
    other = np.flatnonzero(compiled.sizes != 2)
    if len(other):
        i = int(other[0])
        raise ValueError(
            f"Theorems 11 and 12 are about two labels, but variable {i} has {compiled.sizes[i]}; use pairwise_bound"
        )


def _rows(n: int, pairs: Int32s, strength: Floats) -> tuple[Int64s, Int32s, Floats]:
    """The symmetric matrix of these pairs, row by row; the strengths of a pair that comes again are added up."""
    starts = np.zeros(n + 1, np.int64)
    loops.count_pairs(pairs, starts)
    np.cumsum(starts, out=starts)
    sources, values = np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]))
    loops.place_pairs(pairs, strength, starts[:-1].copy(), sources, values)
    left = loops.merge_repeated(starts, sources, values)
    return (starts, sources, values) if left == len(sources) else (starts, sources[:left].copy(), values[:left].copy())


def _interaction_rows(compiled: TableGraph) -> tuple[Int64s, Int32s, Floats, Floats]:
    """For Theorem 12: for each pair the sum of |theta_S| of the sets S with both, and the fields.

    A bound over S with i but not j is over the difference of what i is in, in all, and what it is in with j. The loop
    takes the former to be the sum of the row, which is right for pairs; the difference is put into the fields.
    """
    sets, fields = interactions(compiled)
    pairs = [np.empty((0, 2), np.int32)]
    strength, within, counted = [np.empty(0)], np.zeros(len(fields)), np.zeros(len(fields))
    for scopes, theta in sets:
        arity = scopes.shape[1]
        size = np.abs(theta)
        for a in range(arity):
            within += np.bincount(scopes[:, a], size, len(fields))
            counted += np.bincount(scopes[:, a], size * (arity - 1), len(fields))
            for b in range(a):
                pairs.append(scopes[:, [b, a]])
                strength.append(size)
    starts, sources, values = _rows(len(fields), np.concatenate(pairs), np.concatenate(strength))
    with np.errstate(invalid="ignore"):
        fields = np.abs(fields) + (counted - within)  # infinity less infinity makes b = 1
    return starts, sources, values, fields


# Of one variable's factors: the other variables, and the log-potentials [K, others ..].
_Local = list[tuple[list[int], Floats]]


def overwrite_exact_entries(
    compiled: TableGraph, starts: Int64s, sources: Int32s, values: Floats, max_states: int
) -> int:
    """Overwrites the rows of variables whose blankets have at most ``max_states`` states by their exact influences
    (DoGS17 eq. 1).

    A condition under which no label is possible counts as different from any under which one is. Returns the first
    variable that was left out, or -1.
    """
    sizes = compiled.sizes
    small = [
        i
        for i in range(len(sizes))
        if math.prod(int(sizes[j]) for j in sources[starts[i] : starts[i + 1]]) <= max_states
    ]
    for i, factors in zip(small, _local_factors(compiled, small), strict=True):
        row = slice(int(starts[i]), int(starts[i + 1]))
        many = np.flatnonzero(sizes[sources[row]] > 1)  # NumPy has few axes, and one label influences nothing
        blanket = sources[row][many].tolist()
        p, possible = _conditional(int(sizes[i]), sizes[blanket].tolist(), blanket, factors)
        values[row] = 0.0
        values[row.start + many] = [
            _influence(np.moveaxis(p, a, 0), np.moveaxis(possible, a, 0)) for a in range(len(blanket))
        ]
    return min({*range(len(sizes))}.difference(small), default=-1)


def _local_factors(compiled: TableGraph, variables: Sequence[int]) -> list[_Local]:
    place = {i: at for at, i in enumerate(variables)}
    found: list[_Local] = [[] for _ in variables]
    for group in compiled.factors:
        for scope, table, scale in zip(group.scopes.tolist(), group.table_of_factor, group.scale, strict=True):
            for a, i in enumerate(scope):
                if i in place:
                    values = np.moveaxis(scale * group.tables[table], a, 0)
                    found[place[i]].append((scope[:a] + scope[a + 1 :], values))
    return found


def _conditional(
    n_labels: int, sizes: list[int], blanket: list[int], factors: _Local
) -> tuple[Floats, NDArray[np.bool_]]:
    """[labels of the blanket .., K]: the probabilities; [labels of the blanket ..]: whether any label is possible."""
    log_p = np.zeros((*sizes, n_labels))
    for others, values in factors:
        place = {j: a for a, j in enumerate(blanket)}
        order = sorted(range(len(others)), key=lambda k: place.get(others[k], -1))
        turned = np.transpose(values, [*(1 + k for k in order), 0])
        shape = [sizes[a] if j in others else 1 for a, j in enumerate(blanket)]
        log_p = log_p + turned.reshape(*shape, n_labels)
    top = log_p.max(axis=-1, keepdims=True)
    possible = top[..., 0] > -np.inf
    p = np.exp(log_p - np.where(np.isfinite(top), top, 0.0))
    return p / np.maximum(p.sum(axis=-1, keepdims=True), np.finfo(float).tiny), possible


def _influence(p: Floats, possible: NDArray[np.bool_]) -> float:
    """The largest total variation distance between conditionals that differ in the first axis alone."""
    largest = 0.0
    for x in range(len(p)):
        for y in range(x):
            distance: Floats = 0.5 * np.abs(p[x] - p[y]).sum(axis=-1)
            distance = np.where(possible[x] & possible[y], distance, (possible[x] != possible[y]).astype(float))
            largest = max(largest, float(distance.max(initial=0.0)))
    return min(largest, 1.0)
