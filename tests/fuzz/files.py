"""Files altered at random: models, layers, graphs, and documents in every format."""

from __future__ import annotations

import io
import json
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from altered import altered, members_of, packed

import herdner
from fuzz.graphs import Rng, anything, backend, grid, pick
from herdner import Document, SkipChainLayer, Tagger, skip_chain
from herdner.crf.rules import SameStem
from herdner.crf.weights import ChainWeights
from herdner.graph import load_graph, save_graph
from herdner.inference import make_backend
from herdner.ner.features import FeaturePlan
from herdner.ner.lexicon import Gazetteers, Lexicon, word_classes
from herdner.ner.model import Model
from herdner.text.io import FORMATS

TEXT = "Ada Lovelace met Charles Babbage in New York. Ada paid Charles. OSLO, said Ada 's aunt."


@cache
def model() -> bytes:
    """A small model that tags names."""
    labels = ("O", "S-PER", "B-PER", "I-PER", "E-PER")
    rng = np.random.default_rng(5)
    plan = FeaturePlan(
        ("word[0]", "lower[-1]|word[0]", "gazetteer:city[0]", "shape[1]", "class4[0]"), ("lower",), 2, ("city",)
    )
    lexicon = Lexicon(word_classes({"Ada": 12, "of": 900_000}), Gazetteers.of({"city": [["New", "York"], ["Oslo"]]}))
    keys = np.unique(herdner.ner.features.make_extractor(plan, lexicon).keys(*_tokens())[1])  # type: ignore[attr-defined]
    sizes = rng.integers(1, 4, len(keys))
    starts = np.append(0, np.cumsum(sizes)).astype(np.uint32)
    entries = rng.integers(0, 5, starts[-1]).astype(np.uint8)
    weights = ChainWeights(labels, rng.normal(size=(5, 5)), keys, starts, entries, rng.normal(size=starts[-1]))
    from herdner.crf.model import LinkTable
    from herdner.crf.templates import EdgeScale

    links = (
        LinkTable(skip_chain(), np.eye(5)), LinkTable(skip_chain(SameStem(), scaled=True), np.eye(5), EdgeScale(0.1)),
    )  # fmt: skip
    stream = io.BytesIO()
    Model(weights, plan, lexicon, link_tables=links).save(stream)
    return stream.getvalue()


def _tokens() -> tuple[Any, Any]:
    document = herdner.Tokenizer()(TEXT)
    return document.tokens, document.sentence_offsets


@cache
def layer() -> bytes:
    stream = io.BytesIO()
    SkipChainLayer(["O", "B-PER", "I-PER"], ["same-word", skip_chain(scaled=True)]).save(stream)
    return stream.getvalue()


VALUES: list[Any] = [
    None, True, 0, -1, 1, 7, 2**31, 2**63, 2**70, 1e308, -1e308, float("nan"), float("inf"), "", "x", "same-word",
    "O", "a" * 5000, [], [1], ["x"], [[]], {}, {"x": 1}, [None] * 3, "\ud800", "\0", "en", "zh", "iob1", ["lower"] * 3,
]  # fmt: skip


def mutated(rng: Rng, value: Any) -> Any:
    """A value of JSON with one thing in it changed."""
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
    """An array with numbers, type or shape changed."""
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


def changed_bytes(rng: Rng, data: bytes) -> bytes:
    """Bytes flipped, cut out, put in or doubled."""
    found = bytearray(data)
    for _ in range(int(pick(rng, 1, 1, 2, 8))):
        if not found:
            break
        at = int(rng.integers(len(found)))
        kind = pick(rng, "flip", "flip", "random", "cut", "put", "twice", "end")
        if kind == "flip":
            found[at] ^= 1 << int(rng.integers(8))
        elif kind == "random":
            found[at] = int(rng.integers(256))
        elif kind == "cut":
            del found[at : at + int(rng.integers(1, 9))]
        elif kind == "put":
            found[at:at] = pick(rng, *PIECES)
        elif kind == "twice":
            found[at:at] = found[at : at + int(rng.integers(1, 40))]
        else:
            del found[at:]
    return bytes(found)


PIECES = [
    b"\0", b"\xff", b"\n", b"\n\n", b"\r", b" ", b"\t", b'"', b"{", b"[", b"<DOC>", b"</DOC>", b"<TEXT>", b"<e_enamex>",
    b'<b_enamex type="PERSON">', b"-DOCSTART-", b"B-PER", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"-1",
    b'"start": 9', b"NaN", b"\x1f\x8b", b"\xf0\x9f\x8f\xa0",
]  # fmt: skip


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
                except Exception:  # it was altered before, and is no array any more
                    return

    return altered(whole, change, summed=bool(rng.random() < summed))


def models(rng: Rng) -> None:
    """A model that loads tags; one that does not is a ModelError."""
    try:
        tagger = Tagger.from_model(Model.load(io.BytesIO(_altered(rng, model()))))
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
    document = Tagger.from_model(Model.load(io.BytesIO(model()))).tag(TEXT)
    return document.tags, document.entities


