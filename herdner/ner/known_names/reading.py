"""Files of known names: JSON lines in the format of spaCy's entity ruler, or columns separated by tabs."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from herdner.text.io.source import FormatError, Source, read_lines, sources, strip_compression_suffix
from herdner.text.plain_data import describe_json_error

KEYS = ("label", "pattern", "id", "strength")
_LABEL = re.compile(r"[A-Z][A-Z0-9_-]*")  # label in a line without tab, or in a file name such as ORG.txt
_HEADER = re.compile(r'\s*"?(?:name|pattern)"?\s*[\t,;]\s*"?label"?\s*(?:[\t,;]\s*"?strength"?\s*)?', re.IGNORECASE)
_MAX_HEADER = 200  # characters; matching takes time quadratic in the length of white space
FORMS = 'expected a name, a tab and a label, or JSON lines such as {"label": "ORG", "pattern": "Winam Ferries"}'
HARD = "hard"

TokenPattern = Sequence[Mapping[str, Any]]


def _is_header(line: str) -> bool:
    """Return whether a line names the columns of a list."""
    return len(line) <= _MAX_HEADER and _HEADER.fullmatch(line) is not None


class KnownName(NamedTuple):
    """A known name or token pattern, with its label.

    Attributes:
        pattern: The name, or a token pattern of spaCy's ``Matcher``.
        label: Label of the name.
        strength: Strength in log-odds, ``inf`` for a constraint. None: the strength of the list.
        place: Place of the name in its list or file, for error messages.
    """

    pattern: str | TokenPattern
    label: str
    strength: float | None = None
    place: str = "name"


def read_known_names(path: Path | IO[Any], encoding: str = "utf-8") -> Iterator[KnownName]:
    """Yield the known names of a file, which has JSON lines if it starts with ``{``, and columns otherwise.

    Blank lines are skipped. In a file of columns, lines that begin with ``#`` and have no tab are skipped too. Commas
    or semicolons may separate the columns if the label is in capitals. The first line may be the header ``name``,
    ``label`` and, optionally, ``strength``. In a file whose name is a label in capitals, such as ``ORG.txt``, lines may
    be names without a label.

    Args:
        path: Path or stream of the file.
        encoding: Encoding of the file.

    Raises:
        FormatError: A line cannot be parsed, or the file contains no known name.
    """
    if isinstance(path, Path):
        try:
            is_folder = path.is_dir()
        except OSError as error:  # such as a name of 1000 characters
            raise FormatError(f"{str(path)[:80]}: {error.strerror}") from None
        if is_folder:
            raise FormatError(f"{path}: the path is a folder; give a file")
    source = Source(str(path), path.name, path, None) if isinstance(path, Path) else sources(path, ())[0]
    stem = Path(strip_compression_suffix(source.name)).stem
    default = stem if _LABEL.fullmatch(stem) else None
    as_json: bool | None = None
    is_empty = is_first = True
    for number, line in _lines(source, encoding):
        if not line or line.isspace():
            continue
        is_header, is_first = is_first and _is_header(line), False
        if is_header:
            continue
        as_json = line.lstrip().startswith("{") if as_json is None else as_json
        if not as_json and line.startswith("#") and "\t" not in line:
            continue
        place = f"{source.name}:{number}"
        try:
            yield parse_known_name(_object(line, place) if as_json else _columns(line, place, default), place)
        except ValueError as error:
            raise FormatError(str(error)) from None
        is_empty = False
    if is_empty:
        raise FormatError(f"{source.name}: the file contains no names; {FORMS}")


def _lines(source: Source, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of a file of known names; raise `FormatError` if the encoding is wrong."""
    number = 0
    try:
        for number, line in read_lines(source, encoding):
            yield number, line
    except FormatError as error:
        if not isinstance(error.__cause__, UnicodeError):
            raise
        raise FormatError(f"{source.name}:{number + 1}: not valid {encoding}; save the names as {encoding}") from None


def parse_known_name(values: object, place: str) -> KnownName:
    """Build a known name from ``(name, label)``, ``(name, label, strength)`` or a spaCy pattern.

    Args:
        values: The name.
        place: Place of the name, for error messages.

    Returns:
        The known name.

    Raises:
        ValueError: The name is malformed.
    """
    if isinstance(values, Mapping):
        keys = cast("Mapping[str, object]", values)
        if unknown := sorted(set(keys) - set(KEYS)):
            raise ValueError(f"{place}: unknown key {unknown[0]!r}; expected {', '.join(KEYS)}")
        pattern, label, strength = (keys.get(key) for key in ("pattern", "label", "strength"))
    elif isinstance(values, list | tuple) and 1 <= len(cast("Sequence[object]", values)) <= 3:
        pattern, label, strength = [*cast("Sequence[object]", values), None, None][:3]
    else:
        raise ValueError(f"{place}: {values!r} is not a name; expected (name, label) or a spaCy pattern")
    if not label or not isinstance(label, str) or label.split() != [label]:
        problem = "no label" if not label else f"the label {label!r} is not a single word"
        raise ValueError(f"{place}: {problem}; expected a label such as ORG")
    return KnownName(_pattern(pattern, place), label, _strength(strength, place), place)


def to_json_line(entry: KnownName) -> str:
    """Return a known name as one line of JSON text.

    Args:
        entry: A known name.
    """
    strength = None if entry.strength is None else HARD if entry.strength == math.inf else entry.strength
    values = {"label": entry.label, "pattern": entry.pattern, "strength": strength}
    return json.dumps({key: value for key, value in values.items() if value is not None}, ensure_ascii=False)


def _object(line: str, place: str) -> Mapping[str, Any]:
    try:
        values: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: {describe_json_error(error)}; expected one pattern on each line") from None
    if not isinstance(values, dict):
        raise ValueError(f"{place}: expected a JSON object, got a {type(values).__name__}; {FORMS}")
    return cast("Mapping[str, Any]", values)


def _columns(line: str, place: str, default_label: str | None) -> tuple[str, ...]:
    """Return the name, the label and, if present, the strength in a line of columns."""
    cells = tuple(cell.strip() for cell in line.split("\t"))
    if len(cells) == 1:
        cells = _split_cells(line, default_label) or (cells if default_label is None else (*cells, default_label))
    if len(cells) == 1 or len(cells) > 3:
        problem = "no tab" if len(cells) == 1 else f"{len(cells)} columns"
        advice = "; or put names of one label into a file with the name of the label, such as ORG.txt"
        raise ValueError(f"{place}: {problem} in {line[:40]!r}; {FORMS}{advice if len(cells) == 1 else ''}")
    return cells


def _split_cells(line: str, default_label: str | None) -> tuple[str, ...] | None:
    """Split a line at commas or semicolons; return None unless the last cell, or the one before it, is a label.

    The name before the label may contain the separator, as in ``Acme, Inc.,ORG``. In a file that is named after a
    label, such as ORG.txt, only this label is accepted: "Acme, LLC" is a name there.
    """
    for delimiter in ",;":
        try:
            row: list[str] = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True))
        except csv.Error:
            continue
        cells = tuple(cell.strip() for cell in row)
        ends_with_label = _LABEL.fullmatch(cells[-1]) and cells[-1] != "INF"  # a strength
        first = len(cells) - (1 if ends_with_label else 2)  # cell of the label; a strength may follow
        if first < 1 or not cells[0] or not _LABEL.fullmatch(cells[first]) or default_label not in (None, cells[first]):
            continue
        if first == 1:
            return cells
        if '"' not in line:
            return (line.rsplit(delimiter, len(cells) - first)[0].strip(), *cells[first:])
    return None


def _pattern(value: object, place: str) -> str | TokenPattern:
    if isinstance(value, str) and value.split():
        return value
    if isinstance(value, list) and value and all(isinstance(token, dict) for token in cast("list[object]", value)):
        return cast("TokenPattern", value)
    problem = "no name" if value is None or value in ("", []) else f"the pattern {value!r} is invalid"
    raise ValueError(f"{place}: {problem}; expected a name, or a token pattern such as [{{'LOWER': 'winam'}}]")


def _strength(value: object, place: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = math.inf if value == HARD else float(cast(Any, value))
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not number > -math.inf:
        raise ValueError(f"{place}: the strength {value!r} is not a number; expected log-odds such as 3, or {HARD}")
    return number
