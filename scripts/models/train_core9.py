"""Train the shipped model `en_core9`, which has the nine labels of the Worldwide corpus.

    python scripts/models/train_core9.py --data ../shared/data/ner --output herdner/data/en_core9.herdner

Requirements and training documents are those of `train_en.py`. The other corpora annotate only persons, places and
organisations. There, a token outside all names may have any other label, and a place of several words may be a facility
(partial annotation, Tsuboi et al. 2008).
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from train_en import MEASURED, NAMES, card, english_lexicon, fit, training_documents

from herdner.corpora.formats import read_documents
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.evaluation.scores import evaluate
from herdner.ner.features import default_plan
from herdner.ner.model import TaggerModel
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.labels import rename_labels
from herdner.text.partial import PartialAnnotation, UnannotatedRange
from herdner.text.tags import tags_from_spans
from herdner.text.tokenize import Tokenizer

CLASSES = {
    "Person": "PER", "Location": "LOC", "Organization": "ORG", "Facility": "FAC", "NORP": "NORP", "Product": "PRODUCT",
    "Date": "DATE", "Money": "MONEY", "Misc": "MISC",
}  # fmt: skip
THREE = "PER", "LOC", "ORG"
AS_EN = {"PER": "PER", "LOC": "LOC", "ORG": "ORG", "FAC": "LOC", "*": None}  # labels of `en`


def three_of_nine(document: Document) -> Document:
    """Mark the other labels as not annotated in a document of a corpus with three labels."""
    spans = document.spans or []
    wide = [span for span in spans if span.label == "LOC" and span.end - span.start > 1]
    kept = tags_from_spans([span for span in spans if span not in wide], document.n_tokens, "iob2")
    starts, ends = document.token_starts.tolist(), document.token_ends.tolist()
    places = tuple(
        UnannotatedRange(starts[t], ends[t], "B-LOC|B-FAC" if t == span.start else "I-LOC|I-FAC")
        for span in wide
        for t in range(span.start, span.end)
    )
    return replace(document.with_tags(kept), partial=PartialAnnotation(places, THREE))


def of_size(model: TaggerModel, largest: float) -> TaggerModel:
    """Remove the smallest weights, so that the file of the model has at most this number of megabytes."""
    smallest = 0.01
    while True:
        pruned, file = replace(model, weights=model.weights.prune(smallest)), io.BytesIO()
        pruned.save(file, weight_type="float16")
        if len(file.getvalue()) <= 1e6 * largest:
            return pruned
        smallest *= 1.2


def measure(tagger: Tagger, data: Path, tokenizer: Tokenizer) -> dict[str, object]:
    """Return F1 in per cent: of each label on Worldwide's development part, and of three labels by corpus."""
    gold = list(read_documents(data / "worldwide/dev", "worldwide", tokenizer=tokenizer, labels=CLASSES))
    nine = evaluate(gold, list(tagger.pipe(gold)))
    found: dict[str, object] = {row.label: round(100 * row.f1, 2) for row in (*nine.per_label, nine.micro)}
    for name, (path, format, labels) in MEASURED.items():
        gold = list(read_documents(data / path, format, tokenizer=tokenizer, **({"labels": labels} if labels else {})))
        three = [rename_labels(document, AS_EN, "iob2") for document in tagger.pipe(gold)]
        found[f"{name}, three classes"] = round(100 * evaluate(gold, three).micro.f1, 2)
    return found


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    output: Annotated[Path, typer.Option(help="Model file to write.")],
    c2: Annotated[float, typer.Option(help="Weight of the squared L2 norm.")] = 3.0,
    iterations: Annotated[int, typer.Option(help="Maximum number of L-BFGS iterations.")] = 60,
    folds: Annotated[int, typer.Option(help="Number of folds, on which links are learned.")] = 2,
    largest: Annotated[float, typer.Option(help="Largest file in megabytes; small weights are removed.")] = 6.0,
) -> None:
    """Train the shipped model en_core9 on openly licensed corpora."""
    console, lexicon = Console(stderr=True), english_lexicon()
    groups, documents = map(list, zip(*training_documents(data, {"worldwide": CLASSES}), strict=True))
    documents = [d if group == "worldwide" else three_of_nine(d) for group, d in zip(groups, documents, strict=True)]
    plan = default_plan(lexicon.gazetteers.names if lexicon.gazetteers else (), NAMES)
    # IOB2 has 19 tags and IOBES 37, with which tagging is several times slower.
    tagger = Tagger(
        plan, lexicon, scheme="iob2", c2=c2, max_iterations=iterations, n_folds=folds,
        templates=(linear_chain_template(), skip_chain_template()),
    )  # fmt: skip
    fit(tagger, documents, groups, console)
    model = of_size(tagger.model_, largest)
    scores = measure(Tagger.from_model(model), data, Tokenizer())
    console.print(scores)
    about = {**card(tagger, len(documents)), "name": "en_core9", "labels": list(CLASSES.values()), "f1": scores,
             "made_by": "scripts/models/train_core9.py"}  # fmt: skip
    replace(model, card=about).save(output, weight_type="float16")
    console.print(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
