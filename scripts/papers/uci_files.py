"""Reader of two downloaded tables of the UCI repository: Covertype and YearPredictionMSD (FWSS18, Sec. 5).

covtype.data has 581,012 lines of 54 features and the cover type, 1 to 7. YearPredictionMSD.txt has 515,345 lines of a
year and 90 features. Numbers are separated by commas; files with the extension .gz are compressed.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Format:
    """Format of a table, whose column ``target`` contains integers from ``low`` to ``high``."""

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
    """Return the table ``name``, float32[rows, D + 1], target last; raise `SystemExit` if the file is another one."""
    path, form = Path(path), FORMATS[name]
    if zipfile.is_zipfile(path):
        raise SystemExit(f"{path}: is a zip archive; extract it first")
    try:
        rows = np.loadtxt(path, np.float32, delimiter=",", comments=None, ndmin=2)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise SystemExit(f"{path}: cannot be read as {form.file}: {error}") from None
    if rows.shape[1] != form.columns:
        raise SystemExit(f"{path}: expected {form.columns} numbers per line as in {form.file}, got {rows.shape[1]}")
    targets = rows[:, form.target]
    valid = (
        (targets == np.rint(targets)) & (targets >= form.low) & (targets <= form.high) & np.isfinite(rows).all(axis=1)
    )
    if not valid.all():
        problem = f"expected finite numbers, and a target from {form.low} to {form.high}"
        raise SystemExit(f"{path}, line {valid.argmin() + 1}: {problem}; the file is not {form.file}, or it is damaged")
    if len(rows) != form.rows:
        print(f"{path}: {len(rows):,} lines; {form.file} has {form.rows:,}")
    return np.roll(rows, -form.target - 1, axis=1) if form.target + 1 < form.columns else rows
