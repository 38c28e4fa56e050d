"""Faults of disks and processes: files are complete, no data is lost, and the exit status is correct."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from commands import Call, one_line
from patience import PATIENCE

from faults.kills import JOBS
from herdner.base.files import atomic_write

TESTS = Path(__file__).resolve().parents[1]
posix = pytest.mark.skipif(os.name == "nt", reason="signals and modes of POSIX")


@posix
@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_a_killed_process_leaves_the_old_file_or_the_new_one(job: str) -> None:
    command = [sys.executable, "-m", "faults", job, "--kills", "4", "--seed", "0"]
    ran = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert re.fullmatch(rf"{job}: 4 kills \(old \d, new \d, done \d\), 0 lost or half\n", ran.stdout), ran


@posix
@pytest.mark.slow
def test_a_killed_cluster_leaves_whole_parts_and_goes_on() -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    command = [sys.executable, "-m", "faults", "cluster", "--kills", "3", "--seed", "1"]
    ran = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert re.fullmatch(r"cluster: 3 kills \(all \d, first \d, other \d, went on \d\), 0 lost or half\n", ran.stdout), (
        ran
    )


@pytest.mark.slow
@posix
def test_a_kill_between_any_two_steps(tmp_path: Path) -> None:
    """The child process kills itself at its k-th call of write, fsync, chmod or rename."""
    program = """
import io, os, signal, sys
from pathlib import Path
from herdner.base.files import atomic_write
left = int(sys.argv[2])
def counted(function):
    def call(*arguments, **options):
        global left
        left -= 1
        if left < 0: os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call
os.fsync, os.chown = counted(os.fsync), counted(os.chown)
Path.chmod, Path.replace, Path.unlink = counted(Path.chmod), counted(Path.replace), counted(Path.unlink)
with atomic_write(sys.argv[1]) as stream:
    for _ in range(3): counted(stream.write)(b"n" * 100_000)
"""
    ends = []
    for step in range(9):
        output = tmp_path / str(step) / "output"
        output.parent.mkdir()
        output.write_bytes(b"old")
        ran = subprocess.run([sys.executable, "-c", program, output, str(step)], timeout=PATIENCE)
        now = output.read_bytes()
        assert now in (b"old", b"n" * 300_000)
        ends.append((ran.returncode, now == b"old"))
        for part in output.parent.glob(".*"):
            os.utime(part, (0, 0))  # an empty file is kept for a minute, because another process may be writing it
        with atomic_write(output) as stream:
            stream.write(b"next")
        assert [path.name for path in output.parent.iterdir()] == ["output"]
    # Three writes, fsync, chown and chmod; after the rename the file exists and nothing needs to be removed.
    assert ends == [(-9, True)] * 7 + [(-9, False), (0, False)]


@posix
def test_files_that_another_process_is_writing_are_not_removed(tmp_path: Path) -> None:
    output = tmp_path / "output"
    program = """
import sys
from herdner.base.files import atomic_write
with atomic_write(sys.argv[1]) as stream:
    stream.write(b"of the child")
    stream.flush()
    print(flush=True)
    sys.stdin.read()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, output], **pipes) as child:
        child.stdout.readline()
        with atomic_write(output) as stream:
            stream.write(b"of the parent")
        assert output.read_bytes() == b"of the parent"
    assert child.returncode == 0
    assert output.read_bytes() == b"of the child"
    assert [path.name for path in tmp_path.iterdir()] == ["output"]


def test_concurrent_writers_leave_a_complete_file(tmp_path: Path) -> None:
    def write(letter: bytes) -> None:
        for _ in range(20):
            with atomic_write(tmp_path / "output") as stream:
                for _ in range(50):
                    stream.write(letter * 1000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = (tmp_path / "output").read_bytes()
    assert len(found) == 50_000
    assert len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["output"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_mode_and_link_of_an_output_are_kept(tmp_path: Path, mode: int) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(mode)
    link.symlink_to(target)
    with atomic_write(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == mode


def limited(command: list[object], n_bytes: int, **options) -> subprocess.CompletedProcess[str]:
    """Run a command that may write files of at most ``n_bytes`` bytes, as on a full disk."""
    import resource

    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    options = {"capture_output": True, "text": True, "timeout": PATIENCE, "cwd": TESTS, **options}
    return subprocess.run(list(map(str, command)), preexec_fn=limit, **options)


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    "arguments",
    [
        ["tag", "FOLDER/text.txt", "-m", "MODEL", "-f", "jsonl", "-o", "FOLDER/out"],
        pytest.param(
            ["corpora", "convert", "FOLDER/text.txt:text", "-f", "jsonl", "-o", "FOLDER/out"], marks=pytest.mark.slow
        ),
        pytest.param(
            ["train", "--train", "FOLDER/a.conll:conll", "-o", "FOLDER/out", "--lexicon", "none", "--iterations", "3"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path: Path, news_model: Path, arguments: list[str]) -> None:
    (tmp_path / "text.txt").write_text("In Kenya. " * 10_000)
    (tmp_path / "a.conll").write_text("".join(f"Ada{i}\tB-PER\nmet\tO\nBob{i}\tB-PER\n\n" for i in range(500)))
    output = tmp_path / "out"
    output.write_text("precious")
    given = [part.replace("FOLDER", str(tmp_path)).replace("MODEL", str(news_model)) for part in arguments]
    ran = limited([sys.executable, "-m", "herdner", *given], 2000)
    assert (ran.returncode, ran.stderr) == (1, f"herdner: {output}: File too large\n")
    assert output.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.conll", "out", "text.txt"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_line(tmp_path: Path, news_model: Path) -> None:
    (tmp_path / "text.txt").write_text("In Kenya. ")
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "herdner", "tag", tmp_path / "text.txt", "-m", news_model]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=TESTS, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr) == (1, "herdner: standard output: No space left on device\n")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("backends",)])
def test_a_full_disk_while_help_is_printed(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "herdner", *arguments]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=TESTS, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr) == (1, "herdner: standard output: No space left on device\n")


