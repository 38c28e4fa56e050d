"""Start time of commands, measured by the modules that they import."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from data import ELSEWHERE, REPOSITORY

# Modules that take seconds or tens of megabytes, and are not needed to tag a line.
HEAVY = """arviz asyncio dask fastapi http.client jax matplotlib pandas pyarrow requests rich scipy seqeval sklearn
sklearn_crfsuite spacy spacy_lookups_data ssl thinc threadpoolctl torch
herdner.dobrushin herdner.evaluation.report herdner.inference.gibbs herdner.integrations.dask herdner.integrations.serve
herdner.integrations.spacy herdner.studies""".split()  # noqa: SIM905
TAGGED = "[Ada Lovelace PER] met [Charles Babbage PER] in [London LOC]."


def heavy_after(arguments: list[str], given: str = "") -> tuple[list[str], str]:
    """Return the heavy modules that a command has imported, and its output."""
    program = f"""
import sys
from herdner.cli import run
run({arguments!r})
print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], input=given, capture_output=True, text=True, check=True, cwd=ELSEWHERE
    )
    return done.stderr.splitlines()[-1].split(), done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "format", ["text", *(pytest.param(name, marks=pytest.mark.slow) for name in ("jsonl", "conll"))]
)
def test_tagging_a_line_imports_nothing_heavy(format: str) -> None:
    heavy, output = heavy_after(["tag", "--format", format], "Ada Lovelace met Charles Babbage in London.\n")
    assert heavy == []
    assert output
    assert format != "text" or output.strip() == TAGGED


@pytest.mark.slow
def test_the_names_of_heavy_modules_are_names_that_they_have() -> None:
    """A misspelt module name would never be found."""
    pytest.importorskip("spacy")
    heavy, _ = heavy_after(["tag", "--format", "spacy", "--output", os.devnull], "Ada Lovelace.\n")
    assert {"spacy", "thinc"} <= set(heavy)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["tag", "--help"], ["tag", "--wrong"]])
def test_help_and_usage_errors_do_not_import_numpy(arguments: list[str]) -> None:
    program = f"import sys; from herdner.cli import run; run({arguments!r}); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ELSEWHERE)
    assert done.stdout.splitlines()[-1] == "False"


def test_importing_herdner_does_not_import_numpy() -> None:
    program = "import sys, herdner; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ELSEWHERE)
    assert done.stdout.strip() == "False"


# Commands without an optional library: one line says what to install.
MISSING = [
    (
        "scipy",
        ["train", "--train", f"{REPOSITORY}/corpora/herdner_news.dev.conll:conll", "--output", "a"],
        "training needs SciPy: pip install '.[train]'",
    ),
    ("spacy", ["tag", "--format", "spacy", "-o", "a"], ".spacy files need spaCy: pip install '.[spacy]'"),
    (
        "sklearn_crfsuite",
        ["train", "--train", "none.conll:conll", "--trainer", "crfsuite", "--output", "a"],
        "CRFsuite needs sklearn-crfsuite: pip install '.[train]'",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "arguments", "line"), MISSING)
def test_what_is_missing_is_one_line_that_says_what_to_install(module: str, arguments: list[str], line: str) -> None:
    program = f"""
import importlib.util
import sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {module!r} else found(name, package)
from herdner.cli import run
sys.exit(run({arguments!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], input="Ada.\n", capture_output=True, text=True, cwd=ELSEWHERE, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"herdner: {line} in the clone of herdner\n")
