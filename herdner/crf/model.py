"""Conditional random fields over the tags of a document, as factor graphs: a linear chain, and links that skip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from herdner._ext.links import add_messages, merged
from herdner.crf.templates import EdgeScale, SkipChain
from herdner.graph import FactorGraph, TableFactors, TableGraph, chain_graph
from herdner.graph.chains import ChainForm
from herdner.graph.linked_chains import LinkedChains
from herdner.inference.linear_chain import forward_backward, viterbi
from herdner.text.tags import Scheme, allowed_transitions

MOST_TABLES = 62  # of links that are laid out together: a bit for each


@dataclass(frozen=True, eq=False)
class LinkTable:
    """A template of links and its tied table, float64[K, K]: the earlier token's tag (row), the later one's (column).

    Attributes:
        template: What finds the links.
        table: float64[K, K], their log-potentials.
        scale: By how much each link's table counts; None is 1.
    """

    template: SkipChain
    table: NDArray[np.float64]
    scale: EdgeScale | None = None


@dataclass(frozen=True, eq=False)
class Links:
    """What a `LinkTable` found in a document: ``ends`` int32[F, 2] and the factor ``scale`` float64[F] of each link."""

    ends: NDArray[np.int32]
    scale: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class SkipChainModel:
    """Tied tables over K tags; -inf forbids.

    Without links this is a linear-chain CRF (Lafferty, McCallum and Pereira 2001), with them a skip-chain CRF (Sutton
    and McCallum 2004).

    Attributes:
        transition: float64[K, K], log-potential of a tag (row) followed by a tag (column) in one sentence.
        start: float64[K], log-potentials of the first tag of a sentence.
        end: float64[K], log-potentials of the last tag of a sentence.
        link_tables: Links of tokens anywhere in a document.
    """

    transition: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    link_tables: tuple[LinkTable, ...] = ()

    @classmethod
    def over(
        cls,
        labels: Sequence[str],
        scheme: Scheme | None,
        transition: NDArray[np.float64],
        link_tables: tuple[LinkTable, ...] = (),
    ) -> SkipChainModel:
        """A CRF of these tags that forbids what is not well formed in ``scheme``; None forbids nothing."""
        nothing = np.zeros(len(labels))
        if scheme is None:
            return cls(transition, nothing, nothing, link_tables)
        allowed = allowed_transitions(labels, scheme)
        start, end = (np.where(ok, nothing, -np.inf) for ok in (allowed.start, allowed.end))
        return cls(np.where(allowed.follow, transition, -np.inf), start, end, link_tables)

    def unroll(
        self,
        unary: NDArray[np.float64],
        sentence_offsets: NDArray[np.int64],
        links: Sequence[Links] = (),
    ) -> FactorGraph:
        """The graph of a document: ``unary`` float64[n, K] per token, one chain per sentence, and ``links`` as
        `links` finds them. Its groups of factors: unary, transition, start, end, and one for each link table.
        """
        graph = chain_graph(unary, self.transition, sentence_offsets, start=self.start, end=self.end)
        if not any(len(found.ends) for found in links):
            return graph
        linked = [
            TableFactors(found.ends, each.table[None], scale=found.scale)
            for each, found in zip(self.link_tables, links, strict=True)
        ]
        return FactorGraph(graph.domains, [*graph.factors, *linked])

    def compiled(
        self, unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64], links: Sequence[Links] = ()
    ) -> TableGraph:
        """The graph of `unroll`, built only if a backend needs more than its chains and links.

        Links that make one path of the sentences stay links: what a document gets must not depend on the documents
        beside it, with which its graph is no path.
        """
        graph = partial(self.unroll, unary, sentence_offsets, links)
        if not any(len(found.ends) for found in links):
            return TableGraph(graph)
        return TableGraph(graph, partial(self._linked_chains, unary, sentence_offsets, links))

    def _linked_chains(
        self, unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64], links: Sequence[Links]
    ) -> LinkedChains | None:
        """The `LinkedChains` of `unroll` by no more than copying and adding tables; None where links are scaled, or one
        stands twice in a link table.
        """
        linked = [(each.table, found) for each, found in zip(self.link_tables, links, strict=True) if len(found.ends)]
        scaled = any(found.scale is not None for _, found in linked)
        if scaled or len(linked) > MOST_TABLES or (np.diff(sentence_offsets) < 1).any():
            return None
        unary = self.with_borders(unary, sentence_offsets)
        largest = max(unary.max(), self.transition.max(), sum(max(table.max(), 0) for table, _ in linked))
        joint = merged([found.ends for _, found in linked])
        if joint is None or not largest < np.inf:
            return None  # numbers that are none: whoever builds the graph says what is wrong
        (ends, which, combinations), nothing = joint, np.zeros_like(self.transition)
        added = [[table for r, (table, _) in enumerate(linked) if mask >> r & 1] for mask in combinations.tolist()]
        offsets, tables, edge_table, near = sentence_offsets, self.transition[None], None, ends[:, 1] - ends[:, 0] == 1
        apart = np.stack([sum(chosen, nothing) for chosen in added])
        if near.any():  # such a link adds to the table of two neighbours, or joins two sentences
            later, starts = ends[near, 1], np.zeros(len(unary) + 1, np.bool_)
            starts[offsets] = True
            across = starts[later]
            starts[later] = False
            offsets = np.flatnonzero(starts)
            tables = np.stack([self.transition, *(sum(chosen, self.transition) for chosen in added), *apart])
            edge_table = np.zeros(len(unary), np.int32)
            edge_table[later] = 1 + which[near] + len(added) * across
            ends, which = ends[~near], which[~near]
        form = ChainForm(None, offsets, unary, tables, edge_table, 0.0)
        return LinkedChains(form, ends, which, apart)

    def links(
        self, tokens: Sequence[str], unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64]
    ) -> list[Links]:
        """The links of each link table in a document; scales that ask for it look at the chain's marginals."""
        ends = [each.template.links(tokens, sentence_offsets) for each in self.link_tables]
        return self.scaled(ends, unary, sentence_offsets)

    def scaled(
        self, ends: Sequence[NDArray[np.int32]], unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64]
    ) -> list[Links]:
        """The links whose ``ends`` are known for each link table, with the scales of this CRF."""
        if not any(each.scale is not None and len(found) for each, found in zip(self.link_tables, ends, strict=True)):
            return [Links(found) for found in ends]
        beliefs = self.chain_marginals(unary, sentence_offsets)
        return [
            Links(found)
            if each.scale is None
            else Links(found, each.scale(EdgeScale.features(found, sentence_offsets, beliefs)))
            for each, found in zip(self.link_tables, ends, strict=True)
        ]

    def chain_marginals(self, unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64[n, K]: the marginals of the tags under the chain alone."""
        unary = self.with_borders(unary, sentence_offsets)
        nodes = forward_backward(unary, self.transition, sentence_offsets).nodes
        assert nodes is not None
        return nodes

    def best_chain(self, unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[n]: the best tags of the chain alone, where samplers begin."""
        return viterbi(self.with_borders(unary, sentence_offsets), self.transition, sentence_offsets)[0]

    def with_borders(self, unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """``unary`` with start and end added at the borders of sentences: the chain's log-potentials without those
        tables. A copy, unless there is nothing to add.
        """
        return self.add_borders(unary.copy() if self.start.any() or self.end.any() else unary, sentence_offsets)

    def add_borders(self, unary: NDArray[np.float64], sentence_offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """`with_borders` into ``unary`` itself."""
        if not self.start.any() and not self.end.any():
            return unary
        unary[sentence_offsets[:-1]] += self.start
        unary[sentence_offsets[1:] - 1] += self.end
        return unary

    def without_borders(self) -> SkipChainModel:
        """The CRF of log-potentials that have start and end in them already."""
        return replace(self, start=np.zeros_like(self.start), end=np.zeros_like(self.end))

    def given(
        self,
        unary: NDArray[np.float64],
        links: Sequence[Links],
        beliefs: NDArray[np.float64],
        spare: bool = False,
    ) -> NDArray[np.float64]:
        """float64[n, K]: ``unary`` and what the links add to it when their other ends are distributed as ``beliefs``
        [n, K] (one state for certain where its rows are 0 and 1): the expected log-potentials of naive mean field
        (Wainwright and Jordan 2008, Sec. 5.3). ``spare``: nobody needs ``unary`` any more, so that they may take its
        place.
        """
        total = unary if spare else unary.copy()
        for each, found in zip(self.link_tables, links, strict=True):
            add_messages(total, found.ends, found.scale, each.table, np.ascontiguousarray(beliefs, np.float64))
        return total
