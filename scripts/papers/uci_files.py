"""Tables of the UCI repository that a user has downloaded: Covertype and YearPredictionMSD (FWSS18 Sec. 5).

covtype.data: 581,012 lines of 54 features and the cover type, 1 to 7. YearPredictionMSD.txt: 515,345 lines of a year
and 90 features. Numbers are apart by commas; a file may be packed by gzip.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

_PIECE = 10_000  # lines that are text at one time
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Format:
    """What a table looks like: ``target``, its column, which holds whole numbers from ``low`` to ``high``."""

    file: str
    columns: int
    rows: int
    target: int
    low: int
    high: int


FORMATS = {
    "covtype": Format("covtype.data", 55, 581_012, 54, 1, 7),
    "year": Format("YearPredictionMSD.txt", 91, 515_345, 0, 1900, 2100),
}


def read_uci(path: str | Path, name: str) -> np.ndarray:
    """float32[N, D + 1]: the table, the target last; 4 bytes a number, and no more than 10,000 lines of text at a time.

    SystemExit with one line that names the file and the line, where it is none of ``name``'s.
    """
    path, form = Path(path), FORMATS[name]
    found, n = np.empty((form.rows, form.columns), np.float32), 0
    try:
        with _opened(path) as stream:
            for first, piece in _pieces(stream):
                rows = _numbers(piece, form, path, first)
                if n + len(rows) > len(found):
                    found = np.concatenate([found, np.empty_like(found)])
                found[n : n + len(rows)] = np.roll(rows, -form.target - 1, axis=1)
                n += len(rows)
    except (OSError, EOFError, zlib.error) as error:
        raise SystemExit(f"{path}: cannot be read as {form.file}: {error}") from None
    if not n:
        raise SystemExit(f"{path}: is empty; {form.file} has {form.rows:,} lines")
    if n != form.rows:
        print(f"{path}: {n:,} lines, where {form.file} has {form.rows:,}")
    return found[:n]


def _opened(path: Path) -> IO[str]:
    with path.open("rb") as stream:
        start = stream.read(4)
    if start[:2] == b"PK":
        raise SystemExit(f"{path}: is a zip archive; unpack it first")
    if start[:2] == b"\x1f\x8b":
        return gzip.open(path, "rt", encoding="ascii", errors="replace")
    return path.open(encoding="ascii", errors="replace")


def _pieces(stream: IO[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines, and the number of the first."""
    first = 1
    while piece := list(islice(stream, _PIECE)):
        yield first, piece
        first += len(piece)


def _numbers(lines: list[str], form: Format, path: Path, first: int) -> np.ndarray:
    """[lines, columns]: of lines that are all as they should be."""
    try:
        rows = np.loadtxt(lines, np.float32, delimiter=",", comments=None, ndmin=2)
        targets = rows[:, form.target] if rows.shape == (len(lines), form.columns) else np.empty(0)
        whole = (targets == np.rint(targets)) & (targets >= form.low) & (targets <= form.high)
        if targets.size and whole.all() and np.isfinite(rows).all():
            return rows
    except ValueError:
        pass
    at, why = next((at, why) for at, line in enumerate(lines) if (why := _wrong(line, form)))
    raise SystemExit(f"{path}, line {first + at}: {why}; this is no {form.file}, or it is damaged")


def _wrong(line: str, form: Format) -> str:
    """What is wrong with a line; empty where it is as it should be."""
    words = line.strip().split(",")
    if not line.strip():
        return f"empty, in place of {form.columns} numbers"
    if len(words) != form.columns:
        return f"{len(words)} numbers in place of {form.columns}"
    for word in words:
        try:
            fine = "_" not in word and abs(float(word)) <= _LARGEST  # Python's own underscores are none here
        except ValueError:
            fine = False
        if not fine:
            return f"{word[:20]!r} is no number"
    target = float(words[form.target])
    inside = target.is_integer() and form.low <= target <= form.high
    return "" if inside else f"the target is {words[form.target]}, not one of {form.low} to {form.high}"
