"""``python tests/serve/hostile.py --requests 10000``: a flood of hostile requests against a real server, while normal
ones go on. Exit status 1 where one of those waits for more than two seconds, or is answered what it should not be.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx

Address = tuple[str, int]
TEXT = "Ada Lovelace met Charles Babbage in Kenya."
PATIENCE = 2.0  # seconds for a normal request


def raw(address: Address, data: bytes, wait: float = 2.0) -> bytes:
    """What the server says to these bytes, as far as it does within a while."""
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
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


def attack(address: Address, n: int, seed: int, found: Counter[str], findings: list[str]) -> None:
    rng = random.Random(seed)
    for _ in range(n):
        which = rng.randrange(len(HOSTILE))
        data = HOSTILE[which](rng)
        try:
            answer = raw(address, data, wait=0.2 if which in (14, 17) else 2.0)
        except OSError as error:  # not even a connection: told with the others
            found[type(error).__name__] += 1
            continue
        status = STATUS.match(answer)
        found[status[1].decode() if status else "ended" if not answer else "other"] += 1
        if b"Traceback" in answer or (status and status[1] == b"500"):
            findings.append(f"{data[:200]!r}: {answer[:300]!r}")


def normal(address: Address, stop: threading.Event, waits: list[float], findings: list[str]) -> None:
    """One client that asks for a text of its own, again and again."""
    number = 0
    url = f"http://{address[0]}:{address[1]}"
    while not stop.is_set():
        number += 1
        text = f"{TEXT} Case {number}."
        began = time.monotonic()
        try:
            answer = httpx.post(f"{url}/api/tag", json={"text": text}, timeout=30)
        except httpx.HTTPError as error:
            findings.append(f"a normal request failed: {error!r}")
            continue
        waits.append(time.monotonic() - began)
        if answer.status_code != 200 or answer.json()["n_characters"] != len(text):
            findings.append(f"a normal request was answered {answer.status_code}: {answer.text[:200]}")
        stop.wait(0.05)


def own_texts(address: Address, n: int, findings: list[str]) -> Counter[int]:
    """So many clients at once, each with a text of its own: none gets another's answer."""
    url = f"http://{address[0]}:{address[1]}"
    together = threading.Barrier(n)

    def ask(i: int) -> int:
        text = f"Person{i} Smith met Bob. " + "So it was. " * (i % 13)
        together.wait()
        for _ in range(60):
            try:
                answer = httpx.post(f"{url}/api/tag", json={"text": text}, timeout=60)
            except httpx.HTTPError:  # more connections than it takes of one address
                time.sleep(0.5)
                continue
            if answer.status_code != 503:
                break
            time.sleep(0.5)
        else:
            return 503
        if answer.status_code == 200:
            given = answer.json()
            names = [entity["text"] for entity in given["results"][0]["entities"]]
            wrong = given["n_characters"] != len(text) or any(name not in text for name in names)
            if wrong:
                findings.append(f"client {i} got another's answer: {answer.text[:200]}")
        return answer.status_code

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
        return judged(("127.0.0.1", port), options.requests, options.clients, options.patience)
    finally:
        server.terminate()
        server.wait(30)


def judged(address: Address, n_requests: int, n_clients: int, patience: float) -> int:
    found: Counter[str] = Counter()
    findings: list[str] = []
    waits: list[float] = []
    stop = threading.Event()
    client = threading.Thread(target=normal, args=(address, stop, waits, findings))
    client.start()
    n_threads = 8
    with ThreadPoolExecutor(n_threads) as attackers:
        for k in range(n_threads):
            attackers.submit(attack, address, n_requests // n_threads, k, found, findings)
    stop.set()
    client.join()
    answered = own_texts(address, n_clients, findings)
    late = sum(wait > patience for wait in waits)
    print(f"{sum(found.values())} hostile requests: {dict(sorted(found.items()))}")
    slowest = max(waits, default=0.0)
    print(f"{len(waits)} normal ones meanwhile, the slowest after {slowest:.2f} s, {late} after {patience:g} s")
    print(f"{n_clients} clients at once: {dict(answered)}")
    for finding in findings[:20]:
        print(f"  {finding}")
    print(f"{len(findings)} findings")
    return 1 if findings or late else 0


if __name__ == "__main__":
    sys.exit(main())
