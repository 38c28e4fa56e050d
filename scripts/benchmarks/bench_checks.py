"""Share of checks and copies at the entry of compiled functions in the time of `Tagger.pipe`, by Linux's perf.

    python scripts/benchmarks/bench_checks.py --corpus ../shared/data/ner/conll2003/eng.testa:conll2003

A child process tags the corpus repeatedly, and perf samples its stacks. A sample counts as a check if a function of the
stack makes or releases a copy for a compiled object (`cython_ext/memory.pyx`) or looks for invalid values. Checks that
the compiler puts into their callers are not counted.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

import herdner

CHECKS = re.compile(r"_ext_6memory_|check_|_fault|count_bad")


def tag(path: str, form: str, model: str) -> None:
    """Tag the documents of a file until the process is killed; print a line when tagging begins."""
    tagger, documents = herdner.load(model), list(herdner.read_documents(path, form))
    print("ready", flush=True)
    while True:
        list(tagger.pipe([document.with_entities([]) for document in documents]))


def main(
    corpus: Annotated[str, typer.Option(help="FILE:FORMAT of the documents.")],
    model: Annotated[str, typer.Option(help="Name or file of the model.")] = "en",
    seconds: Annotated[float, typer.Option(help="Time of sampling.")] = 20.0,
    child: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Print the share of samples in checks, and the functions with the most samples."""
    path, _, form = corpus.rpartition(":")
    if child:
        tag(path, form, model)
    call = [sys.executable, __file__, "--corpus", corpus, "--model", model, "--child"]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        data = str(Path(folder) / "perf.data")
        assert process.stdout is not None
        process.stdout.readline()
        record = ["perf", "record", "-q", "-F", "499", "--call-graph", "dwarf,8192", "-p", str(process.pid), "-o", data]
        subprocess.run([*record, "--", "sleep", str(seconds)], check=True)
        process.kill()
        shown = subprocess.run(
            ["perf", "script", "-i", data, "-F", "ip,sym,dso"], capture_output=True, text=True, check=True
        ).stdout
    stacks = [stack for stack in shown.split("\n\n") if stack.strip()]
    found: Counter[str] = Counter()
    for stack in stacks:
        names = [line.split()[1] for line in stack.splitlines() if "/herdner/_ext/" in line and CHECKS.search(line)]
        found.update(names[-1:])
    for name, count in found.most_common(10):
        print(f"{100 * count / len(stacks):6.2f} % {name}")
    print(f"{100 * sum(found.values()) / len(stacks):.2f} % of {len(stacks)} samples are checks and copies")


if __name__ == "__main__":
    typer.run(main)
