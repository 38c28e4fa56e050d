"""Runs fuzz cases in a child process. A case that ends the process or takes too long is a finding with a number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

TESTS = Path(__file__).resolve().parents[1]
MEMORY = Path("/dev/shm")
SECONDS = 60.0  # limit for one case
START_SECONDS = 300.0


@dataclass(frozen=True)
class Finding:
    """A failed case. ``python -m tests.fuzz TARGET --first NUMBER --cases 1`` repeats it."""

    target: str
    number: int
    what: str

    def __str__(self) -> str:
        return f"{self.target} {self.number}: {self.what}"


@dataclass
class Outcome:
    """Number of cases, counts of their ends ("done" or the name of the exception), and findings."""

    cases: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


@dataclass
class Deadline:
    """End of the time of a target. The time begins with the first line of a child, so starting takes none of it."""

    seconds: float
    at: float = float("inf")

    def begin(self) -> None:
        """Begin the time, unless it has begun already."""
        if self.at == float("inf"):
            self.at = time.monotonic() + self.seconds


def fuzz(target: str, first: int, n: int, *, limit: float = float("inf"), seconds: float = SECONDS) -> Outcome:
    """Run up to ``n`` cases of a target, from case ``first`` on, for ``limit`` seconds in child processes.

    A new child continues after a finding.
    """
    found, deadline = Outcome(), Deadline(limit)
    at = first
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        while at < first + n and time.monotonic() < deadline.at:
            known = found.cases
            at = _child(target, at, first + n, deadline, seconds, folder, found)
            if found.cases == known:  # the child did not start, and another one would not start either
                break
    return found


def _child(target: str, at: int, end: int, deadline: Deadline, seconds: float, folder: str, found: Outcome) -> int:
    """Run cases in one child process, whose files are in the folder; return the next case."""
    command = [sys.executable, "-m", "fuzz.child", target, str(at), str(end)]
    path = os.pathsep.join([str(TESTS), str(TESTS / "support"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    environment["TMPDIR"] = folder
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True, errors="replace", cwd=TESTS
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        spoken: list[str] = []
        listener = Thread(target=lambda stream: spoken.extend(stream), args=(child.stderr,))
        listener.start()
        last = _Watched(time.monotonic(), False)
        watch = Thread(target=_end_late, args=(child, last, deadline, seconds), daemon=True)
        watch.start()
        running = at
        for line in child.stdout:
            last.heard = time.monotonic()
            deadline.begin()
            word, _, rest = line.partition(" ")
            last.ready = True
            if word == "end" and rest.endswith("\n"):  # a killed child may leave an incomplete line
                running += 1
                found.cases += 1
                found.ends[rest[:-1]] += 1
            elif word == "finding":
                found.findings.append(Finding(target, running, rest.rstrip("\n")))
        child.wait()
        listener.join()
        if child.returncode == 0 or last.is_over:
            return running if last.is_over else end
        what = f"took more than {seconds:g} s" if last.late else f"ended the process ({child.returncode})"
        found.findings.append(
            Finding(target, running, what + "".join(f"\n    {line.rstrip()}" for line in spoken[-60:]))
        )
        found.cases += last.ready
        return running + 1


@dataclass
class _Watched:
    heard: float
    is_over: bool  # the total time is over
    ready: bool = False
    late: bool = False


def _end_late(child: subprocess.Popen[str], last: _Watched, deadline: Deadline, seconds: float) -> None:
    while child.poll() is None:
        time.sleep(0.2)
        now = time.monotonic()
        last.late = now - last.heard > (seconds if last.ready else START_SECONDS)
        last.is_over = now > deadline.at and not last.late
        if last.late or last.is_over:
            with suppress(OSError, subprocess.TimeoutExpired):
                if last.late and sys.platform != "win32":  # on this signal Python prints the traceback of each thread
                    child.send_signal(signal.SIGABRT)
                    child.wait(5)
            with suppress(OSError):
                child.kill()
            return


def shared_out(
    targets: list[str], minutes: float, first: int, seconds: float = SECONDS
) -> Iterator[tuple[str, Outcome]]:
    """Run each target for an equal part of the time, with any number of cases."""
    for target in targets:
        yield target, fuzz(target, first, 10**9, limit=60 * minutes / len(targets), seconds=seconds)
