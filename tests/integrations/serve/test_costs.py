"""Estimated costs of requests, and quick requests beside the dearest ones that the service accepts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("fastapi", reason="needs FastAPI: pip install '.[serve]'")

from bench_service import measure

import herdner
from herdner.inference.registry import BACKENDS
from herdner.integrations.serve.costs import LONG_SECONDS, QUEUE_PARTS, SECONDS, SLOWEST, file_seconds, label_factor
from herdner.integrations.serve.pool import Limits, Pool, PoolBusy, RequestTimeout
from herdner.integrations.serve.schema import ExplainRequest, FileRequest, TagRequest

N_CLIENTS = 32
WAIT = 2.0  # seconds
DENSE = "Ada Lovelace met Bob Babbage in Rome. "


def request(text: str, backend: str | None = None, **options: object) -> TagRequest:
    choice = {"backend": backend, "options": options}
    return TagRequest.model_validate({"text": text, "backends": [choice]})


def test_every_backend_has_a_measured_cost() -> None:
    assert set(SECONDS) == set(BACKENDS)


@pytest.mark.slow
@pytest.mark.parametrize("backend", sorted(backend for backend in SECONDS if SECONDS[backend] < SLOWEST))
def test_estimates_are_not_below_the_measured_times(tagger: herdner.Tagger, backend: str) -> None:
    """Within a factor of three, on any machine."""
    assert min(measure(tagger, backend) for _ in range(2)) < 3 * SECONDS[backend]


def test_costs_grow_with_characters_sweeps_backends_and_options() -> None:
    text = "x" * 10_000
    assert request(text, "rdhg").cost > 10 * request(text[:900], "rdhg").cost
    assert request(text, "gibbs", n_sweeps=10_000).cost > 5 * request(text, "gibbs").cost
    assert request(text, "gibbs", scan="random").cost > 2 * request(text, "gibbs").cost
    for name in ("damping", "tolerance"):  # small values lead to the largest number of sweeps
        assert request(text, "belief-propagation", **{name: 1e-9}).cost > 3 * request(text, "belief-propagation").cost
    assert request(text, "unknown").cost > request(text, "rdhg").cost
    two = TagRequest.model_validate({"text": text, "backends": ["gibbs", "rdhg"]})
    assert two.cost == pytest.approx(request(text, "gibbs").cost + request(text, "rdhg").cost)
    explained = ExplainRequest.model_validate({"text": text, "start": 0, "end": 1, "backend": "rdhg"})
    assert explained.cost > request(text, "rdhg").cost
    assert FileRequest.model_validate({"text": text, "entities": [], "format": "html"}).cost > file_seconds(
        10_000, "csv"
    )
    assert label_factor(3) == 1
    assert label_factor(9) == 9


def test_long_requests_are_those_that_take_long() -> None:
    assert request("x" * 99_999, "rdhg").cost > LONG_SECONDS
    assert request("x" * 99_999, "gibbs").cost > LONG_SECONDS
    assert request("x" * 20_000).cost < LONG_SECONDS
    assert request("In Kenya now").cost < QUEUE_PARTS[0][0]
    for backend in ("annealed-importance", "tempered"):  # whose number of rounds does not depend on the length
        assert request("In Kenya now", backend).cost > LONG_SECONDS


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool("en", Limits())
    yield pool
    pool.close()


def dearest(bound: float, backend: str | None) -> TagRequest:
    """The request with the longest text whose cost is not above a bound."""
    low, high = 1, 99_999
    while low < high:
        n = (low + high + 1) // 2
        low, high = (n, high) if request("x" * n, backend).cost <= bound else (low, n - 1)
    return request((DENSE * (low // len(DENSE) + 1))[:low], backend)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["rdhg", "belief-propagation", None])
@pytest.mark.parametrize("bound", [float("inf"), *(bound for bound, _ in QUEUE_PARTS)])
def test_a_quick_request_is_answered_beside_the_dearest_ones(pool: Pool, bound: float, backend: str | None) -> None:
    costly, quick = dearest(bound, backend), request("In Kenya now")
    stop = threading.Event()

    def ask() -> None:
        body = costly.model_dump_json(exclude_none=True).encode()
        while not stop.is_set():
            try:
                pool.run(body, cost=costly.cost)
            except PoolBusy:
                stop.wait(0.05)
            except RequestTimeout:
                continue

    waits: list[float] = []
    with ThreadPoolExecutor(N_CLIENTS) as clients:
        for _ in range(N_CLIENTS):
            clients.submit(ask)
        try:
            for _ in range(15):
                stop.wait(0.2)
                began = time.monotonic()
                pool.run(quick.model_dump_json(exclude_none=True).encode(), cost=quick.cost)
                waits.append(time.monotonic() - began)
        finally:
            stop.set()
    print(f"{backend}, {len(costly.text or '')} characters: slowest of {len(waits)} quick requests {max(waits):.2f} s")
    assert max(waits) < WAIT
