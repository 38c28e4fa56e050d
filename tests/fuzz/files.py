"""Randomly altered files of models, layers and graphs."""

from __future__ import annotations

import io
import json
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from altered import altered, members_of, packed
from networks import random_network

import herdner
from fuzz.graphs import Rng, anything, backend, grid, pick
from fuzz.pieces import changed_bytes
from herdner import SkipChainLayer, Tagger
from herdner.crf.link_rules import SameStem
from herdner.crf.templates import skip_chain_template
from herdner.crf.weights import ChainWeights
from herdner.graph import load_graph, save_graph
from herdner.inference import make_backend
from herdner.ner.features import FeaturePlan
from herdner.ner.lexicon import Gazetteers, Lexicon, vector_classes, word_classes
from herdner.ner.model import TaggerModel

TEXT = "Ada Lovelace met Charles Babbage in New York. Ada paid Charles. OSLO, said Ada 's aunt."


@cache
def model() -> bytes:
    """Return a small model that tags names."""
    labels = ("O", "S-PER", "B-PER", "I-PER", "E-PER")
    rng = np.random.default_rng(5)
    plan = FeaturePlan(
        ("word[0]", "lower[-1]|word[0]", "gazetteer:city[0]", "shape[1]", "class4[0]"), ("lower",), 2, ("city",)
    )
    vectors = vector_classes({"ada": 0, "york": 1, "paid": 1}, np.array([[0, 1, 2], [31, 127, 511]]))
    lexicon = Lexicon(
        word_classes({"Ada": 12, "of": 900_000}), Gazetteers.of({"city": [["New", "York"], ["Oslo"]]}), vectors
    )
    keys = np.unique(herdner.ner.features.make_extractor(plan, lexicon).keys(*_tokens())[1])  # type: ignore[attr-defined]
    sizes = rng.integers(1, 4, len(keys))
    starts = np.append(0, np.cumsum(sizes)).astype(np.uint32)
    entries = rng.integers(0, 5, starts[-1]).astype(np.uint8)
    weights = ChainWeights(labels, rng.normal(size=(5, 5)), keys, starts, entries, rng.normal(size=starts[-1]))
    from herdner.crf.model import LinkTable

    links = (
        LinkTable(skip_chain_template(), np.eye(5)),
        LinkTable(skip_chain_template(SameStem()), np.eye(5)),
    )  # fmt: skip
    stream = io.BytesIO()
    network = random_network(labels, 3, largest=9)
    TaggerModel(weights, plan, lexicon, link_tables=links, network=network).save(stream)
    return stream.getvalue()


def _tokens() -> tuple[Any, Any]:
    document = herdner.Tokenizer()(TEXT)
    return document.tokens, document.sentence_offsets


@cache
def layer() -> bytes:
    stream = io.BytesIO()
    SkipChainLayer(["O", "B-PER", "I-PER"], ["same-word", skip_chain_template()]).save(stream)
    return stream.getvalue()


VALUES: list[Any] = [
    None, True, 0, -1, 1, 7, 2**31, 2**63, 2**70, 1e308, -1e308, float("nan"), float("inf"), "", "x", "same-word",
    "O", "a" * 5000, [], [1], ["x"], [[]], {}, {"x": 1}, [None] * 3, "\ud800", "\0", "en", "zh", "iob1", ["lower"] * 3,
]  # fmt: skip


