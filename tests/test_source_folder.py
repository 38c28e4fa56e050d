"""Python started in a source folder without compiled modules, as after `pip install .` in a clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from data import REPOSITORY

import herdner

SNIPPET = "import herdner, herdner.ner.tagger as t; print(herdner.__file__, t.__file__, len(herdner.load('en').labels))"
SPAWNED = f"""
import multiprocessing

def work():
    {SNIPPET}

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
    raise SystemExit(process.exitcode)
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package's sources, in a folder of its own, with a script and a test beside it."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(
        REPOSITORY / "herdner",
        folder / "herdner",
        ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "data"),
    )
    (folder / "script.py").write_text(SNIPPET, encoding="utf-8")
    (folder / "spawned.py").write_text(SPAWNED, encoding="utf-8")
    (folder / "test_snippet.py").write_text(f"def test_snippet():\n    {SNIPPET}\n", encoding="utf-8")
    return folder


def run(clone: Path, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    # Without the options and workers of the surrounding test run: a worker would capture what the inner test prints.
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=clone,
        env={**outer, **environment},
        input=stdin,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (("-c", SNIPPET), ""),
        (("script.py",), ""),
        (("-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "test_snippet.py"), ""),
        (("-",), f"{SNIPPET}\n"),
        (("-i",), f"{SNIPPET}\n"),
        (("spawned.py",), ""),
    ],
    ids=["-c", "script", "pytest", "stdin", "interactive", "spawned"],
)
def test_the_installed_package_is_imported(clone: Path, arguments: tuple[str, ...], stdin: str) -> None:
    completed = run(clone, *arguments, stdin=stdin)
    assert completed.returncode == 0, completed.stderr + completed.stdout
    assert "__init__.py" in completed.stdout
    assert str(clone) not in completed.stdout.replace("rootdir: " + str(clone), "")


def test_the_command_line_runs(clone: Path) -> None:
    completed = run(clone, "-m", "herdner", "backends")
    assert completed.returncode == 0, completed.stderr
    assert "viterbi" in completed.stdout


def test_without_an_installed_package_the_error_says_what_to_do(clone: Path) -> None:
    completed = run(clone, "-S", "-c", "import herdner", PYTHONPATH="")
    assert completed.returncode == 1
    assert "source folder without compiled modules, and herdner is not installed" in completed.stderr
    assert "pip install ." in completed.stderr


def test_another_version_is_not_imported(clone: Path, tmp_path: Path) -> None:
    if Path(herdner.__file__).is_relative_to(REPOSITORY):
        pytest.skip("an editable installation is imported before the current folder")
    copy = tmp_path / "other"
    shutil.copytree(clone, copy)
    init = copy / "herdner" / "__init__.py"
    init.write_text(init.read_text(encoding="utf-8").replace('__version__ = "', '__version__ = "9.'), encoding="utf-8")
    completed = run(copy, "-c", "import herdner")
    assert completed.returncode == 1
    assert "the installed herdner has version" in completed.stderr
