"""Count the short forms of names in corpora that models tag correctly, and list the errors.

    python scripts/models/measure_short_forms.py --model en --model en_core7 --wrong \
        --test ../shared/data/ner/ieer:ieer --test ../shared/data/ner/conll2003/eng.testa:conll2003

A short form is one word of an earlier, longer name (`herdner.evaluation.consistency`): the first word of an
organisation, or the last word of a person (``--label PER``). The output is the number of short forms that each model
tags with correct boundaries and label, with links and without links, in all corpora together. Short forms of one
document are not independent, so confidence intervals are computed by resampling documents. ``--wrong`` lists the short
forms that a model with links tags incorrectly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

import herdner
from herdner import Tagger
from herdner.corpora.reading import read
from herdner.evaluation.consistency import SHORT_FORM_WORD, find_short_forms
from herdner.evaluation.scores import Interval, bootstrap_sums, pair_documents
from herdner.evaluation.tabular import markdown_table, percent, points
from herdner.text.document import Document
from herdner.text.tags import Span
from herdner.text.tokenize import Tokenizer

RESAMPLES = 10_000


class ShortFormPredictions(NamedTuple):
    """Name of a tagger, its predictions for all short forms, and their correctness, bool[short forms]."""

    name: str
    labels: list[str]
    right: NDArray[np.bool_]


def predict_short_forms(
    name: str, gold: Sequence[Document], predicted: Sequence[Document], label: str
) -> ShortFormPredictions:
    """Return a tagger's predictions for short forms. ``ORG+2`` is 2 tokens longer than the short form."""
    labels: list[str] = []
    right: list[bool] = []
    for document, pair in zip(gold, pair_documents(gold, predicted), strict=True):
        for short in find_short_forms(document, {label: SHORT_FORM_WORD[label]}):
            over = [span for span in pair.predicted if span.start < short.end and short.start < span.end]
            labels.append(" ".join(_written(span, short) for span in over) or "-")
            right.append(short in over)
    return ShortFormPredictions(name, labels, np.array(right, np.bool_))


def _written(span: Span, short: Span) -> str:
    beyond = (span.end - span.start) - (short.end - short.start)
    return span.label + (f"{beyond:+d}" if (span.start, span.end) != (short.start, short.end) else "")


def share(right: NDArray[np.bool_], document: NDArray[np.int64], less: NDArray[np.bool_] | None = None) -> Interval:
    """Return the interval of the share of correct short forms, or of its difference to ``less``, over documents."""
    gain = right.astype(np.int64) - (0 if less is None else less)
    counts = np.stack([np.bincount(document), np.bincount(document, gain).astype(np.int64)], axis=1)
    drawn = np.concatenate([*bootstrap_sums(counts[counts[:, 0] > 0], np.random.default_rng(0), RESAMPLES)])
    low, high = np.quantile(drawn[:, 1] / drawn[:, 0], [0.025, 0.975]).tolist()
    return Interval(low, high, 0.95, "document", RESAMPLES)


def rows(taggers: Sequence[ShortFormPredictions], document: NDArray[np.int64]) -> list[list[str]]:
    """Return a row for each tagger: number and share of correct short forms, and gain over the first tagger."""
    first, lines = taggers[0].right, list[list[str]]()
    for name, _, right in taggers:
        own, gain = share(right, document), share(right, document, first)
        difference = f"{points(right.mean() - first.mean())} ({points(gain.low)} to {points(gain.high)})"
        interval = f"{percent(right.mean())} ({percent(own.low)} to {percent(own.high)})"
        lines.append([name, f"{right.sum()} of {len(right)}", interval, "" if right is first else difference])
    return lines


def main(
    test: Annotated[list[str], typer.Option(help="Annotated corpus, as FILE:FORMAT; may be repeated.")],
    model: Annotated[
        list[str] | None, typer.Option(help="Name or file of a model; may be repeated, to compare with the first.")
    ] = None,
    label: Annotated[str, typer.Option(help="Label of the short forms, ORG or PER.")] = "ORG",
    wrong: Annotated[bool, typer.Option("--wrong", help="List the errors.")] = False,
) -> None:
    """Print the number of short forms that models tag correctly."""
    if label not in SHORT_FORM_WORD:
        raise typer.BadParameter(f"must be one of {', '.join(SHORT_FORM_WORD)}, not {label}", param_hint="--label")
    taggers: dict[str, Tagger] = {name: herdner.load(name) for name in model or ["en"]}
    tokenizer = Tokenizer(next(iter(taggers.values())).model_.tokenizer)
    gold = [d for source in test for d in read(source, core_labels=True, tokenizer=tokenizer) if d.n_tokens]
    every = [
        (i, d, short) for i, d in enumerate(gold) for short in find_short_forms(d, {label: SHORT_FORM_WORD[label]})
    ]
    if not every:
        raise typer.BadParameter(f"the corpora contain no short form with the label {label}", param_hint="--test")
    linked = [predict_short_forms(name, gold, list(tagger.pipe(gold)), label) for name, tagger in taggers.items()]
    alone = [
        predict_short_forms(f"{name}, chain alone", gold, list(tagger.pipe(gold, links=False)), label)
        for name, tagger in taggers.items()
    ]
    both = [each for pair in zip(linked, alone, strict=True) for each in pair]
    document = np.array([i for i, _, _ in every])
    print(markdown_table(["tagger", "right", "% (95 % interval)", "more than the first"], rows(both, document)))
    if wrong:
        lines = [
            [" ".join(d.tokens[short.start : short.end]), d.id or str(i), *(each.labels[k] for each in both)]
            for k, (i, d, short) in enumerate(every)
            if not all(each.right[k] for each in linked)
        ]
        print("\n" + markdown_table(["short form", "document", *(each.name for each in both)], lines))


if __name__ == "__main__":
    typer.run(main)
