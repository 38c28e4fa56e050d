"""Laws of the repository: the README's promises, versions, rooms, sizes of functions, no traces of one machine."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from importlib.metadata import version
from pathlib import Path

import pytest
from data import REPOSITORY

import herdner

GENERATED = {"build", "dist", "out", "__pycache__"}
TEXT = {
    ".py",
    ".pyi",
    ".pyx",
    ".pxd",
    ".pxi",
    ".h",
    ".c",
    ".toml",
    ".md",
    ".cff",
    ".yaml",
    ".yml",
    ".build",
    ".txt",
    ".cfg",
    ".ini",
    ".sh",
}


def repository_files() -> list[Path]:
    """Every file a clone would hold, by its path below the repository's root."""
    found = []
    for path in sorted(REPOSITORY.rglob("*")):
        parts = path.relative_to(REPOSITORY).parts
        hidden = any(part.startswith(".") and part not in {".ci", ".github"} for part in parts[:-1])
        if path.is_file() and not hidden and not GENERATED.intersection(parts) and not parts[0].endswith(".egg-info"):
            found.append(path.relative_to(REPOSITORY))
    return found


def sources(*folders: str, suffixes: tuple[str, ...] = (".py",)) -> list[Path]:
    found = [path for path in repository_files() if path.parts[0] in folders and path.suffix in suffixes]
    assert found, f"no sources below {folders}"
    return found


def readme_command(name: str) -> str:
    block = re.search(
        rf"^<!-- command: {name} -->\n```sh\n(.*?)\n```$", (REPOSITORY / "README.md").read_text(), re.M | re.S
    )
    assert block, f"README.md has no command {name!r}"
    return block[1]


@pytest.mark.parametrize(("name", "last"), [("tag", "herdner tag corpora/article.txt"), ("test", "pytest")])
def test_each_readme_command_is_one_line_that_sets_up_its_own_environment(name: str, last: str) -> None:
    command = readme_command(name)
    assert "\n" not in command
    assert command.endswith(last)
    environment = shlex.split(command)[3]
    assert command.startswith(f"python3 -m venv {environment} && {environment}/bin/pip install ")


def test_version_is_the_same_everywhere() -> None:
    build = re.search(r"version: '([^']+)'", (REPOSITORY / "meson.build").read_text())
    project = re.search(r'^version = "([^"]+)"', (REPOSITORY / "pyproject.toml").read_text(), re.M)
    assert build
    assert project
    assert build[1] == project[1] == herdner.__version__ == version("herdner")


@pytest.mark.parametrize("source", [path.stem for path in Path(REPOSITORY, "cython_ext").glob("*.pyx")])
def test_every_compiled_module_is_installed_and_has_a_stub(source: str) -> None:
    module = importlib.import_module(f"herdner._ext.{source}")
    assert module.__file__
    assert not module.__file__.endswith(".py")
    stub, shared = ((REPOSITORY / "herdner" / "_ext" / source).with_suffix(suffix) for suffix in (".pyi", ".pxd"))
    assert stub.exists() or shared.exists(), "pyright sees a compiled module by its stub; others compiled, by its .pxd"


def test_tests_stand_in_the_room_that_they_test() -> None:
    """``tests/X`` for ``herdner/X``; ``laws`` and ``fuzz`` go everywhere, ``papers``, ``scripts`` to ``scripts/``."""
    rooms = {path.parent.relative_to("tests") for path in sources("tests") if path.name.startswith("test_")}
    strangers = [room for room in rooms if not (REPOSITORY / "herdner" / room).is_dir()]
    assert set(map(str, strangers)) == {"faults", "fuzz", "laws", "papers", "scripts"}
    packages = {path.parent.name for path in (REPOSITORY / "herdner").glob("*/__init__.py")}
    assert packages - {"_ext"} <= set(map(str, rooms)), "a room without tests"


@pytest.mark.slow
def test_functions_fit_one_screen() -> None:
    long = []
    for path in sources("herdner", "scripts"):
        for node in ast.walk(ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                documented = ast.get_docstring(node) is not None
                first = node.body[0].end_lineno or node.lineno
                docstring = first - node.body[0].lineno + 1 if documented else 0
                size = node.end_lineno - node.lineno + 1 - docstring
                if size > 70:
                    long.append(f"{path}:{node.lineno} {node.name} ({size} lines)")
    assert not long


@pytest.mark.slow
def test_nothing_is_executed_from_files() -> None:
    """Models and corpora are untrusted: no pickle, no eval, no exec, no yaml.load in the package."""
    forbidden = {"eval", "exec"}
    found = []
    for path in sources("herdner"):
        for node in ast.walk(ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))):
            names: set[str] = set()
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names} & {"pickle", "marshal", "dill", "joblib"}
            elif isinstance(node, ast.ImportFrom):
                names = {(node.module or "").split(".")[0]} & {"pickle", "marshal", "dill", "joblib"}
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = {node.func.id} & forbidden
            found += [f"{path}:{getattr(node, 'lineno', 0)} {name}" for name in names]
    assert not found


def test_no_path_of_one_machine() -> None:
    machine = re.compile(r"[/](?:work|root|home|Users|mnt)[/]")
    found = []
    for path in repository_files():
        if path.suffix in TEXT or path.parts[0] == ".ci":
            text = (REPOSITORY / path).read_text(encoding="utf-8")
            found += [f"{path}: {line.strip()}" for line in text.splitlines() if machine.search(line)]
    assert not found
