"""Count the short forms of invented companies that a model tags correctly.

    python scripts/models/measure_invented.py --model en
    python scripts/models/measure_invented.py --model en --no-designator

Each of ten texts contains the full name of an invented company, and later its first word in an uninformative context.
Names are made of random syllables. With ``--no-designator``, the full name is the first word and one of `PLAIN_KINDS`,
such as "Consulting". The output is the share of short forms that are tagged as organisations with correct boundaries,
with links and without links, in all texts and in each text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import herdner
from herdner.text.document import Document

SYLLABLES = "ba bel cor dan dor fa gim hal jor ka lan lor mar mi nor o pal quen ra ros sel tam tor ul van ver wi xan yor zel".split()  # noqa: E501, SIM905
KINDS = "Ferries", "Systems", "Foods", "Mining", "Textiles", "Logistics", "Motors", "Chemicals", "Paper", "Brothers"
DESIGNATORS = "Ltd.", "Inc.", "Corp.", "plc", "AG", "Group", "Co.", "Holdings", "SA", "LLC"
PLAIN_KINDS = "Consulting", "Bank", "Foods", "Partners", "Group", "University", "Council"
TEXTS = (
    "{full} said on Monday that it would close two plants. Workers at {short} were told in the morning.",
    "Shares of {full} fell sharply. Analysts had expected more of {short}.",
    "A court ordered {full} to pay damages. {short} will appeal.",
    "The new ferry was built by {full}. It is the third that {short} has delivered this year.",
    "Ada Wanjala joined {full} in 1991. She left {short} ten years later to teach.",
    "{full} and the union reached an agreement. Under it {short}'s drivers get two more days off.",
    "The river runs past the gates of {full}. Fishermen blame {short} for the dead carp.",
    "{full} has opened an office in Lisbon. The city had courted {short} for years.",
    "Inspectors visited {full} in May. Their report says that {short} kept no records.",
    "Most of the money came from {full}. Without {short}, the museum would not have been built.",
)


def invented(rng: np.random.Generator, designator: bool = True) -> tuple[str, str]:
    """Return the full name of an invented company, and its short form, the first word."""
    word = "".join(rng.choice(SYLLABLES, rng.integers(2, 4))).capitalize()
    if not designator:
        return f"{word} {rng.choice(PLAIN_KINDS)}", word
    return f"{word} {rng.choice(KINDS)} {rng.choice(DESIGNATORS)}", word


class FilledText(NamedTuple):
    """Text with an invented company, and the offset and the text of its short form."""

    text: str
    start: int
    short: str


def filled_texts(names: int, seed: int, designator: bool) -> list[FilledText]:
    """Return ``names`` copies of each of the `TEXTS`, each filled with another invented company."""
    rng, filled = np.random.default_rng(seed), list[FilledText]()
    for text in TEXTS:
        for _ in range(names):
            full, short = invented(rng, designator)
            before = text.index("{short}") + len(full) - len("{full}")
            filled.append(FilledText(text.format(full=full, short=short), before, short))
    return filled


def are_right(documents: Iterable[Document], filled: Sequence[FilledText]) -> NDArray[np.bool_]:
    """Return, for each text, whether its short form is tagged as an organisation with correct boundaries."""
    return np.array(
        [
            any((e.start, e.text, e.label) == (each.start, each.short, "ORG") for e in document.entities)
            for document, each in zip(documents, filled, strict=True)
        ]
    )


def main(
    model: Annotated[str, typer.Option(help="Name or file of a model.")] = "en",
    names: Annotated[int, typer.Option(min=1, help="Number of invented companies for each text.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the invented names.")] = 0,
    designator: Annotated[bool, typer.Option(help="End full names with a designator such as Ltd.")] = True,
) -> None:
    """Print the share of short forms of invented companies that a model tags correctly."""
    tagger, filled = herdner.load(model), filled_texts(names, seed, designator)
    texts = [each.text for each in filled]
    table = Table("text", "links", "chain alone")
    right = {links: are_right(tagger.pipe(texts, links=links), filled) for links in (True, False)}
    for i, text in enumerate(TEXTS):
        own = slice(i * names, (i + 1) * names)
        table.add_row(text, *(f"{right[links][own].mean():.0%}" for links in (True, False)))
    table.add_row("all", *(f"{right[links].mean():.1%}" for links in (True, False)))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
