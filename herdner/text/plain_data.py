"""Checks of documents that are given as plain data, such as the dicts and lists of parsed JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from herdner.text.entity import Entity
from herdner.text.partial import PartialAnnotation, UnannotatedRange

_KEYS = ("id", "text", "tokens", "tags", "entities", "partial", "fields")


class DocumentParts(NamedTuple):
    """Checked parts of a document, read from the dict of `Document.to_dict`."""

    text: str
    sentences: list[list[str]]
    tags: list[str] | None
    entities: tuple[Entity, ...]
    partial: PartialAnnotation | None
    id: str | None
    fields: dict[str, object]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> DocumentParts:
        """Check the dict of `Document.to_dict`, and return the parts of the document.

        Args:
            values: A result of `Document.to_dict`; all keys but "text" are optional.

        Returns:
            The parts of the document.

        Raises:
            ValueError: The data do not describe a document; the message is one line.
        """
        try:
            if unknown := sorted(set(values) - set(_KEYS)):
                raise ValueError(f"not a document: unknown key {unknown[0]!r}; expected one of {', '.join(_KEYS)}")
            text, id, fields = values["text"], values.get("id"), dict(values.get("fields") or {})
            if not isinstance(text, str) or not (id is None or isinstance(id, str)):
                got = f"got {text!r:.40} and {id!r:.40}"
                raise ValueError(f"not a document: the text must be a string, and the id a string or None, {got}")
            sentences = [_strings(sentence) for sentence in _list(values, "tokens")]
            tags: list[str] | None = None if values.get("tags") is None else _strings(values["tags"])
            entities = tuple(_entity(each, text) for each in _list(values, "entities"))
            return cls(text, sentences, tags, entities, _partial(values.get("partial")), id, fields)
        except (KeyError, TypeError, AttributeError) as error:
            problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"not a document: {problem}; expected a dict that Document.to_dict returned") from None


def parse_object(text: str) -> dict[str, Any]:
    """Parse the JSON object that `Document.to_json` returns.

    Args:
        text: The JSON text.

    Returns:
        The values of the object.

    Raises:
        ValueError: The text is not a JSON object; the message has one line.
    """
    try:
        values: object = json.loads(text, parse_float=finite_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a document: {describe_json_error(error)}") from None
    if not isinstance(values, dict):
        raise ValueError(f"not a document: got a JSON {type(values).__name__}; expected an object with the key `text`")
    return cast("dict[str, Any]", values)


class InvalidValue(ValueError):
    """Error: a JSON text contains a value that is not allowed, such as a number that is too large for a float."""


def finite_number(digits: str) -> float:
    """Convert the text of a JSON number with a point or an exponent to a float.

    Args:
        digits: Text of the number.

    Returns:
        The number.

    Raises:
        InvalidValue: The number is too large for a float.
    """
    number = float(digits)
    if math.isinf(number):
        raise InvalidValue(f"the number {digits[:40]} is too large; write it as a string")
    return number


def describe_json_error(error: Exception) -> str:
    """Return a one-line error message for users from an exception of `json.loads`, with or without `finite_number`.

    Args:
        error: The exception.
    """
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error})"
    if isinstance(error, InvalidValue):
        return str(error)
    # The remaining error of `json.loads`, whose own message names a function to call.
    return f"not readable (a number has more than {sys.get_int_max_str_digits():,} digits)"


def _list(values: Mapping[str, Any], key: str) -> list[Any]:
    value: object = values.get(key)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"not a document: {key!r} must be a list, got {value!r:.40}")
    return cast("list[Any]", value or [])


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in cast("list[object]", value)):
        raise ValueError(f"not a document: {json.dumps(value, default=str)[:40]} must be a list of strings")
    return cast("list[str]", value)


def _entity(value: Any, text: str) -> Entity:
    """Return an entity after checking the types of its values and the text at its offsets.

    `Document` checks the offsets.
    """
    entity, label = Entity(**value), cast(object, value["label"])
    if type(entity.start) is not int or type(entity.end) is not int or not isinstance(label, str):
        raise ValueError(f"not a document: {entity} must have integer offsets and a label")
    if entity.name_id is not None and type(entity.name_id) is not int:
        raise ValueError(f"not a document: `name_id` must be an integer or None, got {entity.name_id!r}")
    # The lengths come first: many long entities of a hostile file may share one long text.
    length = min(entity.end, len(text)) - entity.start
    if len(entity.text) != length or not text.startswith(entity.text, entity.start):
        problem = f"an entity has the text {entity.text!r}, but the text at its offsets is another one"
        raise ValueError(f"not a document: {problem}")
    return entity


def _partial(value: Any) -> PartialAnnotation | None:
    if value is None:
        return None
    labels: object = value.get("annotated_labels")
    ranges = tuple(UnannotatedRange(**each) for each in _list(value, "unannotated"))
    return PartialAnnotation(ranges, None if labels is None else tuple(_strings(labels)))
