"""``python tests/integrations/serve/hostile.py --requests 10000``: a flood of hostile requests against a real server,
while normal ones go on.
Exit status 1 where one of those waits for more than two seconds, or is answered what it should not be.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Address = tuple[str, int]
TEXT = "Ada Lovelace met Charles Babbage in Kenya."
PATIENCE = 2.0  # seconds for a normal request


def raw(address: Address, data: bytes, wait: float = 2.0) -> bytes:
    """Return the response of the server to these bytes, as far as it arrives in time."""
    with socket.create_connection(address, timeout=wait) as client:
        try:
            client.sendall(data)
            return client.recv(65_536)
        except OSError:
            return b""


def post(body: bytes, *headers: str, host: str = "localhost", path: str = "/api/tag") -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def asked(text: str, **more: object) -> bytes:
    return json.dumps({"text": text, **more}).encode()


COSTLY = {"backends": [{"backend": "gibbs", "options": {"n_sweeps": 100_000}}]}
HOSTILE: list[Callable[[random.Random], bytes]] = [
    lambda rng: rng.randbytes(rng.randint(1, 2000)),
    lambda rng: post(rng.randbytes(200)),
    lambda rng: post(b"[" * 50_000),
    lambda rng: post(asked(TEXT), host=rng.choice(["evil.example", "", "a" * 3000, "[::1", "localhost\0"])),
    lambda rng: post(asked(TEXT), "Content-Length: 5"),
    lambda rng: post(asked("x"), "Transfer-Encoding: chunked"),
    lambda rng: b"POST /api/tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    lambda rng: b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: " + b"a" * 100_000,
    lambda rng: b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
    lambda rng: post(asked(TEXT, seed=-1)),
    lambda rng: post(asked(TEXT, backends=[{"backend": "gibbs", "options": {"n_sweeps": 10**9}}])),
    lambda rng: post(asked(TEXT, backends=["gibbs"] * 1000)),
    lambda rng: post(asked("\ud800" * 50)),
    lambda rng: post(asked(TEXT, start=-1, end=2**70), path="/api/explain"),
    lambda rng: post(asked("Ada met Bob in Rome. " * 400, **COSTLY)),  # and leaves
    lambda rng: b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    lambda rng: b"BREW /api/tag HTCPCP/1.0\r\n\r\n",
    lambda rng: b"",
]
LEAVING = (14, 17)  # what takes long, and what asks nothing
ATTACKERS = 8
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


def attack(address: Address, n: int, seed: int, found: Counter[str], spent: Counter[int], findings: list[str]) -> None:
    rng = random.Random(seed)
    for _ in range(n):
        which = rng.randrange(len(HOSTILE))
        data = HOSTILE[which](rng)
        began = time.monotonic()
        try:
            answer = raw(address, data, wait=0.2 if which in LEAVING else 2.0)
        except OSError as error:  # not even a connection: reported with the others
            found[type(error).__name__] += 1
            continue
        finally:
            spent[which] += round(1000 * (time.monotonic() - began))
        status = STATUS.match(answer)
        found[status[1].decode() if status else "ended" if not answer else "other"] += 1
        if b"Traceback" in answer or (status and status[1] == b"500"):
            findings.append(f"{data[:200]!r}: {answer[:300]!r}")


def tagged(address: Address, text: str, seconds: float) -> tuple[int, dict[str, Any]]:
    """Status and content of the answer to a text. Raises OSError or HTTPException where there is none.

    By Python's own client: httpx reads the certificates of the whole web for each, 35 ms of processor time.
    """
    client = http.client.HTTPConnection(*address, timeout=seconds)
    try:
        client.request("POST", "/api/tag", asked(text), {"Content-Type": "application/json"})
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        client.close()


@dataclass
class Normal:
    """Clients that ask for texts of their own, one request after the other, while something else goes on."""

    waits: list[float] = field(default_factory=list)
    turned_away: int = 0  # refused at once: all processes are busy, and their queue is full

    def ask(self, address: Address, stop: threading.Event, findings: list[str]) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            text = f"{TEXT} Case {number}."
            began = time.monotonic()
            try:
                status, answer = tagged(address, text, 30)
            except (OSError, http.client.HTTPException) as error:
                findings.append(f"a normal request failed: {error!r}")
                continue
            self.waits.append(time.monotonic() - began)
            self.turned_away += status == 503
            if status != 503 and (status != 200 or answer["n_characters"] != len(text)):
                findings.append(f"a normal request was answered {status}: {answer!s:.200}")
            stop.wait(0.05)

    def summary(self, patience: float) -> str:
        late = sum(wait > patience for wait in self.waits)
        slowest = max(self.waits, default=0.0)
        return (
            f"{len(self.waits)} normal requests meanwhile, the slowest after {slowest:.2f} s,"
            f" {late} after {patience:g} s, {self.turned_away} turned away"
        )


@contextmanager
def normal_ones(address: Address, findings: list[str]) -> Generator[Normal]:
    found, stop = Normal(), threading.Event()
    client = threading.Thread(target=found.ask, args=(address, stop, findings))
    client.start()
    try:
        yield found
    finally:
        stop.set()
        client.join()


def own_texts(address: Address, n: int, findings: list[str]) -> Counter[str]:
    """So many clients at once, each with a text of its own: none gets another's answer. Those that are turned away ask
    again.
    """
    together = threading.Barrier(n)

    def ask(i: int) -> str:
        text = f"Person{i} Smith met Bob. " + "So it was. " * (i % 13)
        together.wait()
        for _ in range(200):
            try:
                status, given = tagged(address, text, 60)
            except (OSError, http.client.HTTPException):  # more connections than it takes of one address
                status, given = 503, {}
            if status != 503:
                break
            time.sleep(0.5)
        if status == 200:
            names = [entity["text"] for entity in given["results"][0]["entities"]]
            if given["n_characters"] != len(text) or any(name not in text for name in names):
                findings.append(f"client {i} got another's answer: {given!s:.200}")
        return str(status)

    with ThreadPoolExecutor(n) as clients:
        return Counter(clients.map(ask, range(n)))


def main() -> int:
    parser = argparse.ArgumentParser(description="Hostile requests against herdner serve.")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=500, help="at once, each with a text of its own")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds for a normal request")
    options = parser.parse_args()
    command = [sys.executable, "-m", "herdner", "serve", "--port", "0", "--time-limit", "10"]
    # Elsewhere, as the folder of the repository would be imported and not what is installed.
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tempfile.gettempdir())
    try:
        assert server.stderr is not None
        port = int(server.stderr.readline().rpartition(":")[2].split()[0])
        # From here on nobody reads what it says, as where a log is full: that must not stop it.
        return evaluate(("127.0.0.1", port), options.requests, options.clients, options.patience)
    finally:
        server.terminate()
        server.wait(30)


def evaluate(address: Address, n_requests: int, n_clients: int, patience: float) -> int:
    found: Counter[str] = Counter()
    spent: Counter[int] = Counter()
    findings: list[str] = []
    began = time.monotonic()
    with normal_ones(address, findings) as during, ThreadPoolExecutor(ATTACKERS) as attackers:
        shares = [range(k, n_requests, ATTACKERS) for k in range(ATTACKERS)]
        for each in [
            attackers.submit(attack, address, len(share), k, found, spent, findings) for k, share in enumerate(shares)
        ]:
            each.result()
    print(f"{sum(found.values())} hostile requests in {time.monotonic() - began:.0f} s: {dict(sorted(found.items()))}")
    print(
        f"seconds by kind, of {ATTACKERS} clients together: " + ", ".join(f"{k}: {spent[k] / 1000:.0f}" for k in spent)
    )
    print(during.summary(patience))
    began = time.monotonic()
    with normal_ones(address, findings) as later:
        answered = own_texts(address, n_clients, findings)
    print(f"{n_clients} clients at once: {dict(answered)} in {time.monotonic() - began:.0f} s")
    print(later.summary(patience))
    for finding in findings[:20]:
        print(f"  {finding}")
    print(f"{len(findings)} findings")
    return 1 if findings or during.turned_away or max(during.waits + later.waits, default=0.0) > patience else 0


if __name__ == "__main__":
    sys.exit(main())
