"""Limits that hold: time, size, requests at once, and workers that die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from patience import PATIENCE, wait_until

from herdner import Document, Tagger
from herdner.crf.templates import linear_chain_template

pytest.importorskip("fastapi", reason="needs FastAPI: pip install '.[serve]'")

from herdner.integrations.serve import create_app
from herdner.integrations.serve.middleware import RequestGuard
from herdner.integrations.serve.pool import (
    ClientGone,
    Limits,
    Pool,
    PoolBusy,
    RequestRefused,
    RequestTimeout,
    WorkerFault,
)

SHORT: dict[str, Any] = {"text": "Ada sang.", "backends": [{"backend": None, "options": {}, "links": None}], "seed": 0}
ENDLESS: dict[str, Any] = {
    "text": "Ada met Bob in Rome. " * 400,
    "backends": [{"backend": "gibbs", "options": {"n_sweeps": 100_000}, "links": None}],
    "seed": 0,
}
SECONDS = 2.0


def asked(request: dict[str, Any]) -> bytes:
    return json.dumps(request).encode()


def answered(pool: Pool, request: dict[str, Any] = SHORT) -> dict[str, Any]:
    """The answer, waiting for a worker that has just been started."""
    for _ in range(30):
        try:
            return json.loads(pool.run(asked(request)))
        except (PoolBusy, RequestTimeout):
            continue
    raise AssertionError("no worker was ready within a minute")


@pytest.fixture(scope="module")
def small() -> Tagger:
    """A tagger of three documents, handed over as it is."""
    sentences = [["Ada", "met", "Bob", "in", "Rome"], ["Rome", "sang"], ["Bob", "left", "Rome"]]
    tags = [["B-PER", "O", "B-PER", "O", "B-LOC"], ["B-LOC", "O"], ["B-PER", "O", "B-LOC"]]
    documents = [Document.from_tokens([words], [own]) for words, own in zip(sentences, tags, strict=True)]
    return Tagger(templates=(linear_chain_template(),), max_iterations=20, min_freq=1).fit(documents)


@pytest.fixture(scope="module")
def pool(small: Tagger) -> Iterator[Pool]:
    pool = Pool(small, Limits(seconds=SECONDS, n_workers=1, n_waiting=1))
    yield pool
    pool.close()


@pytest.mark.slow
def test_a_tagger_is_handed_over(pool: Pool, small: Tagger) -> None:
    assert pool.about == {"model": "tagger", "labels": ["LOC", "PER"], "rules": []}
    found = answered(pool)["results"][0]
    expected = small.tag(SHORT["text"]).entities
    assert [(e["start"], e["end"], e["label"], e["confidence"]) for e in found["entities"]] == [
        (e.start, e.end, e.label, e.confidence) for e in expected
    ]


@pytest.mark.slow
def test_a_run_over_the_limit_is_ended_and_the_next_one_works(pool: Pool) -> None:
    answered(pool)
    (worker,) = pool.workers
    began = time.monotonic()
    with pytest.raises(RequestTimeout):
        pool.run(asked(ENDLESS))
    assert time.monotonic() - began >= SECONDS - 0.1
    assert not worker.process.is_alive()
    assert answered(pool)["n_tokens"] == 3


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_worker_that_is_killed_is_replaced(pool: Pool) -> None:
    answered(pool)
    (worker,) = pool.workers
    os.kill(worker.process.pid or 0, signal.SIGKILL)
    with pytest.raises(WorkerFault):
        pool.run(asked(SHORT))
    assert answered(pool)["n_tokens"] == 3


def test_a_worker_lives_on_after_a_request_that_it_refused_or_failed_at(pool: Pool) -> None:
    answered(pool)
    before = set(pool.workers)
    wrong = {**SHORT, "backends": [{"backend": "gibbs", "options": {"colour": "red"}, "links": None}]}
    with pytest.raises(RequestRefused, match="no option 'colour'"):
        pool.run(asked(wrong))
    with pytest.raises(WorkerFault, match="Traceback"):
        pool.run(b'{"text": "Ada"}')
    assert answered(pool)["n_tokens"] == 3
    assert pool.workers == before


def test_a_model_that_is_none(tmp_path: Any) -> None:
    (tmp_path / "no.model").write_text("no model")
    with pytest.raises(ValueError, match="not a herdner model"):
        Pool(str(tmp_path / "no.model"), Limits(n_workers=1))


@pytest.mark.slow
def test_requests_beyond_the_queue_are_turned_away_at_once_and_one_in_it_waits(pool: Pool) -> None:
    answered(pool)
    outcomes: list[type[Exception]] = []

    def ask() -> None:
        try:
            pool.run(asked(ENDLESS))
        except (PoolBusy, RequestTimeout) as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: not pool.slots._value)
    with pytest.raises(PoolBusy):
        pool.run(asked(SHORT))
    assert not outcomes, "it did not wait for the others"
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(outcome.__name__ for outcome in outcomes) == ["PoolBusy", "RequestTimeout"]


@pytest.mark.slow
def test_work_that_nobody_waits_for_is_ended_or_not_begun(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(pool)
    gone = threading.Event()
    threading.Timer(0.2, gone.set).start()
    with monkeypatch.context() as patched:  # long before its time is up
        patched.setattr(pool, "limits", replace(pool.limits, seconds=PATIENCE))
        with pytest.raises(ClientGone):
            pool.run(asked(ENDLESS), client_gone=gone)
    assert answered(pool)["n_tokens"] == 3
    before = set(pool.workers)
    with ThreadPoolExecutor(1) as other:
        held = other.submit(pool.run, asked(ENDLESS))
        wait_until(lambda: pool.idle.empty())  # it has the only worker
        with pytest.raises(ClientGone):
            pool.run(asked(SHORT), client_gone=gone)
        assert pool.workers == before
        with pytest.raises(RequestTimeout):
            held.result()


@pytest.mark.slow
def test_what_takes_long_leaves_a_worker_to_what_does_not(small: Tagger) -> None:
    pool = Pool(small, Limits(seconds=SECONDS, n_workers=2, n_waiting=2))
    try:
        answered(pool)
        with ThreadPoolExecutor(4) as others:
            held = [others.submit(pool.run, asked(ENDLESS), cost=100.0) for _ in range(4)]
            wait_until(lambda: not pool.shares[-1][1]._value)
            for _ in range(3):
                assert answered(pool)["n_tokens"] == 3
            ends = sorted(type(each.exception()).__name__ for each in held)
        # One has a worker, one waits for it in vain; the others are turned away.
        assert ends == ["PoolBusy", "PoolBusy", "PoolBusy", "RequestTimeout"]
    finally:
        pool.close()


def test_a_closed_pool_has_no_processes_and_says_so(pool: Pool) -> None:
    processes = [worker.process for worker in pool.workers]
    pool.close()
    assert [process.is_alive() for process in processes] == [False]
    with pytest.raises((WorkerFault, PoolBusy)):
        pool.run(asked(SHORT))
    assert not pool.workers


@pytest.mark.parametrize("wrong", [{"characters": 0}, {"seconds": 0}, {"seconds": float("nan")}, {"n_workers": True}])
def test_limits_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)


# --- bodies


def through_guard(
    messages: list[dict[str, Any]], headers: dict[str, str], wait: bool = False, large_bodies: int = 2
) -> tuple[int, int]:
    """The status that a guard of 100 bytes and 50 ms gives, and how many of the messages it read."""
    read, sent = [], []

    async def receive() -> dict[str, Any]:
        if len(read) == len(messages):
            await asyncio.sleep(60 if wait else 0)
        read.append(messages[len(read)])
        return read[-1]

    async def send(message: Any) -> None:
        sent.append(message)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    raw = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": raw}
    guard = RequestGuard(application, ["localhost"], 100, 0.05, large_bodies)
    asyncio.run(guard(scope, receive, send))  # type: ignore[arg-type]
    assert (b"retry-after" in dict(sent[0]["headers"])) == (sent[0]["status"] == 503)
    return sent[0]["status"], len(read)


def parts(n: int, size: int) -> list[dict[str, Any]]:
    return [{"type": "http.request", "body": b"x" * size, "more_body": i < n - 1} for i in range(n)]


def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    assert through_guard(parts(1, 101), {"content-length": "101"}) == (413, 0)
    assert through_guard(parts(1, 100), {"content-length": "100"}) == (200, 1)
    assert through_guard(parts(1, 100), {"content-length": "lots"}) == (400, 0)
    assert through_guard(parts(1, 100), {"content-length": "-1"}) == (400, 0)


def test_a_body_that_does_not_say_is_read_up_to_the_limit() -> None:
    assert through_guard(parts(50, 30), {}) == (413, 4)
    assert through_guard(parts(3, 30), {}) == (200, 3)


def test_only_a_few_large_bodies_are_parsed_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, status in ((1, 200), (0, 503)):
        monkeypatch.setattr("herdner.integrations.serve.middleware.LARGE_BODY_BYTES", 50)
        assert through_guard(parts(2, 30), {}, large_bodies=most) == (status, 2)
        length = {"content-length": "60"}
        assert through_guard(parts(1, 60), length, large_bodies=most) == (status, int(status == 200))
        assert through_guard(parts(1, 50), {"content-length": "50"}, large_bodies=most) == (200, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("n_workers", "most"), [(1, 2), (2, 2), (5, 5)])
def test_the_application_takes_as_many_large_bodies_as_workers_and_at_least_two(
    app: Any, monkeypatch: pytest.MonkeyPatch, n_workers: int, most: int
) -> None:
    monkeypatch.setattr("herdner.integrations.serve.app.Pool", lambda *_: app.state.pool)
    made = create_app("en", limits=Limits(n_workers=n_workers))
    guards = [each for each in made.user_middleware if each.cls is RequestGuard]
    assert [each.kwargs["large_bodies"] for each in guards] == [most]


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    assert through_guard([{"type": "http.request", "body": b"x", "more_body": True}], {}, wait=True) == (408, 1)
