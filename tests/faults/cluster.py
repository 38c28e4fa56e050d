"""SIGKILL at random moments of ``herdner tag --cluster``, to all its processes, the first one or one of the others."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from faults.kills import TEXT, Kills

PARTS, PART_BYTES = 12, 20_000
# The command with smaller parts than its minimum of a megabyte.
PROGRAM = f"""
import sys
from herdner.integrations import dask
from herdner.cli import run
tag_files = dask.tag_files
dask.tag_files = lambda *files, **options: tag_files(*files, **{{**options, "part_bytes": {PART_BYTES}}})
sys.exit(run(sys.argv[1:]))
"""
VICTIMS = ("all", "first", "other")
SECONDS = 300.0  # limit for a run


def kill_cluster(job: str, n: int, folder: Path, seed: int = 0) -> Kills:
    """Kill ``n`` runs, one to three per output folder, then finish each folder by an undisturbed run and check it."""
    found, rng = Kills(ends=dict.fromkeys((*VICTIMS, "went on"), 0)), random.Random(seed)
    work = folder / job
    work.mkdir(parents=True)
    text = work / "text.jsonl"
    text.write_text("".join(json.dumps({"text": TEXT * (60 + i % 9)}) + "\n" for i in range(5 * PARTS)))
    whole, shows, seconds = _reference(text, work / "whole")
    left = n
    while left:
        output = work / f"out{left}"
        for _ in range(min(rng.randint(1, 3), left)):
            left -= 1
            name, victim = f"{job} {seed} {n - left - 1}", rng.choice(VICTIMS)
            # Two thirds of the kills happen while parts appear.
            moment = rng.uniform(0 if rng.random() < 1 / 3 else shows, 1.05 * seconds)
            _killed(name, text, output, victim, moment, whole, rng, found)
        _finished(f"{job} {seed} {n - left - 1}", text, output, whole, found)
    return found


def _command(text: Path, output: Path) -> list[str]:
    return [sys.executable, "-c", PROGRAM, "tag", str(text), "--cluster", "local", "--jobs", "2", "-o", str(output)]


def _run(text: Path, output: Path) -> subprocess.Popen[bytes]:
    """Start the command in another folder, so that it imports the installed herdner, and in its own process group."""
    errors = output.with_suffix(".errors").open("wb")
    with errors:
        return subprocess.Popen(
            _command(text, output), stdout=errors, stderr=errors, cwd=tempfile.gettempdir(), start_new_session=True
        )


def _reference(text: Path, output: Path) -> tuple[dict[str, bytes], float, float]:
    """Return the files of an undisturbed run, and the seconds until its first file and until its end."""
    shows = seconds = 0.0
    for k in range(2):  # the second run has a warm page cache
        began, shows, output = time.monotonic(), 0.0, output.with_suffix(f".{k}")
        run = _run(text, output)
        while run.poll() is None:
            time.sleep(0.01)
            shows = shows or (time.monotonic() - began if output.exists() else 0.0)
        seconds = time.monotonic() - began
        assert run.returncode == 0, output.with_suffix(".errors").read_text()
    whole = _shown(output)
    assert len(whole) > PARTS, sorted(whole)
    return whole, shows, seconds


def _killed(
    name: str,
    text: Path,
    output: Path,
    victim: str,
    moment: float,
    whole: dict[str, bytes],
    rng: random.Random,
    found: Kills,
) -> None:
    """Start a run, kill a process of it at a random moment, and check that each visible file is complete."""
    before = {path.name: path.stat().st_mtime_ns for path in _written(output)}
    run = _run(text, output)
    with suppress(subprocess.TimeoutExpired):
        run.wait(moment)
    with suppress(psutil.NoSuchProcess, ProcessLookupError, IndexError):
        if victim == "all":
            os.killpg(run.pid, signal.SIGKILL)
        elif victim == "first":
            run.kill()
        else:
            rng.choice(psutil.Process(run.pid).children(recursive=True)).kill()
    if _ended(name, run, found) and run.returncode == 0 and victim == "other":
        found.ends["went on"] += 1
    found.ends[victim] += 1
    shown = _shown(output)
    for file, data in shown.items():
        if file != "manifest.json" and data != whole.get(file):
            found.findings.append(f"{name}: {file} is not what it should be")
    for path in _written(output):
        if path.name not in shown:
            found.findings.append(f"{name}: the manifest has {path.name}, which is not there")
        elif before.get(path.name, path.stat().st_mtime_ns) != path.stat().st_mtime_ns:
            found.findings.append(f"{name}: {path.name} was there, and was done again")


def _finished(name: str, text: Path, output: Path, whole: dict[str, bytes], found: Kills) -> None:
    """Check that an undisturbed run completes the folder and leaves no hidden file."""
    run = _run(text, output)
    if not _ended(name, run, found):
        return
    log = output.with_suffix(".errors").read_text(errors="replace")
    if run.returncode != 0 or "Traceback" in log:
        found.findings.append(f"{name}: run again it ends with {run.returncode}: {log[-500:]!r}")
    if _shown(output) != whole:
        found.findings.append(f"{name}: run again it ends with {sorted(_shown(output))}, or other bytes in them")
    if hidden := [path.name for path in output.iterdir() if path.name.startswith(".")]:
        found.findings.append(f"{name}: run again it leaves {hidden}")


def _ended(name: str, run: subprocess.Popen[bytes], found: Kills) -> bool:
    try:
        run.wait(SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        found.findings.append(f"{name}: did not end in {SECONDS:g} s")
        return False
    return True


def _shown(output: Path) -> dict[str, bytes]:
    paths = output.iterdir() if output.exists() else ()
    return {path.name: path.read_bytes() for path in paths if not path.name.startswith(".")}


def _written(output: Path) -> list[Path]:
    """Return the parts in the manifest. A manifest that exists must be complete."""
    manifest = output / "manifest.json"
    parts = json.loads(manifest.read_bytes())["parts"] if manifest.exists() else []
    return [output / part["output"]["name"] for part in parts if part["output"]]
