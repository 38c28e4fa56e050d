"""Lines of the compiled modules that a run reached: ``python tests/fuzz/coverage.py BUILD``, after .ci/coverage."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "cython_ext"
MARK = re.compile(r'/\* "([\w/]+\.(?:pyx|pxd))":(\d+)$')  # Cython writes the line of its source before the C lines
Lines = dict[str, dict[int, int]]  # number of executions by file and line


def cython_lines(path: Path) -> list[tuple[str, int] | None]:
    """Return the file and line of the Cython source of each line of a C file."""
    found: list[tuple[str, int] | None] = [None]
    place: tuple[str, int] | None = None
    for line in path.read_text("utf-8", "replace").splitlines():
        if mark := MARK.search(line):
            place = mark[1], int(mark[2])
        elif line.startswith("}") or line == "  /* function exit code */":
            place = None
        found.append(place)
    return found


def executions(build: Path) -> Lines:
    """Return the executions of each line of C and Cython, from the counters of a build with ``-Db_coverage=true``."""
    found: Lines = defaultdict(lambda: defaultdict(int))
    for notes in sorted(build.rglob("*.gcno")):
        command = ["gcov", "--json-format", "--stdout", "-o", str(notes.parent), str(notes)]
        output = subprocess.run(command, cwd=build, capture_output=True, text=True, check=True).stdout
        for report in map(json.loads, output.splitlines()):
            for file in report["files"]:
                add(found, (build / file["file"]).resolve(), file["lines"])
    return found


def add(found: Lines, path: Path, lines: Iterable[Mapping[str, int]]) -> None:
    """Add the executions of the lines of a C file; those of a file that Cython wrote count for the Cython source."""
    if path.suffix == ".c" and not path.is_relative_to(SOURCES):
        places = cython_lines(path)
        for line in lines:
            place = places[line["line_number"]]
            if place and (SOURCES / place[0]).exists():
                found[place[0]][place[1]] += line["count"]
    elif path.is_relative_to(SOURCES):
        for line in lines:
            found[str(path.relative_to(SOURCES))][line["line_number"]] += line["count"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Report the lines of compiled modules that a run reached.")
    parser.add_argument("build", type=Path, help="folder of a build with -Db_coverage=true")
    parser.add_argument("--list", action="store_true", help="print the lines that were not reached")
    options = parser.parse_args()
    total = n_reached = 0
    for name, lines in sorted(executions(options.build).items()):
        missed = sorted(line for line, count in lines.items() if not count)
        total, n_reached = total + len(lines), n_reached + len(lines) - len(missed)
        print(f"{name}: {100 * (1 - len(missed) / len(lines)):.1f} % of {len(lines)} lines")
        source = (SOURCES / name).read_text("utf-8").splitlines()
        for line in missed if options.list else ():
            print(f"  {line}: {source[line - 1].strip()}")
    print(f"all: {100 * n_reached / max(total, 1):.1f} % of {total} lines")
    return 0 if total else 1


if __name__ == "__main__":
    sys.exit(main())
