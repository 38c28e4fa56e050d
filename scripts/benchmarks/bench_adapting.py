"""Adaptation of a model to a new domain, beside training on the new documents only and beside the unchanged model.

    python scripts/benchmarks/bench_adapting.py FIN5.txt:conll2003 wikigold.dev:conll --seed 0

Each corpus is cut into documents of at most ``--chunk`` tokens, and these into random groups of ``--documents``. A
model learned from one group is scored on the next, so every document is scored once, by a model that has not seen it.
The p-values are those of `herdner evaluate --compare`: approximate randomisation over documents. Several seeds draw
several groupings, which are also tested together. ``--keep-labels`` keeps the corpus's own labels, which may be new to
the model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

import herdner
from herdner import Document, Tagger
from herdner.corpora.reading import parse_source, read
from herdner.evaluation.compare import swapped_differences
from herdner.evaluation.scores import count_entities, f1_from_counts, pair_documents
from herdner.evaluation.tabular import markdown_table
from herdner.text.document import offsets_from_lengths
from herdner.text.tokenize import Tokenizer


def chunks(document: Document, most: int) -> Iterator[Document]:
    """Split documents into pieces of whole sentences, of at most ``most`` tokens unless one sentence has more."""
    sentences = list(zip(document.sentences(), document.sentence_tags(), strict=True))
    lengths = offsets_from_lengths(len(tokens) for tokens, _ in sentences)
    first = 0
    for k in range(1, len(sentences) + 1):
        if k == len(sentences) or lengths[k + 1] - lengths[first] > most:
            tokens, tags = zip(*sentences[first:k], strict=True)
            yield Document.from_tokens(tokens, tags, id=f"{document.id}.{first}")
            first = k


def groups(documents: Sequence[Document], n: int, seed: int) -> Iterator[tuple[list[Document], list[Document]]]:
    """Return random groups of ``n`` documents to learn from, each with other documents to score."""
    order = np.random.default_rng(seed).permutation(len(documents)).tolist()
    n_groups = len(order) // n
    if n_groups < 2:
        raise SystemExit(f"{len(documents)} documents: learning from {n} and scoring others needs {2 * n}")
    members = [order[g * n : (g + 1) * n] for g in range(n_groups)]
    scored = [*members[1:], members[0]]
    scored[-1] = scored[-1] + order[n_groups * n :]
    for chosen, others in zip(members, scored, strict=True):
        yield [documents[i] for i in chosen], [documents[i] for i in others]


def tagged(tagger: Tagger, documents: Sequence[Document]) -> list[Document]:
    """Return the documents with the tags of a tagger."""
    return list(tagger.pipe(document.without_annotation() for document in documents))


Counts = dict[object, NDArray[np.int64]]  # of each tagger int64[documents, 3]: right, predicted and gold names


def draw(documents: list[Document], seed: int, arguments: argparse.Namespace) -> tuple[Counts, dict[object, float]]:
    """Return the correct entities of each tagger on each document, and the seconds of adaptation."""
    base, strengths = herdner.load(arguments.base), list(product(arguments.c2, arguments.min_freq))
    place = {id(document): i for i, document in enumerate(documents)}
    counts: Counts = {key: np.zeros((len(documents), 3), np.int64) for key in ("alone", "base", *strengths)}
    seconds = dict.fromkeys(strengths, 0.0)
    for train, test in groups(documents, arguments.documents, seed):
        taggers: dict[object, Tagger] = {"alone": Tagger(lexicon=base.model_.lexicon).fit(train), "base": base}
        for c2, min_freq in strengths:
            begin = time.perf_counter()
            taggers[c2, min_freq] = Tagger(scheme=base.model_.scheme, c2=c2, min_freq=min_freq).fit(train, base=base)
            seconds[c2, min_freq] += time.perf_counter() - begin
        for key, tagger in taggers.items():
            _, found = count_entities(list(pair_documents(test, tagged(tagger, test))))
            counts[key][[place[id(document)] for document in test]] = found.sum(axis=1)
    n_groups = len(documents) // arguments.documents
    return counts, {key: value / n_groups for key, value in seconds.items()}


def p_value(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    """Return the p-value of approximate randomisation over documents, as in `herdner evaluate --compare`.

    Counts of several draws may be added up; the counts of one document are then swapped together.
    """
    large = abs(f1_from_counts(b.sum(axis=0)) - f1_from_counts(a.sum(axis=0))) - 1e-12
    swaps = swapped_differences(a, b, np.random.default_rng(0), 10_000)
    return (1 + sum(int((abs(part) >= large).sum()) for part in swaps)) / 10_001


def show(title: str, counts: Counts, seconds: dict[object, float], arguments: argparse.Namespace) -> None:
    """Print a row for each strength."""
    rows: list[tuple[str, ...]] = []
    for c2, min_freq in product(arguments.c2, arguments.min_freq):
        key = c2, min_freq
        shares = [f"{float(f1_from_counts(counts[name].sum(axis=0))):.2%}" for name in (key, "alone", "base")]
        p = [f"{p_value(counts[other], counts[key]):.2g}" for other in ("alone", "base")]
        rows.append((f"{c2:g}", f"{min_freq}", *shares, ", ".join(p), f"{seconds[key]:.1f}"))
    names = f"{arguments.base} adapted", f"the {arguments.documents} alone", arguments.base
    header = "c2", "min freq", *names, "p against the two", "seconds"
    print(f"\n{title}\n\n{markdown_table(header, rows)}", flush=True)


def study(name: str, documents: list[Document], arguments: argparse.Namespace) -> None:
    """Print a table for each draw, and one for all draws together."""
    draws: list[tuple[Counts, dict[object, float]]] = []
    n_groups = len(documents) // arguments.documents
    title = f"{name}: {n_groups} times {arguments.documents} documents learned from, {len(documents)} scored"
    for seed in arguments.seed:
        draws.append(draw(documents, seed, arguments))
        show(f"{title}, seed {seed}", *draws[-1], arguments)
    if len(draws) > 1:
        counts = {key: np.sum([each[key] for each, _ in draws], axis=0) for key in draws[0][0]}
        seconds = {key: float(np.mean([each[key] for _, each in draws])) for key in draws[0][1]}
        show(f"{title}, seeds {', '.join(map(str, arguments.seed))} together", counts, seconds, arguments)


def main() -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpora", nargs="+", metavar="FILE:FORMAT")
    parser.add_argument("--base", default="en")
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="of each draw of the groups")
    parser.add_argument("--chunk", type=int, default=1000)
    parser.add_argument("--c2", type=float, nargs="+", default=[0.3])
    parser.add_argument("--min-freq", type=int, nargs="+", default=[1])
    parser.add_argument("--keep-labels", action="store_true", help="do not map the classes to PER, LOC and ORG")
    arguments = parser.parse_args()
    for argument in arguments.corpora:
        source = parse_source(argument)
        whole = read(source, core_labels=not arguments.keep_labels, tokenizer=Tokenizer())
        study(source.path, [piece for document in whole for piece in chunks(document, arguments.chunk)], arguments)


if __name__ == "__main__":
    main()
