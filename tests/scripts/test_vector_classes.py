"""Vector classes of words, from a text file of vectors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from data import REPOSITORY
from patience import PATIENCE

from herdner._ext.hashing import hash_string
from herdner.ner.lexicon import read_vector_classes

SCRIPT = REPOSITORY / "scripts" / "models" / "vector_classes.py"


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "vectors.txt", "--output", "vectors.npz", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


def write(folder: Path, words: list[str], vectors: np.ndarray) -> None:
    rows = (f"{word} {' '.join(map(str, row))}" for word, row in zip(words, vectors.tolist(), strict=True))
    (folder / "vectors.txt").write_text("\n".join([f"{len(words)} {vectors.shape[1]}", *rows]), encoding="utf-8")


@pytest.mark.slow
def test_words_with_near_vectors_share_a_class(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2100, 8))
    words = [f"word{i}" for i in range(4200)]
    write(tmp_path, [*words, "Word7"], np.vstack([centres, centres + 1e-4, centres[:1]]).round(6))
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("4200 words")  # Word7 is word7
    found = read_vector_classes(tmp_path / "vectors.npz")
    medium = (found.values >> np.uint32(12) & np.uint32(511)).tolist()
    class_of = dict(zip(found.keys.tolist(), medium, strict=True))
    of = [class_of[hash_string(word) & 0xFFFFFFFF] for word in words]
    # Two words that are centres of their own may part at the leaves, not above.
    same = np.array(of[:2100]) == np.array(of[2100:])
    assert same.mean() > 0.99
    large = [found.values & np.uint32(31), found.values >> np.uint32(5) & np.uint32(127)]
    assert [len(np.unique(numbers)) for numbers in large] == [32, 128]


def test_too_few_words_are_one_line(tmp_path: Path) -> None:
    write(tmp_path, ["a", "b"], np.eye(2))
    done = run(tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip() == "vectors.txt: 2 words; expected at least 2,048"
    assert not (tmp_path / "vectors.npz").exists()
