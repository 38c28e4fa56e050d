"""Dobrushin's influence matrix and its upper bounds (DoGS17, Sec. 3 and 4.1).

C_ij, the influence of variable j on variable i, is the largest total variation distance between two full conditionals
of i whose conditions differ at j only (Definition 6). The functions of this module compute C or entrywise upper bounds
on C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdner._ext import influence as loops
from herdner.base.arrays import Floats, Int32s, Int64s, frozen, sealed
from herdner.base.checks import are_offsets, check_integer
from herdner.base.extras import check_extra
from herdner.base.representation import short_repr
from herdner.base.sums import exact_product, exact_sum
from herdner.dobrushin.interactions import binary_fields, interactions, log_ranges, pair_couplings, rounding_errors
from herdner.graph.tables import Graph, TableGraph, compile_tables

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

_POWER_STEPS = 100
_POWER_TOLERANCE = 1e-6
_NEGLIGIBLE = 1e-13  # smaller rounding errors of influences are ignored


@dataclass(frozen=True)
class Influence:
    """Entrywise upper bound on Dobrushin's influence matrix C (DoGS17, Definition 6), stored as sparse rows.

    Row i has the entries ``starts[i]`` to ``starts[i + 1] - 1``: ``values`` bounds the influence C_ij of each variable
    j in ``sources``. All other entries of the row are 0. The pattern is symmetric: entry (i, j) is stored if (j, i) is,
    possibly as 0. The diagonal is not stored.

    Attributes:
        starts: int64[V + 1].
        sources: int32[nnz].
        values: float64[nnz], at least 0.
        theorem: Source of the bound.
        graph: The graph for which the bound holds, or None if the caller passed a matrix. A checkerboard scan takes its
            order from the graph.
    """

    starts: Int64s
    sources: Int32s
    values: Floats
    theorem: str
    graph: TableGraph | None = field(default=None, repr=False, compare=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Convert the attributes to their declared types, and check their values."""
        for name, dtype in (("starts", np.int64), ("sources", np.int32), ("values", np.float64)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, f"the {name} of an influence matrix"))
        check_entries(self.starts, self.sources, self.values, "an influence matrix")
        n = self.n_variables
        if len(self.sources) and not 0 <= self.sources.min() <= self.sources.max() < n:
            raise ValueError(
                f"`sources` of an influence matrix must be variables 0 to {n - 1}, got {self.sources.min()} to"
                f" {self.sources.max()}"
            )

    @classmethod
    def of_matrix(cls, matrix: ArrayLike | csr_array) -> Influence:
        """Build the influence bound from a dense or sparse matrix.

        Args:
            matrix: [V, V], dense or sparse. Entry [i, j] bounds the influence of variable j on variable i.

        Returns:
            The bound for V variables.

        Raises:
            ValueError: The matrix is not square, has an entry on the diagonal, or has an entry that is negative or not
                finite.
        """
        check_extra("scipy", "influence matrices need SciPy")
        from scipy.sparse import coo_array, issparse  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        sparse: Any = coo_array(matrix if issparse(matrix) else np.asarray(matrix, np.float64))
        if sparse.ndim != 2 or sparse.shape[0] != sparse.shape[1]:
            raise ValueError(f"an influence matrix must be square, got shape {sparse.shape}")
        sparse.sum_duplicates()
        rows, columns = (axis.astype(np.int64) for axis in sparse.coords)
        diagonal = sparse.data[(rows == columns) & (sparse.data != 0)]
        if len(diagonal):
            raise ValueError(f"the diagonal of an influence matrix must be zero, got {diagonal[0]}")
        n: int = sparse.shape[0]
        off = rows != columns
        rows, columns = rows[off], columns[off]
        # If an entry (i, j) is listed and (j, i) is not, the entry (j, i) is stored as 0.
        listed: Int64s = np.concatenate([rows * n + columns, columns * n + rows])
        keys, at = np.unique(listed, return_inverse=True)
        values = np.zeros(len(keys))
        values[at.reshape(-1)[: len(rows)]] = sparse.data[off]
        owners, sources = np.divmod(keys, max(n, 1))
        starts = np.searchsorted(owners, np.arange(n + 1)).astype(np.int64)
        return cls(starts, sources.astype(np.int32), values, "user-supplied")

    def _keys(self) -> Int64s:
        """Return a unique integer, i V + j, for each stored entry (i, j) of the V x V matrix."""
        owners = np.repeat(np.arange(self.n_variables), np.diff(self.starts))
        return owners * self.n_variables + self.sources

    def smaller(self, other: Influence) -> Influence:
        """Return the entrywise minimum of this bound and another bound for the same graph.

        Args:
            other: Another bound. Entries that it does not store are 0.
        """
        _, a, b = np.intersect1d(self._keys(), other._keys(), return_indices=True)
        values = np.zeros(len(self.values))
        values[a] = np.minimum(self.values[a], other.values[b])
        return replace(self, values=values, theorem=f"{self.theorem}, {other.theorem}")

    def to_larger_graph(self, variables: Int64s, graph: TableGraph) -> Influence:
        """Return the bound for a larger graph; its additional variables have no influence and are not influenced.

        Args:
            variables: int64[V], the index of each variable of this graph in the larger graph, ascending.
            graph: The larger graph.
        """
        counts = np.zeros(len(graph.sizes) + 1, np.int64)
        counts[np.asarray(variables) + 1] = np.diff(self.starts)
        sources = variables[self.sources].astype(np.int32)
        return Influence(np.cumsum(counts), sources, self.values, self.theorem, graph)

    @property
    def n_variables(self) -> int:
        """Number of variables of the graph, V."""
        return len(self.starts) - 1

    def to_scipy(self) -> csr_array:
        """Return the influence matrix [V, V] as a SciPy sparse array."""
        check_extra("scipy", "sparse matrices need SciPy")
        from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

        return csr_array((self.values, self.sources, self.starts), (self.n_variables, self.n_variables))

    def scale(self, factor: float) -> Influence:
        """Return the influence matrix times ``factor``.

        Args:
            factor: At least 0. The product is a looser bound for factors above 1 (DoGS17, Sec. 5.6), and no bound for
                factors below 1.

        Raises:
            ValueError: The factor is negative or not finite.
        """
        if not (np.isfinite(factor) and factor >= 0):
            raise ValueError(f"`factor` must be finite and at least 0, got {factor}")
        return replace(self, values=self.values * factor, theorem=f"{factor:g} x {self.theorem}")

    @cached_property
    def matrix(self) -> loops.InfluenceMatrix:
        """Influence matrix in the form that the compiled loops read."""
        return loops.InfluenceMatrix(self.starts, self.sources, self.values)

    @cached_property
    def total(self) -> TotalInfluence:
        """The 1-norm, infinity norm and spectral norm of the influence matrix."""
        return TotalInfluence(self._largest_sum(False), self._largest_sum(True), self._spectral())

    def total_rows(self) -> float:
        """Return the infinity norm of the influence matrix, its largest row sum."""
        return self._largest_sum(True)

    def _largest_sum(self, of_rows: bool) -> float:
        sums, ones = np.empty(self.n_variables), np.ones(self.n_variables)
        multiply = loops.multiply if of_rows else loops.multiply_transposed
        multiply(self.matrix, ones, sums)
        return float(sums.max(initial=0.0))

    def _spectral(self) -> float:
        """Return an upper bound on the spectral norm of the influence matrix, by power iteration.

        For any x > 0, the largest (C^T C x)_i / x_i bounds the eigenvalues of C^T C (Collatz and Wielandt).
        """
        x, y, z = np.ones(self.n_variables), np.empty(self.n_variables), np.empty(self.n_variables)
        largest = np.inf
        for _ in range(_POWER_STEPS):
            loops.multiply(self.matrix, x, y)
            loops.multiply_transposed(self.matrix, y, z)
            positive = x > 0  # variables with x = 0 have no influence
            before, largest = largest, min(largest, float((z[positive] / x[positive]).max(initial=0.0)))
            if not largest or before - largest <= _POWER_TOLERANCE * largest:
                break
            x, z = z / z.max(), x
        return float(np.sqrt(largest))


