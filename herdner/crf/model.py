"""Skip-chain conditional random fields: a linear chain per sentence, and links between distant tokens of a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from herdner._ext.chain import add_borders
from herdner._ext.links import lay_out_chains
from herdner.base.arrays import Floats, Int32s, Int64s, frozen
from herdner.crf.link_rules import Rule
from herdner.crf.templates import SkipChain
from herdner.graph import FactorGraph, TableFactors, TableGraph, chain_graph
from herdner.graph.chains import ChainForm
from herdner.graph.linked_chains import LinkedChains
from herdner.inference.linear_chain import check_tables, decode, forward_backward
from herdner.text.tags import Scheme, allowed_transitions

_MOST_KNOWN_SUMS = 100
_NO_LINKS = frozen(np.empty((0, 2), np.int32), np.int32, "links")
_MOST_TABLES = 62  # largest number of link tables: a bit mask has one bit for each

Links = Sequence[Int32s]
"""Links of a document for each link table: int32[F, 2], the earlier token of each link first."""


@dataclass(frozen=True, eq=False)
class LinkTable:
    """Link template, and the table of log-potentials that all links of the template share.

    Attributes:
        template: Template that finds the links.
        table: float64[K, K], log-potentials of the earlier token's tag (row) and the later token's tag (column).
    """

    template: SkipChain
    table: Floats


@dataclass(frozen=True, eq=False)
class SkipChainModel:
    """Skip-chain CRF over K tags: tables of log-potentials for transitions and links.

    Entries of -inf forbid the tag or the pair of tags.

    Without links the model is a linear-chain CRF (Lafferty, McCallum and Pereira 2001), with links a skip-chain CRF
    (Sutton and McCallum 2004).

    Attributes:
        transition: float64[K, K], log-potentials of a tag (row) followed by a tag (column) in one sentence.
        start: float64[K], log-potentials of the first tag of a sentence.
        end: float64[K], log-potentials of the last tag of a sentence.
        link_tables: Tables of links between tokens anywhere in a document.
    """

    transition: Floats
    start: Floats
    end: Floats
    link_tables: tuple[LinkTable, ...] = ()

    @classmethod
    def for_tags(
        cls,
        tags: Sequence[str],
        scheme: Scheme | None,
        transition: Floats,
        link_tables: tuple[LinkTable, ...] = (),
    ) -> SkipChainModel:
        """Build a skip-chain model in which malformed tag sequences have log-potential -inf.

        Args:
            tags: The K tags, in the order of the tables.
            scheme: Tag scheme. None forbids nothing.
            transition: float64[K, K], log-potentials of adjacent tags.
            link_tables: Tables of links.

        Returns:
            The model; its tables of sentence borders also forbid the tags that the scheme does not allow there.
        """
        zeros = np.zeros(len(tags))
        if scheme is None:
            return cls(transition, zeros, zeros, link_tables)
        allowed = allowed_transitions(tags, scheme)
        start, end = (np.where(is_allowed, zeros, -np.inf) for is_allowed in (allowed.start, allowed.end))
        return cls(np.where(allowed.follow, transition, -np.inf), start, end, link_tables)

    @cached_property
    def has_borders(self) -> bool:
        """True if a start or end log-potential is not 0."""
        return bool(self.start.any() or self.end.any())

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Link rule of each link table."""
        return tuple(each.template.rule for each in self.link_tables)

    @cached_property
    def transitions(self) -> Floats:
        """Checked, read-only transition table in the shape that compiled loops require, float64[1, K, K]."""
        return frozen(check_tables(self.transition, len(self.start)), np.float64, "transition")

    @cached_property
    def _largest_addend(self) -> float:
        """Larger of two numbers: the maximum of the transition table, and the sum of the maxima of all link tables.

        A link table without positive entries counts as 0. The result is NaN if a table contains NaN.
        """
        links = sum(np.maximum(each.table.max(), 0.0) for each in self.link_tables)  # np.maximum keeps NaN
        return float(np.maximum(self.transition.max(), links))

    @cached_property
    def _known_sums(self) -> dict[tuple[int, ...], tuple[Floats, Floats]]:
        """Cache of the method `_sum_link_tables`: a dict from the argument of a call to the result."""
        return {}

    def _sum_link_tables(self, combinations: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Sum the tables of each of C combinations of link tables, once without and once with the transition table.

        Args:
            combinations: Bit mask of the link tables of each combination.

        Returns:
            float64[C, K, K], the sum of each combination; and float64[1 + 2 C, K, K], the transition table, the
            transition table plus each combination, and each combination. Both are read-only, and cached.
        """
        transition = self.transition
        addends = [[each.table for r, each in enumerate(self.link_tables) if mask >> r & 1] for mask in combinations]
        sums = np.array([sum(tables, np.zeros_like(transition)) for tables in addends])
        of_edges = np.stack([transition, *(sum(tables, transition) for tables in addends), *sums])
        if len(self._known_sums) >= _MOST_KNOWN_SUMS:
            self._known_sums.clear()
        result = frozen(sums, np.float64, "sums"), frozen(of_edges, np.float64, "of_edges")
        self._known_sums[combinations] = result  # another thread may clear the cache at any time
        return result

    def unroll(self, unary: Floats, sentence_offsets: Int64s, links: Links = ()) -> FactorGraph:
        """Build the factor graph of a document with the tables of the model.

        Args:
            unary: float64[n, K], log-potentials of the tags of each token.
            sentence_offsets: int64[S + 1], first token of each sentence, and n.
            links: Links of each link table, as `links` returns them.

        Returns:
            A graph whose groups of factors are: unary, transition, start, end, and one for each link table. Groups of
            links are absent if there are no links.
        """
        graph = chain_graph(unary, self.transition, sentence_offsets, start=self.start, end=self.end)
        if not any(map(len, links)):
            return graph
        factors = [TableFactors(ends, each.table[None]) for each, ends in zip(self.link_tables, links, strict=True)]
        return FactorGraph(graph.domains, [*graph.factors, *factors])

    def compile(self, unary: Floats, sentence_offsets: Int64s, links: Links = ()) -> TableGraph:
        """Compile the factor graph of a document.

        The factor graph itself is built only if a backend needs it.

        The result for a document must not depend on the documents that are decoded together with it. Therefore links
        are never merged into the chains, even if the graph of one document is a single path.

        Args:
            unary: float64[n, K], log-potentials of the tags of each token.
            sentence_offsets: int64[S + 1], first token of each sentence, and n.
            links: Links of each link table.

        Returns:
            The compiled graph with n variables of K states.
        """
        graph = partial(self.unroll, unary, sentence_offsets, links)
        if not any(map(len, links)):
            return TableGraph(graph)
        return TableGraph(graph, partial(self.linked_chains, unary, sentence_offsets, links))

    def linked_chains(self, unary: Floats, sentence_offsets: Int64s, links: Links) -> LinkedChains | None:
        """Return the ``LinkedChains`` array layout of a document, without building the factor graph of the document.

        The result represents the same graph as the chains that ``herdner.graph.linked_chains.linked_chains`` builds
        from the graph of `unroll`. This method is faster, because it lays out each table once and compares no tables. A
        link from the last token of a sentence to the first token of the next sentence joins the two sentences to one
        chain.

        Args:
            unary: float64[n, K], log-potentials of the tags of each token.
            sentence_offsets: int64[S + 1], first token of each sentence, and n.
            links: Links of each link table in ascending order.

        Returns:
            The linked chains; None if a sentence is empty, a table lists a link twice, there are more than 62 link
            tables, or a log-potential is NaN or +inf.

        Raises:
            ValueError: ``links`` does not have one array for each link table.
        """
        if len(links) != len(self.link_tables):
            raise ValueError(f"links must have one array for each of {len(self.link_tables)} tables, got {len(links)}")
        if len(links) > _MOST_TABLES or not self._largest_addend < np.inf:
            return None
        unary = self.with_borders(unary, sentence_offsets)
        layout = lay_out_chains(unary, sentence_offsets, [each if len(each) else _NO_LINKS for each in links])
        if layout is None:
            return None
        offsets, edge_table, ends, which, combinations = layout
        link_tables, tables_of_edges = self._known_sums.get(combinations) or self._sum_link_tables(combinations)
        chain_tables = self.transitions if edge_table is None else tables_of_edges
        return LinkedChains(ChainForm(None, offsets, unary, chain_tables, edge_table, 0.0), ends, which, link_tables)

    def links(self, tokens: Sequence[str], sentence_offsets: Int64s) -> list[Int32s]:
        """Return the links between the tokens of a document, one array for each link table.

        Args:
            tokens: Tokens of the document.
            sentence_offsets: int64[S + 1], first token of each sentence, and the number of tokens.

        Returns:
            One int32[F, 2] for each link table, the earlier token of each link first.
        """
        return [each.template.links(tokens, sentence_offsets) for each in self.link_tables]

    def chain_marginals(self, unary: Floats, sentence_offsets: Int64s) -> Floats:
        """Return the marginals of the tags under the chains alone, without links.

        Args:
            unary: float64[n, K], log-potentials of the tags of each token.
            sentence_offsets: int64[S + 1], first token of each sentence, and n.

        Returns:
            float64[n, K].
        """
        unary = self.with_borders(unary, sentence_offsets)
        nodes = forward_backward(unary, self.transition, sentence_offsets).nodes
        assert nodes is not None
        return nodes

    def best_chain(self, unary: Floats, sentence_offsets: Int64s) -> Int32s:
        """Return the most probable tags under the chains alone, without links, by Viterbi decoding.

        Samplers start at these tags.

        Args:
            unary: float64[n, K], log-potentials of the tags of each token.
            sentence_offsets: int64[S + 1], first token of each sentence, and n.

        Returns:
            int32[n], indices of tags.
        """
        return decode(self.with_borders(unary, sentence_offsets), self.transitions, sentence_offsets, None)[0]

    def with_borders(self, unary: Floats, sentence_offsets: Int64s, overwrite_unary: bool = False) -> Floats:
        """Add the start and end log-potentials to the unary log-potentials of each sentence's first and last token.

        Args:
            unary: float64[n, K], log-potentials of the tags of each token.
            sentence_offsets: int64[S + 1], first token of each sentence, and n.
            overwrite_unary: Allow ``unary`` to be overwritten.

        Returns:
            float64[n, K]: a copy, or ``unary`` itself if it may be overwritten or start and end are 0.
        """
        if not self.has_borders:
            return unary
        if not overwrite_unary:
            unary = unary.copy()
        add_borders(unary, sentence_offsets, self.start, self.end)
        return unary

    def without_borders(self) -> SkipChainModel:
        """Return a copy of the model whose start and end log-potentials are 0.

        Use the copy with unary log-potentials that already include these start and end log-potentials.
        """
        return replace(self, start=np.zeros_like(self.start), end=np.zeros_like(self.end))
