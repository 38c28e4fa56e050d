"""F1 after training on suggested documents, compared with training on random documents.

    python scripts/benchmarks/bench_suggest.py eng.train:conll2003 --test eng.testa:conll2003 --seeds 5

For each seed, a model is trained on ``--start`` random documents of the pool, and suggests ``--documents`` more
documents. A new model is trained on the random and the suggested documents, and scored on the test documents. Two other
models are trained on the same number of random documents, and on random documents with the same number of tokens
(suggested documents are longer than average).
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
    """Return a tagger trained on documents, without links and word lists."""
    return Tagger(templates=(linear_chain_template(),), max_iterations=iterations).fit(documents)


def until(documents: Sequence[Document], tokens: int) -> list[Document]:
    """Return the first documents that together have at least ``tokens`` tokens."""
    ends = np.cumsum([document.n_tokens for document in documents])
    return list(documents[: int(np.searchsorted(ends, tokens)) + 1])


def choices(start: Sequence[Document], rest: Sequence[Document], n: int, iterations: int) -> dict[str, list[Document]]:
    """Return the documents that each selection method adds to the training documents, by the name of the method."""
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
    parser.add_argument("pool", help="pool of annotated documents, as FILE:FORMAT")
    parser.add_argument("--test", help="test documents, as FILE:FORMAT [default: a third of the pool]")
    parser.add_argument("--start", type=int, default=20)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=400, help="number of documents of the pool, drawn at random")
    parser.add_argument("--most-test", type=int, default=100, help="number of test documents, drawn at random")
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
