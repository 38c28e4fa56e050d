"""Size and start-up time of the packages that an installation for tagging contains.

    python scripts/benchmarks/bench_install.py [--repeats 7]

For herdner and each package that it requires, the table shows the size of its files, and the time of its imports
(``python -X importtime``, shortest of several runs): when Python tags a line with `herdner.load("en")`, and
when `herdner tag` tags it. Run the script in an environment that contains nothing but ``pip install .``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import typer
from timing import Repeats

from herdner.evaluation.tabular import markdown_table

LINE = "Ada Lovelace met Charles Babbage in London.\n"
PROGRAMS = {
    "Python": ["-c", f"import herdner; herdner.load('en').tag({LINE!r}).entities"],
    "`herdner tag`": ["-m", "herdner", "tag", "line.txt"],
}
NAME = re.compile(r"[\w.-]+")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required_packages() -> dict[str, str]:
    """Map herdner and all packages that it requires without extras to the package that requires them."""
    packages = {"herdner": ""}
    for package in (names := ["herdner"]):
        for requirement in distribution(package).requires or ():
            match = NAME.match(requirement)
            name = normalised(match[0]) if match else ""
            marker = requirement.partition(";")[2]
            if name not in packages and "extra" not in marker and is_installed(name):
                packages[name] = package
                names.append(name)
    return packages


def is_installed(name: str) -> bool:
    try:
        return bool(distribution(name))
    except ModuleNotFoundError:
        return False


def megabytes(package: str) -> float:
    """Return the size of the files of an installed package, with bytecode."""
    paths = (Path(str(file.locate())) for file in distribution(package).files or ())
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


def import_milliseconds(arguments: list[str], folder: str) -> dict[str, float]:
    """Return the time that a program takes to import the modules of each package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    owners, times = packages_distributions(), defaultdict[str, float](float)
    for microseconds, module in re.findall(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", run.stderr, re.M):
        for owner in owners.get(module.partition(".")[0], ()):
            times[normalised(owner)] += int(microseconds) / 1000
    return times


def main(repeats: Repeats = 7) -> None:
    """Print the size and the import time of each package."""
    packages = required_packages()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "line.txt").write_text(LINE, encoding="utf-8")
        runs = [[import_milliseconds(each, folder) for each in PROGRAMS.values()] for _ in range(repeats + 1)][1:]
    rows, total = [], [0.0] * (1 + len(PROGRAMS))
    for package in sorted(packages, key=megabytes, reverse=True):
        size, *times = megabytes(package), *(min(run[k][package] for run in runs) for k in range(len(PROGRAMS)))
        total = [a + b for a, b in zip(total, (size, *times), strict=True)]
        rows.append([package, packages[package], f"{size:.1f}", *(f"{time:.0f}" for time in times)])
    rows.append(["all", "", *(f"{value:.0f}" for value in total)])
    print(markdown_table(("package", "required by", "MB", *(f"ms, {name}" for name in PROGRAMS)), rows))


if __name__ == "__main__":
    typer.run(main)
