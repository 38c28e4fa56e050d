"""The backends by name, and their options read off their fields."""

from __future__ import annotations

import dataclasses
import importlib
import math
import typing
from collections.abc import Mapping
from types import MappingProxyType, NoneType

from herdner.inference.backend import Backend

# A backend is one module and one line here; it is imported when it is first asked for.
BACKENDS: Mapping[str, str] = MappingProxyType(
    {
        "exact": "herdner.inference.exact:Exact",
        "viterbi": "herdner.inference.viterbi:Viterbi",
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """An option of a backend: its name, its type in words ("a whole number", "one of 'a', 'b'") and its default."""

    name: str
    type: str
    default: object


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """A backend in one line, and its options."""

    name: str
    summary: str
    options: tuple[Option, ...]


def make_backend(name: str, **options: object) -> Backend:
    """The backend of this name with these options.

    Text is accepted for any option ("400", "true", "none"), as a command line has nothing else. ValueError, in one
    line, where the name, an option or a value is wrong.
    """
    cls, known = _backend_class(name), _options(name)
    values = {}
    for key, value in options.items():
        if key not in known:
            listed = f"it has {_listed(known)}" if known else "it has none"
            raise ValueError(f"backend {name} has no option {key!r}; {listed}")
        values[key] = _converted(value, known[key], f"backend {name}: {key}")
    try:
        return cls(**values)
    except ValueError as error:
        raise ValueError(f"backend {name}: {error}") from None


def describe_backend(name: str) -> Description:
    """What ``herdner backends`` shows of a backend."""
    cls = _backend_class(name)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    options = tuple(Option(key, _in_words(hint), fields[key].default) for key, hint in _options(name).items())
    return Description(name, (cls.__doc__ or "").strip().splitlines()[0], options)


def _backend_class(name: str) -> type:
    if name not in BACKENDS:
        raise ValueError(f"there is no backend {name!r}; there is {_listed(BACKENDS)}")
    module, _, attribute = BACKENDS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _options(name: str) -> dict[str, object]:
    cls = _backend_class(name)
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def _listed(names: typing.Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _alternatives(hint: object) -> tuple[object, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) not in (None, typing.Literal) else (hint,)


def _in_words(hint: object) -> str:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text", NoneType: "none"}
    parts = []
    for kind in _alternatives(hint):
        if typing.get_origin(kind) is typing.Literal:
            parts.append("one of " + ", ".join(repr(value) for value in typing.get_args(kind)))
        else:
            parts.append(words[kind])  # type: ignore[index]
    return " or ".join(parts)


def _converted(value: object, hint: object, where: str) -> object:
    for kind in _alternatives(hint):
        try:
            return _as(value, kind)
        except ValueError:
            continue
    raise ValueError(f"{where} must be {_in_words(hint)}, not {value!r}")


def _as(value: object, kind: object) -> object:
    """``value`` as one kind of option, or ValueError."""
    if typing.get_origin(kind) is typing.Literal:
        for allowed in typing.get_args(kind):
            if value == allowed and type(value) is type(allowed):
                return allowed
        raise ValueError
    if kind is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if kind is NoneType and (value is None or (isinstance(value, str) and value.lower() == "none")):
        return None
    if kind in (int, float) and not isinstance(value, bool) and isinstance(value, (str, int, float)):
        number = kind(value)  # type: ignore[operator]
        if (isinstance(value, float) and number != value) or not math.isfinite(number):
            raise ValueError
        return number
    if kind in (bool, str) and isinstance(value, kind):  # type: ignore[arg-type]
        return value
    raise ValueError
