"""Where the herding weights of a run live: what makes a key, how many there are, dense or hashed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from herdner._ext import gibbs as loops
from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.graph.conditionals import Conditionals
from herdner.graph.grids import GridForm
from herdner.graph.tables import TableGraph
from herdner.inference.gibbs.order import dependencies
from herdner.inference.gibbs.plan import Plan

_LONG = 62.0  # bits of the longest key that is a number; longer ones are hashes
_PACKED_ROW = 66  # bytes: a line of the cache, and of bins whose it is
_PLACES = 10.0  # bits of the states that all have a place: of more than these, few occur
_DENSE_SIGNED = 8  # signed weights are dense up to this part of the memory: a hash table touches only what is met


@dataclass(frozen=True, slots=True)
class Weights:
    """Which weight an update uses and where it lives; the engine reads it by these names (engine/fields.h).

    The key of variable i is made of the labels of ``key_members[key_starts[i]:key_starts[i + 1]]``, in rising order;
    of packed bins, these labels decide it, and nothing else.
    Complete sharing: the sum of ``multipliers * state`` over all other variables. Bins of more than two states: the sum
    of ``bin_multipliers * bin`` over the states. The first key of variable i is ``weight_starts[i]`` or, where that is
    None, ``i * n_keys``.

    Attributes:
        draw: How a loop draws; "general" covers all cases.
        sharing: What is shared.
        n_bins: Of bins, how many.
        hashed_keys: [V], a key that would not fit 64 bits is a hash instead of a number.
        multipliers: [V], of complete sharing.
        bin_multipliers: [K], of bins of more than two labels.
        fractions: Like ``dense``, there is a dense table.
        dense: There is a dense table, of ``n_dense`` weights of ``row_length`` doubles each.
        weight_starts: [V + 1], the first key of each variable; -1: hashed.
        hashed: The weights of some variables, or of all, are hashed.
        packed: Those of variables of a few neighbours stand by the states of these (engine/blanket_memo.h), from
            ``weight_starts`` on as if each state were a key, or hashed.
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
        """Dense fractions, or dense signed weights, at their starts in the stream ``key``; else None."""
        if self.fractions:
            fractions = np.empty(self.n_dense, np.uint32)
            loops.initialise_fractions(key, fractions, self.weight_starts, self.n_keys, n_variables)
            return fractions, None
        if not self.dense:
            return None, None
        weights = np.empty(self.n_dense * self.row_length)
        loops.mark_uninitialised(weights)
        return None, weights


