"""Parsing of options from text: ``key=value``, calls such as ``linear(0.1, 1)``, and values of declared types."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Real
from types import NoneType
from typing import Any, Literal, TypeVar

T = TypeVar("T")

_CALL = re.compile(r"\s*([a-z][a-z0-9_-]*)\s*(?:\(\s*(.*?)\s*\))?\s*", re.IGNORECASE)
_DESCRIPTIONS: Mapping[object, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", NoneType: "none",
}  # fmt: skip


def parse_pair(text: str) -> tuple[str, str] | None:
    """Split a string ``key=value`` into key and value; return None if the string has another form.

    Args:
        text: The string.

    Returns:
        Key and value without white space around them; None if the key is not an identifier or there is no "=".
    """
    key, equals, value = text.partition("=")
    return (key.strip(), value.strip()) if equals and key.strip().isidentifier() else None


def parse_call(text: str, functions: Mapping[str, Callable[..., T]], name: str, syntax: str) -> T:
    """Call the function that a string such as ``linear(0.1, 1)`` names, with the arguments in this string.

    Args:
        text: Name of the function, and its arguments in parentheses: numbers, or text without commas.
        functions: The functions by name, in lower case and with hyphens.
        name: Name of the option, for messages.
        syntax: Description of the accepted texts, for messages.

    Returns:
        The result of the function.

    Raises:
        ValueError: The function is unknown or its arguments are invalid; the message is one line.
    """
    match = _CALL.fullmatch(text)
    called, inside = match.groups() if match else ("", None)
    function = functions.get(called.lower().replace("_", "-"))
    arguments = [parse_option(part.strip(), int | float | str) for part in inside.split(",")] if inside else []
    with suppress(TypeError):  # a wrong number of arguments, or text for a numeric argument
        if function is not None:
            return function(*arguments)
    raise ValueError(f"{name} must be {syntax}, not {text!r}")


def parse_option(value: object, type: Any, name: str = "the option") -> Any:
    """Convert the value of an option, possibly written as text, to the type of the option.

    Args:
        value: The value.
        type: A union of bool, int, float, str, None, Literals, and classes with a method ``from_text`` and a
            description ``SYNTAX`` of its texts. The first type that fits is used.
        name: Name of the option, for messages.

    Returns:
        The converted value.

    Raises:
        ValueError: The value fits no type.
    """
    message = ""
    for alternative in _alternatives(type):
        try:
            return _convert(value, alternative)
        except ValueError as error:
            message = message or (str(error) if _has_from_text(alternative) else "")
    raise ValueError(message or f"{name} must be {describe_type(type)}, not {value!r:.80}")


def describe_type(type: Any) -> str:
    """Describe a type in words for users, such as "a whole number or none".

    Args:
        type: Type annotation of an option.

    Returns:
        The alternatives of the type, joined by "or".
    """
    parts: list[str] = []
    for alternative in _alternatives(type):
        if typing.get_origin(alternative) is Literal:
            parts.append("one of " + ", ".join(repr(value) for value in typing.get_args(alternative)))
        else:
            parts.append(alternative.SYNTAX if _has_from_text(alternative) else _DESCRIPTIONS[alternative])
    return " or ".join(parts)


def _alternatives(type: Any) -> tuple[Any, ...]:
    return typing.get_args(type) if typing.get_origin(type) not in (None, Literal) else (type,)


def _has_from_text(alternative: Any) -> bool:
    return isinstance(alternative, type) and hasattr(alternative, "from_text")


def _convert(value: object, alternative: Any) -> object:
    """Convert a value to the type ``alternative``, or raise `ValueError` if that is impossible."""
    if typing.get_origin(alternative) is Literal:
        for allowed in typing.get_args(alternative):
            if value == allowed and type(value) is type(allowed):
                return allowed
    elif alternative is NoneType:
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
    elif alternative in (int, float):
        return _number(value, alternative)
    elif isinstance(value, alternative):
        return value
    elif isinstance(value, str):
        if alternative is not bool:
            return alternative.from_text(value)
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
    raise ValueError


def _number(value: object, type: type[int] | type[float]) -> int | float:
    if isinstance(value, bool) or not isinstance(value, str | Real):
        raise ValueError
    try:
        number = type(value)  # pyright: ignore[reportArgumentType]  # other values raise TypeError
    except (OverflowError, TypeError):
        raise ValueError from None
    if number != number or (not isinstance(value, str) and number != value):
        raise ValueError
    return number
