"""The recipes of CONTRIBUTING.md work: each is carried out in a copy of the package, and prints what it says.

In a recipe a block of ``python`` or ``toml`` with ``title="FILE"`` makes that file, or is added to its end; a block of
``diff`` with a title changes it; ``python`` and ``sh`` without one are run there, and ``text`` behind is their output.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from data import REPOSITORY

PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### (.+)\n((?:(?!^##).*\n)+)", PAGE, re.M))
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
# Where the package is installed to be edited, a finder would go before the copy.
SITE = (
    "import sys\nsys.meta_path[:] = [each for each in sys.meta_path if 'mesonpy' not in type(each).__name__.lower()]\n"
)
PROGRAM = '#!/bin/sh\nexec "{python}" {arguments} "$@"\n'


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package's Python, with the compiled modules and the model that are installed."""
    for part in ("herdner", "scripts/papers", "corpora"):
        ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.herdner", "*.conll")
        shutil.copytree(REPOSITORY / part, tmp_path / part, ignore=ignore)
    compiled = Path(str(importlib.import_module("herdner._ext.chain").__file__)).parent
    for module in compiled.glob(f"*{EXTENSION_SUFFIXES[0]}"):
        (tmp_path / "herdner" / "_ext" / module.name).symlink_to(module)
    (tmp_path / "sitecustomize.py").write_text(SITE)
    (tmp_path / "bin").mkdir()
    for name, arguments in (("python", ""), ("herdner", "-m herdner")):
        (tmp_path / "bin" / name).write_text(PROGRAM.format(python=sys.executable, arguments=arguments))
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def run(folder: Path, *command: str) -> str:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(folder), "PATH": path, "COLUMNS": "110"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def changed(text: str, diff: str) -> str:
    """A file with the lines of a diff put in, whose other lines it holds once."""
    lines = diff.splitlines()
    old = "\n".join(line[1:] for line in lines if not line.startswith("+")) + "\n"
    new = "\n".join(line[1:] for line in lines if not line.startswith("-")) + "\n"
    assert text.count(old) == 1, f"not there, or not once: {old}"
    return text.replace(old, new)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs sh")
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_works(copy: Path, recipe: str) -> None:
    if "scripts/papers" in RECIPES[recipe]:
        pytest.importorskip("matplotlib", reason="needs the extra evaluate")
    printed = None
    for language, title, body in BLOCK.findall(RECIPES[recipe]):
        if language == "diff":
            (copy / title).write_text(changed((copy / title).read_text(encoding="utf-8"), body), encoding="utf-8")
        elif title:
            with (copy / title).open("a", encoding="utf-8") as file:
                file.write("\n" * (file.tell() > 0) + body)
        elif language == "text":
            assert printed == body
        else:
            shutil.copy(copy / "corpora" / "registry.toml", copy / "herdner" / "data")  # as the build does
            printed = run(copy, *(("python", "-c") if language == "python" else ("sh", "-euc")), body)
    assert printed is not None


def test_a_recipe_takes_ten_lines() -> None:
    assert len(RECIPES) == 5
    for recipe, text in RECIPES.items():
        for language, title, body in BLOCK.findall(text):
            if title and language == "python":
                assert 5 <= code_lines(body) <= 10, recipe
            if language == "diff":
                assert sum(line.startswith(("+", "-")) for line in body.splitlines()) == 1, recipe


def code_lines(source: str) -> int:
    """Lines of code: those of a module or of its functions, no imports, no docstrings, no blank ones."""
    kept = 0
    for node in ast.parse(source).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or isinstance(node, ast.Import | ast.ImportFrom) or ast.unparse(node).startswith("if __name__"):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(inner):
                inner.body = inner.body[1:]
        kept += sum(bool(line) for line in ast.unparse(node).splitlines())
    return kept


def test_lines_of_code_are_counted() -> None:
    assert code_lines('"""A\nb."""\nimport os\n\nx = 1\n\ndef f():\n    """C."""\n\n    return (x,\n     2)\n') == 3
    assert changed("a\nb\nc\n", " a\n+x\n-b\n") == "a\nx\nc\n"
