"""Speed and memory of tagging by the processes of a Dask cluster, compared with a single process.

    python scripts/benchmarks/bench_distributed.py --corpus eng.testa:conll2003 --megabytes 32

The texts of the corpus, repeated, form one long text file in a temporary folder. A cluster of one process and a cluster
of ``--jobs`` processes tag the file; starting the clusters is not timed. The runs of both clusters are interleaved, and
the table shows the shortest run of each. Memory is the largest resident set of a worker process since its start
(Linux). ``--no-baseline`` omits the cluster of one process.
"""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from timing import AsJson, Repeats, Row, best_times, report

from herdner.corpora.reading import read
from herdner.integrations.dask import cluster_client, tag_files

MEGABYTE = 1 << 20


def peak_megabytes() -> float:
    """Return the peak memory, in megabytes, of the worker process that calls this function."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_text(path: Path, corpus: str, size: int) -> int:
    """Write the texts of a corpus repeatedly, up to ``size`` bytes, and return the number of texts."""
    text = "\n\n".join(document.text for document in read(corpus))
    with path.open("w", encoding="utf-8") as file:
        count = 0
        while file.tell() < size:
            count += 1
            file.write(f"Copy {count}.\n\n{text}\n\n")
    return path.stat().st_size


def main(
    corpus: Annotated[str, typer.Option(help="Corpus whose texts are repeated, as FILE:FORMAT.")],
    megabytes: Annotated[int, typer.Option(help="Size of the text file, in megabytes.")] = 32,
    jobs: Annotated[int, typer.Option(help="Number of processes of the larger cluster.")] = 2,
    part_megabytes: Annotated[int, typer.Option(help="Size, in megabytes, of each part of the file.")] = 2,
    repeats: Repeats = 3,
    baseline: Annotated[bool, typer.Option(help="Also measure a cluster of one process.")] = True,
    as_json: AsJson = False,
) -> None:
    """Measure the speed and memory of tagging by a Dask cluster, compared with a single process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corpus.txt")
        size = write_text(path, corpus, megabytes * MEGABYTE) / MEGABYTE
        runs = iter(range(1000))

        def tag(n: int) -> None:
            manifest = tag_files(
                path, Path(folder, str(next(runs))), client=clients[n], part_bytes=part_megabytes << 20
            )
            assert manifest.complete
            assert not manifest.failed

        with cluster_client("local", 1) as one, cluster_client("local", jobs) as many:
            clients = {jobs: many, **({1: one} if baseline else {})}
            times = best_times({str(n): lambda n=n: tag(n) for n in clients}, repeats)
            peaks: Any = many.run(peak_megabytes)
    rows = [
        Row("distributed", f"{name} processes", value=size / seconds, unit="MB/s") for name, seconds in times.items()
    ]
    if baseline:
        ratio = times["1"] / times[str(jobs)]
        rows.append(Row("distributed", f"{jobs} processes", value=ratio, unit="times one process", target=1.7))
    rows.append(
        Row("distributed", "memory of a process", value=max(peaks.values()), unit="MB", target=700.0, wanted="at most")
    )
    report({"all": lambda: rows}, False, as_json, f"; {size:.0f} MB of text")


if __name__ == "__main__":
    typer.run(main)
