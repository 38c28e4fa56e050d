"""Train the shipped model `en_core7`, which has seven labels of the Worldwide corpus.

    python scripts/models/train_core7.py --data ../shared/data/ner --output herdner/data/en_core7.herdner

Requirements and training documents are those of `train_en.py`. The corpora other than Worldwide annotate only persons,
places and organisations. In these corpora, a token outside all names may have any of the other labels (partial
annotation, Tsuboi et al. 2008). Facilities of the Worldwide corpus get the label LOC, and products get the label MISC,
because the corpus has too few of both: as labels of their own, they had an F1 of 24 and 6. Word classes and vector
classes are those of `en` and are not stored again in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from train_en import NAMES, card, fit, measured_documents, score_summary, shipped_lexicon, training_documents
from train_languages import of_size

from herdner.corpora.formats import read_documents
from herdner.crf.link_rules import Company
from herdner.crf.templates import linear_chain_template, skip_chain_template
from herdner.ner.features import default_plan
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.labels import rename_labels
from herdner.text.partial import PartialAnnotation
from herdner.text.tokenize import Tokenizer

CLASSES = {
    "Person": "PER", "Location": "LOC", "Facility": "LOC", "Organization": "ORG", "NORP": "NORP", "Date": "DATE",
    "Money": "MONEY", "Misc": "MISC", "Product": "MISC",
}  # fmt: skip
THREE = "PER", "LOC", "ORG"
AS_EN = {**{label: label for label in THREE}, "*": None}  # labels of `en`


def three_of_seven(document: Document) -> Document:
    """Return a document, of a corpus with three labels, in which the other four labels are marked as unannotated."""
    return replace(document, partial=PartialAnnotation((), THREE))


SEVEN = "worldwide dev, seven labels"  # in the card


def measure(tagger: Tagger, data: Path, tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """Return the scores with seven labels on the development part of Worldwide, and of PER, LOC and ORG by corpus."""
    gold = list(read_documents(data / "worldwide/dev", "worldwide", tokenizer=tokenizer, labels=CLASSES))
    scores = {SEVEN: score_summary(gold, list(tagger.pipe(gold)))}
    for name, gold in measured_documents(data, tokenizer):
        three = [rename_labels(document, AS_EN, "iob2") for document in tagger.pipe(gold)]
        scores[f"{name}, three classes"] = score_summary(gold, three)
    return scores


def f1_of(scores: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the F1 of each of the seven labels, their micro F1, and the F1 of three labels by corpus."""
    others = {name: each["f1"] for name, each in scores.items() if name != SEVEN}
    return {**scores[SEVEN]["labels"], "micro": scores[SEVEN]["f1"], **others}


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    output: Annotated[Path, typer.Option(help="Model file to write.")],
    c2: Annotated[float, typer.Option(help="Weight of the squared L2 norm.")] = 3.0,
    iterations: Annotated[int, typer.Option(help="Maximum number of L-BFGS iterations.")] = 60,
    folds: Annotated[int, typer.Option(help="Number of folds for learning the links.")] = 2,
    largest: Annotated[float, typer.Option(help="Maximum megabytes of the file; small weights are removed.")] = 4.5,
) -> None:
    """Train the shipped model en_core7 on openly licensed corpora."""
    console, lexicon = Console(stderr=True), shipped_lexicon()
    found = [
        source if source.corpus == "worldwide" else source._replace(document=three_of_seven(source.document))
        for source in training_documents(data, {"worldwide": CLASSES})
    ]
    plan = default_plan(lexicon.gazetteers.names if lexicon.gazetteers else (), NAMES)
    # IOB2 has 15 tags and IOBES 29, with which tagging is several times slower.
    tagger = Tagger(
        plan, lexicon, scheme="iob2", c2=c2, max_iterations=iterations, n_folds=folds,
        templates=(linear_chain_template(), skip_chain_template(), skip_chain_template(Company())),
    )  # fmt: skip
    fit(tagger, found, console)
    model = of_size(tagger.model_, largest, 1.2)
    scores = measure(Tagger.from_model(model), data, Tokenizer())
    console.print(scores)
    about = {
        **card(tagger, len(found)), "name": "en_core7", "labels": list(dict.fromkeys(CLASSES.values())),
        "f1": f1_of(scores), "scores": scores,
        "made_by": "scripts/models/train_core7.py",
    }  # fmt: skip
    replace(model, card=about).save(output, weight_type="float16", shared_lexicon="en")
    console.print(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
