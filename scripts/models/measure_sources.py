"""Measure the gain in F1 by each added corpus: chains are trained with and without it, and scored on development files.

    python scripts/models/measure_sources.py --data ../shared/data/ner

The first column shows the F1 of a chain trained on the corpora of `TRAINING` and on herdner's own stories. The other
columns show the differences from the first column if the chain also learns from one corpus of `ADDED`, from all these
corpora, or from all these corpora with altered copies and filled templates. Chains learn from every second document of
the added corpora; the other documents are development documents. The documents have the weights of train_en.py. The
models have no links and no neural network. All chains, also that of the first column, start at the weights of one chain
that was trained without the added corpora. This saves iterations and does not change the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from train_en import ADDED, NAMES, Source, measured_documents, part_name, recase, shipped_lexicon, training_documents

from herdner import Tagger
from herdner.crf.templates import linear_chain_template
from herdner.evaluation.scores import evaluate
from herdner.evaluation.tabular import markdown_table
from herdner.ner.features import default_plan
from herdner.text.document import Document
from herdner.text.tokenize import Tokenizer


def selections(sources: Sequence[Source]) -> Iterator[tuple[str, list[Source]]]:
    """Yield the name and the documents of each training set: without, with one, and with all of the added corpora."""
    learned = [source for source in sources if not source.is_in(1)]
    originals = [source for source in learned if not source.is_copy]
    yield "before", [source for source in originals if source.corpus not in ADDED]
    for name in ADDED:
        yield f"+ {name}", [s for s in originals if s.corpus not in ADDED or s.corpus == name]
    yield "+ all corpora", originals
    yield "+ all corpora, copies, templates", learned


def development(sources: Sequence[Source], data: Path) -> dict[str, list[Document]]:
    """Return the development documents by name: files, IE-ER in lower case, and halves of added corpora."""
    parts = dict(measured_documents(data, Tokenizer()))
    parts["ieer, lower case"] = recase(parts["ieer"], str.lower)
    for source in sources:
        if source.is_in(1) and not source.is_copy and source.corpus != "tweebank":
            parts.setdefault(part_name(source), []).append(source.document)
    return parts


def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpora.")],
    iterations: Annotated[int, typer.Option(help="Maximum number of iterations of each chain.")] = 100,
    tolerance: Annotated[float, typer.Option(help="Smallest relative decrease of the loss in 5 iterations.")] = 2e-3,
) -> None:
    """Print the gain of each added corpus on every development file."""
    console, lexicon, sources = Console(stderr=True), shipped_lexicon(), training_documents(data)
    plan = default_plan(lexicon.gazetteers.names if lexicon.gazetteers else (), NAMES)
    parts, rows, before = development(sources, data), list[list[str]](), dict[str, float]()
    start: Tagger | None = None
    for name, learned in track(list(selections(sources)), console=console):
        documents, weights = [source.document for source in learned], [source.weight for source in learned]
        tagger = Tagger(
            plan, lexicon, c2=3.0, max_iterations=iterations, tolerance=tolerance, templates=(linear_chain_template(),)
        )
        start = start or Tagger(**tagger.get_params(deep=False)).fit(documents, document_weights=weights)
        tagger.fit(documents, start=start, document_weights=weights)
        f1 = {part: 100 * evaluate(gold, list(tagger.pipe(gold))).micro.f1 for part, gold in parts.items()}
        rows.append([name, *(f"{f1[p]:.1f}" if not before else f"{f1[p] - before[p]:+.1f}" for p in parts)])
        before = before or f1
        console.print(*rows[-1])
    names, *columns = zip(*rows, strict=True)
    print(markdown_table(("development file", *names), [(part, *f1) for part, f1 in zip(parts, columns, strict=True)]))


if __name__ == "__main__":
    typer.run(main)