def check_entries(starts: Int64s, sources: Int32s | Int64s, values: Floats, what: str) -> None:
    """Raise `ValueError` unless the arrays are the rows of a sparse matrix of finite, non-negative numbers.

    Args:
        starts: int64[R + 1], first entry of each row.
        sources: [N], column of each entry.
        values: float64[N].
        what: Name of the matrix in error messages.

    Raises:
        ValueError: The arrays do not fit together, or a value is negative or not finite.
    """
    if sources.ndim != 1 or values.shape != sources.shape:
        raise ValueError(
            f"`sources` and `values` of {what} must be one-dimensional and of equal length, got shapes {sources.shape}"
            f" and {values.shape}"
        )
    if not are_offsets(starts, len(sources)):
        raise ValueError(
            f"`starts` of {what} must rise from 0 to the number of entries, {len(sources)}, got {starts.tolist()!s:.80}"
        )
    if len(values) and not 0 <= values.min() <= values.max() < np.inf:
        raise ValueError(f"`values` of {what} must be finite and at least 0, got {values.min()} to {values.max()}")


@dataclass(frozen=True, slots=True)
class TotalInfluence:
    """Norms of an influence matrix.

    If one of these norms is below 1, the Dobrushin variation of systematic and uniform random scans tends to 0 (DoGS17,
    Proposition 9, after Hayes 2006).

    Attributes:
        one: The largest column sum.
        infinity: The largest row sum.
        spectral: An upper bound on the largest singular value, accurate to about 1e-4.
    """

    one: float
    infinity: float
    spectral: float

    @property
    def smallest(self) -> float:
        """The smallest of the norms of the influence matrix."""
        return min(self.one, self.infinity, self.spectral)

    def __str__(self) -> str:
        """Return the norms of the influence matrix as a one-line summary."""
        norms = f"1-norm {self.one:.4g}, infinity norm {self.infinity:.4g}, spectral norm {self.spectral:.4g}"
        if self.smallest < 1:
            return f"total influence is below 1 ({norms}): systematic and uniform random scans converge geometrically"
        return f"total influence is not below 1 ({norms}): this bound does not prove that any scan converges"