def mutated(rng: Rng, value: Any) -> Any:
    """Return a JSON value with one random change."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = pick(rng, *value)
        if rng.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: mutated(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        place = int(rng.integers(len(value)))
        more = pick(rng, "change", "drop", "twice")
        middle = {"change": [mutated(rng, value[place])], "drop": [], "twice": [value[place]] * 2}[more]
        return [*value[:place], *middle, *value[place + 1 :]]
    return pick(rng, *VALUES)


def _array(rng: Rng, data: bytes) -> bytes:
    """Return an array with changed values, type or shape."""
    array = np.load(io.BytesIO(data), allow_pickle=False)
    kind = pick(rng, "numbers", "numbers", "numbers", "type", "shape", "header", "cut")
    if kind == "numbers" and array.size:
        flat = array.reshape(-1).copy()
        for _ in range(int(pick(rng, 1, 2, 10))):
            odd = [0, 1, 255, 65535] if array.dtype.kind in "ui" else [np.nan, np.inf, -np.inf, 1e300, 1e99, 0, -5]
            flat[rng.integers(flat.size)] = np.array(pick(rng, *odd)).astype(array.dtype)
        array = flat.reshape(array.shape)
    elif kind == "type":
        with np.errstate(all="ignore"):
            array = array.astype(pick(rng, np.int64, np.uint8, np.float64, np.float32, np.int8, ">u8", np.uint16, bool))
    elif kind == "shape":
        array = pick(
            rng, array[:-1], array[:0], array[None], np.concatenate([array, array]), array.reshape(-1)[:1], array[0]
        )
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=(1, 0))
    data = stream.getvalue()
    return changed_bytes(rng, data[:128]) + data[128:] if kind == "header" else data[:-3] if kind == "cut" else data


def _altered(rng: Rng, whole: bytes, summed: float = 0.9) -> bytes:
    if rng.random() < 0.2:
        return changed_bytes(rng, whole)

    def change(members: dict[str, bytes]) -> None:
        for _ in range(int(pick(rng, 1, 1, 2))):
            name = pick(rng, *members)
            if name == "header.json":
                header = mutated(rng, json.loads(members[name]))
                members[name] = json.dumps(header).encode("utf-8", "surrogatepass")
            elif members[name][:6] == b"\x93NUMPY":
                try:
                    members[name] = _array(rng, members[name])
                except Exception:  # an earlier change made it invalid
                    return

    return altered(whole, change, summed=bool(rng.random() < summed))


def models(rng: Rng) -> None:
    """Load an altered model: it must tag, or raise `ModelError`."""
    try:
        tagger = Tagger.from_model(TaggerModel.load(io.BytesIO(_altered(rng, model()))))
    except herdner.ModelError:
        raise
    except ValueError as error:
        raise AssertionError(f"no ModelError but {error!r:.300}") from None
    document = tagger.tag(TEXT)
    for entity in document.entities:
        assert document.text[entity.start : entity.end] == entity.text, entity
        assert entity.confidence is not None, entity
        assert 0 <= entity.confidence <= 1 + 1e-9, entity
    tagger.tag(TEXT, backend=backend(rng) if rng.random() < 0.5 else make_backend("dhg", n_sweeps=3))


@cache
def _tagged() -> tuple[Any, ...]:
    document = Tagger.from_model(TaggerModel.load(io.BytesIO(model()))).tag(TEXT)
    return document.tags, document.entities


def sealed(rng: Rng) -> None:
    """Load an altered model with its old checksum: it must be refused, or tag exactly as before."""
    data = _altered(rng, model(), summed=0.0)
    with suppress(Exception):
        if "checksum" not in json.loads(members_of(data)["header.json"]):
            return  # files without checksum are loaded with a warning
    tagger = Tagger.from_model(TaggerModel.load(io.BytesIO(data)))
    document = tagger.tag(TEXT)
    assert (document.tags, document.entities) == _tagged(), "tags otherwise"


def layers(rng: Rng) -> None:
    try:
        loaded = SkipChainLayer.load(io.BytesIO(_altered(rng, layer())))
    except herdner.ModelError:
        raise
    except ValueError as error:
        raise AssertionError(f"no ModelError but {error!r:.300}") from None
    n = len(loaded.tags)
    scores = np.zeros((4, n)) if loaded.scores == "log-potentials" else np.full((4, n), 1 / n)
    loaded.apply(scores, ["Ada", "met", "Ada", "."])


def graph_files(rng: Rng) -> None:
    """Load an altered graph file: it must be a graph, or raise an error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g.npz"
        save_graph(path, pick(rng, grid, anything)(rng))
        members = members_of(path.read_bytes())
        name = pick(rng, *members)
        with suppress(IndexError):  # an empty file
            members[name] = _array(rng, members[name])
        if rng.random() < 0.1:
            members[pick(rng, "more.npy", "scale_7.npy", "sizes", "scopes_\u0662.npy")] = members[name]
        path.write_bytes(
            changed_bytes(rng, packed(members, plain=True)) if rng.random() < 0.2 else packed(members, plain=True)
        )
        graph = load_graph(path)
    make_backend(pick(rng, "gibbs", "mean-field", "icm", "dhg", "max-product"), n_sweeps=2).infer(graph, 1)
