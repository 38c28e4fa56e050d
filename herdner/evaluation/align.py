"""Alignment of predicted entities with gold documents that may have other tokens and other white space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from herdner.base.messages import format_count
from herdner.text.document import Document, project
from herdner.text.entity import Entity
from herdner.text.labels import LabelNames, rename_labels, similar_labels
from herdner.text.tags import Scheme, detect_scheme, spans_from_tags

_N_SHOWN = 24  # number of characters that an error message shows of each text


@dataclass(frozen=True)
class AlignedDocuments:
    """Gold documents with predicted entities, and the numbers of documents and entities changed or left out.

    Attributes:
        documents: Gold documents with the predicted entities in place of the gold entities, without tags.
        n_retokenized: Number of documents whose tokens differed from the gold tokens.
        n_widened: Number of entities that were widened to the boundaries of gold tokens.
        n_dropped: Number of entities that were left out because they touch no gold token, or only gold tokens of other
            entities.
        n_other: Number of predicted documents that were left out, because they are no gold documents.
    """

    documents: list[Document]
    n_retokenized: int
    n_widened: int
    n_dropped: int
    n_other: int = 0

    def warnings(self) -> list[str]:
        """Return one line of text for each kind of change that the alignment has made."""
        no_token = "no gold token or only gold tokens of other entities"
        lines = (
            (self.n_other, "predicted document was left out, because it is no gold document",
             "predicted documents were left out, because they are no gold documents"),
            (self.n_retokenized, "document has other tokens than the gold document",
             "documents have other tokens than the gold documents"),
            (self.n_widened, "entity was widened to the boundaries of gold tokens",
             "entities were widened to the boundaries of gold tokens"),
            (self.n_dropped, f"entity was left out, because it touches {no_token}",
             f"entities were left out, because they touch {no_token}"),
        )  # fmt: skip
        return [format_count(*line) for line in lines if line[0]]


def align_documents(
    gold: Sequence[Document], predicted: Iterable[Document], *, labels: LabelNames | None = None,
    name: str = "predicted",
) -> AlignedDocuments:  # fmt: skip
    """Transfer predicted entities to the tokens of the gold documents.

    The texts must be equal except for white space. Documents are matched by id if the ids are unique and all gold
    documents have predictions, else by position. Tags are read strictly in the detected scheme, as `herdner.evaluate`
    reads them.

    Args:
        gold: Gold documents.
        predicted: Predicted documents in any order. Documents without visible text are ignored.
        labels: New name of each label; None drops its entities.
        name: Name of the prediction, for error messages.

    Returns:
        The gold documents with the predicted entities.

    Raises:
        ValueError: A document is missing, has another text or has no annotation.
    """
    predicted = [document for document in predicted if document.text.strip()]
    ordered = _match_documents(gold, predicted, name)
    scheme = detect_scheme(tags for document in ordered if document.source_tags for tags in document.sentence_tags())
    documents: list[Document] = []
    n_retokenized = n_widened = n_dropped = 0
    for reference, guess in zip(gold, ordered, strict=True):
        if guess.spans is None:
            raise ValueError(f"{name}: document {guess.id!r} has no annotation; give an annotated file")
        renamed = rename_labels(guess.with_proposals(_strict_entities(guess, scheme)), labels)
        entities, n_blank = _move_entities(renamed.entities, guess, reference, name)
        # The index of an entity replaces its label during the projection, to find the entity of each span afterwards.
        projection = project([replace(entity, label=str(i)) for i, entity in enumerate(entities)], reference)
        sources = [entities[int(span.label)] for span in projection.spans]
        aligned = (
            replace(entity, label=source.label, confidence=source.confidence, name_id=source.name_id)
            for entity, source in zip(reference.entities_from_spans(projection.spans), sources, strict=True)
        )
        documents.append(reference.without_annotation().with_proposals(aligned))
        n_retokenized += bool(guess.n_tokens) and list(guess.tokens) != list(reference.tokens)
        n_widened += projection.n_widened
        n_dropped += projection.n_dropped + n_blank
    return AlignedDocuments(documents, n_retokenized, n_widened, n_dropped, len(predicted) - len(ordered))


def _strict_entities(document: Document, scheme: Scheme) -> Sequence[Entity]:
    """Return the entities of a document, without the entities that were read from malformed tag sequences."""
    if document.source_tags is None or not document.n_tokens:
        return document.entities
    from_tags = document.entities_from_spans(spans_from_tags(document.source_tags, document.sentence_offsets))
    keys = [_key(entity) for entity in from_tags]
    if [_key(entity) for entity in document.entities] != keys or scheme == "iob1":
        return document.entities
    confidence = {_key(entity): entity.confidence for entity in document.entities}
    spans = spans_from_tags(document.source_tags, document.sentence_offsets, strict=scheme)
    strict = document.entities_from_spans(spans)
    return [replace(entity, confidence=confidence.get(_key(entity))) for entity in strict]


def _key(entity: Entity) -> tuple[int, int, str]:
    return entity.start, entity.end, entity.label


def _match_documents(gold: Sequence[Document], predicted: list[Document], name: str) -> list[Document]:
    """Return the predicted documents in the order of the gold documents."""
    ids = [document.id for document in gold]
    predicted_ids = [document.id for document in predicted]
    are_unique = len(set(ids)) == len(ids) and len(set(predicted_ids)) == len(predicted_ids)
    if ids != predicted_ids and are_unique and set(ids) <= set(predicted_ids):
        by_id = dict(zip(predicted_ids, predicted, strict=True))
        return [by_id[id] for id in ids]
    if len(gold) == len(predicted):
        return predicted
    sizes = f"{name}: expected {len(gold)} documents, as in the gold file, got {len(predicted)}"
    if not set(ids) & set(predicted_ids):
        raise ValueError(f"{sizes}; predict each gold document once")
    repeated = [id for id, count in (Counter(predicted_ids) - Counter(ids)).items() if id in ids and count]
    missing, extra = Counter(ids) - Counter(predicted_ids), set(predicted_ids) - set(ids)
    reasons = [f"{repeated[0]!r} occurs more than once"] if repeated else []
    reasons += [f"{next(iter(missing))!r} is missing"] if missing else []
    reasons += [f"{min(map(str, extra))!r} is not a gold document"] if extra else []
    raise ValueError(f"{sizes}; {' and '.join(reasons)}")


def _move_entities(
    entities: Sequence[Entity], guess: Document, reference: Document, name: str
) -> tuple[list[Entity], int]:
    """Convert the offsets of entities to offsets in the gold text; drop entities that consist of white space only.

    Return the converted entities and the number of dropped entities.
    """
    if guess.text == reference.text:
        return list(entities), 0
    source, target = _visible_positions(guess.text), _visible_positions(reference.text)
    _check_text(guess, reference, source, target, name)
    moved: list[Entity] = []
    for entity in entities:
        first, stop = np.searchsorted(source, [entity.start, entity.end]).tolist()
        if first < stop:
            start, end = int(target[first]), int(target[stop - 1]) + 1
            moved.append(replace(entity, start=start, end=end, text=reference.text[start:end]))
    return moved, len(entities) - len(moved)


def _visible_positions(text: str) -> NDArray[np.int64]:
    """Return the offsets of all characters of a text that are not white space."""
    return np.flatnonzero([not character.isspace() for character in text])


def _check_text(
    guess: Document, reference: Document, source: NDArray[np.int64], target: NDArray[np.int64], name: str
) -> None:
    """Raise `ValueError` if two texts differ, except in white space; the message shows the first difference."""
    a, b = ("".join(document.text.split()) for document in (guess, reference))
    if a == b:
        return
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    excerpts: list[tuple[int, str]] = []
    for document, visible in ((guess, source), (reference, target)):
        start = int(visible[at]) if at < len(visible) else len(document.text)
        excerpts.append((start, document.text[start : start + _N_SHOWN]))
    (start, text), (position, expected) = excerpts
    token = int(np.searchsorted(reference.token_ends, position, side="right")) + 1
    raise ValueError(
        f"{name}: document {guess.id!r} must have the text of gold document {reference.id!r}, but has {text!r} at "
        f"character {start}; the gold document has {expected!r} at character {position} (token {token})"
    )


# --- predictions of a file


def align_predictions(
    gold: Sequence[Document], predicted: Iterable[Document], source: str, *, labels: LabelNames | None = None,
    gold_labels_only: bool = False,
) -> tuple[list[Document], list[str]]:  # fmt: skip
    """Align the predictions of a file with the gold documents, and warn about possible mistakes in the file.

    Args:
        gold: Gold documents.
        predicted: Predicted documents of the file.
        source: Name of the file.
        labels: New name of each label; None drops its entities.
        gold_labels_only: Whether to leave out predicted labels that no gold entity has.

    Returns:
        The gold documents with the predicted entities, and one line for each warning.

    Raises:
        ValueError: The file has no document, or its documents do not match the gold documents.
    """
    predicted = list(predicted)
    if not predicted:
        raise ValueError(f"{source}: the file has no document; give a file of predictions")
    aligned = align_documents(gold, predicted, labels=labels, name=source)
    documents = aligned.documents
    gold_labels = _labels(gold)
    if gold_labels_only:
        documents = [d.with_proposals(e for e in d.entities if e.label in gold_labels) for d in documents]
    predicted_labels = _labels(documents)
    warnings = [] if gold_labels else ["the gold documents have no entity"]
    if gold_labels and predicted_labels - gold_labels:
        warnings.append(f"{source}: {_unknown_labels(predicted_labels - gold_labels, gold_labels)}")
    elif predicted_labels and (missing := sorted(gold_labels - predicted_labels)):
        warnings.append(
            f"{source}: no entity has the gold label {' or '.join(missing[:8])}; add --rename {missing[0]}= to "
            "leave out a label"
        )
    if not predicted_labels:
        warnings.append(f"{source}: no entity is predicted")
    return documents, [*warnings, *(f"{source}: {line}" for line in aligned.warnings())]


def _labels(documents: Iterable[Document]) -> set[str]:
    return {entity.label for document in documents for entity in document.entities}


def _unknown_labels(unknown: set[str], gold_labels: set[str]) -> str:
    """Return a warning about labels that no gold entity has; it names options that rename or drop these labels."""
    hints = "".join(f"--rename {old}={new} " for old, new in similar_labels(unknown, gold_labels).items())
    return (
        f"the gold documents ({', '.join(sorted(gold_labels)[:8])}) have no {', '.join(sorted(unknown)[:8])}; add "
        f"{hints}{'or ' if hints else ''}--gold-labels to leave out such labels"
    )
