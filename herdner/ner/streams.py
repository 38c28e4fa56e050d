"""Streams of texts and documents: cut into batches, worked on by threads, handed out in order."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from herdner.text.document import Document, Failure

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
U = TypeVar("U")
TextOrDocument = str | Document
Item = TextOrDocument | Failure

# Longer batches save no more time, and what is read ahead stays small.
BATCH_CHARACTERS = 80_000
BATCHES_WAITING = 3  # for each thread: with one less it stood still when the calling thread was long at work


class Batch(NamedTuple):
    """Consecutive texts or documents and the number of the first; or what could not be read, and its number."""

    first: int
    sources: list[TextOrDocument]
    failure: Failure | None = None

    def halves(self) -> list[Batch]:
        """Two smaller ones; this one alone where that would cost more than it saves."""
        middle = len(self.sources) // 2
        if not middle or sum(map(_length, self.sources)) < BATCH_CHARACTERS // 2:
            return [self]
        return [Batch(self.first, self.sources[:middle]), Batch(self.first + middle, self.sources[middle:])]


def _length(source: TextOrDocument) -> int:
    return len(source) if isinstance(source, str) else len(source.text)


def batches(sources: Iterable[object], first: int, most: int) -> Iterator[Batch]:
    """Batches of at most ``most``, each closed when it holds `BATCH_CHARACTERS`; numbers begin at ``first``.

    A `Failure`, which has its number too, is a batch of its own. What was read before ``sources`` raised is handed out
    before the exception goes on.
    """
    if isinstance(sources, str | bytes | Document):
        raise TypeError("pipe takes many texts or documents; tag takes one")
    held: list[TextOrDocument] = []
    size = 0
    try:
        for source in sources:
            if isinstance(source, Failure):
                yield from [Batch(first, held)] if held else []
                yield Batch(first + len(held), [], source)
                first, held, size = first + len(held) + 1, [], 0
                continue
            if not isinstance(source, str | Document):
                raise TypeError(f"expected a text or a herdner Document, not {type(source).__name__}")
            size += _length(source)
            held.append(source)
            if size >= BATCH_CHARACTERS or len(held) == most:
                yield Batch(first, held)
                first, held, size = first + len(held), [], 0
    except Exception:
        if held:
            yield Batch(first, held)
        raise
    if held:
        yield Batch(first, held)


def ordered(
    function: Callable[[T], U], items: Iterable[T], n_jobs: int, halves: Callable[[T], list[T]] = lambda item: [item]
) -> Iterator[U]:
    """``map(function, items)``, by ``n_jobs`` threads, each with `BATCHES_WAITING` items read ahead.

    The calling thread is one of them: another one that only waits would take part in the hunt for the interpreter.
    Near the end they share the work by ``halves``: then an item has a result for each of its halves.
    """
    if n_jobs == 1:
        yield from map(function, items)
        return
    most = n_jobs * BATCHES_WAITING
    waiting: deque[tuple[T, Future[U]]] = deque()
    items, fault = iter(items), None
    pool, is_closed = ThreadPoolExecutor(n_jobs - 1, "herdner"), False
    try:
        while fault is None:
            try:
                while sum(not future.done() for _, future in waiting) <= most - BATCHES_WAITING:
                    item = next(items)
                    waiting.append((item, pool.submit(function, item)))
            except Exception as error:  # StopIteration, or what the reader of the items met: behind what is under way
                fault = error
            _took_over(function, waiting, pool, n_jobs, halves)
            while waiting and (fault is not None or waiting[0][1].done() or len(waiting) > most):
                while not waiting[0][1].done() and _took_over(function, waiting, pool, n_jobs, halves):
                    pass
                yield waiting.popleft()[1].result()
    except GeneratorExit:
        is_closed = True
        raise
    finally:
        # Python closes a stream that nobody holds any more wherever the collector of garbage finds it, also where a
        # thread that begins holds the lock that is needed to wait for one: nothing may be waited for then.
        pool.shutdown(wait=not is_closed, cancel_futures=True)
    if not isinstance(fault, StopIteration):
        raise fault


def _took_over(
    function: Callable[[T], U], waiting: deque[tuple[T, Future[U]]], pool: ThreadPoolExecutor, n_jobs: int,
    halves: Callable[[T], list[T]],
) -> bool:  # fmt: skip
    """Does the first item that no thread has begun with, or half of it where others would soon have none; whether there
    was one.
    """
    for i, (item, future) in enumerate(waiting):
        if future.cancel():
            if sum(not (later.running() or later.done()) for _, later in waiting) < n_jobs - 1:
                item, *rest = halves(item)
                for half in rest:
                    waiting.insert(i + 1, (half, pool.submit(function, half)))
            waiting[i] = item, _done(function, item)
            return True
    return False


def _done(function: Callable[[T], U], item: T) -> Future[U]:
    """The result, as a thread of a pool would give it."""
    future: Future[U] = Future()
    try:
        future.set_result(function(item))
    except Exception as error:
        future.set_exception(error)
    return future


async def awaited(
    function: Callable[[int, T], U], items: Iterable[T] | AsyncIterable[T], first: int, n_jobs: int
) -> AsyncIterator[U]:
    """``function(number, item)`` of each item, in their order, by at most ``n_jobs`` threads at a time."""
    import asyncio  # late: it takes as long as reading a model

    waiting: deque[asyncio.Task[U]] = deque()
    number = first
    try:
        async for item in _asynchronous(items):
            waiting.append(asyncio.create_task(asyncio.to_thread(function, number, item)))
            number += 1
            if len(waiting) == n_jobs:
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()


async def _asynchronous(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    for item in items:
        yield item


def kept_apart(pairs: Iterable[tuple[T, U]], contexts: deque[U]) -> Iterator[T]:
    """The first of each pair; the second waits in ``contexts``. TypeError for what is no pair."""
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"as_tuples: expected pairs of a text or document and a context, not {type(pair).__name__}")
        contexts.append(pair[1])
        yield pair[0]
