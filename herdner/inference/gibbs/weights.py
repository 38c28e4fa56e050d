"""The layout of the herding weights of a run: keys, their number, and dense or hashed storage."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from herdner._ext import gibbs as loops
from herdner._ext.memory import sealed
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.base.checks import check_variables
from herdner.graph.conditionals import Conditionals, add_edges
from herdner.graph.grids import GridForm
from herdner.graph.tables import TableGraph
from herdner.inference.gibbs.plan import Plan

_LONG = 62.0  # largest number of bits of a key that is stored as an integer; longer keys are hashed
_PACKED_ROW = 66  # bytes of a packed row: a cache line and, for bins, two bytes that name its blanket state
_PLACES = 10.0  # packed rows of blankets with fewer than 2^10 joint states are not hashed
_DENSE_SHARE = 8  # signed weights use a dense table up to 1/8 of the memory; beyond, a hash table touches fewer pages


@dataclass(frozen=True, slots=True)
class Weights:
    """Layout of the herding weights in memory.

    The compiled engine reads the fields by name (engine/fields.h).

    The key of an update selects its weight. The key of variable i is:

    - With blanket and neighbour-sum sharing and with packed bins: an encoding of the states of
      ``key_members[key_starts[i]:key_starts[i + 1]]``, in ascending order of the variables.
    - With complete sharing: the sum of ``multipliers * state`` over all other variables.
    - With bins, for variables of more than two states: the sum of ``bin_multipliers * bin`` over the states.

    In a dense table, the keys of variable i start at ``weight_starts[i]`` or, if that is None, at ``i * n_keys``.

    Attributes:
        draw: Name of the specialised update of a loop; "general" supports all cases.
        sharing: Kind of the sharing.
        n_bins: Number of bins.
        key_starts: int64[V + 1], the first key member of each variable.
        key_members: int32, the variables that each key encodes.
        hashed_keys: uint8[V], 1 if the key of a variable exceeds 64 bits and is hashed; None if all fit.
        multipliers: uint64[V], the multipliers of the states in the keys of complete sharing.
        bin_multipliers: uint64[K], the multipliers of the bins in the keys of variables with more than two states.
        fractions: True if the weights are a dense table of 32-bit fractions.
        dense: True if the weights are a dense table of ``n_dense`` rows of ``row_length`` doubles.
        weight_starts: int64[V + 1], the first key of each variable; -1 if its weights are in the hash table.
        n_keys: Number of keys of each variable; 0 if the variables have different numbers of keys.
        n_dense: Number of rows of the dense table.
        row_length: Number of doubles in a row.
        needs_table: True if the weights of some variables are in the hash table.
        packed: True if the rows of variables with few neighbours are stored by the joint states of these neighbours
            (engine/packed_weights.h).
    """

    draw: Literal["random", "blanket", "neighbour-sum", "bins", "general"] = "random"
    sharing: str = "blanket"
    n_bins: int = 1
    key_starts: Int64s | None = None
    key_members: Int32s | None = None
    hashed_keys: NDArray[np.uint8] | None = None
    multipliers: NDArray[np.uint64] | None = None
    bin_multipliers: NDArray[np.uint64] | None = None
    fractions: bool = False
    dense: bool = False
    weight_starts: Int64s | None = None
    n_keys: int = 0
    n_dense: int = 0
    row_length: int = 1
    needs_table: bool = False
    packed: bool = False

    def arrays(self, key: int, n_variables: int) -> tuple[NDArray[np.uint32] | None, Floats | None]:
        """Allocate the dense table of herding weights for a run.

        Args:
            key: Key of the stream of random start weights.
            n_variables: Number of variables.

        Returns:
            The fractions uint32[n_dense], or None; the signed weights float64[n_dense * row_length], or None.
        """
        if self.fractions:
            fractions = np.empty(self.n_dense, np.uint32)
            loops.initialise_fractions(key, fractions, self.weight_starts, self.n_keys, n_variables)
            return fractions, None
        if not self.dense:
            return None, None
        # A negative zero marks a weight that has not been initialised yet (engine/herding_weights.h).
        return None, np.full(self.n_dense * self.row_length, -0.0)


def lay_out(plan: Plan, compiled: TableGraph, form: Conditionals | GridForm, loop: str) -> Weights:
    """Compute the layout of the herding weights from sampling options (a plan) and a graph.

    Args:
        plan: The sampling options.
        compiled: The graph.
        form: Array layout of the graph that the compiled loop reads.
        loop: Name of the compiled loop.

    Returns:
        The layout; it has no weights if the plan does not herd.

    Raises:
        ValueError: The sharing of the plan does not fit the graph.
    """
    sizes = compiled.sizes
    if not plan.herds or plan.sharing is None:
        return Weights()
    kind, n_bins = plan.sharing.kind, plan.sharing.n_bins
    simple = plan.form == "circular" and plan.error_bound == 0.0
    all_two = bool((sizes == 2).all())
    if kind == "bins" or kind == "random-bins":
        bits = _bin_bits(n_bins, kind, sizes[:1] if all_two else sizes)
        keys = Weights() if all_two else Weights(bin_multipliers=_bin_multipliers(n_bins, int(sizes.max())))
    elif kind == "complete":
        bits, keys = _complete_keys(sizes)
    elif isinstance(form, GridForm):
        bits, keys = _grid_bits(kind, form), Weights()
    else:
        bits, keys = _blanket_keys(plan, compiled) if kind == "blanket" else _sum_keys(form)
    specialised = simple and kind in ("blanket", "neighbour-sum", "bins")
    if simple and all_two:
        n_keys, n_dense, weight_starts = _slots(bits, len(sizes), plan.weight_memory // 4)
        if n_dense:
            keys = replace(keys, draw=kind if specialised else "general", sharing=kind, n_bins=n_bins)
            return replace(keys, fractions=True, weight_starts=weight_starts, n_keys=n_keys, n_dense=n_dense)
    row_length = 1 if all_two else (int(sizes.max()) + 3) // 4 * 4
    keys = replace(keys, draw=kind if specialised and loop == "categorical" else "general", sharing=kind, n_bins=n_bins)
    packed = _is_packed(plan, keys, sizes)
    if packed and kind == "bins":
        bits, blankets = _blanket_keys(plan, compiled)
        keys = replace(keys, key_starts=blankets.key_starts, key_members=blankets.key_members)
    if packed:  # the rows of blankets of many joint states are hashed
        bits = np.where(bits < _PLACES, bits, 2 * _LONG)
    # A dense table is initialised as a whole, so a table of more weights than updates costs more than it saves.
    row = _PACKED_ROW if packed else 8 * row_length
    most = min(plan.weight_memory // _DENSE_SHARE // row, plan.n_sweeps * len(sizes))
    n_keys, n_dense, weight_starts = _slots(bits, len(sizes), most, some=True)
    needs_table = packed or not n_dense or (weight_starts is not None and bool((weight_starts < 0).any()))
    return replace(
        keys,
        dense=n_dense > 0 and not packed,
        weight_starts=weight_starts,
        n_keys=n_keys,
        n_dense=n_dense,
        row_length=row_length,
        needs_table=needs_table,
        packed=packed,
    )


def dependencies(plan: Plan, compiled: TableGraph) -> tuple[Int64s, Int32s]:
    """Return the variables on which each herded update depends.

    They are the Markov blanket of the updated variable and the variables joined to it by dummy edges.

    Args:
        plan: The plan.
        compiled: The graph.

    Returns:
        (starts int64[V + 1], members int32): variable i depends on ``members[starts[i]:starts[i + 1]]``.

    Raises:
        ValueError: A dummy edge names a variable that does not exist.
    """
    blankets = compiled.conditionals.blankets
    if plan.dummy_edges is None:
        return blankets
    edges = np.array(plan.dummy_edges, np.int32).reshape(-1, 2)
    check_variables(edges.ravel(), len(compiled.sizes), "dummy_edges name")
    return add_edges(blankets, edges)


def _is_packed(plan: Plan, keys: Weights, sizes: Int32s) -> bool:
    """Return True if a specialised loop can index a variable's herding weights by the joint state of its neighbours."""
    steady_bins = keys.draw == "bins" and keys.n_bins > 1 and plan.annealing is None
    return (keys.draw == "blanket" or steady_bins) and 2 < int(sizes.max()) <= loops.PACKED_LIMIT


