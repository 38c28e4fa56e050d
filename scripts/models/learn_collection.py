"""Select the parameters of the evidence that documents of a collection give for names in other documents.

    python scripts/models/learn_collection.py --data ../shared/data/ner --halves build --added build/halves

The parameters are those of `herdner.ner.known_names.collection.PooledEvidence`. The parameters must be selected on
documents that are not training data of the model, because a model is too confident on its training data. Therefore the
linear chain of the model is trained twice, each time on every second document of the training corpora (worldwide,
wnut17 and btc), and tags the other documents. Both chains use the links and the calibration of the shipped model. The
corpora wikigold, Tweebank and EWT are tagged by the two models of the cross-validation of `en`: ``--added`` is the
folder that the option ``--halves`` of train_en.py and train_network.py writes. All documents of one corpus are a
collection.

The output is the gain in F1 of each corpus and the mean gain, for all parameter values of a grid. The two models are
stored in the folder ``--halves`` and read again in later runs, because their training takes ten minutes. The corpora
are not distributed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from train_en import ADDED, TRAINING, read_annotated

import herdner
from herdner import Tagger
from herdner.corpora.formats import read_documents
from herdner.crf.templates import linear_chain_template
from herdner.evaluation.scores import evaluate
from herdner.evaluation.tabular import markdown_table
from herdner.ner.known_names import CollectionNames
from herdner.ner.known_names.collection import PooledEvidence
from herdner.ner.language import LanguageWarning
from herdner.text.document import Document

STRENGTHS = 0.25, 0.5, 1.0
PRIORS_OF_NO_NAME = 0.5, 0.7, 0.8
REPETITIONS = 0.0, 0.5, 1.0
STEPS = {"worldwide": 4, "wnut17": 1, "btc": 1}  # every 4th article is enough
CROSS_VALIDATED = "wikigold", "tweebank", "uner_ewt"


class Part(NamedTuple):
    """Documents of a collection, and a tagger that was not trained on these documents."""

    tagger: Tagger
    documents: list[Document]


def train_half(tagger: Tagger, documents: Sequence[Document]) -> Tagger:
    """Return a tagger whose chain is trained on ``documents``, with the links and the calibration of ``tagger``."""
    model = tagger.model_
    chain = Tagger(model.plan, model.lexicon, c2=3.0, templates=(linear_chain_template(),), max_iterations=45)
    trained = chain.fit(documents).model_
    order = [model.weights.tags.index(tag) for tag in trained.weights.tags]
    links = tuple(replace(each, table=each.table[np.ix_(order, order)]) for each in model.link_tables)
    return Tagger.from_model(replace(trained, link_tables=links, calibration=model.calibration))


def halves(tagger: Tagger, documents: Sequence[Document], folder: Path, console: Console) -> Iterator[Tagger]:
    """Yield a tagger for documents with even indices, and one for odd indices, each trained on the other half."""
    folder.mkdir(parents=True, exist_ok=True)
    for half in (0, 1):
        path = folder / f"half-{half}.herdner"
        if not path.exists():
            console.print(f"training {path}")
            train_half(tagger, documents[1 - half :: 2]).save(path)
        yield herdner.load(path)


def collections(data: Path, folder: Path, added: Path, console: Console) -> dict[str, list[Part]]:
    """Return the parts of each collection, by the name of its corpus."""
    tagger = herdner.load("en")
    pairs = [(source.corpus, source.document) for source in read_annotated(data) if source.corpus not in ADDED]
    taggers = list(halves(tagger, [document for _, document in pairs], folder, console))
    parts = {
        name: [
            Part(each, [d for i, (source, d) in enumerate(pairs) if source == name and i % 2 == half][:: STEPS[name]])
            for half, each in enumerate(taggers)
        ]
        for name in TRAINING
    }
    models = [herdner.load(added / f"{half}.herdner") for half in (0, 1)]
    for name in CROSS_VALIDATED:
        gold = [list(read_documents(added / f"{name}.{half}.conll", "conll")) for half in (0, 1)]
        parts[name] = [Part(model, documents) for model, documents in zip(models, gold, strict=True)]
    return parts


def pooled(parts: Sequence[Part]) -> CollectionNames:
    """Return the counts of names in a collection, as its taggers find them."""
    names = CollectionNames(parts[0].tagger.labels)
    for tagger, documents in parts:
        names.update(tagger.gather(documents))
    return names


def f1(parts: Sequence[Part], names: CollectionNames | None = None) -> float:
    """Return the micro F1 of a collection in per cent, with the evidence of ``names``, or without evidence if None."""
    gold = [document for part in parts for document in part.documents]
    predicted = [
        document
        for tagger, documents in parts
        for document in tagger.pipe(documents, replace(tagger.inference(), collection=names))
    ]
    return 100 * evaluate(gold, predicted).micro.f1


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    halves: Annotated[Path, typer.Option(help="Folder of the two models, each trained on one half.")],
    added: Annotated[Path, typer.Option(help="Folder of the cross-validation of `en`, by train_en.py --halves.")],
) -> None:
    """Print the gain in F1 for each combination of parameter values, with the largest mean gain at the end."""
    warnings.simplefilter("ignore", LanguageWarning)
    console = Console(stderr=True)
    parts = collections(data, halves, added, console)
    names = {name: pooled(each) for name, each in parts.items()}
    before = {name: f1(each) for name, each in parts.items()}
    print(markdown_table(["without", *parts], [["F1", *(f"{value:.2f}" for value in before.values())]]), flush=True)
    results: list[tuple[float, list[str]]] = []
    for values in product(STRENGTHS, PRIORS_OF_NO_NAME, REPETITIONS):
        gains: list[float] = []
        for name, each in parts.items():
            names[name].evidence = PooledEvidence(*values)
            gains.append(f1(each, names[name]) - before[name])
        row = [*(f"{value:g}" for value in values), *(f"{gain:+.2f}" for gain in gains), f"{mean(gains):+.3f}"]
        console.print(" ".join(row))
        results.append((mean(gains), row))
    header = ["strength", "prior of no name", "repetition", *parts, "mean"]
    print(markdown_table(header, [row for _, row in sorted(results)]))


if __name__ == "__main__":
    typer.run(main)