def lay_out(plan: Plan, compiled: TableGraph, form: Conditionals | GridForm, loop: str) -> Weights:
    """The weights that ``plan`` needs on a graph; ValueError where its sharing does not fit."""
    sizes = compiled.sizes
    if not plan.herds or plan.sharing is None:
        return Weights()
    kind, n_bins = plan.sharing.kind, plan.sharing.n_bins
    simple = plan.form == "circular" and plan.error_bound == 0.0
    all_two = bool((sizes == 2).all())
    if kind == "bins" or kind == "random-bins":
        bits = _bin_bits(n_bins, kind, sizes[:1] if all_two else sizes)
        keys = Weights() if all_two else Weights(bin_multipliers=_bin_places(n_bins, int(sizes.max())))
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
    if packed:  # those of most states are hashed
        bits = np.where(bits < _PLACES, bits, 2 * _LONG)
    # A dense table is written whole before the first sweep: one of more weights than updates costs more than it saves.
    row = _PACKED_ROW if packed else 8 * row_length
    most = min(plan.weight_memory // _DENSE_SIGNED // row, plan.n_sweeps * len(sizes))
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


def _is_packed(plan: Plan, keys: Weights, sizes: Int32s) -> bool:
    """Where the neighbours decide which weights a specialised loop over variables of a few labels uses."""
    steady_bins = keys.draw == "bins" and keys.n_bins > 1 and plan.annealing is None
    return (keys.draw == "blanket" or steady_bins) and 2 < int(sizes.max()) <= loops.PACKED_LIMIT


def block_weights(plan: Plan, sizes: Int32s) -> Weights:
    """Those of blocks: hashed, a row for each label to the right and labelling outside that is met."""
    return (
        Weights(draw="general", row_length=(int(sizes.max()) + 3) // 4 * 4, needs_table=True)
        if plan.herds
        else Weights()
    )


def _slots(bits: Floats, n_variables: int, most: int, some: bool = False) -> tuple[int, int, Int64s | None]:
    """(keys of each variable where that is one number, all slots, else where each begins); 0 slots: too many.

    ``bits`` [V], or [1] where all variables have as many keys. With ``some``, the variables of the most keys begin at
    -1, have no slots, where those of all are too many.
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
    return 0, int(ends[-1]), weight_starts


def _grid_bits(kind: str, form: GridForm) -> Floats:
    """At most four neighbours: 16 states, or 5 sums where all four sides are alike."""
    if kind == "blanket":
        return np.array([4.0])
    if (form.sides != form.sides[0]).any():
        raise ValueError(
            "sharing=neighbour-sum needs equal couplings, but those along columns and rows of the grid differ;"
            " use sharing=blanket() or bins(B)"
        )
    return np.array([math.log2(5)])


def _long_keys(bits: Floats) -> NDArray[np.uint8] | None:
    return (bits > _LONG).astype(np.uint8) if bits.max() > _LONG else None


def _blanket_keys(plan: Plan, compiled: TableGraph) -> tuple[Floats, Weights]:
    starts, members = dependencies(plan, compiled)
    sums = np.concatenate([[0.0], np.cumsum(np.log2(compiled.sizes[members].astype(np.float64)))])
    bits = sums[starts[1:]] - sums[starts[:-1]]
    return bits, Weights(key_starts=starts, key_members=members, hashed_keys=_long_keys(bits))


def _sum_keys(form: Conditionals) -> tuple[Floats, Weights]:
    starts, members = form.blankets
    _check_equal_couplings(form, len(members))
    degrees = np.diff(starts).astype(np.float64)
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    labels = np.ones(len(degrees), np.int32)
    np.maximum.at(labels, owners, form.sizes[members])
    bits: Floats = (np.log2(degrees + 1.0) * (labels - 1)).astype(np.float64)
    return bits, Weights(key_starts=starts, key_members=members, hashed_keys=_long_keys(bits))


def _check_equal_couplings(form: Conditionals, n_neighbours: int) -> None:
    """The sum of the neighbours says all only if every pair of a variable has the same rows."""
    advice = "use sharing=blanket() or bins(B)"
    if form.others_at is not None or n_neighbours < len(form.others):
        raise ValueError(f"sharing=neighbour-sum needs variables joined in pairs, each pair by one factor; {advice}")
    owners = np.repeat(np.arange(len(form.sizes)), np.diff(form.starts))
    first = form.row_at[form.starts[owners]]
    seen: set[tuple[int, int, int]] = set()
    for e in np.flatnonzero(form.row_at != first).tolist():
        i, j, a, b = int(owners[e]), int(form.others[e]), int(form.row_at[e]), int(first[e])
        length = int(form.widths[i] * form.sizes[j])
        if (a, b, length) in seen:
            continue
        seen.add((a, b, length))
        if not np.array_equal(form.rows[a : a + length], form.rows[b : b + length]):
            raise ValueError(
                f"sharing=neighbour-sum needs equal couplings, but those of variable {i} differ (its pair with {j});"
                f" {advice}"
            )


def _bin_places(n_bins: int, n_states: int) -> NDArray[np.uint64]:
    """Keys of bins of all labels together: a number of base B + 1 where that fits, else a linear hash."""
    if n_states * math.log2(n_bins + 1) <= _LONG:
        return np.array([(n_bins + 1) ** k for k in range(n_states)], np.uint64)
    return _odd_numbers(n_states)


def _odd_numbers(n: int) -> NDArray[np.uint64]:
    """Odd multipliers of a linear hash, random but the same in every run."""
    return np.random.default_rng(0).integers(0, 2**63, n, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _complete_keys(sizes: Int32s) -> tuple[Floats, Weights]:
    whole = float(np.log2(sizes.astype(np.float64)).sum())
    if whole <= _LONG:
        place = np.concatenate([[1], np.cumprod(sizes[:-1], dtype=np.uint64)]).astype(np.uint64)
        return np.array([whole]), Weights(multipliers=place)
    return np.array([2 * _LONG]), Weights(multipliers=_odd_numbers(len(sizes)))


def _bin_bits(n_bins: int, kind: str, sizes: Int32s) -> Floats:
    two = math.log2(n_bins + (kind == "random-bins"))
    more = 0.0 if n_bins == 1 and kind == "bins" else 2 * _LONG  # hashed: the bins of all labels together
    return np.where(sizes == 2, two, more)
