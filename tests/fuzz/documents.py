"""Random documents, link rules, offsets, links and scores; chains and spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fuzz.graphs import Rng, backend, numbers, pick
from herdner import Document, Entity, SkipChainLayer, Tokenizer
from herdner.crf.link_rules import Acronym, Company, LastName, SameStem, SameWord
from herdner.crf.templates import skip_chain_template
from herdner.inference import linear_chain
from herdner.text.tags import Span

WORDS = [
    "Paris", "paris", "PARIS", "said", "I.M.F.", "IMF", "International", "Monetary", "Fund", "of", "the", ".", "``",
    "Bill", "Clinton", "Clintons", "", " ", "x" * 70, "\0", "\ud800", "ß", "İ", "Asia-Pacific", "-", "1", "U.N.", "a b",
]  # fmt: skip
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def words(rng: Rng) -> list[Any]:
    found: list[Any] = [pick(rng, *WORDS) for _ in range(int(pick(rng, 0, 1, 5, 40, 200)))]
    if rng.random() < 0.05 and found:
        found[int(rng.integers(len(found)))] = pick(rng, None, 7, b"x", ["x"], np.str_("Bill"))
    return found


def offsets(rng: Rng, n: int) -> Any:
    """Return sentence offsets, valid or arbitrary."""
    found = np.unique(np.r_[0, rng.integers(0, n + 1, int(rng.integers(0, 6))), n]).astype(np.int64)
    kind = pick(rng, "right", "right", "right", "odd", "any", "list", "float", "none")
    if kind == "odd":
        found[rng.integers(len(found))] = pick(rng, -1, n + 1, 2**62, -(2**63), 0)
    elif kind == "any":
        found = rng.integers(-3, n + 4, int(rng.integers(0, 6)))
    elif kind == "float":
        return found.astype(float)
    elif kind == "none":
        return pick(rng, np.empty(0, np.int64), np.zeros((2, 2), np.int64), np.array(5))
    return found.tolist() if kind == "list" else found


def ends(rng: Rng, n: int) -> Any:
    """Return links, valid or arbitrary."""
    found = np.unique(np.sort(rng.integers(0, max(n, 1), (int(rng.integers(0, 9)), 2)), axis=1), axis=0)
    found = found[found[:, 0] < found[:, 1]]
    kind = pick(rng, "right", "right", "any", "odd", "other")
    if kind == "any":
        found = rng.integers(-2, n + 3, (int(rng.integers(0, 5)), 2))
    elif kind == "odd":
        return pick(
            rng,
            found.tolist(),
            found.astype(float),
            found.astype(np.uint8),
            found[::-1],
            found.ravel(),
            None,
            [[1, 2], [3]],
        )
    elif kind == "other":
        return np.array([[0, pick(rng, 2**31, 2**32 + 1, 2**63 - 1, -(2**31))]])
    return found


@dataclass(frozen=True)
class Own:
    """A user-defined link rule."""

    found: Any
    name: ClassVar[str] = "own"

    def links(self, tokens: Any, sentence_offsets: Any) -> Any:
        return self.found


def rule(rng: Rng, n: int) -> Any:
    nearest = int(pick(rng, 1, 3, 100))
    return pick(
        rng, SameWord(nearest, 1, bool(rng.integers(2))), SameWord(nearest), SameStem(nearest), Acronym(nearest),
        LastName(nearest), Company(nearest), Own(ends(rng, n)), Own(ends(rng, n)),
    )  # fmt: skip


def rules(rng: Rng) -> None:
    """Check the links of a rule: pairs of tokens in ascending order, the earlier token first."""
    tokens = words(rng)
    if not all(isinstance(word, str) for word in tokens):
        return
    found = skip_chain_template(rule(rng, len(tokens))).links(tokens, offsets(rng, len(tokens)))
    assert found.dtype == np.int32, found.dtype
    assert found.ndim == 2, found.shape
    assert found.shape[1] == 2, found.shape
    if len(found):
        assert found.min() >= 0, found
        assert found.max() < len(tokens), found
        assert (found[:, 0] < found[:, 1]).all(), found
        assert np.array_equal(np.unique(found, axis=0), found), found


def layer(rng: Rng) -> None:
    """Call the layer with random scores, offsets and links."""
    tokens = words(rng)
    rules = [skip_chain_template(rule(rng, len(tokens))) for _ in range(int(pick(rng, 0, 1, 2)))]
    chosen = backend(rng) if rng.random() < 0.5 else "sum-product"
    tie = float(pick(rng, 1.0, 0.0, -5.0, 1e99, 1e300, np.nan))
    transition = None if rng.random() < 0.6 else numbers(rng, (5, 5))
    made = SkipChainLayer(
        LABELS, rules, link_strength=tie, transition=transition, constrained=bool(rng.random() < 0.7), backend=chosen
    )
    scores = numbers(rng, (len(tokens), 5)).astype(pick(rng, np.float64, np.float32, np.float16))
    known = [ends(rng, len(tokens)) for _ in rules] if rng.random() < 0.3 else None
    result = made.apply(scores, tokens, offsets(rng, len(tokens)), links=known)
    assert len(result.tags) == len(tokens), result.tags
    assert set(result.tags) <= set(LABELS), result.tags
    if result.marginals is not None and len(tokens):
        assert np.allclose(result.marginals.sum(axis=1), 1, atol=1e-6), result.marginals
    if result.confidences is not None:
        assert ((result.confidences >= 0) & (result.confidences <= 1 + 1e-9)).all(), result.confidences


def places(rng: Rng) -> None:
    """Build documents from random offsets, entities, spans and tags, and check that all results lie within the text."""
    text = "".join(pick(rng, "a", "B", " ", "\n", ".", "é", "\ud800", "🏠") for _ in range(int(rng.integers(0, 60))))
    document = TOKENIZER(text)
    if rng.random() < 0.6:
        arrays = [document.token_starts.copy(), document.token_ends.copy(), document.sentence_offsets.copy()]
        which = arrays[int(rng.integers(3))]
        if len(which):
            which[int(rng.integers(len(which)))] = pick(rng, -1, 0, 3, 60, 10**6, 2**62, -(2**63))
        if rng.random() < 0.2:
            arrays[int(rng.integers(3))] = pick(
                rng, np.zeros(3), np.zeros(2, np.int32), np.zeros((1, 1), np.int64), None
            )
        document = Document(text, document.tokens, *arrays)
    n = document.n_tokens
    kind = pick(rng, "entities", "spans", "tags", "none")
    if kind == "entities":
        found = [Entity(*map(int, rng.integers(-2, len(text) + 3, 2)), "PER", "x") for _ in range(int(rng.integers(4)))]
        document = document.with_entities(found)
    elif kind == "spans":
        document = document.with_spans(
            [Span(*map(int, rng.integers(-2, n + 3, 2)), "PER") for _ in range(int(rng.integers(3)))]
        )
    elif kind == "tags":
        document = document.with_tags([pick(rng, *LABELS, "E-PER", "x") for _ in range(int(pick(rng, n, n, n + 1)))])
    for entity in document.entities:
        assert 0 <= entity.start < entity.end <= len(text), entity
    assert document.spans is None or all(0 <= span.start < span.end <= n for span in document.spans), document.spans


TOKENIZER = Tokenizer()


def chains(rng: Rng) -> None:
    """Call Viterbi, forward-backward and span functions with random arrays."""
    n, k = int(rng.integers(0, 30)), int(pick(rng, 1, 2, 3, 9, 17, 300 if rng.random() < 0.1 else 4))
    n_tables = int(pick(rng, 1, 1, 2))
    unary, tables = numbers(rng, (n, k)), numbers(rng, (k, k) if n_tables == 1 else (n_tables, k, k))
    table = None if n_tables == 1 else rng.integers(0, n_tables + (rng.random() < 0.1), n)
    sentence_offsets = offsets(rng, n)
    states, scores = linear_chain.viterbi(unary, tables, sentence_offsets, table)
    assert ((states >= 0) & (states < k)).all(), states
    assert not np.isnan(scores).any(), scores
    found = linear_chain.forward_backward(unary, tables, sentence_offsets, table, transition_counts=True, edges=True)
    assert np.isfinite(found.log_z).all(), found.log_z
    assert np.allclose(found.nodes.sum(axis=1), 1, atol=1e-6), found.nodes
    assert np.isfinite(found.transition_counts).all(), found.transition_counts
    starts, stops = rng.integers(-1, n + 2, (2, int(rng.integers(0, 4))))
    log_probability = linear_chain.span_log_probability(unary, tables, sentence_offsets, states, starts, stops, table)
    assert (log_probability <= 1e-9).all(), log_probability
