"""Tagging a stream of documents in this process or in several, in order, with the same results."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from herdner.ner.document import Document

if TYPE_CHECKING:
    from herdner import Tagger
    from herdner.inference.backend import Backend

# A batch is sent to a process when it holds as many characters; large enough to hide the cost of sending.
BATCH_CHARACTERS = 200_000
BATCHES_IN_FLIGHT = 2  # per process


class Failure(NamedTuple):
    """A document that could not be tagged."""

    message: str


def tagged(
    tagger: Tagger,
    documents: Iterable[Document],
    *,
    backend: Backend,
    seed: int,
    jobs: int = 1,
    model: str = "en",
    fail: Callable[[str], None],
) -> Iterator[Document]:
    """The documents with their names, in order. One that cannot be tagged is handed to ``fail`` and left out.

    ``model`` is what further processes load. Document i has its own random numbers, however many processes there are.
    """
    work = enumerate(documents)
    results = (
        (_tag(tagger, i, document, backend, seed) for i, document in work)
        if jobs == 1
        else _in_processes(work, jobs, model, backend, seed)
    )
    for result in results:
        if isinstance(result, Failure):
            fail(result.message)
        else:
            yield result


def _tag(tagger: Tagger, i: int, document: Document, backend: Backend, seed: int) -> Document | Failure:
    try:
        return next(tagger.pipe([document], seed=seed, first=i, backend=backend))
    except (ValueError, MemoryError) as error:
        return Failure(f"{document.id or f'document {i + 1}'}: {str(error) or type(error).__name__}")


def _in_processes(
    work: Iterator[tuple[int, Document]], jobs: int, model: str, backend: Backend, seed: int
) -> Iterator[Document | Failure]:
    context = multiprocessing.get_context("spawn")  # a fork would copy whatever threads the libraries hold
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(model, backend, seed)) as pool:
        waiting: deque[Future[list[Document | Failure]]] = deque()
        try:
            for batch in _batches(work):
                waiting.append(pool.submit(_tag_batch, batch))
                if len(waiting) >= jobs * BATCHES_IN_FLIGHT:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _batches(work: Iterator[tuple[int, Document]]) -> Iterator[list[tuple[int, Document]]]:
    batch: list[tuple[int, Document]] = []
    size = 0
    for item in work:
        batch.append(item)
        size += len(item[1].text) + 100
        if size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# What a worker process holds: its tagger, backend and seed.
_worker: list = []


def _start(model: str, backend: Backend, seed: int) -> None:
    import herdner

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that reads and writes
    _worker[:] = [herdner.load(model), backend, seed]


def _tag_batch(batch: list[tuple[int, Document]]) -> list[Document | Failure]:
    tagger, backend, seed = _worker
    return [_tag(tagger, i, document, backend, seed) for i, document in batch]
