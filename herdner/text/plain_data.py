"""A document as plain data, as JSON and whatever else has dictionaries and lists give it, checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from herdner.text.entity import Entity
from herdner.text.json_errors import not_json
from herdner.text.open import Open, Place

_KEYS = ("id", "text", "tokens", "tags", "entities", "open", "fields")


class Plain(NamedTuple):
    """The parts of a document."""

    text: str
    sentences: list[list[str]]
    tags: list[str] | None
    entities: tuple[Entity, ...]
    open: Open | None
    id: str | None
    fields: dict[str, object]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Plain:
        """What `Document.to_dict` gives; all but "text" may be left out. ValueError, in one line, for what is none."""
        try:
            return _parts(values)
        except (KeyError, TypeError, AttributeError) as error:
            missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"no document: {missing}; expected what Document.to_dict gives") from None


def object_of(text: str) -> dict[str, Any]:
    """The JSON object that `Document.to_json` has written. ValueError, in one line, for what is none."""
    try:
        values: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no document: {not_json(error)}") from None
    if not isinstance(values, dict):
        raise ValueError(f"no document: a JSON {type(values).__name__}; expected an object with a text")
    return cast("dict[str, Any]", values)


def _parts(values: Mapping[str, Any]) -> Plain:
    if unknown := sorted(set(values) - set(_KEYS)):
        raise ValueError(f"no document: unknown key {unknown[0]!r}; known are {', '.join(_KEYS)}")
    text, id, fields = values["text"], values.get("id"), dict(values.get("fields") or {})
    if not isinstance(text, str) or not (id is None or isinstance(id, str)):
        raise ValueError("no document: its text is a string, and its id a string or None")
    sentences = [_strings(sentence) for sentence in _listed(values, "tokens")]
    tags: list[str] | None = None if values.get("tags") is None else _strings(values["tags"])
    entities = tuple(_entity(each, text) for each in _listed(values, "entities"))
    return Plain(text, sentences, tags, entities, _open(values.get("open")), id, fields)


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
