"""Herded blocked Gibbs sampling, against a slow reference and against exact chains."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from graphs import path_graphs
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import Oracle, factors_of
from quick import examples
from reference_gibbs import GOLDEN, ONE, WORD, Reference, chained, mix

from herdner.graph import FactorGraph, TableFactors, chain_graph, compile_tables, ising
from herdner.inference import make_backend
from herdner.inference.backends.blocked_gibbs import BlockedGibbs, Blocks
from herdner.inference.gibbs import linear_annealing
from herdner.inference.gibbs.start import random_start


def linked_chain(seed: int, n_labels: int = 3, forbidden: bool = False) -> FactorGraph:
    """Return two sentences of three variables with one or two links."""
    rng = np.random.default_rng(seed)
    step = rng.normal(size=(n_labels, n_labels))
    if forbidden:
        step[0, -1] = -np.inf
    graph = chain_graph(rng.normal(size=(6, n_labels)), step)
    near = TableFactors([[0, 1], [1, 2], [3, 4], [4, 5]], graph.factors[1].tables)
    links = TableFactors([[0, 4], [2, 5]], rng.normal(size=(1, n_labels, n_labels)))
    return FactorGraph(graph.domains, [graph.factors[0], near, links])


def reference(graph: FactorGraph, n_sweeps: int, seed: int) -> np.ndarray:
    """Return the states int[T, V] by sums over the joint states of a block, and weights in a dictionary."""
    keys = np.random.default_rng(seed).integers(0, WORD, (1, 4), dtype=np.uint64)[0].tolist()
    compiled, factors = compile_tables(graph), factors_of(graph)
    sizes, x = compiled.sizes.tolist(), random_start(compiled, keys[3]).astype(int).tolist()
    first, weights, states = Blocks.of(compiled).first.tolist(), {}, []
    blocks = [list(range(a, b)) for a, b in pairwise([*np.unique(first).tolist(), len(sizes)])]

    def chances(block: list[int], t: int) -> np.ndarray:
        """Return the distribution of variable t given the block to its right and the outside, by enumeration."""
        left = block[: block.index(t) + 1]
        relevant = [(s, table) for s, table in factors if any(v in left for v in s)]
        right = block[block.index(t) + 2 :]
        relevant = [(s, table) for s, table in relevant if not any(v in right for v in s)]
        total = np.zeros(sizes[t])
        for labels in np.ndindex(*(sizes[v] for v in left)):
            at = {**dict(enumerate(x)), **dict(zip(left, labels, strict=True))}
            total[labels[-1]] += np.exp(sum(table[tuple(at[v] for v in s)] for s, table in relevant))
        return total / total.sum()

    for _ in range(n_sweeps):
        for block in blocks:
            outside = list(x)
            for t in reversed(block):
                near = compiled.conditionals
                met = [
                    outside[j] for v in block if v <= t
                    for j in near.others[near.starts[v] : near.starts[v + 1]].tolist() if j not in block
                ]  # fmt: skip
                right = x[t + 1] if t != block[-1] else -1
                p = np.rint(chances(block, t) * ONE).astype(int).tolist()
                key = (t, right, tuple(met))
                number = mix((chained(*met) + GOLDEN * (right + 2)) % WORD)
                if key not in weights:
                    raw = mix(chained(t, number, start=keys[2]))
                    weights[key], chosen = Reference.born(_CIRCULAR, raw, [*p, 0] if len(p) == 2 else p, 0)
                    weights[key] = weights[key][: len(p)]
                    weights[key] = [a + q for a, q in zip(weights[key], p, strict=True)]
                else:
                    weights[key] = [a + q for a, q in zip(weights[key], p, strict=True)]
                    chosen, _ = Reference.several(weights[key], p)
                weights[key][chosen] -= ONE
                x[t] = chosen
        states.append(list(x))
    return np.array(states)


class _CIRCULAR:
    """Options of the sampler that the reference reads."""

    class plan:
        form, error_bound = "circular", 0.0


@pytest.mark.parametrize("n_labels", [2, 3, 5])
@pytest.mark.parametrize("forbidden", [False, True])
def test_states_are_those_of_a_slow_reference(n_labels, forbidden):
    for seed in range(4):
        graph = linked_chain(seed, n_labels, forbidden)
        samples = BlockedGibbs(40, record="every=1", herded=True).infer(graph, seed).samples
        np.testing.assert_array_equal(samples[0], reference(graph, 40, seed))


@examples(30)
@given(path_graphs(), st.integers(0, 1000))
def test_a_chain_is_herded_within_one_count_for_each_label_less_one(graph, seed):
    """Given the state to the right, each state occurs as often as it should, to within K - 1 and rounding."""
    oracle = Oracle.of_graph(graph)
    sizes = compile_tables(graph).sizes
    assume(not oracle.impossible and len(sizes))
    states = BlockedGibbs(200, record="every=1", herded=True).infer(graph, seed).samples[0]
    assert (graph.log_potential(states) > -np.inf).all()
    first = Blocks.of(compile_tables(graph)).first
    joint = oracle.probabilities.reshape(sizes)
    assume(_one_way(graph))
    for t in range(len(sizes)):
        last = t + 1 == len(sizes) or first[t + 1] == t + 1
        kept = (t,) if last else (t, t + 1)
        table = joint.sum(axis=tuple(v for v in range(len(sizes)) if v not in kept)).reshape(sizes[t], -1)
        rights = np.zeros(len(states), int) if last else states[:, t + 1]
        for right in np.unique(rights):
            p = table[:, right] / table[:, right].sum()
            seen = np.bincount(states[rights == right, t], minlength=sizes[t])
            assert np.abs(seen - seen.sum() * p).max() <= max(sizes[t] - 1, 1) + 1e-6


def _one_way(graph: FactorGraph) -> bool:
    """Assert that no variable is joined to another block, whose states would be part of the key."""
    first = Blocks.of(compile_tables(graph)).first
    pairs = [scope for group in graph.factors if group.arity == 2 for scope in group.scopes.tolist()]
    return all(first[a] == first[b] for a, b in pairs)


def test_a_chain_converges_like_one_over_t():
    rng = np.random.default_rng(5)
    graph = chain_graph(rng.normal(size=(6, 4)), rng.normal(size=(4, 4)))
    oracle = Oracle.of_graph(graph)
    for n in (200, 2000, 20000):
        found = BlockedGibbs(n, herded=True).infer(graph, 3).marginals
        error = max(np.abs(found[i] - oracle.marginal(i)).max() for i in range(6))
        assert error < 60 / n


def test_links_leave_a_small_bias_and_less_error_than_random_draws():
    def error(at: int, herded: bool, seed: int, n_sweeps: int) -> float:
        graph = linked_chain(at)
        oracle = Oracle.of_graph(graph)
        found = BlockedGibbs(n_sweeps, herded=herded, record="rao-blackwell").infer(graph, seed).rao_blackwell
        return float(np.mean([np.abs(found[i] - oracle.marginal(i)).sum() / 2 for i in range(6)]))

    herded, drawn = (np.mean([error(2, way, seed, 1000) for seed in range(10)]) for way in (True, False))
    assert herded < drawn / 2
    assert max(error(at, True, 1, 100_000) for at in range(6)) < 5e-5


def test_herded_blocks_take_all_options_and_repeat():
    graph = linked_chain(1)
    one = BlockedGibbs(30, herded=True, record="every=1,best,marginals,trace")
    found = one.infer(graph, 7)
    np.testing.assert_allclose(found.trace[0], graph.log_potential(found.samples[0]))
    np.testing.assert_array_equal(one.infer(graph, 7).samples, found.samples)
    cooled = BlockedGibbs(50, herded=True, annealing=linear_annealing(0.2, 3.0), n_chains=2).infer(graph, 7)
    assert cooled.log_potential == pytest.approx(Oracle.of_graph(graph).log_potentials.max())
    by_name = make_backend("blocked-gibbs", herded=True, n_sweeps=20)
    assert by_name.infer(graph, 3).marginals is not None


def test_too_many_weights_are_one_line():
    rng = np.random.default_rng(5)
    graph = ising(0.3, rng.normal(size=(12, 12)))
    with pytest.raises(ValueError, match="weight_memory=65536 bytes: each joint state of the neighbours of a block"):
        BlockedGibbs(2000, herded=True, weight_memory=2**16).infer(graph, 1)
