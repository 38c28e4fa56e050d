"""No function or class of `herdner._ext` ends the process, whatever its arguments are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE, wait_until

from faults import entry_points

TESTS = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.slow
def test_hostile_arguments_of_functions_classes_methods_and_properties_raise_errors() -> None:
    """Record the session once for all modules, because the record takes longer than the calls of most modules."""
    command = [sys.executable, "-m", "faults.entry_points"]
    ran = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=20 * PATIENCE)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]


def test_a_call_that_ends_its_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def attack(module: str, name: str) -> int:
        entry_points.attempt(f"{module}.{name}(0: None)", os.kill, (os.getpid(), signal.SIGSEGV), {})
        return 1

    monkeypatch.setattr(entry_points, "attack", attack)
    status, last = entry_points.run_child("layout", "chains")
    assert os.WTERMSIG(status) == signal.SIGSEGV
    assert last == "layout.chains(0: None)"


def test_methods_and_properties_of_final_classes_are_entry_points() -> None:
    found = entry_points.members(import_module("herdner._ext.elimination"))
    assert {"CompiledMessages.advance", "CompiledMessages.total", "BeliefBucket.run", "CompiledBucketTree.n"} <= set(
        found
    )


def test_shared_arrays_change_while_a_call_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(array: np.ndarray) -> None:
        wait_until(lambda: not np.isfinite(array).all())
        seen.append(array)

    seen: list[np.ndarray] = []
    with (tmp_path / "log").open("w+b") as log:
        monkeypatch.setattr(entry_points, "LOG", log.fileno())
        assert entry_points.race("read", read, [np.zeros(1000)], {}, "f") == len(seen) > 0
