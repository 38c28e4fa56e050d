"""Certificates of blocked Gibbs on linked documents: the share of mentions and documents with a useful bound.

    herdner train --train eng.train:conll2003 --output conll.herdner
    python scripts/papers/block_certificates.py eng.testa:conll2003 --model conll.herdner
    python scripts/papers/block_certificates.py eng.testa:conll2003

Blocks are sentences (`herdner.dobrushin.blocks`). A linked mention is the name that sum-product predicts around an end
of a link, or the token at this end if there is no name. The certificate of a mention bounds the total variation
distance between the distribution of its tags after the sweeps, from any initial state, and the target distribution. A
document has a useful bound if the certificates of all its linked mentions are below 0.5. The optimised scan is
Algorithm 2 of DoGS17 over the same number of blocks, with equal importance for all linked mentions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from experiment import Experiment, command
from ner_decoding import Scored
from numpy.typing import NDArray

import herdner
from herdner.corpora.reading import read
from herdner.dobrushin import block_influence, certify_block_order, coupling_bounds, tightest_influence
from herdner.graph.scan import systematic_scan
from herdner.inference import make_backend
from herdner.text.tags import Span

GOAL = 0.5


def linked_mentions(ends: np.ndarray, spans: list[Span]) -> list[tuple[int, int]]:
    """Return the linked mentions (first, last token): names with an end of a link, and ends outside of names."""
    names = {t: (span.start, span.end - 1) for span in spans for t in range(span.start, span.end)}
    return sorted({names.get(t, (t, t)) for t in np.unique(ends).tolist()})


@dataclass(frozen=True)
class Bounds:
    """Bounds of the linked mentions of a document for each scan, and the largest sum of influences on a mention."""

    by_scan: dict[str, NDArray[np.float64]]
    total: float


def certificates(scored: Scored, i: int, n_sweeps: int, optimised: bool) -> Bounds:
    """Return the bounds of the linked mentions of document ``i``.

    The key "single tags" is the systematic scan of single variables with the same number of sweeps. The last key has
    bounds of the error of sum-product's marginals for each linked token.
    """
    _, unary, offsets, links = next(piece for piece in scored.pieces() if piece[0] == i)
    graph = scored.crf.compile(unary, offsets, links)
    result = make_backend("sum-product", error_bounds=True).infer(graph)
    assert result.error_bounds is not None
    ends = np.concatenate([pairs.ravel() for pairs in links])
    places = linked_mentions(ends, scored.spans(i, result.state))
    influence, single = block_influence(graph, places), tightest_influence(graph)
    tokens = coupling_bounds(single, systematic_scan(), n_sweeps * len(unary))
    importance = np.zeros(len(influence.spans))
    importance[len(importance) - len(places) :] = 1.0
    n_steps = n_sweeps * influence.n_blocks
    orders = {"systematic": np.arange(n_steps) % influence.n_blocks}
    if optimised:
        orders["optimised"] = certify_block_order(influence, importance, n_steps)[0]
    by_scan = {name: influence.coupling_bounds(order.tolist())[importance > 0] for name, order in orders.items()}
    by_scan["single tags"] = np.array([min(1.0, tokens[first : last + 1].sum()) for first, last in places])
    by_scan["sum-product, linked tokens"] = result.error_bounds[np.unique(ends)]
    return Bounds(by_scan, influence.total)


@command("block_certificates", "Certificates of blocked Gibbs on linked documents")
def main(
    experiment: Experiment,
    test: Annotated[str, typer.Argument(help="Annotated documents, as FILE:FORMAT.")],
    model: Annotated[str, typer.Option("--model", help="Name or file of a model with links.")] = "en",
    sweeps: Annotated[int, typer.Option("--sweeps", min=1, help="Number of sweeps over the blocks.")] = 50,
    optimised: Annotated[bool, typer.Option("--optimised", help="Optimise the scan for linked mentions too.")] = False,
) -> None:
    scored = Scored.of(herdner.load(model), list(read(test)))
    linked = [i for i, links in enumerate(scored.links) if any(map(len, links))]
    linked = linked[:: experiment.size(quick=12, full=1)]
    found = [certificates(scored, i, sweeps, optimised) for i in linked]
    rows: dict[str, dict[str, float]] = {}
    for name in found[0].by_scan:
        bounds = [document.by_scan[name] for document in found]
        every = np.concatenate(bounds)
        documents, mentions = float(np.mean([b.max() < GOAL for b in bounds])), float(np.mean(every < GOAL))
        rows[name] = {"documents": documents, "mentions": mentions, "mean": float(every.mean())}
        print(
            f"{name}: {documents:.1%} of {len(bounds)} documents below {GOAL} for every linked mention, {mentions:.1%}"
            f" of {len(every)} mentions, mean {every.mean():.3f}"
        )
    totals = np.array([document.total for document in found])
    below = np.mean(totals < 1)
    print(f"influences add up to less than 1 in {below:.1%} of the documents, median {np.median(totals):.2f}")
    experiment.finish({"rows": rows, "totals": totals})
