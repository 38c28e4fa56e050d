"""Too large allocations are refused in advance, with realistic estimates."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from data import ELSEWHERE
from patience import PATIENCE

from herdner import FactorGraph, complete_graph, ising, make_backend, potts
from herdner.base import memory
from herdner.base.memory import NotEnoughMemory, check_memory, free_memory
from herdner.inference import BACKENDS, Backend
from herdner.inference.record import Record

GRAPHS: dict[str, Callable[[], FactorGraph]] = {
    "ising": lambda: ising(0.3, 0.0, (120, 150)),
    "potts": lambda: potts(0.3, np.zeros((120, 150, 5))),
}


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Collect all estimates, including small ones."""
    found: list[float] = []

    def left() -> float:
        return np.inf

    class Listening:
        @staticmethod
        def info(message: str, what: str, amount: str) -> None:
            found.append(float(amount.removesuffix(" GB").replace(",", "")))

    monkeypatch.setattr(memory, "free_memory", left)
    monkeypatch.setattr(memory, "logger", Listening)
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "_LARGE", 0)
    monkeypatch.setattr(memory, "format_size", lambda n_bytes: f"{n_bytes / 1e9!r} GB")
    return found


def about_right(backend: Backend, graph: FactorGraph, estimates: list[float]) -> None:
    estimates.clear()
    tracemalloc.start()
    try:
        backend.infer(graph, 0)
        peak = tracemalloc.get_traced_memory()[1] / 1e9
    finally:
        tracemalloc.stop()
    assert 0.3 * peak < max(estimates) < 1.5 * peak


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(GRAPHS))
@pytest.mark.parametrize("name", ["gibbs", "herded-gibbs", "dhg", "mean-field", "icm", "sum-product", "max-product"])
def test_estimates_are_about_what_python_allocates(kind: str, name: str, estimates: list[float]) -> None:
    graph = GRAPHS[kind]()
    graph_alone = estimates.copy()
    backend = make_backend(name, **({} if name == "icm" else {"n_sweeps": 2}))
    backend.infer(ising(0.3, 0.0, (3, 3)), 0)  # what is imported late
    assert graph_alone
    about_right(backend, graph, estimates)


@pytest.mark.parametrize("record", [Record(every=1), Record(rao_blackwell=True), Record(marginals=False, best=False)])
def test_records_are_part_of_the_estimate(record: Record, estimates: list[float]) -> None:
    graph, backend = ising(0.3, 0.0, (120, 150)), make_backend("gibbs", n_sweeps=50, record=record)
    backend.infer(ising(0.3, 0.0, (3, 3)), 0)
    about_right(backend, graph, estimates)


def test_too_large_allocations_are_refused_before_they_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    small = ising(0.3, 0.0, (300, 300))
    monkeypatch.setattr(memory, "free_memory", lambda: 3e8)
    tracemalloc.start()
    try:
        with pytest.raises(
            NotEnoughMemory, match=r"a graph of 100,000,000 variables .* about 2\.4 GB .* only 300\.0 MB"
        ):
            ising(0.3, 0.0, (10_000, 10_000))
        with pytest.raises(NotEnoughMemory, match="a graph of 40,000 variables"):
            complete_graph(0.1, n_variables=40_000)
        with pytest.raises(NotEnoughMemory, match=r"the table of 10,000 x 10,000 states .* about 1\.6 GB"):
            potts(0.1, np.zeros((1, 2, 10_000)))
        with pytest.raises(
            NotEnoughMemory, match=r"sampling 90,000 variables \(n_chains=1, n_sweeps=100000, record=.*every=10"
        ):
            make_backend("gibbs", n_sweeps=100_000, record=Record(every=10)).infer(small, 0)
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", BACKENDS)
def test_variables_of_too_many_states_are_refused_before_anything_is_allocated(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = FactorGraph([2**29] * 3, [])
    make_backend(name).infer(FactorGraph([2] * 3, []), 0)  # what is imported late
    monkeypatch.setattr(memory, "free_memory", lambda: 3e9)
    tracemalloc.start()
    try:
        with pytest.raises((NotEnoughMemory, ValueError)):
            make_backend(name).infer(graph, 0)
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()


def test_small_allocations_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 0.0)
    check_memory(1e8, "a small thing", "nothing")
    make_backend("gibbs", n_sweeps=5).infer(ising(0.3, 0.0, (9, 9)), 0)


def test_free_memory_is_plausible() -> None:
    assert 1e7 < free_memory() < 1e15


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are Linux's")
def test_the_limit_of_a_process_counts() -> None:
    script = (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (3 * 10**9,) * 2)\n"
        "from herdner.cli import main\nmain(['scan', '--ising', '3000x3000'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, cwd=ELSEWHERE
    )
    assert done.returncode == 1
    assert done.stderr.startswith("herdner: --ising 3000x3000 takes about 3.8 GB of memory, but only ")
    assert done.stderr.count("\n") == 1
