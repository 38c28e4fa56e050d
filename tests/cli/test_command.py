"""Groups of options, --verbose and --quiet of every command."""

from __future__ import annotations

import inspect
import json
import logging
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from commands import Call, one_line
from data import ELSEWHERE

from herdner.cli import app
from herdner.cli.command import command
from herdner.cli.corpora import corpora


@dataclass(frozen=True)
class Sizes:
    width: Annotated[int, typer.Option("--width", "-w")] = 3
    height: Annotated[int, typer.Option("--height")] = 4


def test_a_group_becomes_its_options() -> None:
    @command
    def area(sizes: Sizes, times: Annotated[int, typer.Option()] = 1) -> int:
        return sizes.width * sizes.height * times

    parameters = inspect.signature(area).parameters
    assert list(parameters) == ["width", "height", "times", "verbose", "quiet"]
    assert {parameter.default for parameter in parameters.values()} == {3, 4, 1, False}
    assert area(width=5, height=2, times=3) == 30


def commands() -> list[str]:
    names = [each.name or each.callback.__name__ for each in app.registered_commands if each.callback]
    parts = [each.name or each.callback.__name__ for each in corpora.registered_commands if each.callback]
    return [*names, *(f"corpora {part}" for part in parts)]


@pytest.mark.parametrize("name", commands())
def test_every_command_has_both_options(call: Call, name: str) -> None:
    help = call(*name.split(), "--help").out
    assert re.search(r"^ *--verbose ", help, re.M), help
    assert re.search(r"^ *--quiet ", help, re.M)


@pytest.mark.slow
def test_verbose_logs_each_step(call: Call, news_model: Path, tmp_path: Path) -> None:
    """A process of its own, because pytest has handlers of log records."""
    (tmp_path / "a.txt").write_text("In Kenya.")
    arguments = ["tag", tmp_path / "a.txt", "-m", news_model, "-o", tmp_path / "o.jsonl", "--verbose"]
    program = [sys.executable, "-m", "herdner", *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ELSEWHERE)
    lines = [re.sub(r"[\d.]+ s", "N s", line) for line in done.stderr.splitlines()]
    assert lines == [
        f"herdner: [N s] model {news_model} is loaded in N s",
        f"herdner: [N s] reading {tmp_path / 'a.txt'} as text",
        f"herdner: [N s] {tmp_path / 'o.jsonl'} is written",
        "herdner: [N s] documents: 1, tokens: 3, failures: 0",
    ]
    assert call("tag", tmp_path / "a.txt", "-m", news_model).err == ""


def test_quiet_prints_errors_only(call: Call, news_model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"text": "In Kenya.", "entities": [{"start": 0, "end": 2, "label": "A"}] * 2}) + "\n"
    )
    arguments = ["tag", tmp_path / "a.jsonl", tmp_path / "a.jsonl", "-m", news_model]
    assert "read only once" in call(*arguments).err
    quiet = call(*arguments, "--quiet")
    assert (quiet.code, quiet.err) == (0, "")
    assert quiet.out == call(*arguments).out
    assert "no such file" in one_line(call("tag", tmp_path / "b.txt", "-m", news_model, "--quiet"), 1)
    assert logging.getLogger("herdner").level == logging.ERROR
    call("backends")
    assert logging.getLogger("herdner").level == logging.NOTSET


def test_verbose_contradicts_quiet(call: Call) -> None:
    assert "--verbose contradicts --quiet" in one_line(call("backends", "--quiet", "--verbose"), 2)
