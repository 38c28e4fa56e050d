"""Predictions laid on the gold documents, and what is to be said of how they fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from herdner.evaluation.align import Aligned, align
from herdner.text.document import Document
from herdner.text.labels import LabelNames

# What others call the classes; only to say which option might help.
SYNONYMS = {
    "PER": "PERSON PERS PEOPLE PS person per",
    "LOC": "LOCATION GPE FAC PLACE location loc",
    "ORG": "ORGANIZATION ORGANISATION NORP CORPORATION COMPANY organization org",
    "MISC": "MISCELLANEOUS OTHER misc",
}


class Laid(NamedTuple):
    """Predicted documents with the gold tokens, and a line for whatever was mended or looks wrong."""

    documents: list[Document]
    notes: list[str]


def lay(
    gold: Sequence[Document],
    predicted: Iterable[Document],
    source: str,
    *,
    labels: LabelNames | None = None,
    gold_classes: bool = False,
) -> Laid:
    """The predictions of the file ``source`` on the gold tokens, as `herdner.evaluation.align.align` does it.

    ``labels`` renames classes; with ``gold_classes`` those that the gold documents do not have are left out.

    Raises:
        ValueError: There is no document, or `herdner.evaluation.align.align` finds that they do not match.
    """
    found = list(predicted)
    if not found:
        raise ValueError(f"{source}: no document; the file is empty")
    aligned = align(gold, found, labels=labels, name=source)
    known = _classes(gold)
    documents = aligned.documents
    if gold_classes:
        documents = [d.with_proposals(e for e in d.entities if e.label in known) for d in documents]
    seen = _classes(documents)
    notes = [] if known else ["the gold standard holds no entity: there is nothing to find"]
    if known and seen - known:
        notes.append(f"{source}: {_unknown(seen, known)}")
    elif seen and (missing := sorted(known - seen)):
        one = f"no {missing[0]}" if len(missing) == 1 else f"none of {', '.join(missing[:8])}"
        notes.append(f"{source}: {one} is predicted, which the gold standard has; --map {missing[0]}= leaves it out")
    if not seen:
        notes.append(f"{source}: no entity is predicted")
    return Laid(documents, [*notes, *(f"{source}: {note}" for note in _mended(aligned))])


def _classes(documents: Iterable[Document]) -> set[str]:
    return {entity.label for document in documents for entity in document.entities}


def _mended(aligned: Aligned) -> list[str]:
    said = (
        (aligned.n_retokenised, "documents have other tokens than the gold standard"),
        (aligned.n_widened, "entities were widened to the borders of gold tokens"),
        (aligned.n_dropped, "entities without a gold token of their own were left out"),
    )
    return [f"{count:,} {what}" for count, what in said if count]


def _unknown(seen: set[str], known: set[str]) -> str:
    """Which classes do not meet, and the options that would mend it."""
    new = sorted(seen - known)
    meant = {old: target for target, olds in SYNONYMS.items() if target in known for old in olds.split()}
    meant |= {target: old for target, olds in SYNONYMS.items() for old in olds.split() if old in known}
    hints = [f"--map {old}={meant[old]}" for old in new if old in meant]
    more = f"{' '.join(hints)} or --gold-classes" if hints else "--gold-classes"
    return (
        f"the gold standard ({', '.join(sorted(known)[:8])}) has no {', '.join(new[:8])}; "
        f"try {more} to leave such classes out"
    )
