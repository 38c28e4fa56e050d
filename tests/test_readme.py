"""The README's Python examples run and print the output that follows them."""

from __future__ import annotations

import re
import sys

import pytest
from data import REPOSITORY

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_every_example_has_its_output() -> None:
    assert len(EXAMPLES) == README.count("```python") >= 3


@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=[code.strip().splitlines()[-1][:40] for code, _ in EXAMPLES])
def test_example_prints_its_output(code: str, output: str, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == output


def test_the_readme_is_short() -> None:
    assert len(README.split()) < 800


def test_the_command_to_install_shows_its_progress() -> None:
    assert "pip install . && " in README


def test_badges_show_the_licence_and_the_versions_of_the_package() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = re.findall(r":: (3\.\d+)", "\n".join(project["classifiers"]))
    for name, value in (("license", project["license"]), ("python", f"{versions[0]} to {versions[-1]}")):
        badge = (REPOSITORY / "docs" / "pages" / "images" / f"badge-{name}.svg").read_text(encoding="utf-8")
        assert f'aria-label="{name}: {value}"' in badge
        assert value in README
