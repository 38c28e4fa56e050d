"""spaCy's projects and packages: the template of docs, and a package in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
import spacy
from data import REPOSITORY
from patience import PATIENCE

import herdner

PROJECT = Path(REPOSITORY, "docs", "spacy", "project")
NEEDED = re.compile(rf"herdner>={re.escape(herdner.__version__)},<\d+\.\d+\.\d+")


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["herdner", "herdner_consistency"])
def test_a_pipeline_requires_herdner_once(factory, tmp_path):
    nlp = spacy.blank("en", meta={"requirements": ["other>=1"]})
    nlp.add_pipe(factory, name="one", config={"model": None} if factory == "herdner" else {})
    nlp.add_pipe(factory, name="two", config={"model": None} if factory == "herdner" else {})
    nlp.to_disk(tmp_path)
    for requirements in (nlp.meta["requirements"], json.loads((tmp_path / "meta.json").read_text())["requirements"]):
        assert requirements[0] == "other>=1"
        assert NEEDED.fullmatch(requirements[1])
        assert len(requirements) == 2
    assert spacy.load(tmp_path).meta["requirements"] == nlp.meta["requirements"]
    own = spacy.blank("en", meta={"requirements": ["herdner==0.1.0"]})
    own.add_pipe("herdner_consistency")
    assert own.meta["requirements"] == ["herdner==0.1.0"]


def run(
    *arguments: object, folder: Path, python: Path | str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    command, environment = [str(python), *map(str, arguments)], {**os.environ, **variables}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=2 * PATIENCE, env=environment)


@pytest.mark.slow
def test_the_project_trains_and_its_package_works_in_an_environment_of_its_own(tmp_path):
    """Test that the template gives a package that requires herdner and can tag."""
    if not Path(str(distribution("herdner").locate_file("herdner/__init__.py"))).exists():
        pytest.skip("needs herdner installed in full: another environment does not see an editable one")
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    (project / "assets").mkdir()
    for part, n in (("train", 40), ("dev", 10)):
        stories = Path(REPOSITORY, "corpora", f"herdner_news.{part}.conll").read_text(encoding="utf-8")
        few = "-DOCSTART-".join(stories.split("-DOCSTART-")[: n + 1])
        (project / "assets" / f"{part}.conll").write_text(few, encoding="utf-8")
    done = run("-m", "spacy", "project", "run", "all", folder=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((project / "training" / "metrics.json").read_text())["ents_f"] > 0.5
    (package,) = project.glob("packages/en_names-0.1.0/dist/*.tar.gz")
    with tarfile.open(package) as archive:
        (name,) = [each for each in archive.getnames() if each.endswith("egg-info/requires.txt")]
        required = archive.extractfile(name).read().decode()
    (line,) = [line for line in required.splitlines() if line.startswith("herdner")]
    assert set(line.removeprefix("herdner").split(",")) == {f">={herdner.__version__}", "<0.2.0"}
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    offline = ("-m", "pip", "install", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    # Herdner and what it needs, before what a new environment has, such as a setuptools that makes no wheels.
    others = os.pathsep.join(path for path in sys.path if path)
    installed = run(*offline, "--no-deps", package, folder=tmp_path, python=python, PYTHONPATH=others)
    assert installed.returncode == 0, installed.stderr
    text = "President Ada Lovelace said in London that John Smith left."
    code = f"import en_names; print([(e.text, e.label_) for e in en_names.load()({text!r}).ents])"
    used = run("-c", code, folder=tmp_path, python=python, PYTHONPATH=others)
    assert used.returncode == 0, used.stderr
    assert "Lovelace" in used.stdout
