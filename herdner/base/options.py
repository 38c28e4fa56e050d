"""Values written as text, as on a command line: "linear(0.1, 1)", "bins(64)", "blanket"."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")

_CALL = re.compile(r"\s*([a-z][a-z0-9_-]*)\s*(?:\(\s*(.*?)\s*\))?\s*", re.IGNORECASE)


def from_call(text: str, functions: Mapping[str, Callable[..., T]], what: str, words: str) -> T:
    """What the function named in ``text`` returns for the arguments there: numbers, or else text without commas.

    ``what`` is being described, in these ``words``. ValueError in one line for an unknown name, for arguments that the
    function does not take, and whatever the function says of their values.
    """
    match = _CALL.fullmatch(text)
    name, inside = match.groups() if match else ("", None)
    function = functions.get(name.lower().replace("_", "-"))
    arguments = [_argument(part.strip()) for part in inside.split(",")] if inside else []
    if function is None or not _takes(function, arguments):
        raise ValueError(f"{what} must be {words}, not {text!r}")
    try:
        return function(*arguments)
    except TypeError:  # text where the function wants a number
        raise ValueError(f"{what} must be {words}, not {text!r}") from None


def _takes(function: Callable, arguments: list) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    return True


def _argument(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
