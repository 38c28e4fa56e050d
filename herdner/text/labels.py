"""Renaming and removal of labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from herdner.text.document import Document
from herdner.text.partial import PartialAnnotation, change_alternatives
from herdner.text.tags import Scheme, split_tag

LabelNames = Mapping[str, str | None]
"""New name of each label; None removes the label. The entry ``"*"`` applies to all labels that are not listed. Without
this entry, they keep their names."""

# Names that different corpora use for the same label, in lower case.
_SYNONYMS = (
    {"per", "pers", "person", "people"},
    {"loc", "location", "place", "gpe"},
    {"org", "organization", "organisation", "company", "corporation"},
    {"fac", "facility"},
    {"misc", "miscellaneous", "other"},
    {"prod", "product"},
)


def is_label(label: str) -> bool:
    """Return whether a string is a valid label: printable words with single spaces between them, without ``|``.

    Args:
        label: The string.
    """
    return bool(label) and " ".join(label.split()) == label and label.isprintable() and "|" not in label


def check_label(label: object, name: str) -> str:
    """Return ``label``, after a check that it is a valid label.

    Args:
        label: The value to check.
        name: Description of the labelled thing for the error message.

    Raises:
        ValueError: ``label`` is not a string, or not a valid label.
    """
    if not isinstance(label, str) or not is_label(label):
        raise ValueError(f"the label of {name} is {label!r}; expected words with single spaces between them")
    return label


def new_label(label: str, names: LabelNames | None) -> str | None:
    """Return the new name of a label according to the dict ``names``; return None if the label is to be removed.

    Args:
        label: The label.
        names: New name of each label, None for removed ones; "*" stands for all other labels. None changes nothing.
    """
    return label if names is None else names.get(label, names.get("*", label))


def similar_labels(labels: Collection[str], known_labels: Collection[str]) -> dict[str, str]:
    """Map each unknown label to a known label with a similar name, such as "Person" to "PER" and "GPE" to "LOC".

    Labels without a similar label are left out.

    Names are similar if they differ only in case, a final "s" or characters that are not letters, or are synonyms.

    Args:
        labels: Labels, of which some may be known.
        known_labels: Known labels. Those that ``labels`` contains are not candidates.

    Returns:
        The similar known label of each unknown label.
    """
    candidates = sorted(set(known_labels) - set(labels))
    new_labels = sorted(set(labels) - set(known_labels))
    return {new: old for new in new_labels for old in candidates if _are_similar(new, old)}


def _are_similar(one: str, other: str) -> bool:
    a, b = ("".join(filter(str.isalpha, label.casefold())).removesuffix("s") for label in (one, other))
    return a == b or any(a in names and b in names for names in _SYNONYMS)


def rename_labels(document: Document, names: LabelNames | None, scheme: Scheme = "iob2") -> Document:
    """Rename the entity labels of a document by the dict ``names``; remove entities whose label becomes None.

    Args:
        document: An annotated document, or one with proposed entities.
        names: New name of each label; None removes the entities of the label, and the key "*" stands for all other
            labels. If ``names`` is None, no label changes.
        scheme: Scheme of the new tags. It does not apply to documents with ambiguous tags, which keep their prefixes:
            spans cannot represent a B- or I- beside an ambiguous tag.

    Returns:
        A document with the new labels in its entities, spans, tags and partial annotation.
    """
    entities = [
        replace(entity, label=label)
        for entity in document.entities or document.entities_from_spans(document.spans or ())
        if (label := new_label(entity.label, names)) is not None
    ]
    if not document.is_annotated:
        return document.with_proposals(entities) if document.entities else document
    if document.partial is None:
        return document.with_entities(entities, scheme)
    document = replace(document, partial=_rename_partial(document.partial, names))
    if document.source_tags is None:
        return document.with_entities(entities, scheme)
    parts = [(prefix, label and new_label(label, names)) for prefix, label in map(split_tag, document.source_tags)]
    return document.with_tags([f"{prefix}-{label}" if label else "O" for prefix, label in parts])


def _rename_partial(partial: PartialAnnotation, names: LabelNames | None) -> PartialAnnotation:
    labels = (
        None if partial.annotated_labels is None else [new_label(label, names) for label in partial.annotated_labels]
    )
    return PartialAnnotation(
        tuple(each._replace(tags=_rename_alternatives(each.tags, names)) for each in partial.unannotated),
        None if labels is None else tuple(dict.fromkeys(label for label in labels if label is not None)),
    )


def _rename_alternatives(tags: str, names: LabelNames | None) -> str:
    """Rename the labels in a string of possible tags, such as ``"PER|O"``. A tag with a removed label becomes O."""

    def rename(prefix: str, label: str) -> tuple[str, str]:
        renamed = label if prefix == "O" else new_label(label, names)
        return ("O", "") if renamed is None else (prefix, renamed)

    return change_alternatives(tags, rename)
