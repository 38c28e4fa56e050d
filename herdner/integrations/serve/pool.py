"""A pool of worker processes with a time limit for each request.

A compiled loop cannot be interrupted from outside, and a thread cannot be killed. Therefore each request runs in a
process, which is killed and replaced if the request exceeds its time limit.

The library pebble also kills tasks, but its time limit begins with the task instead of the request, and it cannot
reserve a worker for short requests.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from time import monotonic, sleep
from typing import Any, TypeVar

from herdner.base.checks import check_integer
from herdner.base.interrupts import block_interrupts
from herdner.integrations.serve.costs import LONG_SECONDS, QUEUE_PARTS
from herdner.integrations.serve.worker import DONE, REFUSED, ModelSource, run_worker
from herdner.ner.known_names import Names

_BYTES_PER_CHARACTER = 12  # JSON may write a character as two escapes, "\\ud83d\\ude00"
_BYTES_BESIDE_TEXT = 64 * 1024
_LOADING_SECONDS = 120.0  # time limit for loading the model
_POLL_SECONDS = 0.1  # interval between two checks of whether the client has disconnected
# Time that a request of a disconnected client may take to finish; starting a new process would take longer.
_GRACE_SECONDS = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the service for each request, such as its size and duration.

    Attributes:
        characters: Maximum length of a text.
        seconds: Time limit of a request, including waiting. A worker that exceeds it is killed.
        n_workers: Number of worker processes. Each needs about 200 MB for the model.
        n_waiting: Maximum number of waiting requests; further ones are refused.

    Raises:
        ValueError: A limit is out of its range.
    """

    characters: int = 100_000
    seconds: float = 20.0
    n_workers: int = 2
    n_waiting: int = 16

    def __post_init__(self) -> None:
        """Raise an error if a limit is out of range."""
        for name, minimum in (("characters", 1), ("n_workers", 1), ("n_waiting", 0)):
            check_integer(getattr(self, name), name, minimum)
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"`seconds` must be finite and positive, got {self.seconds!r}")

    @property
    def body_bytes(self) -> int:
        """Maximum size of the body of a request, in bytes."""
        return self.characters * _BYTES_PER_CHARACTER + _BYTES_BESIDE_TEXT


class PoolBusy(Exception):
    """Error: no worker was free in time, or too many requests are waiting."""


class RequestTimeout(Exception):
    """Error: a request exceeded its time limit."""


class RequestRefused(ValueError):
    """Error: a request is invalid. The message is for the client."""


class ClientGone(Exception):
    """Error: the client has disconnected."""


class WorkerFault(Exception):
    """Error: a worker has failed. The message is for the log."""


class WorkerEnded(WorkerFault):
    """Error: the process of a worker has ended."""


class Worker:
    """Worker process of the service, and the pipe to the process.

    Args:
        source: The model.
        names: Known names.
    """

    def __init__(self, source: ModelSource, names: Names | None = None) -> None:
        """Start the worker process, which loads the model."""
        context = multiprocessing.get_context("spawn")  # a fork would copy locks of other threads
        self._pipe, other_end = context.Pipe()
        self.process = context.Process(
            target=run_worker, args=(other_end, source, names), daemon=True, name="herdner serve"
        )
        with block_interrupts():
            self.process.start()
        other_end.close()  # otherwise the pipe would stay open when the process ends

    def about(self) -> dict[str, Any]:
        """Wait until the worker process has loaded the model, and return the description of the model.

        Raises:
            RequestRefused: The model cannot be loaded in time.
            WorkerFault: The process has failed.
        """
        if not self._pipe.poll(_LOADING_SECONDS):
            self.end()
            raise RequestRefused(f"loading the model took longer than {_LOADING_SECONDS:.0f} seconds; try again")
        return json.loads(self._receive())

    def answer(self, request: bytes, deadline: float, client_gone: threading.Event) -> bytes:
        """Send a request to the worker process, and return its answer.

        The process must be idle.

        Args:
            request: The request in JSON.
            deadline: Time limit on the monotonic clock.
            client_gone: Event that is set when the client disconnects.

        Raises:
            RequestTimeout: There is no answer at the deadline.
            ClientGone: The client has disconnected, and there is no answer shortly afterwards.
            RequestRefused: The request is invalid.
            WorkerFault: The process has failed.
            WorkerEnded: The process had ended before the request was sent.
        """
        try:
            self._pipe.send_bytes(request)
        except OSError:
            raise WorkerEnded("the worker process had ended before the request was sent") from None
        gone_since = math.inf
        while not self._pipe.poll(min(max(deadline - monotonic(), 0), _POLL_SECONDS)):
            if monotonic() >= deadline:
                raise RequestTimeout
            gone_since = min(gone_since, monotonic()) if client_gone.is_set() else gone_since
            if monotonic() > gone_since + _GRACE_SECONDS:
                raise ClientGone
        return self._receive()

    def end(self) -> None:
        """Kill the worker process.

        A thread that waits for its answer gets a `WorkerEnded` error.
        """
        self.process.kill()
        self.process.join()

    def _receive(self) -> bytes:
        try:
            answer = self._pipe.recv_bytes()
        except (EOFError, OSError):
            raise WorkerEnded("the worker process has ended, perhaps because of too little memory") from None
        status, content = answer[:1], answer[1:]
        if status == DONE:
            return content
        if status == REFUSED:
            raise RequestRefused(content.decode())
        raise WorkerFault(content.decode())


