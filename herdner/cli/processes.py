"""Tagging of a stream of documents in several processes, with the same results and order as in one."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from herdner.base.interrupts import block_interrupts
from herdner.ner.streams import Batch, batches
from herdner.text.document import Document, Failure

if TYPE_CHECKING:
    from herdner.ner.inference import Inference

BATCHES_IN_FLIGHT = 2  # for each process


def tag_in_processes(
    documents: Iterable[Document | Failure], jobs: int, model: str, inference: Inference, seed: int, first: int = 0
) -> Iterator[Document | Failure]:
    """Tag documents in several processes, and yield the results in the order of the documents.

    Args:
        documents: Documents to tag.
        jobs: Number of processes. Each loads the model.
        model: Name or path of the model.
        inference: Options of tagging.
        seed: Random seed.
        first: Index of the first document in the run.

    Yields:
        Tagged documents and failures, in the order of the documents.

    Raises:
        ChildProcessError: A process was killed.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
    with _signals_deferred():
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_load, initargs=(model, inference, seed))
    pending: deque[Future[list[Document | Failure]]] = deque()
    try:
        for batch in batches(documents, first, sys.maxsize):  # a batch hides the cost of sending it to a process
            with _signals_deferred():
                pending.append(pool.submit(_tag_batch, batch))
            if len(pending) >= jobs * BATCHES_IN_FLIGHT:
                yield from pending.popleft().result()
        while pending:
            yield from pending.popleft().result()
    except BaseException as error:
        # An interrupted executor could wait forever for its workers, so they are terminated. `herdner.cli.main` ends
        # the process even if the executor still waits for them.
        for worker in multiprocessing.active_children():
            worker.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            message = f"a process was killed, perhaps because memory ran out; use fewer than {jobs} --jobs"
            raise ChildProcessError(message) from None
        raise
    pool.shutdown()


@contextmanager
def _signals_deferred() -> Generator[None]:
    """Deliver SIGINT and SIGTERM only after the ``with`` block, so that they cannot interrupt a process start."""
    if threading.current_thread() is not threading.main_thread():  # other threads receive no signals
        yield
        return
    received: list[int] = []
    handlers = {
        each: signal.signal(each, lambda number, _: received.append(number)) for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with block_interrupts():
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in received:
            signal.raise_signal(number)


# State of a worker process: a function that tags a list of items.
_worker: list[Callable[..., Iterator[Document | Failure]]] = []


def _load(model: str, inference: Inference, seed: int) -> None:
    import herdner

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the main process
    _worker[:] = [partial(herdner.load(model).outcomes, inference=inference, seed=seed)]


def _tag_batch(batch: Batch) -> list[Document | Failure]:
    items = batch.sources if batch.failure is None else [batch.failure]
    return list(_worker[0](items, first=batch.first))
