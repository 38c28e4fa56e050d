"""Smaller files, altered at random: known names, registries of corpora, graphs and tables in the format of HGW19's
authors, documents as JSON, CRFsuite's models.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import herdner
from fuzz.files import mutated
from fuzz.graphs import Rng, pick
from fuzz.pieces import changed_bytes
from herdner import Document, Names
from herdner.corpora.registry import CorpusError, load_registry
from herdner.crf.crfsuite_files import chain_weights, read_crfsuite
from herdner.ner.known_names.reading import read_known
from herdner.studies.convergence.authors import read_boltzmann, read_expectations, read_table

PATTERNS = b"""{"label": "ORG", "pattern": "Winam Ferries"}
{"label": "PER", "pattern": [{"LOWER": "ada"}, {"IS_TITLE": true, "OP": "?"}], "strength": 2.5}
{"label": "LOC", "pattern": "Oslo", "strength": "hard"}\n"""
COLUMNS = b"# names\nWinam Ferries\tORG\nAda\tPER\t2.5\nOslo\tLOC\thard\n"
BOLTZMANN = b"3 2\n0.5\n-1\n2e-3\n0 1 0.25\n1 2 -4\n"
TABLE = b"2^1\t0.5\t0.25\t0.1\t0\t0\t1\t\n2^2\t0.5\t0.25\t0.1\t0\t0\t1\t\n"


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp())


def file(data: bytes) -> Path:
    path = folder() / "file"
    path.write_bytes(data)
    return path


def names(rng: Rng) -> None:
    entries = list(read_known(io.BytesIO(changed_bytes(rng, pick(rng, PATTERNS, COLUMNS)))))
    assert all(entry.label and entry.pattern for entry in entries), entries
    Names.of([entry[:3] for entry in entries if isinstance(entry.pattern, str)])


@cache
def registry_text() -> bytes:
    """The first entries of the registry of this repository."""
    own = Path(__file__).resolve().parents[2] / "corpora" / "registry.toml"
    return b"\n[corpus.".join(own.read_bytes().split(b"\n[corpus.")[:3])


def registries(rng: Rng) -> None:
    deep = b"\nx = " + b"[" * int(pick(rng, 10, 2000, 90_000)) if rng.random() < 0.02 else b""
    try:
        load_registry(file(changed_bytes(rng, registry_text()) + deep))
    except CorpusError as error:
        raise ValueError(str(error)) from None


def authors(rng: Rng) -> None:
    read: Callable[[Path], Any]
    read, data = pick(
        rng, (read_boltzmann, BOLTZMANN), (read_table, TABLE), (read_expectations, b"0.5\n0.25\n\n1e-3\n")
    )
    read(file(changed_bytes(rng, data)))


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
    if find_spec("pycrfsuite") is None:
        return
    chain_weights(read_crfsuite(file(changed_bytes(rng, crfsuite_model()))))


def loaders(rng: Rng) -> None:
    """What is read is sound; what is not is a ValueError."""
    pick(rng, names, registries, authors, documents, crfsuite)(rng)
