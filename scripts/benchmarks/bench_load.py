"""Waiting time of a short request to `herdner serve` while 32 clients send the dearest requests that are allowed.

``python scripts/benchmarks/bench_load.py`` starts a server and prints a row for each kind of request: the number of
responses of the clients by HTTP status, the median and longest time in which a request of 12 characters was answered,
and how many of the short requests were refused or had no response within a minute. The kinds are the longest text and
the longest text below each cost at which the queue of the service changes (``herdner.integrations.serve.costs``), for
each backend; texts with all backends that a request may name; a thousand texts; explanations; and files with as many
entities as the body of a request may contain.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from herdner.inference.registry import BACKENDS
from herdner.integrations.serve.costs import QUEUE_PARTS
from herdner.integrations.serve.pool import Limits
from herdner.integrations.serve.schema import MAX_BACKENDS, MAX_TEXTS, TagRequest

DENSE = "Ada Lovelace met Bob Babbage in Rome. "  # as many links as a usual text can have
SHORT = json.dumps({"text": "In Kenya now"}).encode()
N_CLIENTS = 32
MOST = Limits().characters - 1

Address = tuple[str, int]


class Kind(NamedTuple):
    """Kind of a costly request: a name for the table, the path of the service, and the body."""

    name: str
    path: str
    body: bytes


class Load(NamedTuple):
    """Statuses of the costly requests, and seconds and statuses of the short requests beside them."""

    statuses: Counter[int]
    waits: list[float]
    short: Counter[int]

    @property
    def row(self) -> str:
        """The measurement as the end of a row of the table."""
        statuses = " ".join(f"{status or 'none'}: {n}" for status, n in sorted(self.statuses.items()))
        silent, refused = self.short[0], self.short.total() - self.short[200] - self.short[0]
        waits = f"{statistics.median(self.waits):>8.2f}{max(self.waits):>8.2f}"
        return f"{waits}{refused:>9}{silent:>9}  {statuses}"


def post(address: Address, path: str, body: bytes, seconds: float = 60.0) -> int:
    """Send a request, read the whole response, and return its status; 0 is no response."""
    client = http.client.HTTPConnection(*address, timeout=seconds)
    try:
        client.request("POST", path, body, {"Content-Type": "application/json"})
        response = client.getresponse()
        response.read()
        return response.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        client.close()


@contextmanager
def server(*options: str) -> Generator[Address]:
    """Start `herdner serve` on a free port, and yield its address when it has answered a request."""
    command = [sys.executable, "-m", "herdner", "serve", "--port", "0", *options]
    # In another folder, so that Python imports the installed package.
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tempfile.gettempdir()) as process:
        try:
            assert process.stderr is not None
            address = "127.0.0.1", int(process.stderr.readline().rpartition(":")[2].split()[0])
            assert post(address, "/api/tag", SHORT) == 200
            yield address
        finally:
            process.terminate()


def tag_body(text: str, *backends: str | None) -> bytes:
    """Return the body of a request to tag a text with one or more backends."""
    choices = [{"backend": backend, "links": backend != "viterbi"} for backend in backends]
    return json.dumps({"text": text, "backends": choices}).encode()


def dearest(bound: float, backend: str) -> str:
    """Return the longest text whose request has an estimated cost of at most ``bound``."""
    low, high = 1, MOST
    while low < high:
        n = (low + high + 1) // 2
        cost = TagRequest.model_validate_json(tag_body("x" * n, backend)).cost
        low, high = (n, high) if cost <= bound else (low, n - 1)
    return (DENSE * (low // len(DENSE) + 1))[:low]


def kinds(backends: list[str]) -> Iterator[Kind]:
    """Yield all kinds of costly requests."""
    for backend in backends:
        for bound in (float("inf"), *(bound for bound, _ in QUEUE_PARTS)):
            text = dearest(bound, backend)
            if TagRequest.model_validate_json(tag_body(text, backend)).cost > bound:
                continue
            yield Kind(f"{backend}, {len(text):,} characters", "/api/tag", tag_body(text, backend))
    text = (DENSE * MOST)[:MOST]
    yield Kind("8 backends", "/api/tag", tag_body(text, *list(BACKENDS)[:MAX_BACKENDS]))
    texts = [text[i : i + MOST // MAX_TEXTS] for i in range(0, MOST, MOST // MAX_TEXTS)][:MAX_TEXTS]
    yield Kind(f"{MAX_TEXTS} texts", "/api/tag", json.dumps({"texts": texts}).encode())
    yield Kind("explanation", "/api/explain", json.dumps({"text": text, "start": 0, "end": 12}).encode())
    for format in ("html", "label-studio", "parquet", "spacy"):
        entities = [{"start": i, "end": i + 1, "label": "A"} for i in range(0, 60_000, 2)]
        body = json.dumps(
            {"text": text[:60_000], "entities": entities, "format": format}, separators=(",", ":")
        ).encode()
        yield Kind(f"file, {format}, {len(entities):,} entities", "/api/file", body)


def measure(address: Address, kind: Kind, n_short: int = 20, n_clients: int = N_CLIENTS) -> Load:
    """Send costly requests from ``n_clients`` clients, and ``n_short`` short requests one after the other."""
    stop, statuses = threading.Event(), Counter[int]()

    def ask() -> None:
        while not stop.is_set():
            status = post(address, kind.path, kind.body)
            statuses[status] += 1
            if status != 200:
                stop.wait(0.05)

    waits, short = list[float](), Counter[int]()
    with ThreadPoolExecutor(max(n_clients, 1)) as clients:
        for _ in range(n_clients):
            clients.submit(ask)
        try:
            stop.wait(1.0)
            for _ in range(n_short):
                stop.wait(0.2)
                began = time.monotonic()
                short[post(address, "/api/tag", SHORT)] += 1
                waits.append(time.monotonic() - began)
        finally:
            stop.set()
    return Load(statuses, waits, short)


def main() -> None:
    """Print a row for each kind of request."""
    parser = argparse.ArgumentParser(description="Wait of short requests beside costly ones.")
    parser.add_argument("--backends", nargs="*", default=list(BACKENDS), help="backends to measure")
    parser.add_argument("--short", type=int, default=20, help="number of short requests beside each kind")
    options = parser.parse_args()
    print(f"{'costly requests':<42}{'median':>8}{'longest':>8}{'refused':>9}{'silent':>9}  statuses", flush=True)
    with server() as address:
        print(f"{'none':<42}{measure(address, Kind('none', '', b''), options.short, n_clients=0).row}", flush=True)
        for kind in kinds(options.backends):
            print(f"{kind.name:<42}{measure(address, kind, options.short).row}", flush=True)


if __name__ == "__main__":
    main()
