"""F1 of an adapted model, of a model trained on the new documents only, and of the unchanged base model.

    python scripts/benchmarks/bench_adapting.py FIN5.txt:conll2003 wikigold.dev:conll --seed 0

Each corpus is split into documents of at most ``--chunk`` tokens, and the documents into random groups of
``--documents``. A model that was trained on one group is scored on the next group, so every document is scored once, by
a model that was not trained on it. The p-values are those of `herdner evaluate --compare`: approximate randomisation
over documents. Each seed draws other groups; a further table combines all seeds. ``--keep-labels`` keeps the corpus's
own labels, which may be new to the model.

    python scripts/benchmarks/bench_adapting.py worldwide/train:worldwide --retention NORP --old wikigold.dev:wikigold

measures the loss of F1 on the old labels after a model has learned a new label. The model learns one new label of the
corpus from random groups of documents, which are annotated either with the new label and the labels of the base, or
with the new label only. The F1 of the labels of the base on the files ``--old`` must not fall by more than 0.5.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import herdner
from herdner import Document, Tagger
from herdner.corpora.formats import read_documents
from herdner.corpora.reading import FileAndFormat, corpus_label_names, parse_source, read
from herdner.evaluation.compare import swapped_differences
from herdner.evaluation.scores import count_entities, evaluate, f1_from_counts, pair_documents
from herdner.evaluation.tabular import markdown_table
from herdner.text.document import offsets_from_lengths
from herdner.text.labels import rename_labels
from herdner.text.partial import PartialAnnotation
from herdner.text.tokenize import Tokenizer

CORE_LABELS = "PER", "LOC", "ORG"


def chunks(document: Document, most: int) -> Iterator[Document]:
    """Split a document into pieces of whole sentences, each of at most ``most`` tokens or of one longer sentence."""
    sentences = list(zip(document.sentences(), document.sentence_tags(), strict=True))
    lengths = offsets_from_lengths(len(tokens) for tokens, _ in sentences)
    first = 0
    for k in range(1, len(sentences) + 1):
        if k == len(sentences) or lengths[k + 1] - lengths[first] > most:
            tokens, tags = zip(*sentences[first:k], strict=True)
            yield Document.from_tokens(tokens, tags, id=f"{document.id}.{first}")
            first = k


def groups(documents: Sequence[Document], n: int, seed: int) -> Iterator[tuple[list[Document], list[Document]]]:
    """Yield random groups of ``n`` training documents, each with other documents for the evaluation."""
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
    """Return the counts of entities of each tagger in each document, and the seconds of each adaptation."""
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

    The counts may be sums over several draws; the randomisation then swaps all counts of a document together.
    """
    large = abs(f1_from_counts(b.sum(axis=0)) - f1_from_counts(a.sum(axis=0))) - 1e-12
    swaps = swapped_differences(a, b, np.random.default_rng(0), 10_000)
    return (1 + sum(int((abs(part) >= large).sum()) for part in swaps)) / 10_001


def show(title: str, counts: Counts, seconds: dict[object, float], arguments: argparse.Namespace) -> None:
    """Print a table with a row for each strength of the prior and each minimum frequency of features."""
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
    """Print a table of F1 for each random draw of the groups, and a table for all draws together."""
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


def with_new_label(source: FileAndFormat, label: str) -> list[Document]:
    """Return the documents of a corpus that contain ``label``, with the labels PER, LOC, ORG and ``label``."""
    names = {**(corpus_label_names(source.format) or {name: name for name in CORE_LABELS}), label: label, "*": None}
    documents = read_documents(source.path, source.format, labels=names)
    return [d for d in documents if any(span.label == label for span in d.spans or ())]


def only_label(document: Document, label: str) -> Document:
    """Remove all labels of a document except ``label``, and mark the removed labels as unannotated."""
    own = document.with_spans([span for span in document.spans or () if span.label == label])
    return replace(own, partial=PartialAnnotation((), (label,)))


def retention(source: FileAndFormat, old: Sequence[FileAndFormat], label: str, arguments: argparse.Namespace) -> None:
    """Print the change of F1 of the labels of the base on the files ``old`` after the base has learned a new label."""
    documents, base = with_new_label(source, label), herdner.load(arguments.base)
    gold = {each.path: list(read(each, core_labels=True, tokenizer=Tokenizer())) for each in old}
    before = {path: old_f1(base, documents) for path, documents in gold.items()}
    rows: list[tuple[str, ...]] = []
    for seed in arguments.seed:
        learned, others = next(groups(documents, arguments.documents, seed))
        versions = {"all labels": learned, f"only {label}": [only_label(document, label) for document in learned]}
        for title, version in versions.items():
            tagger = Tagger(scheme=base.model_.scheme).fit(version, base=base)
            new = evaluate(others, tagged(tagger, others)).per_label
            f1 = next((row.f1 for row in new if row.label == label), 0.0)
            after = {path: old_f1(tagger, documents) for path, documents in gold.items()}
            changes = [f"{100 * (after[path] - before[path]):+.2f}" for path in gold]
            rows.append((str(seed), title, f"{f1:.1%}", *changes))
    paths = [f"{Path(path).name} ({before[path]:.1%})" for path in gold]
    print(f"\n{source.path}: {label} from {arguments.documents} documents; change of the F1 of {arguments.base}\n")
    print(markdown_table(("seed", "annotated", f"F1 of {label}", *paths), rows), flush=True)


def old_f1(tagger: Tagger, gold: Sequence[Document]) -> float:
    """Return the micro F1 of a tagger on PER, LOC and ORG."""
    names: dict[str, str | None] = {**{label: label for label in CORE_LABELS}, "*": None}
    return evaluate(gold, [rename_labels(document, names, "iob2") for document in tagged(tagger, gold)]).micro.f1


def main() -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpora", nargs="+", metavar="FILE:FORMAT")
    parser.add_argument("--base", default="en")
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="a seed for each random draw of groups")
    parser.add_argument("--chunk", type=int, default=1000)
    parser.add_argument("--c2", type=float, nargs="+", default=[0.3])
    parser.add_argument("--min-freq", type=int, nargs="+", default=[1])
    parser.add_argument("--keep-labels", action="store_true", help="do not rename labels to PER, LOC and ORG")
    parser.add_argument(
        "--retention", metavar="LABEL", help="new label; measure the labels of the base after learning it"
    )
    parser.add_argument("--old", nargs="+", default=[], metavar="FILE:FORMAT", help="files for --retention")
    arguments = parser.parse_args()
    for argument in arguments.corpora:
        source = parse_source(argument)
        if arguments.retention:
            retention(source, [parse_source(each) for each in arguments.old], arguments.retention, arguments)
            continue
        whole = read(source, core_labels=not arguments.keep_labels, tokenizer=Tokenizer())
        study(source.path, [piece for document in whole for piece in chunks(document, arguments.chunk)], arguments)


if __name__ == "__main__":
    main()
