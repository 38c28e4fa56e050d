"""F1 after learning from suggested documents, beside random documents.

    python scripts/benchmarks/bench_suggest.py eng.train:conll2003 --test eng.testa:conll2003 --seeds 5

For each seed a model is learned from ``--start`` random documents of the pool, and it suggests ``--documents`` more.
Models learned from both are scored on the test documents, beside models with equally many random documents, and with
random documents of equally many tokens (suggested documents are longer than average).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, stdev

import numpy as np

from herdner import Document, Tagger
from herdner.corpora.reading import read
from herdner.crf.templates import linear_chain_template
from herdner.evaluation.tabular import markdown_table
from herdner.ner import suggesting


def learned(documents: Sequence[Document], iterations: int) -> Tagger:
    """Train the chain alone, without word lists, to measure the value of the documents."""
    return Tagger(templates=(linear_chain_template(),), max_iterations=iterations).fit(documents)


def until(documents: Sequence[Document], tokens: int) -> list[Document]:
    """Return the first documents that have as many tokens together."""
    ends = np.cumsum([document.n_tokens for document in documents])
    return list(documents[: int(np.searchsorted(ends, tokens)) + 1])


def choices(start: Sequence[Document], rest: Sequence[Document], n: int, iterations: int) -> dict[str, list[Document]]:
    """Return the documents to annotate next, by the name of the selection method."""
    tagger = learned(start, iterations)
    annotated = {document.id: document for document in rest}
    bare = [document.without_annotation() for document in rest]
    order = [annotated[each.document.id] for each in suggesting.suggest(tagger, bare)]
    tokens = sum(document.n_tokens for document in order[:n])
    return {
        "suggested": order[:n],
        "random, as many documents": list(rest[:n]),
        "random, as many tokens": until(rest, tokens),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", help="FILE:FORMAT to choose from")
    parser.add_argument("--test", help="FILE:FORMAT to score on [default: a third of the pool]")
    parser.add_argument("--start", type=int, default=20)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=400, help="documents of the pool, drawn at random")
    parser.add_argument("--most-test", type=int, default=100, help="test documents, drawn at random")
    parser.add_argument("--iterations", type=int, default=40)
    options = parser.parse_args()
    rng = np.random.default_rng(0)

    def drawn(source: str) -> list[Document]:
        found = [d for d in read(source) if d.n_tokens]
        return [replace(found[i], id=str(i)) for i in rng.permutation(len(found)).tolist()]

    pool = drawn(options.pool)
    if options.test is None:
        cut = len(pool) // 3
        test, pool = pool[:cut], pool[cut:]
    else:
        test = drawn(options.test)
    pool, test = pool[: options.most], test[: options.most_test]
    scores: dict[str, list[float]] = {}
    sizes: dict[str, list[int]] = {}
    for seed in range(options.seeds):
        order = [pool[i] for i in np.random.default_rng(seed).permutation(len(pool)).tolist()]
        start, rest = order[: options.start], order[options.start :]
        for name, more in choices(start, rest, options.documents, options.iterations).items():
            scores.setdefault(name, []).append(100 * learned([*start, *more], options.iterations).score(test))
            sizes.setdefault(name, []).append(sum(document.n_tokens for document in more))
    print(f"{options.pool}: {options.start} random documents and {options.documents} more, {options.seeds} seeds")
    rows = []
    for name, found in scores.items():
        gains = [ours - theirs for ours, theirs in zip(scores["suggested"], found, strict=True)]
        better = (f"{mean(gains):+.2f}", f"{sum(gain > 0 for gain in gains)} of {len(gains)}")
        figures = f"{mean(found):.2f}", f"{stdev(found):.2f}", f"{mean(sizes[name]):,.0f}"
        rows.append((name, *figures, *(better if name != "suggested" else ("", ""))))
    print(markdown_table(("chosen", "F1", "sd", "tokens", "suggested is better by", "in"), rows))


if __name__ == "__main__":
    main()
