"""Streams of texts and documents: split into batches, tagged by threads, and returned in order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from herdner.base.seeds import child
from herdner.ner.decode import Decoder
from herdner.ner.identity import assign_name_ids
from herdner.ner.inference import Inference
from herdner.ner.known_names import Finder
from herdner.ner.known_names.evidence import Evidence
from herdner.text.document import Document, Failure
from herdner.text.tokenize import Tokenizer, with_tokens

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
U = TypeVar("U")
DocumentOrTokens = Document | Sequence[str] | Sequence[Sequence[str]]
TextOrDocument = str | Document
Item = TextOrDocument | Failure

BATCH_CHARACTERS = 40_000  # longer batches take more time, because the system clears new memory for each of them
BATCHES_WAITING = 3  # batches that wait for each thread; with two, threads ran idle while the calling thread was busy
_INVALID_TOKEN = re.compile(r"[ \t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]|\A\s*\Z")


class Batch(NamedTuple):
    """Consecutive texts or documents of a stream; or one `Failure`, which stands for a document that cannot be read."""

    first: int
    sources: list[TextOrDocument]
    failure: Failure | None = None

    def halves(self) -> list[Batch]:
        """Split the batch into two halves.

        A batch that is too short to save time by a split is returned as a single item.

        Returns:
            Two batches, or the batch itself.
        """
        middle = len(self.sources) // 2
        if not middle or sum(map(_length, self.sources)) < BATCH_CHARACTERS // 2:
            return [self]
        return [Batch(self.first, self.sources[:middle]), Batch(self.first + middle, self.sources[middle:])]


def _length(source: TextOrDocument) -> int:
    return len(source) if isinstance(source, str) else len(source.text)


def as_document(source: object) -> Document:
    """Return a document unchanged, and convert a list of tokens or of tokenized sentences to a document.

    Args:
        source: A document, a list of strings (the tokens of one sentence), or a list of lists of strings.

    Raises:
        TypeError: The value has another type.
        ValueError: A token is empty, consists of white space only, or contains a space, tab or line break. No-break
            spaces (U+00A0, U+202F) are allowed within a token, as in "10 000" in French corpora.
    """
    if isinstance(source, Document):
        return source
    if isinstance(source, list | tuple):
        parts: Any = source  # pyright: ignore[reportUnknownVariableType]
        is_sentence = all(isinstance(part, str) for part in parts)
        if is_sentence or all(isinstance(part, list | tuple) for part in parts):
            document = Document.from_tokens([parts] if is_sentence else parts)
            if (text := next(filter(_INVALID_TOKEN.search, document.tokens), None)) is not None:
                raise ValueError(
                    f"a token must be a word without spaces and line breaks, got {text!r:.60}; use `pipe` for a list of"
                    " texts"
                )
            return document
    value: Any = source  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str):  # `tag` and `pipe` have tokenized their texts before
        raise TypeError(
            "expected a herdner Document, a list of tokens or a list of tokenized sentences, got the text"
            f" {value!r:.60}; tokenize texts first, as by herdner.Tokenizer()"
        )
    is_missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    is_missing = is_missing or (isinstance(value, float) and value != value)
    got = f"the missing value {value}; use an empty text" if is_missing else type(value).__name__
    raise TypeError(f"expected a text, a herdner Document, a list of tokens or of tokenized sentences, got {got}")


def batches(sources: Iterable[object], first: int, most: int) -> Iterator[Batch]:
    """Split a stream of texts or documents into batches of at most ``most`` items and `BATCH_CHARACTERS` characters.

    Only the last item of a batch may exceed the limit of characters. The items are numbered from ``first``. A `Failure`
    forms a separate batch. If ``sources`` raises an exception, the sources before it are yielded first.

    Args:
        sources: Texts, documents and failures.
        first: Index of the first item.
        most: Largest number of items in a batch.

    Returns:
        Iterator over the batches.

    Raises:
        TypeError: ``sources`` is a single text or document, or a table.
    """
    if isinstance(sources, str | bytes | Document):
        raise TypeError(
            f"`pipe` expects an iterable of texts or documents, got a single {type(sources).__name__}; use `tag` for a"
            " single text or document"
        )
    if isinstance(sources, Mapping) or hasattr(sources, "columns"):  # iteration may yield the names of columns
        raise TypeError(
            f"`pipe` expects an iterable of texts or documents, got a {type(cast('object', sources)).__name__};"
            ' pass one column, as in data["text"]'
        )
    batch: list[TextOrDocument] = []
    size = 0
    try:
        for source in sources:
            if isinstance(source, Failure):
                yield from [Batch(first, batch)] if batch else []
                yield Batch(first + len(batch), [], source)
                first, batch, size = first + len(batch) + 1, [], 0
                continue
            batch.append(str.__str__(source) if isinstance(source, str) else as_document(source))
            size += _length(batch[-1])
            if size >= BATCH_CHARACTERS or len(batch) == most:
                yield Batch(first, batch)
                first, batch, size = first + len(batch), [], 0
    except Exception:
        if batch:
            yield Batch(first, batch)
        raise
    if batch:
        yield Batch(first, batch)


@dataclass(frozen=True, eq=False)
class BatchTagger:
    """Function object that tags the documents of a batch. Threads may share it.

    Attributes:
        decoder: Compiled model.
        tokenizer: Tokenizer of the model.
        finder: Compiled known names, or None.
        inference: Options of tagging.
        seed: Seed of the stream; document i draws from its i-th child.
    """

    decoder: Decoder
    tokenizer: Tokenizer
    finder: Finder | None
    inference: Inference
    seed: int | None

    def __call__(self, batch: Batch) -> list[Document | Failure]:
        """Tag each document of a batch. A document that cannot be tagged has a `Failure` as its result.

        The failure of one document does not affect other documents.
        """
        first, sources, failure = batch
        if failure is not None:
            return [failure]
        try:
            texts = [source for source in sources if isinstance(source, str)]
            documents = self.tokenizer.tokenize_batch(texts)
            if len(texts) < len(sources):
                tokenized = iter(documents)
                documents = [
                    next(tokenized) if isinstance(source, str) else with_tokens(source, self.tokenizer)
                    for source in sources
                ]
            evidence: Sequence[Evidence] = ()
            if self.finder is not None or self.inference.collection is not None:
                own_tokens = [document is not source for document, source in zip(documents, sources, strict=True)]
                evidence = self.evidence(documents, own_tokens, first)
            # The default backends draw no random numbers, but `child` also checks the seed; only 0 needs no check.
            rng = None if self.inference.backend is None and self.seed == 0 else child(self.seed, first)
            tagged = self.decoder.tag(documents, self.inference.backend, rng, evidence, self.inference.name_bias)
            tagged = assign_name_ids(tagged, bool(self.decoder.crf.link_tables))
            if least := self.inference.min_confidence:
                each_mention = self.inference.min_confidence_of == "mention"
                tagged = [without_uncertain(document, least, each_mention) for document in tagged]
            return [*tagged]
        except (ValueError, MemoryError) as error:
            if len(sources) == 1:
                return [Failure(error, first, sources[0])]
        singles = (Batch(index, [source]) for index, source in enumerate(sources, first))
        return [result for each in singles for result in self(each)]

    def evidence(self, documents: Sequence[Document], own_tokens: Sequence[bool], first: int) -> Sequence[Evidence]:
        """Return the evidence (log-potentials) that known names and the names of a collection add to each document.

        The result is empty if there are neither known names nor a collection.

        Args:
            documents: Documents with tokens.
            own_tokens: True for each document whose tokens come from the tokenizer of the model.
            first: Index of the first document in its stream.
        """
        evidence = () if self.finder is None else self._known_evidence(self.finder, documents, own_tokens)
        collection = self.inference.collection
        if collection is None:
            return evidence
        # The documents are tagged as in the first pass, so that their own contributions can be subtracted.
        rng = None if self.inference.backend is None else child(self.seed, first)
        tagged = self.decoder.tag(documents, self.inference.backend, rng, evidence, self.inference.name_bias)
        tagged = assign_name_ids(tagged, bool(self.decoder.crf.link_tables))
        added: list[Evidence] = []
        for each, document in zip(evidence or [Evidence()] * len(documents), tagged, strict=True):
            spans = collection.span_evidence(document, each.all_tokens)
            added.append(each.plus(self.decoder.encoder.evidence(spans, document.sentence_offsets)))
        return added

    def _known_evidence(
        self, finder: Finder, documents: Sequence[Document], own_tokens: Sequence[bool]
    ) -> list[Evidence]:
        """Return the evidence (log-potentials) that known names add to each document.

        If there are constraints, the documents are first tagged without them. Constraints inside a longer name that is
        found in this way have no effect.
        """
        pairs = list(zip(documents, own_tokens, strict=True))
        evidence = [finder(*pair) for pair in pairs]
        if not finder.has_constraints:
            return evidence
        constrained = [i for i, pair in enumerate(pairs) if finder.has_constraint_in(*pair)]
        tagged = self.decoder.tag(
            [documents[i] for i in constrained], None, None, [evidence[i] for i in constrained],
            self.inference.name_bias,
        )  # fmt: skip
        for i, document in zip(constrained, tagged, strict=True):
            evidence[i] = finder(*pairs[i], document.spans or ())
        return evidence


def without_uncertain(document: Document, min_confidence: float, each_mention: bool = False) -> Document:
    """Return a copy of a document without the names whose confidence is below ``min_confidence``.

    Args:
        document: Document whose entities have names.
        min_confidence: Lowest confidence that is kept.
        each_mention: Compare the confidence of each mention instead of that of its name.
    """
    confidences: dict[int | None, float | None] = {name.id: name.confidence for name in document.names}
    values = [e.confidence if each_mention else confidences.get(e.name_id) for e in document.entities]
    selected = [
        (span, entity)
        for span, entity, value in zip(document.spans or (), document.entities, values, strict=True)
        if value is not None and value >= min_confidence
    ]
    remaining = document.with_decoded([span for span, _ in selected])
    return replace(remaining, entities=tuple(entity for _, entity in selected))


def map_in_order(
    function: Callable[[T], U], items: Iterable[T], n_jobs: int, halves: Callable[[T], list[T]] = lambda item: [item]
) -> Iterator[U]:
    """Yield ``function(item)`` for all items of a stream, in their order; ``n_jobs`` threads compute the results.

    Up to `BATCHES_WAITING` items wait for each thread. The calling thread also runs the function, because a thread that
    only waits contends for the GIL. Near the end of the stream, ``halves`` splits items so that no thread is idle. For
    an item that is split, the result of each half is yielded separately.

    Args:
        function: Function of one item.
        items: The stream.
        n_jobs: Number of threads.
        halves: Function that splits an item into two, or returns it as a single one.
    """
    if n_jobs == 1:
        yield from map(function, items)
        return
    most = n_jobs * BATCHES_WAITING
    waiting: deque[tuple[T, Future[U]]] = deque()
    items, end = iter(items), None
    pool, is_closed = ThreadPoolExecutor(n_jobs - 1, "herdner"), False
    try:
        while end is None:
            try:
                while sum(not future.done() for _, future in waiting) <= most - BATCHES_WAITING:
                    item = next(items)
                    waiting.append((item, pool.submit(function, item)))
            except Exception as error:  # StopIteration, or an error of the reader, which is raised after all results
                end = error
            _run_pending(function, waiting, pool, n_jobs, halves)
            while waiting and (end is not None or waiting[0][1].done() or len(waiting) > most):
                while not waiting[0][1].done() and _run_pending(function, waiting, pool, n_jobs, halves):
                    pass
                yield waiting.popleft()[1].result()
    except GeneratorExit:
        is_closed = True
        raise
    finally:
        # The garbage collector may close an abandoned generator in any thread, even in one that holds the lock which
        # joining a thread needs. Waiting for the pool could then deadlock.
        pool.shutdown(wait=not is_closed, cancel_futures=True)
    if not isinstance(end, StopIteration):
        raise end


def _run_pending(
    function: Callable[[T], U], waiting: deque[tuple[T, Future[U]]], pool: ThreadPoolExecutor, n_jobs: int,
    halves: Callable[[T], list[T]],
) -> bool:  # fmt: skip
    """Process, in the calling thread, the first item that no other thread has started.

    If the other threads have too few items, this thread processes only the first half of the item.

    Returns:
        True if there was a pending item.
    """
    for i, (item, future) in enumerate(waiting):
        if future.cancel():
            if sum(not (later.running() or later.done()) for _, later in waiting) < n_jobs - 1:
                item, *rest = halves(item)
                for half in rest:
                    waiting.insert(i + 1, (half, pool.submit(function, half)))
            waiting[i] = item, _run(function, item)
            return True
    return False


def _run(function: Callable[[T], U], item: T) -> Future[U]:
    """Call a function in this thread, and return its result or its exception as a completed future."""
    future: Future[U] = Future()
    try:
        future.set_result(function(item))
    except Exception as error:
        future.set_exception(error)
    return future


async def map_async(
    function: Callable[[int, T], U], items: Iterable[T] | AsyncIterable[T], first: int, n_jobs: int
) -> AsyncIterator[U]:
    """Yield ``function(index, item)`` for all items in their order; at most ``n_jobs`` threads compute the results.

    Args:
        function: Function of the index of an item and the item.
        items: The stream.
        first: Index of the first item.
        n_jobs: Number of threads.
    """
    import asyncio  # imported here because its import takes as long as reading a model

    waiting: deque[asyncio.Task[U]] = deque()
    try:
        async for item in _asynchronous(items):
            waiting.append(asyncio.create_task(asyncio.to_thread(function, first, item)))
            first += 1
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


def split_pairs(pairs: Iterable[tuple[T, U]], contexts: deque[U]) -> Iterator[T]:
    """Yield the first element of each pair, and append the second element to the queue ``contexts``.

    Args:
        pairs: Pairs of a source and a context.
        contexts: Queue that receives the contexts.

    Raises:
        TypeError: An item is not a pair.
    """
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"`as_tuples` expects pairs of a source and a context, got {type(pair).__name__}")
        contexts.append(pair[1])
        yield pair[0]
