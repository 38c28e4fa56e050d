"""No function or class of `herdner._ext` ends the process, whatever its arguments are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

from faults.entry_points import modules

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "module", [name if name == "layout" else pytest.param(name, marks=pytest.mark.slow) for name in modules()]
)
def test_hostile_arguments_raise_errors(module: str) -> None:
    command = [sys.executable, "-m", "faults.entry_points", module]
    ran = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=20 * PATIENCE)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