def pairwise_bound(graph: Graph) -> Influence:
    """Return the influence bound of DoGS17, Theorem 10, which applies to variables with any number of states.

    C_ij <= tanh(R / 4), where R is the largest (t[a, x] - t[a, y]) - (t[b, x] - t[b, y]) of the table t. The theorem
    does not cover factors of more than two variables. Here their other variables are fixed at the states that make R
    largest, and the R of all factors with the same pair are added; the proof stays valid. If a factor of the pair holds
    -inf, the bound is 1. Time O(factors + table cells x states).

    Args:
        graph: Any graph of table factors.
    """
    compiled = compile_tables(graph)
    starts, sources, values = loops.symmetric_rows(len(compiled.sizes), *log_ranges(compiled.factors))
    loops.bound_pairwise(values)
    return _from_owned_arrays(compiled, starts, sources, values, "Theorem 10")


def binary_pairwise_bound(graph: Graph) -> Influence:
    """Return the influence bound of DoGS17, Theorem 11, for binary graphs with factors of at most two variables.

    Entries are exact unless b = 1 in the theorem. Pair tables of any form are split into couplings and fields of the
    spins -1 (state 0) and +1 (state 1). Time O(factors), with one exponential per entry.

    Args:
        graph: A graph of binary variables.

    Raises:
        ValueError: A variable has other than two states, or a factor has more than two variables.
    """
    compiled = compile_tables(graph)
    _check_binary(compiled)
    wide = next((g for g in compiled.factors if g.arity > 2 and len(g)), None)
    if wide is not None:
        raise ValueError(
            f"Theorem 11 of DoGS17 needs factors of at most two variables, got a factor of {wide.arity} variables; use"
            " binary_bound or tightest_influence"
        )
    starts, sources, values = loops.symmetric_rows(len(compiled.sizes), *pair_couplings(compiled.factors))
    fields = binary_fields(compiled)
    _allow_for_rounding(compiled, starts, values, fields)
    loops.bound_binary(starts, values, fields, False)
    return _from_owned_arrays(compiled, starts, sources, values, "Theorem 11")


def binary_bound(graph: Graph, *, as_printed: bool = True) -> Influence:
    """Return the influence bound of DoGS17, Theorem 12, which applies to binary variables and factors of any arity.

    Args:
        graph: A graph of binary variables.
        as_printed: False omits the last step of the proof, which minimises both factors of the denominator separately.
            The bound is then never larger, and equals Theorem 11 if all factors are pairs.

    Raises:
        ValueError: A variable has other than two states.
    """
    compiled = compile_tables(graph)
    _check_binary(compiled)
    starts, sources, values, fields = _interaction_rows(compiled)
    _allow_for_rounding(compiled, starts, values, fields)
    loops.bound_binary(starts, values, fields, as_printed)
    return _from_owned_arrays(
        compiled, starts, sources, values, "Theorem 12" if as_printed else "Theorem 12, sharpened"
    )


