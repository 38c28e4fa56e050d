"""Adapting a model with few documents of a new domain, beside training on these alone, and beside the model as it is.

    python scripts/benchmarks/bench_adapting.py FIN5.txt:conll2003 wikigold.dev:conll --seed 0

Each corpus is cut into documents of at most ``--chunk`` tokens (agreements are long) and these into random groups of
``--documents``. A model learned from one group is scored on the next, so that every document is scored once, by a model
that has not seen it. The p-values are those of `herdner evaluate --compare`: approximate
randomisation over documents. ``--keep-labels`` has the corpus's own classes, which may be new ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

import herdner
from herdner import Document, Tagger
from herdner.corpora.reading import parse_source, read
from herdner.evaluation.compare import compare
from herdner.evaluation.scores import evaluate
from herdner.evaluation.tabular import markdown_table
from herdner.text.document import offsets_from_lengths
from herdner.text.tokenize import Tokenizer


def chunks(document: Document, most: int) -> Iterator[Document]:
    """Pieces of whole sentences, of at most ``most`` tokens unless one sentence has more."""
    sentences = list(zip(document.sentences(), document.sentence_tags(), strict=True))
    lengths = offsets_from_lengths(len(tokens) for tokens, _ in sentences)
    first = 0
    for k in range(1, len(sentences) + 1):
        if k == len(sentences) or lengths[k + 1] - lengths[first] > most:
            tokens, tags = zip(*sentences[first:k], strict=True)
            yield Document.from_tokens(tokens, tags, id=f"{document.id}.{first}")
            first = k


def groups(documents: Sequence[Document], n: int, seed: int) -> Iterator[tuple[list[Document], list[Document]]]:
    """Random groups of ``n`` documents to learn from, each with other documents to score: every one is scored once."""
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
    """The documents anew."""
    return list(tagger.pipe(replace(document, tags=None, entities=()) for document in documents))


def study(name: str, documents: list[Document], arguments: argparse.Namespace) -> None:
    """A row for each strength."""
    base, strengths = herdner.load(arguments.base), list(product(arguments.c2, arguments.min_freq))
    gold: list[Document] = []
    found: dict[object, list[Document]] = {key: [] for key in ("alone", "base", *strengths)}
    seconds = dict.fromkeys(strengths, 0.0)
    n_groups = 0
    for train, test in groups(documents, arguments.documents, arguments.seed):
        n_groups += 1
        gold += test
        found["alone"] += tagged(Tagger(lexicon=base.model_.lexicon).fit(train), test)
        found["base"] += tagged(base, test)
        for c2, min_freq in strengths:
            begin = time.perf_counter()
            adapted = Tagger(scheme=base.model_.scheme, c2=c2, min_freq=min_freq).fit(train, base=base)
            seconds[c2, min_freq] += time.perf_counter() - begin
            found[c2, min_freq] += tagged(adapted, test)
    f1 = {key: evaluate(gold, documents).micro.f1 for key, documents in found.items()}
    print(f"\n{name}: {n_groups} times {arguments.documents} documents learned from, {len(gold)} scored\n")
    rows = []
    for key in strengths:
        rng = np.random.default_rng(arguments.seed)
        p = [compare(gold, found[other], found[key], rng=rng).randomisation_p for other in ("alone", "base")]
        shares = [f"{f1[name]:.2%}" for name in (key, "alone", "base")]
        rows.append((f"{key[0]:g}", f"{key[1]}", *shares, f"{p[0]:.2g}, {p[1]:.2g}", f"{seconds[key] / n_groups:.1f}"))
    names = f"{arguments.base} adapted", f"the {arguments.documents} alone", arguments.base
    print(markdown_table(("c2", "min freq", *names, "p against the two", "seconds"), rows))


def main() -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpora", nargs="+", metavar="FILE:FORMAT")
    parser.add_argument("--base", default="en")
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chunk", type=int, default=1000)
    parser.add_argument("--c2", type=float, nargs="+", default=[0.3])
    parser.add_argument("--min-freq", type=int, nargs="+", default=[1])
    parser.add_argument("--keep-labels", action="store_true", help="do not map the classes to PER, LOC and ORG")
    arguments = parser.parse_args()
    for argument in arguments.corpora:
        source = parse_source(argument)
        whole = read(source, map_labels=not arguments.keep_labels, tokenizer=Tokenizer())
        study(source.path, [piece for document in whole for piece in chunks(document, arguments.chunk)], arguments)


if __name__ == "__main__":
    main()
