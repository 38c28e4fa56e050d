"""Links between items of a sequence, for `herdner.crf.estimator`: their positions, and the table that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdner.base.arrays import Floats
from herdner.crf.learning import Learner, learn_tables
from herdner.crf.link_rules import Rule, check_links, find_links, rule_from_text
from herdner.crf.model import LinkTable, SkipChainModel
from herdner.crf.objectives import Examples
from herdner.crf.templates import skip_chain_template

ItemLinks = str | Rule | Callable[[Any], Any]
"""Name of a link rule such as "same-word", a rule, or a function that maps a sequence to pairs of positions."""


def sequence_links(option: ItemLinks, sequence: Sequence[Any]) -> NDArray[np.int32]:
    """Return the links of a sequence, int32[F, 2], the earlier item of each link first.

    Args:
        option: Rule or function that finds the links. Rules need sequences of strings.
        sequence: The sequence, as the user passes it.

    Raises:
        TypeError: A rule is used with items that are not strings.
        ValueError: The rule is unknown, or a function returns invalid links.
    """
    rule = rule_from_text(option) if isinstance(option, str) else option
    if not isinstance(rule, Rule):
        return check_links(rule(sequence), len(sequence), "`links`")
    if not all(isinstance(item, str) for item in sequence):
        raise TypeError(
            f"the link rule {rule.name} needs sequences of strings; pass tokens and `features`, or a function of pairs"
        )
    return find_links(rule, sequence, np.array([0, len(sequence)]))


def link_model(transition: Floats, table: Floats) -> SkipChainModel:
    """Return the skip-chain model of a chain and the table that all links share.

    Args:
        transition: float64[K, K], log-potentials of transitions.
        table: float64[K, K], log-potentials of the labels of the earlier and the later item of a link.
    """
    zeros = np.zeros(len(transition))
    return SkipChainModel(transition, zeros, zeros, (LinkTable(skip_chain_template(), table),))


def learn_link_table(
    transition: Floats,
    unary: Floats,
    offsets: NDArray[np.int64],
    states: NDArray[np.int32],
    links: Sequence[NDArray[np.int32]],
) -> Floats:
    """Learn the table that all links share, float64[K, K], by the piecewise likelihood (Sutton and McCallum 2005).

    Args:
        transition: float64[K, K], log-potentials of transitions.
        unary: float64[n, K], log-potentials of labels by chains that were not trained on these sequences.
        offsets: int64[S + 1], first item of each sequence, and n.
        states: int32[n], labels as indices.
        links: Links of each sequence.
    """
    ends = np.concatenate([each + begin for each, begin in zip(links, offsets[:-1], strict=True)], dtype=np.int32)
    model = link_model(transition, np.zeros_like(transition))
    examples = Examples(unary, offsets, states, (ends,), model.chain_marginals(unary, offsets))
    model, _ = learn_tables(model, examples, Learner(objective="piecewise"))
    return model.link_tables[0].table