def exact_influence(graph: Graph, max_states: int = 2**16) -> Influence:
    """Return the exact influence matrix (DoGS17, Definition 6); enumerate the joint states of each Markov blanket.

    A condition that forbids all states of a variable counts as different from every other condition (influence 1). With
    hard constraints, this is necessary for bounds on the errors of scans, because their proof uses such conditions.

    Args:
        graph: Any graph of table factors.
        max_states: Largest number of joint states of a blanket.

    Raises:
        ValueError: A blanket has more than ``max_states`` joint states, or ``max_states`` is below 1.
    """
    check_integer(max_states, "max_states")
    compiled = compile_tables(graph)
    starts, sources, _ = loops.symmetric_rows(len(compiled.sizes), *log_ranges(compiled.factors))
    values = np.zeros(len(sources))
    omitted = overwrite_exact_entries(compiled, starts, sources, values, max_states)
    if omitted >= 0:
        raise ValueError(
            f"the Markov blanket of variable {omitted} has more than {max_states} joint states; increase `max_states`,"
            " or use a bound such as pairwise_bound"
        )
    return Influence(starts, sources, values, "Definition 6", compiled)


def tightest_influence(graph: Graph, exact_states: int = 0) -> Influence:
    """Return the entrywise minimum of all influence bounds that apply to the graph.

    Args:
        graph: Any graph of table factors.
        exact_states: The exact influence on a variable is computed, by enumeration, if its Markov blanket has at most
            this many joint states. Each such variable takes at most about this many steps. 0 enumerates nothing.

    Raises:
        ValueError: ``exact_states`` is negative.
    """
    check_integer(exact_states, "exact_states", 0)
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


def _from_owned_arrays(
    compiled: TableGraph, starts: Int64s, sources: Int32s, values: Floats, theorem: str
) -> Influence:
    """Build an `Influence` without copying the arrays; the caller must keep no reference to them."""
    return Influence(sealed([starts]), sealed([sources]), sealed([values]), theorem, compiled)


def _check_binary(compiled: TableGraph) -> None:
    other = np.flatnonzero(compiled.sizes != 2)
    if len(other):
        i = int(other[0])
        raise ValueError(
            f"Theorems 11 and 12 of DoGS17 need binary variables, but variable {i} has {compiled.sizes[i]} states; use"
            " pairwise_bound"
        )


