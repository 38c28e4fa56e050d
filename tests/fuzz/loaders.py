"""Randomly altered small files: known names, corpus registries, JSON documents and CRFsuite models."""

from __future__ import annotations

import io
import json
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import herdner
from fuzz.files import mutated
from fuzz.graphs import Rng, pick
from fuzz.pieces import changed_bytes
from herdner import Document, Names
from herdner.corpora.registry import CorpusError, load_registry
from herdner.crf.crfsuite_files import chain_weights, read_crfsuite
from herdner.ner.known_names.reading import read_known_names

PATTERNS = b"""{"label": "ORG", "pattern": "Winam Ferries"}
{"label": "PER", "pattern": [{"LOWER": "ada"}, {"IS_TITLE": true, "OP": "?"}], "strength": 2.5}
{"label": "LOC", "pattern": "Oslo", "strength": "hard"}\n"""
COLUMNS = b"# names\nWinam Ferries\tORG\nAda\tPER\t2.5\nOslo\tLOC\thard\n"


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp())


def file(data: bytes) -> Path:
    path = folder() / "file"
    path.write_bytes(data)
    return path


def names(rng: Rng) -> None:
    entries = list(read_known_names(io.BytesIO(changed_bytes(rng, pick(rng, PATTERNS, COLUMNS)))))
    assert all(entry.label and entry.pattern for entry in entries), entries
    Names.of([entry[:3] for entry in entries if isinstance(entry.pattern, str)])


@cache
def registry_text() -> bytes:
    """Return the first entries of the corpus registry."""
    own = Path(__file__).resolve().parents[2] / "corpora" / "registry.toml"
    return b"\n[corpus.".join(own.read_bytes().split(b"\n[corpus.")[:3])


def registries(rng: Rng) -> None:
    deep = b"\nx = " + b"[" * int(pick(rng, 10, 2000, 90_000)) if rng.random() < 0.02 else b""
    try:
        load_registry(file(changed_bytes(rng, registry_text()) + deep))
    except CorpusError as error:
        raise ValueError(str(error)) from None


def documents(rng: Rng) -> None:
    document = herdner.Tokenizer()("Ada Lovelace met Bob.").with_tags(["B-PER", "I-PER", "O", "B-PER", "O"])
    data = json.dumps(mutated(rng, document.to_dict()))
    made = Document.from_json(
        data if rng.random() < 0.7 else changed_bytes(rng, data.encode()).decode("utf-8", "ignore")
    )
    for entity in made.entities:
        assert made.text[entity.start : entity.end] == entity.text, entity
    assert Document.from_json(made.to_json()) == made


@cache
def crfsuite_model() -> bytes:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    for _ in range(3):
        trainer.append([["17", "5"], ["8"], ["17", "9"]], ["B-PER", "O", "I-PER"])
    path = folder() / "model"
    trainer.train(str(path))
    return path.read_bytes()


def crfsuite(rng: Rng) -> None:
    """Read an altered model: random bytes, or one of its sizes, counts and places replaced by an extreme number."""
    if find_spec("pycrfsuite") is None:
        return
    data = crfsuite_model()
    if rng.random() < 0.5:
        at = 4 * int(rng.integers(len(data) // 4))
        number = int(pick(rng, 0, 1, 255, 257, at, len(data), 2**31 - 1, 2**31, 2**32 - 1))
        data = data[:at] + number.to_bytes(4, "little") + data[at + 4 :]
    else:
        data = changed_bytes(rng, data)
    weights = read_crfsuite(file(data))
    chain_weights(weights)
    assert np.isfinite(weights.score([["17", "5"], ["8"]])).all(), weights


def loaders(rng: Rng) -> None:
    """Read an altered file: the result must be sound, or `ValueError` must be raised."""
    pick(rng, names, registries, documents, crfsuite)(rng)
