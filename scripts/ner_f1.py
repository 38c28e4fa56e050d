"""Micro F1 and seconds of taggers on corpora that are measured, never shipped.

    python scripts/ner_f1.py --train ../shared/data/ner/conll2003/eng.train:conll2003 \
        --test ../shared/data/ner/conll2003/eng.testa:conll2003
    python scripts/ner_f1.py --model en --test ../shared/data/ner/ieer:ieer

With ``--train``, a chain is trained there with the word classes and gazetteers of the shipped model (pip install
'.[train]'). Precision, recall and F1 are seqeval's in strict mode; the interval resamples documents. Seconds:
features apart from Viterbi, best of several runs on one core.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from timing import best_times
from train_en import english_lexicon

import herdner
from herdner.ner.corpora import parse_source, read
from herdner.ner.document import Document
from herdner.ner.evaluate import Scores, evaluate
from herdner.ner.tagger import Tagger
from herdner.ner.tokenize import Tokenizer


def trained(source: str, iterations: int, c2: float) -> Tagger:
    documents = list(read(parse_source(source), tokenizer=Tokenizer()))
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=iterations)
        tagger = Tagger(lexicon=english_lexicon(), c2=c2, max_iterations=iterations)
        return tagger.fit(documents, progress=lambda number, report: progress.update(task, completed=number))


def seconds(tagger: Tagger, gold: list[Document], repeats: int) -> dict[str, float]:
    """Features and weights; then inference on them."""
    extractor, crf = tagger.model_.extractor(), tagger.model_.crf()
    viterbi = herdner.make_backend("viterbi")
    scores = [extractor.scores(d.tokens, d.sentence_offsets) for d in gold]
    return best_times(
        {
            "features": lambda: [extractor.scores(d.tokens, d.sentence_offsets) for d in gold],
            "viterbi": lambda: [
                viterbi.infer(crf.unroll(unary, d.sentence_offsets)) for unary, d in zip(scores, gold, strict=True)
            ],
        },
        repeats,
    )


def main(
    test: Annotated[list[str], typer.Option(help="FILE:FORMAT to measure on; may be repeated.")],
    train: Annotated[str | None, typer.Option(help="FILE:FORMAT to train on.")] = None,
    model: Annotated[str, typer.Option(help="Model to measure, where nothing is trained.")] = "en",
    iterations: int = 80,
    c2: float = 0.3,
    repeats: int = 3,
    seed: int = 0,
    output: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
) -> None:
    tagger = trained(train, iterations, c2) if train else herdner.load(model)
    known = {tag.partition("-")[2] for tag in tagger.labels}
    rows = []
    for source in test:
        gold = list(read(parse_source(source), map_labels="MISC" not in known, tokenizer=Tokenizer()))
        predicted = list(tagger.pipe([replace(document, tags=None, entities=()) for document in gold]))
        scores: Scores = evaluate(gold, predicted, rng=np.random.default_rng(seed))
        rows.append({"test": source, "scores": scores.to_dict(), "seconds": seconds(tagger, gold, repeats)})
        print(f"\n{train or model} on {Path(source).name}: {rows[-1]['seconds']}\n\n{scores.to_markdown()}")
    if output is not None:
        output.write_text(json.dumps({"train": train, "model": model, "c2": c2, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