def _interaction_rows(compiled: TableGraph) -> tuple[Int64s, Int32s, Floats, Floats]:
    """Return the total interaction of each pair of variables, and the field of each variable (DoGS17, Theorem 12).

    The total interaction is the sum of ``|theta_S|`` over all sets S of variables that contain the pair.

    A bound over sets S with i but not j is the difference of two sums: over all S with i, and over all S with i and j.
    The compiled loop takes the row sum as the first of these, which is right for pairs; the fields contain the
    correction.
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
    starts, sources, values = loops.symmetric_rows(len(fields), np.concatenate(pairs), np.concatenate(strength))
    with np.errstate(invalid="ignore"):
        fields = np.abs(fields) + (counted - within)  # infinity - infinity is NaN, which makes b = 1
    return starts, sources, values, fields


def _allow_for_rounding(compiled: TableGraph, starts: Int64s, values: Floats, fields: Floats) -> None:
    """Replace, in place, each coupling by an upper bound and each field by a lower bound on its exact absolute value.

    The bounds of Theorems 11 and 12 increase with the sizes of the couplings and decrease with those of the fields.
    """
    errors = rounding_errors(compiled)
    if errors.any():
        values[:] = np.abs(values) + np.repeat(errors, np.diff(starts))
        fields[:] = np.maximum(np.abs(fields) - errors, 0.0)


# The factors of one variable: the other variables of each, the scale, and the table [K, others ..].
_Local = list[tuple[list[int], float, Floats]]


def overwrite_exact_entries(
    compiled: TableGraph, starts: Int64s, sources: Int32s, values: Floats, max_states: int
) -> int:
    """Overwrite the influences on variables with small Markov blankets by their exact values (DoGS17, eq. 1).

    A condition that forbids all states counts as different from every condition that allows one.

    Args:
        compiled: The graph.
        starts: int64[V + 1], first entry of each row.
        sources: int32[nnz], column of each entry.
        values: float64[nnz], changed in place.
        max_states: Largest number of joint states of a blanket.

    Returns:
        The first variable whose blanket has more joint states; -1 if there is no such variable.
    """
    sizes = compiled.sizes
    n_joint_states = (math.prod(sizes[sources[a:b]].tolist()) for a, b in pairwise(starts.tolist()))
    small = [i for i, n in enumerate(n_joint_states) if n <= max_states]
    for i, factors in zip(small, _local_factors(compiled, small), strict=True):
        row = slice(int(starts[i]), int(starts[i + 1]))
        # Variables of one state have no influence. They are omitted, because NumPy limits the number of axes.
        many = np.flatnonzero(sizes[sources[row]] > 1)
        blanket = sources[row][many].tolist()
        p, possible, error = _conditional(int(sizes[i]), sizes[blanket].tolist(), blanket, factors)
        values[row] = 0.0
        values[row.start + many] = [
            min(_influence(np.moveaxis(p, a, 0), np.moveaxis(possible, a, 0)) + error, 1.0) for a in range(len(blanket))
        ]
    return min({*range(len(sizes))}.difference(small), default=-1)


def _local_factors(compiled: TableGraph, variables: Sequence[int]) -> list[_Local]:
    """Return, for each variable in ``variables``, the factors that contain the variable."""
    place = {i: at for at, i in enumerate(variables)}
    local: list[_Local] = [[] for _ in variables]
    for group in compiled.factors:
        for scope, table, scale in zip(group.scopes.tolist(), group.table_of_factor, group.scale, strict=True):
            for a, i in enumerate(scope):
                if i in place:
                    values = np.moveaxis(group.tables[table], a, 0)
                    local[place[i]].append((scope[:a] + scope[a + 1 :], float(scale), values))
    return local


def _conditional(
    n_states: int, sizes: list[int], blanket: list[int], factors: _Local
) -> tuple[Floats, NDArray[np.bool_], float]:
    """Return a variable's full conditionals for all states of its Markov blanket, and a bound on their rounding error.

    Log-potentials are added in twice the precision of doubles, so that penalties of any size that cancel leave exact
    differences.

    Returns:
        The conditionals, float64[blanket states .., K]; bool[blanket states ..], True if the blanket states allow a
        state of the variable; and a bound on the error of the total variation distance between two conditionals.
    """
    total, rest, size = np.zeros((*sizes, n_states)), np.zeros((*sizes, n_states)), 0.0
    place = {j: a for a, j in enumerate(blanket)}
    for others, scale, table in factors:
        order = sorted(range(len(others)), key=lambda k: place.get(others[k], -1))
        shape = [sizes[a] if j in others else 1 for a, j in enumerate(blanket)]
        values = np.transpose(table, [*(1 + k for k in order), 0]).reshape(*shape, n_states)
        for part in (values,) if scale == 1.0 else exact_product(scale, values):
            total, lost = exact_sum(total, part)
            rest = rest + lost
            size += 4 * float(np.abs(rest).max(initial=0.0))  # the sum ``rest`` of the errors is itself rounded
    at = (total + rest).argmax(axis=-1, keepdims=True)
    possible = np.take_along_axis(total, at, -1)[..., 0] > -np.inf
    with np.errstate(invalid="ignore"):
        log_p = (total - np.take_along_axis(total, at, -1)) + (rest - np.take_along_axis(rest, at, -1))
    log_p = np.where(possible[..., None], log_p, 0.0)
    p = np.exp(log_p - log_p.max(axis=-1, keepdims=True)) * possible[..., None]
    p /= np.maximum(p.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    error = size * float(np.finfo(np.float64).eps)
    return p, possible, error if error > _NEGLIGIBLE else 0.0


def _influence(p: Floats, possible: NDArray[np.bool_]) -> float:
    """Return the influence of a variable j on a variable i: the largest total variation distance that j alone causes.

    The array ``p`` [states of the blanket .., K] contains the full conditionals of i. Axis 0 has the states of j; the
    other indices of the two distributions are equal. The mask ``possible`` [states of the blanket ..] is False where
    the states of the blanket have probability 0.
    """
    largest = 0.0
    for x in range(len(p)):
        for y in range(x):
            distance: Floats = 0.5 * np.abs(p[x] - p[y]).sum(axis=-1)
            distance = np.where(possible[x] & possible[y], distance, (possible[x] != possible[y]).astype(float))
            largest = max(largest, float(distance.max(initial=0.0)))
    return min(largest, 1.0)
