"""Options written as text, for a command line has nothing else: "key=value", "linear(0.1, 1)", values of a type."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from numbers import Real
from types import NoneType
from typing import Any, Literal, TypeVar

T = TypeVar("T")

_CALL = re.compile(r"\s*([a-z][a-z0-9_-]*)\s*(?:\(\s*(.*?)\s*\))?\s*", re.IGNORECASE)
_WORDS: Mapping[object, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", NoneType: "none",
}  # fmt: skip


def pair(text: str) -> tuple[str, str] | None:
    """The key and the value of ``key=value``; None where ``text`` is no such thing."""
    key, equals, value = text.partition("=")
    return (key.strip(), value.strip()) if equals and key.strip().isidentifier() else None


def from_call(text: str, functions: Mapping[str, Callable[..., T]], what: str, words: str) -> T:
    """What the function named in ``text`` returns for the arguments there: numbers, or else text without commas.

    ``what`` is being described, in these ``words``. ValueError in one line for an unknown name, for arguments that the
    function does not take, and whatever the function says of their values.
    """
    match = _CALL.fullmatch(text)
    name, inside = match.groups() if match else ("", None)
    function = functions.get(name.lower().replace("_", "-"))
    arguments = [read(part.strip(), int | float | str) for part in inside.split(",")] if inside else []
    if function is None or not _accepts(function, arguments):
        raise ValueError(f"{what} must be {words}, not {text!r}")
    try:
        return function(*arguments)
    except TypeError:  # text where the function wants a number
        raise ValueError(f"{what} must be {words}, not {text!r}") from None


def read(value: object, hint: Any, name: str = "it") -> Any:
    """``value``, which may be text, as the first type of ``hint`` that it fits; ValueError says what ``name`` must be.

    Args:
        hint: A union of bool, int, float, str, None, Literals, and classes that have ``from_text`` and WORDS, which say
            how its values are written.
    """
    told = ""
    for kind in _alternatives(hint):
        try:
            return _as(value, kind)
        except ValueError as error:
            told = told or (str(error) if _has_text(kind) else "")
    raise ValueError(told or f"{name} must be {in_words(hint)}, not {value!r:.80}")


def in_words(hint: Any) -> str:
    """A type as users read it: "a whole number or none"."""
    parts: list[str] = []
    for kind in _alternatives(hint):
        if typing.get_origin(kind) is Literal:
            parts.append("one of " + ", ".join(repr(value) for value in typing.get_args(kind)))
        else:
            parts.append(kind.WORDS if _has_text(kind) else _WORDS[kind])
    return " or ".join(parts)


def _accepts(function: Callable[..., object], arguments: list[object]) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    return True


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) not in (None, Literal) else (hint,)


def _has_text(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "from_text")


def _as(value: object, kind: Any) -> object:
    """``value`` as one kind of option, or ValueError."""
    if typing.get_origin(kind) is Literal:
        for allowed in typing.get_args(kind):
            if value == allowed and type(value) is type(allowed):
                return allowed
    elif kind is NoneType:
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
    elif kind in (int, float):
        return _number(value, kind)
    elif isinstance(value, kind):
        return value
    elif isinstance(value, str):
        if kind is not bool:
            return kind.from_text(value)
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
    raise ValueError


def _number(value: object, kind: type[int] | type[float]) -> int | float:
    if isinstance(value, bool) or not isinstance(value, str | Real):
        raise ValueError
    try:
        number = kind(value)  # pyright: ignore[reportArgumentType]  # what is no number raises TypeError
    except (OverflowError, TypeError):
        raise ValueError from None
    if number != number or (not isinstance(value, str) and number != value):
        raise ValueError
    return number
