"""Files of known names: JSON lines as spaCy's entity ruler has them, or columns parted by tabs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from herdner.text.io.source import FormatError, Source, read_lines, sources
from herdner.text.plain_data import describe_json_error

KEYS = ("label", "pattern", "id", "strength")
FORMS = 'expected a name, a tab and a label, or JSON lines such as {"label": "ORG", "pattern": "Winam Ferries"}'
HARD = "hard"

TokenPattern = Sequence[Mapping[str, Any]]


class Known(NamedTuple):
    """A name, or a pattern of tokens as spaCy's ``Matcher`` takes it, and its label.

    ``strength`` in log-odds, ``inf`` for a constraint; None is that of the list. ``place`` says where it stands.
    """

    pattern: str | TokenPattern
    label: str
    strength: float | None = None
    place: str = "name"


def read_known(path: Path | IO[Any], encoding: str = "utf-8") -> Iterator[Known]:
    """The names of a file, which is JSON lines where it begins with ``{``. Raises FormatError, with the line.

    Blank lines are left out, and lines of columns that begin with ``#`` and have no tab.
    """
    if isinstance(path, Path):
        try:
            is_folder = path.is_dir()
        except OSError as error:  # such as a name of 1000 characters
            raise FormatError(f"{str(path)[:80]}: {error.strerror}") from None
        if is_folder:
            raise FormatError(f"{path}: is a folder; name a file in it")
    source = Source(str(path), path.name, path, None) if isinstance(path, Path) else sources(path, ())[0]
    as_json: bool | None = None
    found = False
    for number, line in _lines(source, encoding):
        if not line or line.isspace():
            continue
        as_json = line.lstrip().startswith("{") if as_json is None else as_json
        if not as_json and line.startswith("#") and "\t" not in line:
            continue
        place = f"{source.name}:{number}"
        try:
            yield known_of(_object(line) if as_json else _columns(line), place)
        except ValueError as error:
            message = str(error)
            raise FormatError(message if message.startswith(place) else f"{place}: {message}") from None
        found = True
    if not found:
        raise FormatError(f"{source.name}: holds no name; {FORMS}")


def _lines(source: Source, encoding: str) -> Iterator[tuple[int, str]]:
    """`read_lines`, whose advice on what does not decode is for the documents that a command reads."""
    try:
        yield from read_lines(source, encoding)
    except FormatError as error:
        said, advised, _ = str(error).partition(f"; expected {encoding}")
        raise FormatError(f"{said}; save the names as {encoding}" if advised else said) from None


def known_of(values: object, place: str) -> Known:
    """A known name from ``(name, label)``, ``(name, label, strength)`` or one of spaCy's patterns, all checked."""
    if isinstance(values, Mapping):
        given = cast("Mapping[str, object]", values)
        if unknown := sorted(set(given) - set(KEYS)):
            raise ValueError(f"{place}: unknown key {unknown[0]!r}; expected {', '.join(KEYS)}")
        pattern, label, strength = (given.get(key) for key in ("pattern", "label", "strength"))
    elif isinstance(values, list | tuple) and 1 <= len(cast("Sequence[object]", values)) <= 3:
        pattern, label, strength = [*cast("Sequence[object]", values), None, None][:3]
    else:
        raise ValueError(f"{place}: {values!r} is no name; expected (name, label) or one of spaCy's patterns")
    if not label or not isinstance(label, str) or label.split() != [label]:
        what = "no label" if not label else f"the label {label!r} is no word"
        raise ValueError(f"{place}: {what}; expected one such as ORG")
    return Known(_pattern(pattern, place), label, _strength(strength, place), place)


def written(entry: Known) -> str:
    """One line of JSON."""
    strength = None if entry.strength is None else HARD if entry.strength == math.inf else entry.strength
    values = {"label": entry.label, "pattern": entry.pattern, "strength": strength}
    return json.dumps({key: value for key, value in values.items() if value is not None}, ensure_ascii=False)


def _object(line: str) -> Mapping[str, Any]:
    try:
        values: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{describe_json_error(error)}; expected one pattern a line") from None
    if not isinstance(values, dict):
        raise ValueError(f"a JSON {type(values).__name__}; {FORMS}")
    return cast("Mapping[str, Any]", values)


def _columns(line: str) -> tuple[str, ...]:
    cells = tuple(cell.strip() for cell in line.split("\t"))
    if len(cells) == 1 or len(cells) > 3:
        what = "no tab" if len(cells) == 1 else f"{len(cells)} columns"
        raise ValueError(f"{what} in {line[:40]!r}; {FORMS}")
    return cells


def _pattern(value: object, place: str) -> str | TokenPattern:
    if isinstance(value, str) and value.split():
        return value
    if isinstance(value, list) and value and all(isinstance(token, dict) for token in cast("list[object]", value)):
        return cast("TokenPattern", value)
    what = "no name" if value is None or value in ("", []) else f"the pattern {value!r} is none"
    raise ValueError(f"{place}: {what}; expected a name, or a list of spaCy's tokens such as [{{'LOWER': 'winam'}}]")


def _strength(value: object, place: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = math.inf if value == HARD else float(cast(Any, value))
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not number > -math.inf:
        raise ValueError(f"{place}: the strength {value!r} is no number; expected log-odds such as 3, or {HARD}")
    return number
