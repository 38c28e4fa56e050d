"""Paths of the shared corpora, which are never part of the repository."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from herdner.corpora.formats import read_documents
from herdner.text.document import Document

REPOSITORY = Path(__file__).resolve().parents[2]


def shared_data(path: str) -> Path:
    """The file or folder ``path`` of the shared data; the calling test is skipped where it is missing.

    The data are looked for in the folder named by the environment variable HERDNER_DATA, else in ``../shared/data``.
    """
    found = Path(os.environ.get("HERDNER_DATA") or REPOSITORY.parent / "shared" / "data") / path
    if not found.exists():
        pytest.skip(f"needs the corpus {path}: set HERDNER_DATA to the folder of the shared data")
    return found


def news(split: str) -> list[Document]:
    """The stories of this repository: "train" or "dev"."""
    return list(read_documents(REPOSITORY / "corpora" / f"herdner_news.{split}.conll", "conll"))


# Where tests start another Python, which imports what it finds there: nothing. In the repository it would find the
# sources, which have no compiled modules, and in a folder that others use whatever they have left.
ELSEWHERE = tempfile.mkdtemp(prefix="herdner-")
atexit.register(shutil.rmtree, ELSEWHERE, ignore_errors=True)
