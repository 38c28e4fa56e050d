"""HG16 Table 3: F1 and seconds of Gibbs, herded Gibbs and Viterbi on a chain, then of every backend with links.

    python scripts/ner_f1.py --test ../shared/data/ner/ieer:ieer
    herdner train --train ../shared/data/ner/conll2003/eng.train:conll2003 --output conll.herdner
    python scripts/ner_f1.py --model conll.herdner --test ../shared/data/ner/conll2003/eng.testa:conll2003
    herdner train --train ../shared/data/ner/conll2003/eng.train:conll2003 --scheme iob1 --link none --rename-labels \
        --output hg16.herdner
    python scripts/ner_f1.py --model hg16.herdner --unconstrained --test ../shared/data/ner/ieer:ieer

The corpora are not distributed. For random methods, the table shows the mean and the standard deviation over the seeds.
The script checks the scores of the tagger against seqeval.

A sampler returns the best state that it visited. With ``--start viterbi``, the default of `Tagger`, a sampler starts at
the best tag sequence of the chain, so it returns this sequence if there are no links. With ``--start random``, a
sampler has to find the best tag sequence.

The schemes IOBES and IOB2 forbid some sequences of tags, so samplers that change one tag at a time hardly move. The
model of HG16 has one tag for each label. The options ``--scheme iob1 --unconstrained`` come close to this: IOB1 uses B-
only between adjacent names with the same label.

The seconds are the shortest time of several runs of inference on one core, with the compilation of the graph, but
without the computation of features.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from benchmarks.timing import best_times
from papers.experiment import Experiment, command
from papers.ner_decoding import Method, Row, Scored, Start, measure, of_the_paper, of_the_registry

import herdner
from herdner.corpora.reading import read
from herdner.evaluation.scores import Scores, evaluate
from herdner.evaluation.tabular import markdown_table
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.tags import tags_from_spans
from herdner.text.tokenize import Tokenizer

HEADER = ("method", "sweeps", "start", "F1", "sd", "below the best", "seconds")


def table(rows: Sequence[Row], caption: str) -> str:
    """Return the rows of measurements as a Markdown table.

    The column "below the best" shows how far the mean log-potential of a method is below the best state of all rows.
    """
    best = max(max(row.log_potential) for row in rows)
    cells = [
        (
            row.method,
            "" if row.sweeps is None else str(row.sweeps),
            row.start,
            f"{row.mean:.2f}",
            f"{row.sd:.2f}" if len(row.f1) > 1 else "",
            f"{best - np.mean(row.log_potential):.1f}",
            f"{row.seconds:.2f}",
        )
        for row in rows
    ]
    return markdown_table(HEADER, cells, caption)


def claims(rows: Sequence[Row]) -> list[str]:
    """Return statements that compare the rows with the claims of HG16 Sec. 4.4 about Table 3."""
    by_method = {(row.method, row.sweeps): row for row in rows}
    viterbi, herded = by_method.get(("Viterbi", None)), by_method.get(("herded Gibbs", 400))
    if viterbi is None or herded is None:
        return []
    lines = [
        f"herded Gibbs, 400 sweeps: F1 {herded.mean - viterbi.mean:+.2f} from Viterbi's, {herded.seconds:.2f} s"
        f" ({'within' if abs(herded.mean - viterbi.mean) <= 0.05 else 'not within'} 0.05)"
    ]
    for (name, sweeps), row in by_method.items():
        if name.startswith("annealed") and sweeps == 800:
            verdict = "above" if round(row.mean - herded.mean, 2) > 0 else "not above"
            lines.append(f"{name}, 800 sweeps: F1 {row.mean - herded.mean:+.2f}, {verdict} herded Gibbs at 400")
    return lines


@dataclass(frozen=True)
class Study:
    """Methods and sizes of the measurements on each corpus."""

    starts: Sequence[Start]
    unit: str
    sweeps: Sequence[int]
    skip_sweeps: int
    seeds: Sequence[int]
    repeats: int

    def run(self, tagger: Tagger, gold: Sequence[Document]) -> dict[str, Any]:
        """Print the tables of a corpus, and return the rows, claims and notes of each table by its title."""
        scored = Scored.of(tagger, gold)
        features = best_times({"features": lambda: Scored.of(tagger, gold)}, self.repeats)["features"]
        print(f"\nfeatures, and {scored.n_links} links: {features:.2f} s")
        tables = {}
        for start in self.starts:
            title = f"chain of a {self.unit}, {start} start"
            what = scored.chain(self.unit == "sentence")
            tables[title] = self._table(what, of_the_paper(self.sweeps), title, start)
        if scored.n_links:
            title = "skip chain of a document"
            tables[title] = self._table(scored, of_the_registry(self.skip_sweeps), title, "viterbi")
        return {"features_seconds": features, "n_links": scored.n_links, "tables": tables}

    def _table(self, scored: Scored, methods: Sequence[Method], title: str, start: Start) -> dict[str, Any]:
        rows, notes = [], []
        for method in methods:
            try:
                rows.append(measure(scored, method, start, self.seeds, self.repeats))
            except ValueError as error:  # the backend does not support the graph
                notes.append(f"{method.name}: {error}")
        lines = claims(rows)
        print(f"\n## {title}\n\n{table(rows, chr(10).join(f'- {line}' for line in (*lines, *notes)))}", flush=True)
        return {"rows": rows, "claims": lines, "notes": notes}


def _sentence_tags(document: Document, tags: Sequence[str] | None, scheme: Literal["iob2", "iobes"]) -> list[list[str]]:
    """Return the tags of each sentence, from the ``tags`` of the document, or from its spans if ``tags`` is None."""
    tags = tags or tags_from_spans(document.spans or [], document.n_tokens, scheme)
    return [list(tags[first:last]) for first, last in pairwise(document.sentence_offsets)]


def check_with_seqeval(gold: Sequence[Document], predicted: Sequence[Document], scores: Scores) -> None:
    """Raise `AssertionError` unless seqeval computes the same micro F1 from the predicted tags.

    Without constraints, predicted tags need not be well formed.
    """
    from seqeval.metrics import f1_score
    from seqeval.scheme import IOB2, IOBES

    is_iobes = any(tag[0] in "ES" for document in predicted for tag in document.source_tags or ())
    scheme = "iobes" if is_iobes else "iob2"
    tags = [
        [sentence for document in gold for sentence in _sentence_tags(document, None, scheme)],
        [sentence for document in predicted for sentence in _sentence_tags(document, document.source_tags, scheme)],
    ]
    expected: Any = f1_score(*tags, mode="strict", scheme=IOBES if is_iobes else IOB2) if scores.per_label else 0.0
    assert abs(scores.micro.f1 - float(expected)) < 1e-12, (scores.micro.f1, expected)


def draw(panel: Any, rows: Sequence[Row], title: str) -> None:
    """Draw F1 against seconds: a line for each method with several numbers of sweeps, and a point for other methods."""
    for i, name in enumerate(dict.fromkeys(row.method for row in rows)):
        of_it = [row for row in rows if row.method == name]
        x, y, sd = ([getattr(row, key) for row in of_it] for key in ("seconds", "mean", "sd"))
        panel.errorbar(x, y, yerr=sd, marker="osD^"[i // 10 % 4], markersize=4, linewidth=1, capsize=2, label=name)
    panel.set(xscale="log", xlabel="seconds of inference", ylabel="F1", title=title)
    for axis in (panel.xaxis.set_major_formatter, panel.xaxis.set_minor_formatter):
        axis("{x:g}")
    panel.tick_params(axis="x", which="both", labelsize=7)
    panel.legend(fontsize=6)


@command("ner_f1", "HG16 Table 3: F1 against seconds")
def main(
    experiment: Experiment,
    test: Annotated[list[str], typer.Option(help="Annotated corpus, as FILE:FORMAT; may be repeated.")],
    model: Annotated[str, typer.Option(help="Name or file of the model to measure.")] = "en",
    unconstrained: Annotated[
        bool, typer.Option(help="Allow all tag sequences, also those that the tag scheme forbids.")
    ] = False,
    start: Annotated[Literal["both", "random", "viterbi"], typer.Option(help="Start state of the samplers.")] = "both",
    unit: Annotated[
        Literal["sentence", "document"], typer.Option(help="Part of the text that is one chain.")
    ] = "sentence",
    sweeps: Annotated[
        list[int] | None, typer.Option(min=1, help="Number of sweeps on the chain [default: 100, 400 and 800].")
    ] = None,
    skip_sweeps: Annotated[int, typer.Option(min=1, help="Number of sweeps on the skip chain.")] = 100,
    n_seeds: Annotated[int, typer.Option(min=1, help="Number of runs of random methods.")] = 5,
    repeats: Annotated[
        int, typer.Option(min=1, help="Number of runs of methods that are not random, for their time.")
    ] = 3,
) -> None:
    """Measure the F1 and the seconds of all methods of decoding on each corpus."""
    tagger = herdner.load(model)
    if unconstrained:
        tagger = Tagger.from_model(replace(tagger.model_, constrained=False))
    study = Study(
        ["random", "viterbi"] if start == "both" else [start], unit,
        experiment.size([10, 20], sweeps or [100, 400, 800]), experiment.size(10, skip_sweeps),
        experiment.seeds(experiment.size(1, n_seeds)), experiment.size(1, repeats),
    )  # fmt: skip
    results: dict[str, Any] = {}
    for source in test:
        gold = list(read(source, core_labels="MISC" not in tagger.labels, tokenizer=Tokenizer()))
        predicted = list(tagger.pipe([document.without_annotation() for document in gold]))
        scores = evaluate(gold, predicted, rng=experiment.rng())
        check_with_seqeval(gold, predicted, scores)
        print(f"\n## {model} on {Path(source).name}, tagged\n\n{scores.to_markdown()}")
        results[source] = {"scores": scores.to_dict(), **study.run(tagger, gold)}
    drawn = {(source, title): at["rows"] for source in test for title, at in results[source]["tables"].items()}
    figure, panels = experiment.axes(len(drawn), width=6.5, height=4.5)
    for panel, ((source, title), rows) in zip(panels, drawn.items(), strict=True):
        draw(panel, rows, f"{Path(source).name}: {title}")
    experiment.finish(json.loads(json.dumps(results, default=asdict)), figure)
