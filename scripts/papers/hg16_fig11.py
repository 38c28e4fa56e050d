"""HG16, Fig. 11: one text tagged by Gibbs, herded Gibbs and Viterbi, in colour, as a web page and a figure.

    python scripts/papers/hg16_fig11.py TEXT.txt --model en

Gibbs and herded Gibbs search for the best tags of each sentence's chain from ``--start``, a random state or Viterbi's
path. If the model has links, the last column shows the tags of the skip chain by its default backend. The script lists
all differences from the names of Viterbi.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from experiment import Experiment, command
from ner_decoding import Method, Scored, Start, of_the_paper

import herdner
from herdner.ner.inference import DEFAULT_BACKEND
from herdner.ner.tagger import Tagger
from herdner.text.document import Document
from herdner.text.io.html_view import write_html
from herdner.text.show import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, LINES, INCHES = 48, 50, 4.2  # of a column of the figure: characters, lines, inches
SIDE_BY_SIDE = """<style>
        main { grid-auto-columns: minmax(0, 1fr); grid-auto-flow: column; max-width: none }
        </style>
    </head>"""


def tagged(tagger: Tagger, text: str, sweeps: int, seed: int, start: Start) -> list[Document]:
    """Return a tagged document for each method; its id is the name of the method."""
    scored = Scored.of(tagger, [tagger.tag(text).without_annotation()])
    methods = [method for method in of_the_paper([sweeps]) if "default" not in method.name]
    decoded = [(method.name, scored.chain(apart=True).decode(method.make(), seed, start)) for method in methods]
    if scored.n_links:
        decoded.append(("skip chain", scored.decode(Method("", DEFAULT_BACKEND).make(), seed)))
    return [
        replace(document, id=name, entities=document.entities_from_spans(scored.spans(0, states[0])))
        for name, states in decoded
        for document in scored.documents
    ]


def page(documents: Sequence[Document]) -> str:
    """Return the HTML page of `write_html` with the documents side by side in columns."""
    stream = io.StringIO()
    write_html(documents, stream)
    head, border, rest = stream.getvalue().partition("</head>")
    assert border
    return head + SIDE_BY_SIDE + rest


def differences(documents: Sequence[Document]) -> list[str]:
    """Return a line for each document that lists its additional (+) and missing (-) names, compared with Viterbi."""
    names = {document.id: {(e.start, e.label, e.text) for e in document.entities} for document in documents}
    lines = []
    for name, found in names.items():
        more = [f"+{label} {text}" for _, label, text in sorted(found - names["Viterbi"])]
        less = [f"-{label} {text}" for _, label, text in sorted(names["Viterbi"] - found)]
        lines.append(f"{name}: {len(found)} names, {', '.join(more + less) or 'the same as Viterbi'}")
    return lines


def placed(document: Document) -> Iterator[tuple[int, int, str, str | None]]:
    """Yield line, column, text and label of each token, in lines of WIDTH characters, which longer tokens exceed."""
    label_at = {}
    for entity in document.entities:
        label_at.update(dict.fromkeys(range(entity.start, entity.end), entity.label))
    line, column, end = 0, 0, 0
    places = zip(document.tokens, document.token_starts.tolist(), document.token_ends.tolist(), strict=True)
    for token, start, stop in places:
        column += start > end
        if column and (column + len(token) > WIDTH or "\n\n" in document.text[end:start]):
            line, column = line + 1, 0
        yield line, column, token, label_at.get(start)
        column, end = column + len(token), stop


def draw(panel: Axes, document: Document, n_lines: int) -> None:
    """Draw the first lines of a document, with names on the background colours of the HTML page."""
    size = 72 * INCHES / WIDTH / 0.68  # points: a character is 0.6 of its size wide, and margins take their part
    for line, column, token, label in placed(document):
        if line >= n_lines:
            break
        if label is not None:
            top, height = 1 - line / n_lines, 0.9 / n_lines
            panel.axvspan(column, column + len(token), top - height, top, color=COLORS.get(label, "#dddddd"), lw=0)
        panel.text(column, line + 0.5, token, family="monospace", size=size, va="center", parse_math=False)
    panel.set(xlim=(0, WIDTH), ylim=(n_lines, 0), title=document.id)
    panel.axis("off")


@command("hg16_fig11", "HG16 Fig. 11: one text, and ways to find its tags")
def main(
    experiment: Experiment,
    text: Annotated[Path, typer.Argument(help="Text file, UTF-8.")],
    model: Annotated[str, typer.Option(help="Name or file of the model.")] = "en",
    sweeps: Annotated[int, typer.Option(min=1, help="Number of sweeps of Gibbs and herded Gibbs.")] = 400,
    start: Annotated[Start, typer.Option(help="Initial state of Gibbs and herded Gibbs.")] = "random",
    unconstrained: Annotated[
        bool,
        typer.Option(
            "--unconstrained/--constrained", help="Allow all sequences of tags; samplers mix badly otherwise."
        ),
    ] = True,
) -> None:
    tagger = herdner.load(model)
    if unconstrained:
        tagger = Tagger.from_model(replace(tagger.model_, constrained=False))
    words = text.read_text(encoding="utf-8")
    sweeps = experiment.size(20, sweeps)
    documents = tagged(tagger, words, sweeps, experiment.seed, start)
    (experiment.out / "hg16_fig11.html").write_text(page(documents), encoding="utf-8")
    rows = differences(documents)
    print("\n".join(rows))
    n_lines = min(LINES, 1 + max((line for line, *_ in placed(documents[0])), default=0))
    figure, panels = experiment.axes(len(documents), width=INCHES, height=0.14 * n_lines + 0.8)
    for panel, document in zip(panels, documents, strict=True):
        draw(panel, document, n_lines)
    experiment.finish({"differences": rows, "start": start, "sweeps": sweeps}, figure)
