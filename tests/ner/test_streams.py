"""Streams of documents: in batches, by threads, from asyncio; always the same results in the same order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import examples

import herdner
from herdner import Tagger
from herdner.corpora.formats import read_documents
from herdner.crf.link_rules import LastName, SameWord
from herdner.crf.templates import skip_chain_template
from herdner.ner.streams import BATCH_CHARACTERS, Batch, batches, map_in_order
from herdner.text.document import Document, Failure
from herdner.text.tokenize import Tokenizer

CORPORA = Path(__file__).parents[2] / "corpora"
NEWS = list(read_documents(CORPORA / "herdner_news.dev.conll", "conll"))
TEXTS = [document.text for document in NEWS] + ["", " \n", "Ada Reyes met Bo Lim. Reyes left."]


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return herdner.load("en")


@pytest.fixture(scope="module")
def alone(tagger: Tagger) -> list[Document]:
    return [found for text in TEXTS for found in tagger.pipe([text], batch_size=1)]


def found(documents: list[Document]) -> list[tuple]:
    return [(document.text, document.tags, document.entities) for document in documents]


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"n_jobs": 2}, {"n_jobs": 3, "batch_size": 2}])
def test_documents_in_batches_and_threads_are_as_each_alone(tagger, alone, options):
    """Bit for bit: confidences too."""
    assert found(list(tagger.pipe(TEXTS, **options))) == found(alone)


@pytest.mark.parametrize("rules", [[SameWord()], [SameWord(), LastName()]])
def test_sentences_that_links_make_one_path_are_in_batches_as_alone(tagger, rules):
    """Alone, the graph of such a document is a path; beside others it is not."""
    model, words = tagger.model_, ["Ada", "Winam", "Oslo", "Bob", "said", "that", "went"]
    linked = tuple(replace(model.link_tables[0], template=skip_chain_template(rule)) for rule in rules)
    linked, rng = Tagger.from_model(replace(model, link_tables=linked)), np.random.default_rng(1)
    texts = ["\n\n".join(" ".join(rng.choice(words, rng.integers(2, 5))) for _ in range(2)) for _ in range(300)]
    assert found(list(linked.pipe(texts))) == found([linked.tag(text) for text in texts])


def test_chains_in_batches_are_as_each_alone(tagger):
    each = [tagger.tag(text, links=False) for text in TEXTS]
    assert found(list(tagger.pipe(TEXTS, links=False))) == found(each)


def test_samplers_do_not_depend_on_threads(tagger):
    options = {"backend": "gibbs", "n_sweeps": 5, "seed": 3}
    assert found(list(tagger.pipe(TEXTS, n_jobs=2, **options))) == found(list(tagger.pipe(TEXTS, **options)))


def test_one_tagger_from_eight_threads(alone):
    tagger = herdner.load("en")  # nothing cached: the threads meet at every first use
    together = threading.Barrier(8)

    def work(_: int) -> list[tuple]:
        together.wait()
        return found([tagger.tag(text) for text in TEXTS])

    with ThreadPoolExecutor(8) as pool:
        assert all(result == found(alone) for result in pool.map(work, range(8)))


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_one_tokenizer_from_eight_threads_with_a_cache_that_is_always_full(times):
    tokenizer, alone = Tokenizer(cache_characters=50), Tokenizer()
    expected = [alone.tokens(text) for text in TEXTS]
    together = threading.Barrier(8)

    def work(_: int) -> bool:
        together.wait()
        return all([tokenizer.tokens(text) for text in TEXTS] == expected for _ in range(times))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def wrong() -> Document:
    """Its sentences are no longer those of its tokens."""
    document = Document.from_tokens([["Ada", "met", "Bo"]], id="wrong")
    document.sentence_offsets[-1] = 2
    return document


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_document_that_fails_is_named_and_the_others_are_done(tagger, n_jobs):
    failures: list[Failure] = []
    sources = [TEXTS[0], wrong(), TEXTS[1]]
    documents = list(tagger.pipe(sources, n_jobs=n_jobs, first=4, on_error=failures.append))
    assert [document.text for document in documents] == TEXTS[:2]
    assert [(f.document_index, f.source.id) for f in failures] == [(5, "wrong")]
    assert "sentence offsets" in str(failures[0].error)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_stands_beside_a_text_comes_back_beside_its_document(tagger, alone, n_jobs):
    pairs = [(text, i) for i, text in enumerate(TEXTS)]
    assert list(tagger.pipe(iter(pairs), as_tuples=True, n_jobs=n_jobs)) == list(zip(alone, range(99)))  # noqa: B905
    failures: list[Failure] = []
    pairs = [(TEXTS[0], "a"), (wrong(), "b"), (TEXTS[1], "c")]
    found = list(tagger.pipe(pairs, as_tuples=True, n_jobs=n_jobs, on_error=failures.append))
    assert [(document.text, context) for document, context in found] == [(TEXTS[0], "a"), (TEXTS[1], "c")]
    assert len(failures) == 1
    with pytest.raises(TypeError, match="`as_tuples` expects pairs of a source and a context, got str"):
        list(tagger.pipe(["Ada."], as_tuples=True, n_jobs=n_jobs))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_without_a_handler_it_raises_behind_those_before_it(tagger, n_jobs):
    stream = tagger.pipe([TEXTS[0], wrong(), TEXTS[1]], n_jobs=n_jobs)
    assert next(stream).text == TEXTS[0]
    with pytest.raises(ValueError, match="sentence offsets"):
        next(stream)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_was_read_before_the_reader_failed_is_tagged(tagger, n_jobs):
    def reader() -> Iterator[str]:
        yield from TEXTS[:3]
        raise OSError("the disk is gone")

    stream = tagger.pipe(reader(), n_jobs=n_jobs)
    assert [next(stream).text for _ in range(3)] == TEXTS[:3]
    with pytest.raises(OSError, match="the disk is gone"):
        next(stream)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_more_is_read_than_the_batches_need(tagger, n_jobs):
    read = []

    def endless() -> Iterator[str]:
        while True:
            read.append(1)
            yield "Ada Reyes met Bo Lim."

    stream = tagger.pipe(endless(), n_jobs=n_jobs, batch_size=4)
    for _ in range(8):
        next(stream)
    stream.close()
    assert len(read) <= 8 + 4 * n_jobs * 3


@given(st.lists(st.integers(0, 3 * BATCH_CHARACTERS), max_size=30), st.integers(1, 9))
@examples(50)
def test_batches_hold_all_in_order(lengths, most):
    texts = ["x" * length for length in lengths]
    cut = list(batches(texts, 7, most))
    assert [text for batch in cut for text in batch.sources] == texts
    assert [batch.first for batch in cut] == [7 + sum(len(b.sources) for b in cut[:i]) for i in range(len(cut))]
    for batch in cut:
        assert 1 <= len(batch.sources) <= most
        assert sum(map(len, batch.sources[:-1])) < BATCH_CHARACTERS


@given(st.lists(st.integers()), st.integers(1, 4))
@examples(25)
def test_threads_keep_the_order(items, n_jobs):
    assert list(map_in_order(lambda item: item * 2, items, n_jobs)) == [item * 2 for item in items]


@given(st.lists(st.lists(st.integers(), max_size=9)), st.integers(1, 4))
@examples(25)
def test_halves_that_threads_share_come_in_order(items, n_jobs):
    def halves(item: list[int]) -> list[list[int]]:
        return [item[: len(item) // 2], item[len(item) // 2 :]] if len(item) > 1 else [item]

    assert [*chain.from_iterable(map_in_order(list, items, n_jobs, halves))] == [*chain.from_iterable(items)]


@given(st.lists(st.integers(0, BATCH_CHARACTERS), min_size=1, max_size=30), st.integers(0, 99))
@examples(50)
def test_halves_of_a_batch_hold_all_of_it(lengths, first):
    batch = Batch(first, ["x" * length for length in lengths])
    halves = batch.halves()
    assert [text for half in halves for text in half.sources] == batch.sources
    assert all(half.sources for half in halves)
    assert [half.first for half in halves] == [first, first + len(halves[0].sources)][: len(halves)]
    assert len(halves) == (2 if len(lengths) > 1 and sum(lengths) >= BATCH_CHARACTERS / 2 else 1)


def test_the_caller_does_what_no_thread_has_begun():
    """Else it would wait for one thread at the end of a stream, while that does one item after the other."""
    others_done = threading.Semaphore(0)

    def first_waits_for_all_others(item: int) -> bool:
        if item == 0:
            return all(others_done.acquire(timeout=60) for _ in range(3))
        others_done.release()
        return True

    assert list(map_in_order(first_waits_for_all_others, range(4), 2)) == [True] * 4


def test_closing_a_stream_waits_for_no_thread():
    """The collector of garbage does so wherever it comes by, also where a thread that begins holds locks."""
    begun, go_on, caller = threading.Event(), threading.Event(), threading.current_thread()

    def others_take_long(item: int) -> int:
        if item and threading.current_thread() is not caller:
            begun.set()
            go_on.wait(300)
        return item

    stream = map_in_order(others_take_long, range(100), 2)
    assert any(begun.wait(1) for _ in stream)
    closing = threading.Thread(target=stream.close, daemon=True)
    closing.start()
    closing.join(60)
    stuck = closing.is_alive()
    go_on.set()
    assert not stuck


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ("one text", "use `tag` for a single text or document"),
        (NEWS[0], "use `tag` for a single text or document"),
        ([b"x"], "got bytes"),
        ([None], "got the missing value None; use an empty text"),
    ],
)
def test_what_is_no_text_is_refused(tagger, sources, message):
    with pytest.raises(TypeError, match=message):
        list(tagger.pipe(sources))


@pytest.mark.parametrize("options", [{"n_jobs": 0}, {"n_jobs": 1.5}, {"batch_size": 0}])
def test_wrong_options_are_told(tagger, options):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        list(tagger.pipe(TEXTS[:1], **options))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_asyncio_goes_on_meanwhile(tagger, alone, n_jobs):
    async def texts():
        for text in TEXTS:
            await asyncio.sleep(0)
            yield text

    async def main() -> tuple[list[Document], list[Document], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        clock = asyncio.create_task(tick())
        asynchronous = [document async for document in tagger.apipe(texts(), n_jobs=n_jobs)]
        plain = [document async for document in tagger.apipe(TEXTS, n_jobs=n_jobs)]
        clock.cancel()
        return asynchronous, plain, ticks

    asynchronous, plain, ticks = asyncio.run(main())
    assert found(asynchronous) == found(plain) == found(alone)
    assert ticks > 3
