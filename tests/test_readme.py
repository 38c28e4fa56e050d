"""The README's Python examples run and print the output that follows them."""

from __future__ import annotations

import re

import pytest
from data import REPOSITORY

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
