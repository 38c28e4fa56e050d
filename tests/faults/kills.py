"""SIGKILL at random moments of jobs that write files, in forks of a process that has loaded all modules."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

OLD = b"precious\n" * 1000
TEXT = "In Kenya, Ada Lovelace met Charles Babbage. Ada paid Babbage.\n\n"


@dataclass
class Kills:
    """Counts of the outputs after the kills of one job, and a line for each error."""

    ends: dict[str, int] = field(default_factory=lambda: {"old": 0, "new": 0, "done": 0})
    findings: list[str] = field(default_factory=list)


def kill(job: str, n: int, folder: Path, seed: int = 0) -> Kills:
    """Kill ``n`` processes that do the job, at random moments until shortly after its end."""
    found, rng = Kills(), random.Random(seed)
    work = folder / job
    work.mkdir(parents=True)
    run = JOBS[job](work)
    output = work / "out" / "output"
    output.parent.mkdir()
    inputs = _contents(work)
    whole, seconds = _reference(run, output)
    for i in range(n):
        # Half of the kills happen near the end, when files appear.
        moment = rng.uniform(0, 1.05) if i % 2 else rng.uniform(0.8, 1.05)
        _clear(output, OLD if i % 4 < 3 else None)
        child = _child(run, output)
        time.sleep(moment * seconds)
        os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        _judge(f"{job} {seed} {i}", output, i % 4 < 3, whole, os.WIFEXITED(status), found)
        if _contents(work) != inputs:
            found.findings.append(f"{job} {seed} {i}: the inputs changed")
    _clear(output, OLD)
    os.waitpid(_child(run, output), 0)
    if left := sorted(path for path, data in _contents(output.parent).items() if data and path not in whole):
        found.findings.append(f"{job} {seed}: the next run leaves {left} of those that were killed")
    return found


def _judge(name: str, output: Path, had_old: bool, whole: Mapping[str, bytes], ended: bool, found: Kills) -> None:
    """Check that each file is the old one, the new one, or a hidden incomplete one."""
    now = _contents(output.parent)
    shown = {path: data for path, data in now.items() if not Path(path).name.startswith(".")}
    old = {output.name: OLD} if had_old else {}
    if shown == old and not ended:
        found.ends["old"] += 1
    elif shown == whole:
        found.ends["done" if ended else "new"] += 1
    elif not (set(shown) <= set(whole) and all(data == whole[path] for path, data in shown.items())):
        found.findings.append(f"{name}: {sorted(shown)} are neither the old files nor the new ones")


def _contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files outside the output folder; of the output folder if it is the job's folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in files
        if folder.name == "out" or "out" not in path.relative_to(folder).parts
    }


def _clear(output: Path, old: bytes | None) -> None:
    for path in output.parent.iterdir():
        if not path.name.startswith("."):  # incomplete files stay, because the next run must remove them
            path.unlink()
    if old is not None:
        output.write_bytes(old)


def _reference(run: Callable[[Path], int], output: Path) -> tuple[dict[str, bytes], float]:
    """Return the files that an undisturbed job writes, and its seconds."""
    for _ in range(2):  # the second run has a warm page cache
        began = time.monotonic()
        _, status = os.waitpid(_child(run, output), 0)
        seconds = time.monotonic() - began
        assert os.WIFEXITED(status), status
        assert os.WEXITSTATUS(status) == 0, status
    return _contents(output.parent), seconds


def _child(run: Callable[[Path], int], output: Path) -> int:
    """Start a process that does the job, in its own process group."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(quiet, number)
        code = run(output)
    finally:
        os._exit(code)


def _save(_: Path) -> Callable[[Path], int]:
    import herdner

    tagger = herdner.load("en")
    return lambda output: tagger.save(output) or 0


def _tag(work: Path) -> Callable[[Path], int]:
    from herdner.cli import run

    text = work / "text.txt"
    text.write_text(TEXT * 400)
    return lambda output: run(["tag", str(text), str(text), "-f", "jsonl", "-o", str(output)])


def _train(work: Path) -> Callable[[Path], int]:
    from herdner.cli import run

    corpus = work / "corpus.conll"
    corpus.write_text("Ada\tB-PER\nmet\tO\nBob\tB-PER\n\nAda\tB-PER\nsang\tO\nin\tO\nKenya\tB-LOC\n" * 30)
    options = ["--lexicon", "none", "--iterations", "5", "--folds", "2"]
    return lambda output: run(["train", "--train", str(corpus), "-o", str(output), *options])


def _convert(work: Path) -> Callable[[Path], int]:
    from herdner.cli import run

    text = work / "text.txt"
    text.write_text(TEXT * 10_000)
    return lambda output: run(["corpora", "convert", f"{text}:text", "-f", "jsonl", "--output", str(output)])


JOBS: Mapping[str, Callable[[Path], Callable[[Path], int]]] = {
    "save": _save,
    "tag": _tag,
    "train": _train,
    "convert": _convert,
}
