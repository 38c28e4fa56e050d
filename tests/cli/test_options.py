"""Options: the same option means the same in every command, and the shell can complete it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from commands import Call, one_line

from herdner.cli import app
from herdner.cli.usage import parser_message


def commands(command: Any, path: str = "herdner") -> Iterator[tuple[str, Any]]:
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{path} {name}")
    if not hasattr(command, "commands"):
        yield path, command


OPTIONS: dict[str, list[tuple[str, Any]]] = defaultdict(list)
SHORT: dict[str, set[str]] = defaultdict(set)
for path, command in commands(typer.main.get_command(app)):
    for option in command.params:
        for name in option.opts:
            if name.startswith("--"):
                OPTIONS[name].append((path, option))
            elif name.startswith("-"):
                SHORT[name].add(option.opts[0])
# Options whose values differ between commands.
DIFFERENT = {"--name", "--backend", "--predictions"}
# Options that are a flag of one command: `evaluate --names` scores names; elsewhere the option is a file of names.
FLAG_SOMEWHERE = {"--names"}


@pytest.mark.parametrize("name", sorted(name for name, uses in OPTIONS.items() if len(uses) > 1))
def test_an_option_of_several_commands_has_one_form(name: str) -> None:
    uses = [option for _, option in OPTIONS[name]]
    assert len({tuple(option.opts) for option in uses}) == 1 or name in DIFFERENT
    assert len({option.is_flag for option in uses}) == 1 or name in FLAG_SOMEWHERE
    assert len({option.multiple for option in uses}) == 1 or name in DIFFERENT


def test_every_option_has_help_and_short_options_are_unique() -> None:
    assert {short: sorted(names) for short, names in SHORT.items() if len(names) > 1} == {}
    for name, uses in OPTIONS.items():
        for path, option in uses:
            assert option.help, f"{path} {name}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("infer g.uai --task MMAP", "--task: 'MMAP' is not one of 'mar', 'pr', 'mpe', 'samples'"),
        ("infer g.uai --samples 0", "--samples: must be greater than or equal to 1, got '0'"),
        ("infer g.uai --samples x", "--samples: must be a valid integer, got 'x'"),
        ("pseudonymise a.txt", "missing option '--map'"),
        ("tag --formatt text", "no such option: --formatt; did you mean --format?"),
        ("tag --jobs 0", "--jobs: must be greater than or equal to 1, got '0'"),
    ],
)
def test_messages_of_the_parser_have_the_form_of_all_messages(call: Call, arguments: str, message: str) -> None:
    command = arguments.split()[0]
    assert one_line(call(*arguments.split()), 2) == f"herdner: {message} (see herdner {command} --help)\n"


def test_the_messages_of_the_parser_do_not_depend_on_the_wording_of_its_libraries() -> None:
    class OtherWords(ValueError):
        def errors(self) -> list[dict[str, object]]:
            return [{"type": "less_than_equal", "ctx": {"le": 9}, "input": "10", "msg": "too large"}]

    error = typer.BadParameter("other words", param=OPTIONS["--jobs"][0][1])
    error.__cause__ = OtherWords()
    assert parser_message(error) == "--jobs: must be less than or equal to 9, got '10'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [("herdner ex", "explain"), ("herdner tag --colu", "--column"), ("herdner corpora co", "convert")],
)
def test_the_shell_completes_commands_and_options(words: str, expected: str) -> None:
    asked = {"_HERDNER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "herdner"], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [expected]
