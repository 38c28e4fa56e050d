"""CPU time and elapsed time of reading, tagging and writing with several threads, as in ``herdner tag --jobs``.

    python scripts/benchmarks/bench_jobs.py --corpus FILE:FORMAT --repeats 5

The script reads and writes documents as JSON lines, as ``herdner tag`` does. Runs with different numbers of threads are
interleaved, and the table shows the shortest run of each.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Annotated

import typer

import herdner
from herdner.corpora.formats import read_items, write_documents
from herdner.corpora.reading import read
from herdner.evaluation.tabular import markdown_table
from herdner.text.document import Document, Failure


def seconds() -> tuple[float, float]:
    """Return the elapsed time and the CPU time of this process, in seconds."""
    return time.perf_counter(), time.process_time()


def documents_of(results: Iterable[Document | Failure]) -> Iterator[Document]:
    """Yield the documents of a stream of results that contains no failures."""
    for result in results:
        assert isinstance(result, Document)
        yield result


def main(
    corpus: Annotated[str, typer.Option(help="Corpus of the texts, as FILE:FORMAT.")],
    model: Annotated[str, typer.Option(help="Name or file of the model.")] = "en",
    jobs: Annotated[int, typer.Option(help="Number of threads.")] = 2,
    copies: Annotated[int, typer.Option(help="Number of copies of the corpus in a run.")] = 10,
    repeats: Annotated[int, typer.Option(min=1)] = 3,
) -> None:
    """Print a table with a row for each backend, length of documents and number of threads."""
    tagger = herdner.load(model)
    whole = [document.text for document in read(corpus) if document.text.strip()]
    lines = [line for text in whole for line in text.splitlines() if line.strip()]
    samplers = max(1, len(whole) // 20)
    tasks = {
        "default, documents": (tagger.inference(), whole * copies),
        "default, lines": (tagger.inference(), lines * copies),
        "herded-gibbs, documents": (tagger.inference(backend="herded-gibbs", n_sweeps=200), whole[:samplers]),
    }
    rows: list[list[str]] = []
    for name, (inference, texts) in tasks.items():
        data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
        runs = {
            "1": partial(tagger.outcomes, inference=inference),
            str(jobs): partial(tagger.outcomes, inference=inference, n_jobs=jobs),
        }
        best: dict[str, list[float]] = {kind: [float("inf")] * 2 for kind in runs}
        for _ in range(repeats):
            for kind, run in runs.items():
                start = seconds()
                items = read_items(io.BytesIO(data), "jsonl", "utf-8")
                write_documents(documents_of(run(items)), io.BytesIO(), "jsonl")
                measured = [end - begin for begin, end in zip(start, seconds(), strict=True)]
                best[kind] = [min(pair) for pair in zip(best[kind], measured, strict=True)]
        for kind, (elapsed, cpu) in best.items():
            base = best["1"]
            cells = [f"{cpu:.2f}", f"{cpu / base[1]:.2f}", f"{elapsed:.2f}", f"{base[0] / elapsed:.2f}"]
            rows.append([name, kind, *cells])
            print(name, kind, *cells, file=sys.stderr)
    print(markdown_table(["task", "threads", "CPU s", "CPU ratio", "elapsed s", "speed-up"], rows))


if __name__ == "__main__":
    typer.run(main)
