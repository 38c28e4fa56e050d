"""The skip-chain CRF as a factor graph, and its templates."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle, factors_of

from herdner._ext.links import merge_links
from herdner.crf.link_rules import LastName, SameWord
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.templates import LinearChain, SkipChain, linear_chain_template, skip_chain_template
from herdner.graph import compile_tables
from herdner.graph.chains import ChainForm
from herdner.graph.linked_chains import LinkedChains
from herdner.inference import make_backend
from herdner.inference.backends.sum_product import SumProduct
from herdner.inference.linear_chain import score_linked_spans

TOKENS = ["Oslo", "won", "In", "Oslo", ",", "Bergen"]
OFFSETS = np.array([0, 2, 6])


def crf(n_labels: int = 3, linked: tuple[LinkTable, ...] | None = None, seed: int = 0) -> SkipChainModel:
    rng = np.random.default_rng(seed)
    if linked is None:
        linked = (LinkTable(skip_chain_template(), rng.normal(size=(n_labels, n_labels))),)
    borders = rng.normal(size=(2, n_labels))
    return SkipChainModel(rng.normal(size=(n_labels, n_labels)), borders[0], borders[1], linked)


def unary(n_labels: int = 3, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(len(TOKENS), n_labels))


@given(st.lists(st.sets(st.tuples(st.integers(0, 9), st.integers(10, 14)), min_size=1), min_size=1, max_size=5))
def test_links_of_several_rules_are_merged_as_sets_say(rules):
    found = merge_links([np.array(sorted(links), np.int32) for links in rules])
    assert found is not None
    pairs, which, combinations = found
    rules_of = {pair: sum(1 << r for r, links in enumerate(rules) if pair in links) for pair in set().union(*rules)}
    assert list(map(tuple, pairs.tolist())) == sorted(rules_of)
    assert [combinations[k] for k in which] == [rules_of[pair] for pair in sorted(rules_of)]
    assert list(combinations) == sorted(set(rules_of.values()))


@pytest.mark.parametrize("wrong", [[[0, 3], [0, 3]], [[0, 3], [0, 2]], [[1, 2], [0, 3]]])
def test_links_out_of_order_are_not_merged(wrong):
    right = np.array([[0, 1], [0, 3]], np.int32)
    assert merge_links([right, np.array(wrong, np.int32)]) is None


def test_the_joint_is_that_of_chains_borders_and_links():
    """Log-potential by hand, term by term."""
    model, scores = crf(), unary()
    links = model.links(TOKENS, OFFSETS)
    assert links[0].tolist() == [[0, 3]]
    graph = model.unroll(scores, OFFSETS, links)
    rng = np.random.default_rng(2)
    for x in rng.integers(0, 3, (20, 6)):
        expected = scores[np.arange(6), x].sum() + model.link_tables[0].table[x[0], x[3]]
        for begin, end in ((0, 2), (2, 6)):
            expected += model.start[x[begin]] + model.end[x[end - 1]]
            expected += sum(model.transition[x[t - 1], x[t]] for t in range(begin + 1, end))
        assert graph.log_potential(x) == pytest.approx(expected)


def test_documents_without_links_are_chains():
    model, scores = crf(), unary()
    tokens = ["a", *TOKENS[1:]]
    graph = compile_tables(model.unroll(scores, OFFSETS, model.links(tokens, OFFSETS)))
    assert make_backend("viterbi").infer(graph).state.tolist() == model.best_chain(scores, OFFSETS).tolist()


def test_linked_spans_have_the_conditional_probabilities_of_their_sentence():
    """Test the probabilities of spans of one sentence, given the tags of the other, against enumeration."""
    model, scores = crf(), unary()
    links = model.links(TOKENS, OFFSETS)
    oracle = Oracle.of([3] * 6, factors_of(model.unroll(scores, OFFSETS, links)))
    known = np.array([2, 1])
    beliefs = np.zeros((6, 3))
    beliefs[np.arange(2), known] = 1
    agree = (oracle.states[:, :2] == known).all(axis=1)
    share = oracle.probabilities[agree] / oracle.probabilities[agree].sum()
    starts, ends = np.arange(2, 6), np.arange(3, 7)
    for state in range(3):
        states = np.full(6, state, np.int32)
        linked, log_probabilities = score_linked_spans(
            model.with_borders(scores, OFFSETS), scores.copy(), model.transitions, OFFSETS, states, starts, ends,
            links, [each.table for each in model.link_tables], beliefs, (model.start, model.end),
        )  # fmt: skip
        assert linked.any()
        for t, found in zip(starts, np.exp(log_probabilities[0]), strict=True):
            assert found == pytest.approx(share[oracle.states[agree][:, t] == state].sum())


def test_templates_are_values_and_plain_data():
    assert linear_chain_template() == LinearChain()
    assert linear_chain_template().links(TOKENS, OFFSETS).tolist() == [[0, 1], [2, 3], [3, 4], [4, 5]]
    template = skip_chain_template(LastName(nearest=2))
    assert SkipChain.from_dict(json.loads(json.dumps(template.to_dict()))) == template
    assert skip_chain_template() == SkipChain(SameWord())
    assert {linear_chain_template().name, template.name} == {"linear-chain", "last-name"}


def test_a_long_document_of_one_word_stays_linear():
    n = 100_000
    model, scores = crf(5), np.random.default_rng(0).normal(size=(n, 5))
    offsets = np.arange(0, n + 1, 10)
    (links,) = model.links(["Oslo"] * n, offsets)
    assert len(links) <= 3 * n
    state = make_backend("sum-product", n_sweeps=3).infer(model.unroll(scores, offsets, [links])).state
    assert len(state) == n


pairs = st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] < pair[1])


@given(
    st.lists(st.lists(pairs, max_size=6), min_size=1, max_size=3),
    st.lists(st.integers(1, 8), max_size=3),
    st.integers(0, 2**32),
)
def test_the_chains_and_links_are_those_found_in_the_graph(rules, borders, seed):
    """Bit for bit, and so is what sum-product makes of them, whichever rules link the same tokens."""
    rng = np.random.default_rng(seed)
    tables = tuple(LinkTable(skip_chain_template(), rng.normal(size=(3, 3))) for _ in rules)
    model, scores = replace(crf(seed=seed), link_tables=tables), rng.normal(size=(9, 3))
    offsets, links = np.unique([0, *borders, 9]), [np.array(ends, np.int32).reshape(-1, 2) for ends in rules]
    kept = model.compile(scores, offsets, links)
    given_chains = kept.find(LinkedChains)
    assert (kept.links is not None and kept.links() is not None) == (
        any(rules) and all(ends == sorted(set(ends)) for ends in rules)
    )
    compiled = compile_tables(model.unroll(scores, offsets, links))
    found = compiled.find(LinkedChains)
    assert isinstance(given_chains, LinkedChains)
    assert isinstance(found, LinkedChains)
    np.testing.assert_array_equal(given_chains.scopes, found.scopes)
    link_tables = [chains.tables[chains.table_of_edge] for chains in (given_chains, found)]
    np.testing.assert_array_equal(*link_tables)
    for name in ("offsets", "unary"):
        np.testing.assert_array_equal(getattr(given_chains.form, name), getattr(found.form, name))
    inner = np.setdiff1d(np.arange(9), found.form.offsets)
    edges = [
        form.tables[inner * 0 if form.edge_table is None else form.edge_table[inner]]
        for form in (given_chains.form, found.form)
    ]
    np.testing.assert_array_equal(*edges)
    right, quick = SumProduct().infer(compiled), SumProduct().infer(kept)
    if compiled.find(ChainForm) is not None:  # sentences that links make one path: other sums
        np.testing.assert_allclose(right.marginals, quick.marginals, atol=1e-3)
        return
    np.testing.assert_array_equal(right.state, quick.state)
    np.testing.assert_array_equal(right.marginals, quick.marginals)
    assert (right.log_potential, right.log_z) == (quick.log_potential, quick.log_z)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(wrong):
    model, scores = crf(), unary()
    scores[3, 1] = wrong
    with pytest.raises(ValueError, match="finite"):
        SumProduct().infer(model.compile(scores, OFFSETS, [np.array([[0, 3]], np.int32)]))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_link_tables_that_are_not_finite_give_no_layout(wrong):
    table = np.zeros((3, 3))
    table[1, 2] = wrong
    links = [np.array([[0, 3]], np.int32)]
    assert crf().linked_chains(unary(), OFFSETS, links) is not None
    assert crf(linked=(LinkTable(skip_chain_template(), table),)).linked_chains(unary(), OFFSETS, links) is None