class IdleWorkers:
    """Idle workers, and the queue of requests that wait for a worker, ordered by cost.

    All methods are thread-safe.
    """

    def __init__(self) -> None:
        """Create a queue without workers and requests."""
        self._changed = threading.Condition()
        self._workers: list[Worker] = []
        self._places: list[tuple[float, int]] = []  # cost and number of each waiting request
        self._turned_away: set[tuple[float, int]] = set()
        self._numbers = count()

    def put(self, worker: Worker) -> None:
        """Add ``worker`` to the idle workers, and notify waiting requests.

        Args:
            worker: A worker whose process waits for a request.
        """
        with self._changed:
            self._workers.append(worker)
            self._changed.notify_all()

    def empty(self) -> bool:
        """Return True if no worker is idle."""
        return not self._workers

    @contextmanager
    def place(self, cost: float) -> Generator[tuple[float, int]]:
        """Hold a place in the queue for a request during a ``with`` block; earlier requests of equal cost come first.

        Args:
            cost: Estimated processing time of the request, in seconds.

        Yields:
            The place, for `get`.
        """
        with self._changed:
            place = cost, next(self._numbers)
            self._places.append(place)
        try:
            yield place
        finally:
            with self._changed:
                self._places.remove(place)
                self._turned_away.discard(place)
                self._changed.notify_all()

    def turn_away(self, cost: float) -> bool:
        """Refuse the waiting request with the highest cost, but only if its cost exceeds ``cost``.

        Args:
            cost: Estimated processing time of the new request, in seconds.

        Returns:
            True if a request was refused.
        """
        with self._changed:
            worst = max((each for each in self._places if each not in self._turned_away), default=(0.0, 0))
            if worst[0] <= cost:
                return False
            self._turned_away.add(worst)
            self._changed.notify_all()
            return True

    def get(self, place: tuple[float, int], seconds: float) -> Worker | None:
        """Wait until ``place`` is first in the queue and a worker is idle; return this worker.

        Args:
            place: Place of the request.
            seconds: Time limit.

        Returns:
            The worker, which is idle no longer; None if the time limit was reached.

        Raises:
            PoolBusy: The request was turned away.
        """

        def is_decided() -> bool:
            return place in self._turned_away or (bool(self._workers) and min(self._places) == place)

        with self._changed:
            decided = self._changed.wait_for(is_decided, timeout=seconds)
            if place in self._turned_away:
                raise PoolBusy
            return self._workers.pop(0) if decided else None


