"""Hostile requests, hundreds of them; ``python tests/integrations/serve/hostile.py`` sends ten thousand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

pytest.importorskip("fastapi", reason="needs FastAPI: pip install '.[serve]'")
pytest.importorskip("httpx", reason="needs httpx, to ask the server")


@pytest.mark.slow
def test_normal_requests_are_answered_in_time_and_nobody_gets_anothers_answer():
    """Test that responses arrive before the time limit of a request, ten seconds, on any machine."""
    options = ["--requests", "160", "--clients", "40", "--patience", "10"]
    program = Path(__file__).parent / "hostile.py"
    ran = subprocess.run([sys.executable, program, *options], capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "40 clients at once: {'200': 40}" in ran.stdout
