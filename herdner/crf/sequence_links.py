"""Links between items of a sequence, for `herdner.crf.estimator`: their indices, and the table that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from herdner.base.arrays import Floats, Int32s, Int64s
from herdner.crf.learning import Learner, learn_tables
from herdner.crf.link_rules import Rule, check_links, find_links, rule_from_text
from herdner.crf.model import Links, LinkTable, SkipChainModel
from herdner.crf.objectives import Examples
from herdner.crf.templates import skip_chain_template
from herdner.inference import Backend, ImpossibleGraph, Result
from herdner.inference.backends.exact import Exact
from herdner.inference.linear_chain import ImpossibleChain, smooth
from herdner.inference.record import Record

ItemLinks = str | Rule | Callable[[Any], Any]
"""Name of a link rule such as "same-word", a rule, or a function that maps a sequence to pairs of item indices."""


def sequence_links(option: ItemLinks, sequence: Sequence[Any]) -> Int32s:
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
            f"the link rule {rule.name} needs sequences of strings; pass tokens and `features`, or a"
            " function that returns pairs of item indices"
        )
    return find_links(rule, sequence, np.array([0, len(sequence)]))


def link_model(transition: Floats, table: Floats | None) -> SkipChainModel:
    """Return a skip-chain model whose links all share one table.

    Args:
        transition: float64[K, K], log-potentials of transitions.
        table: float64[K, K], log-potentials of the labels of the earlier and the later item of a link. None means a
            chain without links.
    """
    zeros = np.zeros(len(transition))
    tables = () if table is None else (LinkTable(skip_chain_template(), table),)
    return SkipChainModel(transition, zeros, zeros, tables)


def infer_sequence(
    model: SkipChainModel,
    unary: Floats,
    links: Links,
    backend: Backend,
    seed: int | np.random.Generator | None,
    record: Record | None = None,
) -> Result:
    """Run inference on one sequence; samplers start at the most probable labels of the linear chain (without links).

    Args:
        model: Tables of transitions and links.
        unary: float64[n, K], log-potentials of labels.
        links: Links of each link table.
        backend: Inference backend.
        seed: Seed of samplers.
        record: Contents of the result; None is the backend's default.

    Returns:
        The result of the backend for the n items of the sequence.

    Raises:
        UnsupportedGraph: The backend does not support the sequence with its links.
        UnsupportedRecord: The backend cannot record what ``record`` asks for.
    """
    offsets = np.array([0, len(unary)])
    if not len(unary):
        return Result(state=np.empty(0, np.int32), log_potential=0.0, marginals=unary, log_z=0.0)
    start = None if backend.capabilities.start == "nothing" else model.best_chain(unary, offsets)
    return backend.infer(model.compile(unary, offsets, links), seed, start=start, record=record)


def log_partition(model: SkipChainModel, unary: Floats, links: Links) -> float:
    """Return log Z of one sequence by exact inference, or -inf if every labelling is forbidden.

    Args:
        model: Tables of transitions and links.
        unary: float64[n, K], log-potentials of labels; -inf forbids a label.
        links: Links of each link table.

    Raises:
        UnsupportedGraph: There are too many links for exact inference.
    """
    try:
        if not any(map(len, links)):
            offsets = np.array([0, len(unary)])
            return float(smooth(unary, model.transition[None], offsets, None, nodes=False).log_z[0])
        log_z = infer_sequence(model, unary, links, Exact(n_threads=1), None, Record(best=False, marginals=False)).log_z
    except (ImpossibleChain, ImpossibleGraph):
        return -np.inf
    assert log_z is not None
    return log_z


def learn_link_table(
    transition: Floats,
    unary: Floats,
    offsets: Int64s,
    states: Int32s,
    links: Sequence[Int32s],
) -> Floats:
    """Learn the table that all links share, float64[K, K], by piecewise likelihood (Sutton and McCallum 2005).

    Args:
        transition: float64[K, K], log-potentials of transitions.
        unary: float64[n, K], log-potentials of labels from chains that were not trained on these sequences.
        offsets: int64[S + 1], first item of each sequence, and n.
        states: int32[n], labels as indices.
        links: Links of each sequence.

    Returns:
        float64[K, K], log-potentials of the labels at both ends of a link.
    """
    ends = np.concatenate([each + begin for each, begin in zip(links, offsets[:-1], strict=True)], dtype=np.int32)
    model = link_model(transition, np.zeros_like(transition))
    examples = Examples(unary, offsets, states, (ends,), model.chain_marginals(unary, offsets))
    model, _ = learn_tables(model, examples, Learner(objective="piecewise"))
    return model.link_tables[0].table
