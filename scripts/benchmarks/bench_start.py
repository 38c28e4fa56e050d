"""Processor time of the start of herdner's commands, compared with the start of Python.

    python scripts/benchmarks/bench_start.py [--repeats 7] [--json]

The table shows the processor time (user and system) of whole processes: the shortest of several interleaved runs of
each command. The first run of each command, which may write bytecode, is excluded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import typer
from timing import AsJson, Repeats, Row, report

LINE = "Ada Lovelace met Charles Babbage in London.\n"
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import herdner": ["-c", "import herdner"],
    "herdner --help": ["-m", "herdner", "--help"],
    "a wrong option": ["-m", "herdner", "tag", "--wrong"],
    "herdner tag, one line": ["-m", "herdner", "tag", "line.txt"],
}
TARGETS = {"herdner tag, one line": 0.8}  # seconds


def cpu_seconds(arguments: list[str], folder: Path) -> float:
    """Return the processor time of one process in seconds, even if the process fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    quiet = subprocess.DEVNULL
    before = os.times()
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, check=False
    )
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


def start_rows(repeats: int) -> list[Row]:
    """Return a row with the processor time of each command."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "line.txt").write_text(LINE, encoding="utf-8")
        runs = [[cpu_seconds(each, Path(folder)) for each in COMMANDS.values()] for _ in range(repeats + 1)][1:]
    least = dict(zip(COMMANDS, map(min, zip(*runs, strict=True)), strict=True))
    return [
        Row("start", what, value=seconds, unit="s of CPU", target=TARGETS.get(what), wanted="at most")
        for what, seconds in least.items()
    ]


def main(repeats: Repeats = 7, as_json: AsJson = False) -> None:
    """Measure the processor time of the start of herdner's commands."""
    report({"start": lambda: start_rows(repeats)}, False, as_json)


if __name__ == "__main__":
    typer.run(main)
