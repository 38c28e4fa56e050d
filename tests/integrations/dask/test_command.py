"""``herdner tag --cluster`` as its user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Call, exit_code, one_line
from data import ELSEWHERE
from distributed import Client
from patience import PATIENCE, wait_until

from herdner.integrations.dask import cluster


@pytest.mark.slow
def test_the_command_on_a_scheduler_s_address(
    call: Call, client: Client, inputs: Path, tmp_path: Path, alone: Callable[..., bytes], joined: Callable
) -> None:
    address = client.scheduler.address  # type: ignore[union-attr]
    (inputs / "bad.jsonl").write_text("{oops\n")
    outcome = call("tag", inputs, "--cluster", address, "--output", tmp_path / "out")
    assert "bad.jsonl:1: not JSON" in one_line(outcome, 1)
    assert joined(tmp_path / "out") == alone(inputs)
    again = call("tag", inputs, "--cluster", address, "--output", tmp_path / "out", "--seed", 4)
    assert "seed was 0, now it is 4" in one_line(again, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["in.txt"], 2, "--output DIR"),
        (["-", "--output", "out"], 2, "standard input"),
        (["in.txt", "--output", "out", "--format", "html"], 2, "jsonl or parquet"),
        (["in.txt", "--output", "out", "--input", "conll"], 2, "text, jsonl or parquet"),
        (["missing.txt", "--output", "out"], 1, "missing.txt: no such file"),
        (["no*.txt", "--output", "out"], 1, "no*.txt: no file matches"),
        (["empty", "--output", "out"], 1, "no text or jsonl or parquet file in this folder"),
        (["nowhere://x.txt", "--output", "out"], 1, "Protocol not known"),
        (["in.txt", "--output", "full"], 1, "contains other files (precious, ...)"),
        (["in.txt", "--output", "in.txt"], 1, "is a file; name a folder"),
        (["in.txt", "--output", "damaged"], 1, "not a valid manifest"),
        pytest.param(["in.txt", "--output", "in.txt/out"], 1, "cannot be written", marks=pytest.mark.slow),
    ],
)
def test_wrong_use_is_one_line(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, message: str
) -> None:
    for folder in ("empty", "full", "damaged"):
        (tmp_path / folder).mkdir()
    (tmp_path / "full" / "precious").touch()
    (tmp_path / "damaged" / "manifest.json").write_text('{"format": "herdner-parts", "version": 1}')
    (tmp_path / "in.txt").write_text("In Kenya.")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert message in one_line(call("tag", *arguments, "--cluster", "local"), code)
    assert sorted(tmp_path.rglob("*")) == before


def test_clusters_that_cannot_be_used(call: Call, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("In Kenya.")
    rest = ["tag", tmp_path / "in.txt", "--output", tmp_path / "out", "--cluster"]
    assert "the cluster must be `local` or" in one_line(call(*rest, "somewhere"), 1)
    assert "--jobs requires --cluster local" in one_line(call(*rest, "tcp://127.0.0.1:9", "--jobs", 2), 2)
    with pytest.raises(cluster.ClusterError, match=r"no scheduler can be reached: .* 1 s; check that one runs at tcp"):
        cluster.cluster_client("tcp://127.0.0.1:9", timeout=1).__enter__()


def test_without_dask_the_extra_is_named(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.txt").write_text("In Kenya.")
    monkeypatch.setitem(sys.modules, "dask", None)
    outcome = call("tag", tmp_path / "in.txt", "--output", tmp_path / "out", "--cluster", "local")
    assert "pip install '.[dask]'" in one_line(outcome, 1)


@pytest.mark.slow
def test_ctrl_c_leaves_whole_parts_and_goes_on(
    inputs: Path, tmp_path: Path, texts: list[str], alone: Callable[..., bytes], joined: Callable
) -> None:
    big, output = tmp_path / "big.jsonl", tmp_path / "out"
    line = json.dumps({"text": "\n".join(texts)}) + "\n"
    big.write_text(line * (4_000_000 // len(line)))
    command = [
        sys.executable,
        "-m",
        "herdner",
        "tag",
        str(big),
        "--cluster",
        "local",
        "--jobs",
        "2",
        "--part-size",
        "1",
    ]
    command += ["--set", "links=false", "--output", str(output)]
    # A group of its own: Ctrl-C in a terminal is for all processes of the group.
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ELSEWHERE, start_new_session=True)
    wait_until(lambda: list(output.glob("part-*")) or run.poll() is not None)
    os.killpg(run.pid, signal.SIGINT)
    assert run.communicate(timeout=PATIENCE)[1] == "herdner: interrupted\n"
    assert exit_code(run.returncode) == 130
    left = {path.name for path in output.iterdir()}
    assert "manifest.json" in left
    assert all(name.startswith("part-") for name in left - {"manifest.json"})
    assert not json.loads((output / "manifest.json").read_text())["complete"]
    subprocess.run(command, check=True, cwd=ELSEWHERE)
    assert joined(output) == alone(big, "--set", "links=false")
