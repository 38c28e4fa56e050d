"""Project files: security guarantees have tests, and the citation and the workflow fit the package."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from data import ELSEWHERE, REPOSITORY

import herdner

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    named = {*re.findall(r"`((?:tests|scripts|docs|cython_ext|herdner|\.ci|\.github)/[\w./*-]*)", text)}
    named |= {target.partition("#")[0] for target in re.findall(r"\]\(([^)#:]+)\)", text)}
    missing = [path for path in sorted(named) if not list(REPOSITORY.glob(path.rstrip("/")))]
    assert not missing


def test_each_security_guarantee_names_tests() -> None:
    page = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
    guarantees = re.search(r"\| guarantee \| tests \|\n\|[-|]+\|\n((?:\|.*\n)+)", page)
    assert guarantees
    for row in guarantees[1].splitlines():
        tests = re.findall(r"`(tests/[^`]+\.py)`", row.split("|")[2])
        assert tests, row
        assert all("def test_" in (REPOSITORY / path).read_text(encoding="utf-8") for path in tests)


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == PROJECT["project"]["name"]
    assert citation["version"] == herdner.__version__
    assert citation["license"] == PROJECT["project"]["license"]


def test_classifiers_workflow_and_wheels_have_the_same_pythons() -> None:
    prefix = "Programming Language :: Python :: "
    classified = [entry.removeprefix(prefix) for entry in PROJECT["project"]["classifiers"] if entry.startswith(prefix)]
    workflow = yaml.safe_load((REPOSITORY / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    wheels = [entry.removeprefix("cp3").removesuffix("-*") for entry in PROJECT["tool"]["cibuildwheel"]["build"]]
    versions = workflow["jobs"]["checks"]["strategy"]["matrix"]["python"]
    assert ["3", *versions] == classified
    assert versions == [f"3.{minor}" for minor in wheels]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    assert workflow["jobs"]["checks"]["steps"][-1] == {"run": ".ci/run"}


@pytest.mark.slow
def test_the_command_that_tries_a_wheel_tags_a_line() -> None:
    command = shlex.split(PROJECT["tool"]["cibuildwheel"]["test-command"])
    assert command[0] == "python"
    run = subprocess.run([sys.executable, *command[1:]], cwd=Path(ELSEWHERE), capture_output=True, text=True)
    assert (run.stdout.strip(), run.returncode) == ("['PER', 'PER', 'LOC']", 0), run.stderr
