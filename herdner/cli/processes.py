"""Tagging a stream of documents in several processes: in order, with the results of one."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from herdner.base.interrupts import block_interrupts
from herdner.text.document import Document, Failure

if TYPE_CHECKING:
    from herdner.ner.inference import Inference

# A batch is sent to a process when it holds as many characters; large enough to hide the cost of sending.
BATCH_CHARACTERS = 200_000
BATCHES_IN_FLIGHT = 2  # per process


def in_processes(
    documents: Iterable[Document | Failure], jobs: int, model: str, inference: Inference, seed: int
) -> Iterator[Document | Failure]:
    """`Tagger.outcomes` with these options, by as many processes, each of which loads the model."""
    context = multiprocessing.get_context("spawn")  # a fork would copy whatever threads the libraries hold
    with _uninterrupted():
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(model, inference, seed))
    waiting: deque[Future[list[Document | Failure]]] = deque()
    try:
        for first, batch in _batches(documents):
            with _uninterrupted():
                waiting.append(pool.submit(_tag_batch, batch, first))
            if len(waiting) >= jobs * BATCHES_IN_FLIGHT:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    except BaseException as error:
        # Nobody wants the rest. Interrupted in the wrong moment, an executor waits for ever for workers that wait for
        # work, and at exit for a queue that nobody empties; so the workers are ended, and nothing is waited for.
        if (queue := getattr(pool, "_call_queue", None)) is not None:
            queue.cancel_join_thread()
        for worker in multiprocessing.active_children():
            worker.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            message = f"a process was killed, perhaps for want of memory; use less than {jobs} jobs"
            raise ChildProcessError(message) from None
        raise
    pool.shutdown()


@contextmanager
def _uninterrupted() -> Generator[None]:
    """Ctrl-C and a polite kill wait until what is begun here is done, such as the start of a process."""
    if threading.current_thread() is not threading.main_thread():  # where signals do not arrive
        yield
        return
    came: list[int] = []
    old = {each: signal.signal(each, lambda number, _: came.append(number)) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with block_interrupts():
            yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def _batches(documents: Iterable[Document | Failure]) -> Iterator[tuple[int, list[Document | Failure]]]:
    """Lists of documents, each with the number of its first."""
    batch: list[Document | Failure] = []
    first = size = 0
    for document in documents:
        batch.append(document)
        size += 100 if isinstance(document, Failure) else len(document.text) + 100
        if size >= BATCH_CHARACTERS:
            yield first, batch
            first, batch, size = first + len(batch), [], 0
    if batch:
        yield first, batch


# What a worker process holds: tags items, the first of which has the number ``first``.
_worker: list[Callable[..., Iterator[Document | Failure]]] = []


def _start(model: str, inference: Inference, seed: int) -> None:
    import herdner

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that reads and writes
    _worker[:] = [partial(herdner.load(model).outcomes, inference=inference, seed=seed)]


def _tag_batch(batch: list[Document | Failure], first: int) -> list[Document | Failure]:
    return list(_worker[0](batch, first=first))