class Pool:
    """Pool of worker processes that have loaded the same model.

    All methods are thread-safe. The constructor waits until the first worker has loaded the model; the other workers
    start in the background.

    Args:
        source: The model.
        limits: Limits of requests.
        names: Known names.

    Attributes:
        about: Description of the model.
        workers: All workers, including workers that are still loading.

    Raises:
        ValueError: The model cannot be loaded.
    """

    def __init__(self, source: ModelSource, limits: Limits, names: Names | None = None) -> None:
        """Start the workers, and wait until the first worker has loaded the model."""
        self._source, self.limits, self._names = source, limits, names
        # Long requests never occupy the last worker, and slow requests leave a part of the queue to quicker requests.
        n_long = max(limits.n_workers - 1, 1)
        self.slots = threading.Semaphore(limits.n_workers + limits.n_waiting)
        self.shares: list[tuple[float, threading.Semaphore]] = []
        for cost, part in QUEUE_PARTS:
            n_running = n_long if cost == LONG_SECONDS else limits.n_workers
            self.shares.append((cost, threading.Semaphore(n_running + int(part * limits.n_waiting))))
        self._long_workers = threading.Semaphore(n_long)
        self.idle = IdleWorkers()
        self.workers: set[Worker] = set()
        self._lock, self._closed = threading.Lock(), False
        first = self._new_worker()
        for _ in range(limits.n_workers - 1):
            self._start_worker(ExitStack())
        try:
            self.about = first.about()
        except (ValueError, WorkerFault) as error:
            self.close()
            raise ValueError(str(error)) from None
        self.idle.put(first)

    def run(self, request: bytes, *, cost: float = 0.0, client_gone: threading.Event | None = None) -> bytes:
        """Return the answer of a worker process to a request.

        Args:
            request: The request in JSON.
            cost: Estimated seconds. Of the waiting requests, the one with the lowest cost is next. Requests of more
                than `LONG_SECONDS` never occupy all workers, if there are several.
            client_gone: Event that is set when the client disconnects. The request then does not start, or its worker
                is killed.

        Raises:
            PoolBusy: Too many requests are waiting, or no worker was free in time.
            RequestTimeout: There is no answer in time.
            ClientGone: The client has disconnected.
            RequestRefused: The request is invalid.
            WorkerFault: The worker has failed.
        """
        deadline, client_gone = monotonic() + self.limits.seconds, client_gone or threading.Event()
        with ExitStack() as slots, ExitStack() as until_replaced:
            for semaphore in (share for bound, share in self.shares if cost > bound):
                if not semaphore.acquire(blocking=False):
                    raise PoolBusy
                slots.callback(semaphore.release)
            # In a full queue a request takes the place of a request with a higher cost, which is turned away.
            while not self.slots.acquire(blocking=False):
                if not self.idle.turn_away(cost):
                    raise PoolBusy
                if self.slots.acquire(timeout=_POLL_SECONDS):  # otherwise another request has taken the place
                    break
            slots.callback(self.slots.release)
            if cost > LONG_SECONDS:
                _wait(deadline, client_gone, lambda seconds: self._long_workers.acquire(timeout=seconds))
                until_replaced.callback(self._long_workers.release)
                # If there are several workers, the request now waits with cost 0: others cannot delay it forever.
                cost = 0.0 if self.limits.n_workers > 1 else cost
            with self.idle.place(cost) as place:
                worker = _wait(deadline, client_gone, lambda seconds: self.idle.get(place, seconds))
            try:
                answer = worker.answer(request, deadline, client_gone)
            except (RequestTimeout, ClientGone, WorkerEnded):
                self._replace(worker, until_replaced.pop_all())
                raise
            except (RequestRefused, WorkerFault):
                self.idle.put(worker)
                raise
            self.idle.put(worker)
            return answer

    def close(self) -> None:
        """End all workers. Running requests fail."""
        with self._lock:
            self._closed = True
            workers = list(self.workers)
            self.workers.clear()
        for worker in workers:
            worker.end()

    def _replace(self, worker: Worker, until_replaced: ExitStack) -> None:
        """End a worker process and start a new worker process.

        The context ``until_replaced`` is closed when the new process is ready.
        """
        with self._lock:
            self.workers.discard(worker)
        worker.end()
        self._start_worker(until_replaced)

    def _start_worker(self, until_ready: ExitStack) -> None:
        thread = threading.Thread(
            target=self._add_worker, args=(until_ready,), daemon=True, name="herdner serve: start"
        )
        thread.start()

    def _add_worker(self, until_ready: ExitStack) -> None:
        """Start a worker process, and add the process to the idle workers when it has loaded the model.

        Then the context ``until_ready`` is closed.
        """
        with until_ready:
            while not self._closed:
                try:
                    worker = self._new_worker()
                    worker.about()
                except (WorkerFault, RequestRefused, OSError):  # killed, or too little memory: try again
                    sleep(1)
                else:
                    self.idle.put(worker)
                    return

    def _new_worker(self) -> Worker:
        worker = Worker(self._source, self._names)
        with self._lock:
            if not self._closed:
                self.workers.add(worker)
                return worker
        worker.end()
        raise WorkerEnded("the service has ended")


def _wait(deadline: float, client_gone: threading.Event, wait: Callable[[float], T | None]) -> T:
    """Call ``wait`` repeatedly with short time limits until it returns a true value, and return this value.

    Raises `PoolBusy` at the deadline, and `ClientGone` if the client has disconnected.
    """
    while not (result := wait(min(max(deadline - monotonic(), 0), _POLL_SECONDS))):
        if client_gone.is_set():
            raise ClientGone
        if monotonic() >= deadline:
            raise PoolBusy
    return result
