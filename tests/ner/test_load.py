"""Load: flat memory, threads that end, processes that fork, and inputs beyond all measure."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from data import ELSEWHERE
from patience import PATIENCE, wait_until
from shared_tagger import TEXT, share

import herdner
from herdner import Tagger


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return herdner.load("en")


def no_others_are_left(before: set[threading.Thread]) -> None:
    """Wait until all threads that were started since then have ended, and check it."""
    wait_until(lambda: not set(threading.enumerate()) - before)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_a_pipe_that_is_left_leaves_no_thread(tagger, n_jobs):
    before = set(threading.enumerate())
    for taken in (0, 1, 3, 20):
        stream = tagger.pipe(itertools.repeat(TEXT), n_jobs=n_jobs, batch_size=2)
        for _ in range(taken):
            next(stream)
        stream.close()
        no_others_are_left(before)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_apipe_that_is_cancelled_at_any_moment_leaves_no_thread(tagger, n_jobs):
    async def take(moment: float) -> None:
        async def all_of_it() -> None:
            async for _ in tagger.apipe(itertools.repeat(TEXT), n_jobs=n_jobs, batch_size=2):
                pass

        task = asyncio.create_task(all_of_it())
        await asyncio.sleep(moment)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = set(threading.enumerate())
    for moment in (0, 0.001, 0.01, 0.05, 0.1):
        asyncio.run(take(moment))
        no_others_are_left(before)


def _tagged_by(tagger: Tagger, answers) -> None:
    answers.put([entity.text for document in tagger.pipe([TEXT] * 4, n_jobs=2) for entity in document.entities])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_that_is_forked_after_use_tags(tagger):
    expected = [entity.text for document in tagger.pipe([TEXT] * 4, n_jobs=2) for entity in document.entities]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_tagged_by, args=(tagger, answers))
    child.start()
    assert answers.get(timeout=PATIENCE) == expected
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.slow
def test_a_process_that_is_spawned_after_use_tags(tagger):
    expected = [entity.text for entity in tagger.tag(TEXT).entities]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        # The method and not a function of this module, which a spawned process could not import from pytest.
        (found,) = pool.map_async(tagger.tag, [TEXT]).get(timeout=PATIENCE)
    assert [entity.text for entity in found.entities] == expected


FLAT = """
import itertools, resource, sys
import herdner
tagger = herdner.load("en")
text = sys.argv[2]
def peak(n):
    for _ in tagger.pipe(itertools.repeat(text, n), n_jobs=int(sys.argv[1])): pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
first = peak(1_000)
print(peak(10_000) - first)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ten_times_as_many_documents_take_no_more_memory(n_jobs):
    command = [sys.executable, "-c", FLAT, str(n_jobs), TEXT]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE, cwd=ELSEWHERE)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 8 * 1024  # kilobytes


@pytest.mark.slow
def test_eight_threads_equal_one(tagger):
    """``python tests/support/shared_tagger.py`` goes on for ten minutes."""
    found = share(tagger, 8, 2.0)
    assert found.calls >= 8
    assert not found.wrong, found.wrong[:3]


@pytest.mark.parametrize("piece", ["x", *(pytest.param(p, marks=pytest.mark.slow) for p in ("A", "a-", "é"))])
def test_a_word_of_a_million_characters(tagger, piece):
    word = piece * (10**6 // len(piece))
    document = tagger.tag(f"Ada met {word} in Kenya.")
    assert document.text[8:-10] == word
    assert all(document.text[e.start : e.end] == e.text for e in document.entities)


@pytest.mark.slow
def test_a_document_of_a_million_tokens(tagger):
    text = TEXT * (1 + 10**6 // 16)
    document = tagger.tag(text)
    assert document.n_tokens >= 10**6
    assert len(document.entities) >= 3 * (10**6 // 16)
    assert np.isfinite([entity.confidence for entity in document.entities]).all()


@pytest.mark.slow
def test_a_hundred_thousand_equal_names(tagger):
    """Each is linked to its nearest earlier ones: the number of links, which bounds time and memory, grows linearly."""
    few, many = (sum(map(len, tagger.find_links("Winam sang. " * n).values())) for n in (1_000, 10_000))
    assert 0 < many < 10.2 * few
    document = tagger.tag("Winam sang. " * 100_000)
    assert document.n_tokens == 300_000
    assert len(document.entities) == 100_000