CLOSED = "herdner: standard output is closed, so the results are lost; redirect it to a file"


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("tag text.txt -m MODEL >&-", 1, CLOSED),
        ("tag text.txt -m MODEL -f jsonl >&-", 1, CLOSED),
        ("tag text.txt -m MODEL -f spacy >&-", 1, CLOSED),
        ("--help >&-", 1, CLOSED),
        ("tag text.txt -m MODEL -o out.txt >&-", 0, ""),
        ("tag no 2>&-", 1, ""),
        ("tag text.txt -m MODEL -o out.txt <&-", 0, ""),
        ("tag - -m MODEL <&-", 1, "herdner: <stdin>: standard input is closed; name a file"),
        ("tag -m MODEL <&-", 2, "herdner: no FILE: name files or folders, or pipe text to the command"),
    ],
)  # fmt: skip
def test_closed_streams(tmp_path: Path, news_model: Path, command: str, code: int, message: str) -> None:
    (tmp_path / "text.txt").write_text("In Kenya. ")
    script = f'"{sys.executable}" -m herdner {command.replace("MODEL", str(news_model))}'
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert ran.stderr.removesuffix(" (see herdner tag --help)\n").removesuffix("\n") == message


@posix
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_an_unwritable_folder_is_one_line(call: Call, tmp_path: Path, news_model: Path) -> None:
    """Root has permission to write to every other folder."""
    (tmp_path / "text.txt").write_text("In Kenya.")
    one_line(call("tag", tmp_path / "text.txt", "-m", news_model, "-o", "/proc/out"), 1)


def test_a_missing_input_is_one_line_and_the_others_are_tagged(
    call: Call, tmp_path: Path, news_model: Path, monkeypatch
) -> None:
    groups = import_module("herdner.cli.groups")
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    for path in (first, second):
        path.write_text("In Kenya.")
    expand = groups.expand_inputs

    def vanishing(*arguments):
        found = expand(*arguments)
        first.unlink()
        return found

    monkeypatch.setattr(groups, "expand_inputs", vanishing)
    outcome = call("tag", tmp_path, "-m", news_model, "-f", "jsonl", "-o", tmp_path / "out.jsonl")
    assert one_line(outcome, 1) == f"herdner: {first}: no such file\n"
    assert (tmp_path / "out.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["tag", "FILE", "-f", "jsonl", "-o", "LINK"],
        ["tag", "FOLDER", "-f", "jsonl", "-o", "FILE"],
        ["train", "--train", "FILE", "-o", "LINK"],
        ["train", "--train", "OTHER", "--dev", "FILE", "-o", "FILE"],
        ["report", "FILE", "--predictions", "OTHER", "-o", "FILE", "-f", "json"],
        ["report", "OTHER", "--predictions", "FILE", "-o", "LINK", "-f", "json"],
        ["corpora", "convert", "FILE", "-o", "LINK"],
        ["tag", "OTHER", "--names", "FILE", "-o", "LINK"],
        ["names", "OTHER", "--model", "FILE", "-f", "csv", "-o", "LINK"],
        ["suggest", "FILE", "-o", "LINK"],
        ["pseudonymise", "OTHER", "--names", "FILE", "--map", "LINK"],
        ["restore", "OTHER", "--map", "FILE", "-o", "LINK"],
        ["infer", "OTHER", "--evidence", "FILE", "-o", "LINK"],
        ["denoise", "FILE", "LINK"],
        ["denoise", "OTHER", "out.png", "--figure", "LINK", "--truth", "FILE"],
        ["scan", "--graph", "FILE", "-o", "LINK"],
        ["train", "--train", "OTHER", "--base", "FILE", "-o", "LINK"],
        ["train", "--train", "OTHER", "--gazetteer", "OTHER", "--gazetteer", "FILE", "-o", "LINK"],
    ],
)
def test_an_output_that_is_an_input_is_refused(call: Call, tmp_path: Path, arguments: list[str]) -> None:
    file, other, link = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "link.jsonl"))
    for path in (file, other):
        path.write_text('{"text": "Kenya", "entities": [{"start": 0, "end": 5, "label": "LOC"}]}\n')
    link.symlink_to(file)
    names = {"FILE": file, "OTHER": other, "LINK": link, "FOLDER": tmp_path}
    before = file.read_text()
    line = one_line(call(*(names.get(argument, argument) for argument in arguments)), 2)
    assert "this file is also an input; name another output file" in line
    assert file.read_text() == before
