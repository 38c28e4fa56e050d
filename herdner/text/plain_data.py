"""A document as plain data, for JSON and whatever else has dictionaries and lists, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, cast

from herdner.text.document import Document, Entity
from herdner.text.open import Open, Place

_KEYS = ("id", "text", "tokens", "tags", "entities", "open", "fields")


def to_dict(document: Document) -> dict[str, Any]:
    """``{"id", "text", "tokens", "tags", "entities", "open", "fields"}``; the tokens of each sentence are a list."""
    left = document.open
    return {
        "id": document.id,
        "text": document.text,
        "tokens": [list(document.tokens[start:end]) for start, end in pairwise(document.sentence_offsets.tolist())],
        "tags": None if document.tags is None else list(document.tags),
        "entities": [asdict(entity) for entity in document.entities],
        "open": None
        if left is None
        else {
            "places": [place._asdict() for place in left.places],
            "annotated": None if left.annotated is None else list(left.annotated),
        },
        "fields": dict(document.fields),
    }


def from_dict(values: Mapping[str, Any]) -> Document:
    """The document of `to_dict`; all but "text" may be left out. ValueError, in one line, for what is none."""
    try:
        return _document(values)
    except (KeyError, TypeError, AttributeError) as error:
        missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"no document: {missing}; expected what Document.to_dict gives") from None


def from_json(text: str) -> Document:
    """The document of `Document.to_json`. ValueError, in one line, for what is none."""
    try:
        values: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no document: not JSON ({error})") from None
    if not isinstance(values, dict):
        raise ValueError(f"no document: a JSON {type(values).__name__}; expected an object with a text")
    return from_dict(cast("dict[str, Any]", values))


def _document(values: Mapping[str, Any]) -> Document:
    if unknown := sorted(set(values) - set(_KEYS)):
        raise ValueError(f"no document: unknown key {unknown[0]!r}; known are {', '.join(_KEYS)}")
    text, id, fields = values["text"], values.get("id"), dict(values.get("fields") or {})
    if not isinstance(text, str) or not (id is None or isinstance(id, str)):
        raise ValueError("no document: its text is a string, and its id a string or None")
    sentences = [_strings(sentence) for sentence in _listed(values, "tokens")]
    if sentences:
        document = Document.from_aligned(text, sentences, id=id, fields=fields)
    else:
        document = Document.from_text(text, id=id, fields=fields)
    tags: list[str] | None = None if values.get("tags") is None else _strings(values["tags"])
    if tags is not None and len(tags) != document.n_tokens:
        raise ValueError(f"document {id!r} has {document.n_tokens} tokens but {len(tags)} tags")
    entities = tuple(_entity(each, text) for each in _listed(values, "entities"))
    return replace(document, tags=cast("Any", tags), entities=entities, open=_open(values.get("open")))


def _listed(values: Mapping[str, Any], key: str) -> list[Any]:
    given: object = values.get(key)
    if given is not None and not isinstance(given, list):
        raise ValueError(f"no document: {key} are no list")
    return cast("list[Any]", given or [])


def _strings(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in cast("list[object]", given)):
        raise ValueError(f"no document: {json.dumps(given, default=str)[:40]} is no list of strings")
    return cast("list[str]", given)


def _entity(given: Any, text: str) -> Entity:
    """The entity, where its places and its words are those of the text; `Document` looks at the rest."""
    entity, label = Entity(**given), cast(object, given["label"])
    if type(entity.start) is not int or type(entity.end) is not int or not isinstance(label, str):
        raise ValueError(f"no document: {entity} has no whole numbers as its places, or no label")
    if text[entity.start : entity.end] != entity.text:
        raise ValueError(f"no document: an entity says {entity.text!r}, where the text has other characters")
    return entity


def _open(given: Any) -> Open | None:
    if given is None:
        return None
    classes: object = given.get("annotated")
    places = tuple(Place(**each) for each in _listed(given, "places"))
    return Open(places, None if classes is None else tuple(_strings(classes)))