def block_weights(plan: Plan, sizes: Int32s) -> Weights:
    """Return the layout of the herding weights for blocked Gibbs sampling. They are stored in the rows of a hash table.

    A variable has a row for each pair of a state of the next variable in its block and a joint state of the block's
    neighbours, if this pair occurs.

    Args:
        plan: The plan.
        sizes: int32[V], number of states of each variable.
    """
    if not plan.herds:
        return Weights()
    return Weights(draw="general", row_length=(int(sizes.max()) + 3) // 4 * 4, needs_table=True)


def _slots(bits: Floats, n_variables: int, most: int, some: bool = False) -> tuple[int, int, Int64s | None]:
    """Return the size of the table of herding weights, and the position of each variable's weights in the table.

    A key identifies the herding weights of an update. The values are the number of keys per variable, the number of
    table rows, and the first row of each variable.

    If all variables have equally many keys, the first rows are None, else the number of keys is 0. The number of rows
    is 0 if the table would exceed ``most`` rows. ``bits`` is log2 of the number of keys, [V], or [1] if it is the same
    for all variables. With ``some``, variables with many keys use the hash table (first row -1), so that the other
    variables fit into the dense table.
    """
    counts = np.rint(np.exp2(np.minimum(bits, 2 * _LONG)))
    widest, total = float(counts.max()), float(counts.sum()) * (n_variables if len(bits) == 1 else 1)
    if widest * n_variables <= min(2 * total, most):
        return int(widest), int(widest) * n_variables, None
    if len(bits) == 1 or (total > most and not some):
        return 0, 0, None
    order = np.argsort(counts, kind="stable")
    few = np.zeros(len(bits), bool)
    few[order[: np.searchsorted(np.cumsum(counts[order]), most, "right")]] = True
    ends = np.cumsum(np.where(few, counts, 0.0)).astype(np.int64)
    weight_starts = np.concatenate([[0], ends])
    weight_starts[:-1][~few] = -1
    return 0, int(ends[-1]), sealed([weight_starts])


def _grid_bits(kind: str, form: GridForm) -> Floats:
    """Return log2 of the number of keys that distinguish the herding weights of one variable in a grid graph.

    The 4 neighbours of the variable have 16 joint states and 5 sums. The keys are the joint states if ``kind`` is
    "blanket", else the sums.
    """
    if kind == "blanket":
        return np.array([4.0])
    if (form.sides != form.sides[0]).any():
        raise ValueError(
            "sharing=neighbour-sum needs equal couplings, but the couplings along columns and rows of the grid differ;"
            " use sharing=blanket or bins(B)"
        )
    return np.array([math.log2(5)])


def _long_keys(bits: Floats) -> NDArray[np.uint8] | None:
    """Return 1 for each variable whose cache key is too long and must be hashed, else 0; None if no key is too long."""
    return (bits > _LONG).astype(np.uint8) if bits.max() > _LONG else None


def _blanket_keys(plan: Plan, compiled: TableGraph) -> tuple[Floats, Weights]:
    starts, members = dependencies(plan, compiled)
    sums = np.concatenate([[0.0], np.cumsum(np.log2(compiled.sizes[members].astype(np.float64)))])
    bits = sums[starts[1:]] - sums[starts[:-1]]
    return bits, Weights(key_starts=sealed([starts]), key_members=sealed([members]), hashed_keys=_long_keys(bits))


def _sum_keys(form: Conditionals) -> tuple[Floats, Weights]:
    starts, members = form.blankets
    _check_equal_couplings(form, len(members))
    degrees = np.diff(starts).astype(np.float64)
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    n_states = np.ones(len(degrees), np.int32)
    np.maximum.at(n_states, owners, form.sizes[members])
    bits: Floats = (np.log2(degrees + 1.0) * (n_states - 1)).astype(np.float64)
    return bits, Weights(key_starts=sealed([starts]), key_members=sealed([members]), hashed_keys=_long_keys(bits))


def _check_equal_couplings(form: Conditionals, n_neighbours: int) -> None:
    """Raise ``ValueError`` unless each full conditional depends only on the sum of the neighbours' states."""
    advice = "use sharing=blanket or bins(B)"
    if form.others_at is not None or n_neighbours < len(form.others):
        raise ValueError(f"sharing=neighbour-sum needs factors of 1 or 2 variables, at most one on each pair; {advice}")
    owners = np.repeat(np.arange(len(form.sizes)), np.diff(form.starts))
    first = form.row_at[form.starts[owners]]
    compared: set[tuple[int, int, int]] = set()
    for e in np.flatnonzero(form.row_at != first).tolist():
        i, j, a, b = int(owners[e]), int(form.others[e]), int(form.row_at[e]), int(first[e])
        length = int(form.widths[i] * form.sizes[j])
        if (a, b, length) in compared:
            continue
        compared.add((a, b, length))
        if not np.array_equal(form.rows[a : a + length], form.rows[b : b + length]):
            raise ValueError(
                f"sharing=neighbour-sum needs equal couplings, but the couplings of variable {i} differ (see the"
                f" factor with variable {j}); {advice}"
            )


def _bin_multipliers(n_bins: int, n_states: int) -> NDArray[np.uint64]:
    """Return a multiplier for each state; with bin sharing, a weight's key is the sum of multiplier times bin number.

    The multipliers are powers of ``n_bins`` + 1 if the key has enough bits, else coefficients of a linear hash.
    """
    if n_states * math.log2(n_bins + 1) <= _LONG:
        return np.array([(n_bins + 1) ** k for k in range(n_states)], np.uint64)
    return _odd_numbers(n_states)


def _odd_numbers(n: int) -> NDArray[np.uint64]:
    """Return ``n`` odd multipliers of a linear hash; they are the same in every run."""
    return np.random.default_rng(0).integers(0, 2**63, n, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _complete_keys(sizes: Int32s) -> tuple[Floats, Weights]:
    bits = float(np.log2(sizes.astype(np.float64)).sum())
    if bits <= _LONG:
        multipliers = np.concatenate([[1], np.cumprod(sizes[:-1], dtype=np.uint64)]).astype(np.uint64)
        return np.array([bits]), Weights(multipliers=multipliers)
    return np.array([2 * _LONG]), Weights(multipliers=_odd_numbers(len(sizes)))


def _bin_bits(n_bins: int, kind: str, sizes: Int32s) -> Floats:
    """Return log2 of the number of herding weights of each variable under bin sharing, float64[V]."""
    two = math.log2(n_bins + (kind == "random-bins"))
    more = 0.0 if n_bins == 1 and kind == "bins" else 2 * _LONG  # hashed: the key encodes the bins of all states
    return np.where(sizes == 2, two, more)
