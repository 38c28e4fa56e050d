"""Worker processes with a time limit that holds.

A compiled loop cannot be stopped from outside, and a thread cannot be ended. So each request is worked on in a process,
which is killed, and replaced by a new one, when the time is up.

Not by pebble, which ends tasks too: its time begins with the task and not with the request, and it keeps no worker for
what is short.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable
from contextlib import ExitStack
from queue import Empty, Queue
from time import monotonic, sleep
from typing import Any, TypeVar

from herdner.base.interrupts import block_interrupts
from herdner.integrations.serve.limits import Limits
from herdner.integrations.serve.work import DONE, REFUSED, Source, work
from herdner.ner.known_names import Names

_LOADING = 120.0  # seconds that a model may take to load when the server starts
_LOOK = 0.1  # seconds after which a thread that waits looks whether anybody still does
_GRACE = 1.0  # seconds that work without anybody waiting may go on: a new process takes longer


T = TypeVar("T")


class Busy(Exception):
    """All processes were at work until the time was up, or too many requests wait already."""


class OutOfTime(Exception):
    """The work was not done in time, and was ended."""


class Refused(ValueError):
    """The request cannot be carried out as it is; the message says why."""


class Gone(Exception):
    """Nobody waits for the answer any more."""


class Fault(Exception):
    """The worker failed; the message is for the log alone."""


class Ended(Fault):
    """The worker's process is no more."""


class Worker:
    """One process and the pipe to it."""

    def __init__(self, source: Source, names: Names | None = None) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy whatever threads and locks there are
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, source, names), daemon=True, name="herdner serve")
        with block_interrupts():
            self._process.start()
        theirs.close()  # so that this end is told when the process ends

    def about(self, deadline: float) -> dict[str, Any]:
        """What the process says of its model once it has loaded it; ValueError where that is not by the deadline."""
        if not self._pipe.poll(max(deadline - monotonic(), 0)):
            self.end()
            raise Refused(f"the model was not loaded within {_LOADING:.0f} seconds")
        return json.loads(self._received())

    def answer(self, request: bytes, deadline: float, gone: threading.Event) -> bytes:
        """The answer to a request; the process must be ready. Gone where that event is set for a second before."""
        try:
            self._pipe.send_bytes(request)
        except OSError:
            raise Ended("the worker process has ended") from None
        left = float("inf")
        while not self._pipe.poll(min(max(deadline - monotonic(), 0), _LOOK)):
            if monotonic() >= deadline:
                raise OutOfTime
            left = min(left, monotonic()) if gone.is_set() else left
            if monotonic() > left + _GRACE:
                raise Gone
        return self._received()

    def end(self) -> None:
        """Kills the process, whatever it does; a thread that waits for it is told by the pipe."""
        self._process.kill()
        self._process.join()

    def _received(self) -> bytes:
        try:
            answer = self._pipe.recv_bytes()
        except (EOFError, OSError):
            raise Ended("the worker process has ended, perhaps for want of memory") from None
        kind, content = answer[:1], answer[1:]
        if kind == DONE:
            return content
        if kind == REFUSED:
            raise Refused(content.decode())
        raise Fault(content.decode())


class Pool:
    """Workers that have loaded one model; safe to use from many threads.

    Waits for the first of them; ValueError, in one line, where the model cannot be loaded.
    """

    def __init__(self, source: Source, limits: Limits, names: Names | None = None) -> None:
        self._source, self._limits, self._names = source, limits, names
        self._places = threading.Semaphore(limits.n_workers + limits.n_waiting)
        # What takes long leaves a worker, and half of the queue, to what does not.
        self._long_places = threading.Semaphore(max(limits.n_workers - 1, 1) + limits.n_waiting // 2)
        self._long = threading.Semaphore(max(limits.n_workers - 1, 1))
        self._idle: Queue[Worker] = Queue()
        self._all: set[Worker] = set()
        self._lock, self._closed = threading.Lock(), False
        first = self._worker()
        for _ in range(limits.n_workers - 1):
            self._hire(ExitStack())
        try:
            self.about = first.about(monotonic() + _LOADING)
        except (ValueError, Fault) as error:
            self.close()
            raise ValueError(str(error)) from None
        self._idle.put(first)

    def run(self, request: bytes, *, is_long: bool = False, gone: threading.Event | None = None) -> bytes:
        """The answer of a worker, within the time limit, waiting included. Requests that are said to take long are not
        given all workers at a time. ``gone`` is set when nobody waits for the answer any more: the request is not
        begun, or its worker ended. Raises Busy, OutOfTime, Gone, Refused or Fault.
        """
        deadline, gone = monotonic() + self._limits.seconds, gone or threading.Event()
        with ExitStack() as stack, ExitStack() as held:
            for places in (self._places, *([self._long_places] if is_long else ())):
                if not places.acquire(blocking=False):
                    raise Busy
                stack.callback(places.release)
            if is_long:
                if not _until(deadline, gone, lambda seconds: self._long.acquire(timeout=seconds)):
                    raise Busy
                held.callback(self._long.release)
            return self._run(request, deadline, gone, held)

    def close(self) -> None:
        """Ends all workers; requests that they work on fail."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
            self._all.clear()
        for worker in workers:
            worker.end()

    def _run(self, request: bytes, deadline: float, gone: threading.Event, held: ExitStack) -> bytes:
        worker = _until(deadline, gone, self._next)
        if worker is None:
            raise Busy
        try:
            answer = worker.answer(request, deadline, gone)
        except (OutOfTime, Gone, Ended):
            self._replace(worker, held.pop_all())
            raise
        except (Refused, Fault):
            self._idle.put(worker)
            raise
        self._idle.put(worker)
        return answer

    def _next(self, seconds: float) -> Worker | None:
        try:
            return self._idle.get(timeout=seconds)
        except Empty:
            return None

    def _replace(self, worker: Worker, held: ExitStack) -> None:
        """What is held is given back when there is a new one: nobody else is to wait for that."""
        with self._lock:
            self._all.discard(worker)
        worker.end()
        self._hire(held)

    def _hire(self, held: ExitStack) -> None:
        threading.Thread(target=self._introduce, args=(held,), daemon=True, name="herdner serve: hiring").start()

    def _introduce(self, held: ExitStack) -> None:
        """A new worker, which is idle once it has loaded its model."""
        with held:
            while not self._closed:
                try:
                    worker = self._worker()
                    worker.about(monotonic() + _LOADING)
                except (Fault, Refused, OSError):  # killed, or no memory for it: there may be some in a moment
                    sleep(1)
                else:
                    self._idle.put(worker)
                    return

    def _worker(self) -> Worker:
        worker = Worker(self._source, self._names)
        with self._lock:
            if not self._closed:
                self._all.add(worker)
                return worker
        worker.end()
        raise Ended("the service has ended")


def _until(deadline: float, gone: threading.Event, wait: Callable[[float], T]) -> T | None:
    """What is waited for, in short steps; None where it does not come by the deadline, Gone where nobody wants it."""
    while not (found := wait(min(max(deadline - monotonic(), 0), _LOOK))):
        if gone.is_set():
            raise Gone
        if monotonic() >= deadline:
            return None
    return found