def sealed(rng: Rng) -> None:
    """A model that was altered and keeps its checksum is refused, or tags as before, bit for bit."""
    data = _altered(rng, model(), summed=0.0)
    with suppress(Exception):
        if "checksum" not in json.loads(members_of(data)["header.json"]):
            return  # such files were written before there were checksums; loading warns of them
    tagger = Tagger.from_model(Model.load(io.BytesIO(data)))
    document = tagger.tag(TEXT)
    assert (document.tags, document.entities) == _tagged(), "tags otherwise"


def layers(rng: Rng) -> None:
    try:
        loaded = SkipChainLayer.load(io.BytesIO(_altered(rng, layer())))
    except herdner.ModelError:
        raise
    except ValueError as error:
        raise AssertionError(f"no ModelError but {error!r:.300}") from None
    n = len(loaded.labels)
    scores = np.zeros((4, n)) if loaded.scores == "log-potentials" else np.full((4, n), 1 / n)
    loaded.apply(scores, ["Ada", "met", "Ada", "."])


def graph_files(rng: Rng) -> None:
    """A graph file that loads is a graph."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g.npz"
        save_graph(path, pick(rng, grid, anything)(rng))
        members = members_of(path.read_bytes())
        name = pick(rng, *members)
        with suppress(IndexError):  # nothing in it
            members[name] = _array(rng, members[name])
        if rng.random() < 0.1:
            members[pick(rng, "more.npy", "scale_7.npy", "sizes", "scopes_\u0662.npy")] = members[name]
        path.write_bytes(
            changed_bytes(rng, packed(members, plain=True)) if rng.random() < 0.2 else packed(members, plain=True)
        )
        graph = load_graph(path)
    make_backend(pick(rng, "gibbs", "mean-field", "icm", "dhg", "max-product"), n_sweeps=2).infer(graph, 1)


IEER = b"""<DOC>\n<DOCNO> x1 </DOCNO>\n<BODY>\n<HEADLINE>\n<b_enamex type="LOCATION">Oslo<e_enamex> calls
</HEADLINE>\n<TEXT>\n<b_enamex type="PERSON">Ada Lovelace<e_enamex> paid <b_numex type="MONEY">$ 5<e_numex> to
<b_enamex type="ORGANIZATION" status="opt">AT&AMP;T<e_enamex>.\n</TEXT>\n</BODY>\n</DOC>\n"""
CONLL = b"-DOCSTART- -X- O O\n\nAda NNP I-NP B-PER\nLee NNP I-NP I-PER\nmet VBD I-VP O\n\nBob NNP I-NP B-PER\n. . O O\n"
WNUT = b"Ada\tB-person\nmet\tO\n\nBob\tB-person\n"
JSONL = b'{"text": "Ada met.", "entities": [{"start": 0, "end": 3, "label": "PER"}], "tokens": ["Ada", "met", "."]}\n'
UNER = b"# newdoc id = d\n# sent_id = 1\n# text = Ada met Bob\n1\tAda\tB-PER\t-\tx\n2\tmet\tO\t-\tx\n\n"
SEEDS = [IEER, CONLL, WNUT, JSONL, UNER, TEXT.encode(), b"http://www.x.org/a\tO\n\nAda\tB-PER\n"]


@cache
def docbin() -> bytes:
    """The message inside a DocBin, not compressed."""
    stream = io.BytesIO()
    herdner.write_documents([herdner.Tokenizer()(TEXT).with_tags(["B-PER"] * len(_tokens()[0]))], stream, "spacy")
    return zlib.decompress(stream.getvalue())


def _docbin(rng: Rng) -> bytes:
    import srsly

    if rng.random() < 0.3:
        return zlib.compress(changed_bytes(rng, docbin()))
    message: Any = srsly.msgpack_loads(docbin())
    key = pick(rng, *message)
    value = message[key]
    message[key] = changed_bytes(rng, value) if isinstance(value, bytes) and rng.random() < 0.7 else mutated(rng, value)
    try:
        return zlib.compress(srsly.msgpack_dumps(message))
    except Exception:  # what msgpack cannot write
        return zlib.compress(changed_bytes(rng, docbin()))


def readers(rng: Rng) -> None:
    """Documents in every format: whole documents, or a FormatError; and they can be written and tagged."""
    missing = {name for name, module in (("html", "turbohtml"), ("parquet", "pyarrow")) if find_spec(module) is None}
    name = pick(rng, *(name for name, entry in FORMATS.items() if entry.read is not None and name not in missing))
    data = _docbin(rng) if name == "spacy" and rng.random() < 0.8 else changed_bytes(rng, pick(rng, *SEEDS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        for document in _read(str(path), name):
            assert isinstance(document, Document), document
            for entity in document.entities:
                assert document.text[entity.start : entity.end] == entity.text, entity
            out = io.BytesIO()
            herdner.write_documents([document], out, "jsonl")


def _read(path: str, name: str) -> Iterator[Document]:
    try:
        yield from herdner.read_documents(path, name)
    except herdner.FormatError as error:
        assert path in str(error), f"no place in {error!s:.200}"  # noqa: PT017
        raise
