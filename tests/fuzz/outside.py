"""Other random external input: pictures, manifests, scan files, requests and configurations of spaCy."""

from __future__ import annotations

import inspect
import io
import json
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fuzz.files import VALUES, model, mutated
from fuzz.graphs import Rng, pick
from fuzz.pieces import changed_bytes

KINDS = ["PNG", "BMP", "GIF", "TIFF", "PPM", "WEBP", "JPEG"]


def images(rng: Rng) -> None:
    """Read a picture: its greys must be finite, and it must be denoised."""
    from PIL import Image

    from herdner.studies.denoising.pictures import make_observation, read_picture

    mode = pick(rng, "L", "1", "P", "RGB", "RGBA", "LA", "F", "I", "I;16", "CMYK")
    shape = (int(rng.integers(1, 9)), int(rng.integers(1, 9)))
    stream = io.BytesIO()
    try:
        Image.fromarray(rng.integers(0, 256, shape, np.uint8)).convert(mode).save(stream, pick(rng, *KINDS))
    except (OSError, ValueError, KeyError):  # the format does not support the mode
        Image.new("L", shape).save(stream, "PNG")
    data = stream.getvalue()
    data = changed_bytes(rng, data) if rng.random() < 0.8 else data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture"
        path.write_bytes(data)
        picture = read_picture(path)
        assert picture.values.ndim == 2, picture.values.shape
        seen = make_observation(picture, pick(rng, None, True, False), int(pick(rng, 2, 3)), "picture")
        assert np.isfinite(seen.y).all(), seen.y
        seen.first_noise()


@cache
def manifest() -> dict[str, Any]:
    from herdner.integrations.dask.manifest import InputSlice, Manifest, OutputPart, RunSettings, WrittenPart

    files = import_module("herdner.integrations.dask.files")
    settings = RunSettings("0.1.0", "en", "00", {"backend": "gibbs"}, 0, "jsonl", "utf-8", "text", 1 << 20)
    slices = [InputSlice("a.jsonl", "lines", 9 * i, 9 * i + 9, 5 * i + 1, 0, 5, 9) for i in range(3)]
    output = WrittenPart("part-0.jsonl", 5, 20, 2, 0, 99, "00", ("a line",))
    parts = [OutputPart(5 * i, (piece,), None if i else output) for i, piece in enumerate(slices)]
    return Manifest(settings, [files.RunInput("a.jsonl", "jsonl", 27, "1")], parts).to_dict()


def manifests(rng: Rng) -> None:
    """Read a manifest: its counts must agree with its contents, and it must be written unchanged."""
    from herdner.integrations.dask.files import OutputFolder
    from herdner.integrations.dask.manifest import load_manifest

    data = json.dumps(mutated(rng, manifest())).encode("utf-8", "surrogatepass")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "manifest.json").write_bytes(changed_bytes(rng, data) if rng.random() < 0.3 else data)
        found = load_manifest(OutputFolder(folder))
        assert all(type(n) is int for n in (found.documents, found.failed)), found
        assert all(isinstance(name, str) for name in found.names), found
        assert isinstance(found.complete, bool), found
        found.save(OutputFolder(folder))
        assert load_manifest(OutputFolder(folder)) == found


def _column(rng: Rng, name: str, n: int) -> Any:
    """Return values for a column: valid ones, or ones of any Arrow type."""
    import pyarrow as pa

    entity = {"start": 0, "end": 3, "label": "PER", "text": "Ada", "confidence": 0.5}
    texts = pa.array(["Ada met Bob.", None, "x\0y", "\U0001f3e0"] * n).slice(int(rng.integers(3)), n)
    odd = pick(rng, -1, 0, 3, 2**40, 2**62, -(2**63))
    entities = [[entity], [], None, [None], [entity, {**entity, "start": odd}], [{"end": odd}]]
    own = pa.array([pick(rng, *entities) for _ in range(n)]) if name == "entities" else texts
    kind = pick(
        rng, *["own"] * (12 if name == "text" else 4), "other", "other", "dictionary", "large", "list", "bytes", "null"
    )
    if kind == "other":
        numbers = pa.array(rng.choice([0, 1, -1, 2**40, 2**62, -(2**63)], n))
        days = numbers.cast(pa.int32(), safe=False)
        return pick(
            rng, numbers, numbers.cast(pa.float64(), safe=False), numbers.cast(pa.bool_()), days.cast(pa.date32()),
            *(numbers.cast(pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")), numbers.cast(pa.duration("s")),
            numbers.cast(pa.timestamp("s", "Nowhere/X")), pa.array([odd] * n).cast(pa.duration("us")),
            numbers.cast(pa.decimal128(38)),
        )  # fmt: skip
    made: dict[str, Any] = {
        "dictionary": lambda: texts.dictionary_encode(),
        "large": lambda: texts.cast(pa.large_string()),
        "list": lambda: pa.array([[i, None] for i in range(n)]),
        "bytes": lambda: pa.array([b"\xff\xfe"] * n, pa.binary()),
        "null": lambda: pa.nulls(n),
    }
    # Invalid UTF-8, which Parquet does not check.
    wrong = pa.Array.from_buffers(pa.string(), n, pa.array([b"\xffAda"] * n, pa.binary()).buffers())
    return made[kind]() if kind in made else wrong if rng.random() < 0.05 else own


def tables(rng: Rng) -> None:
    """Read a valid Parquet file of random columns: the documents must be sound, or `FormatError` must be raised."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import herdner

    n = int(pick(rng, 0, 1, 3, 70))
    names = [name for name in ("text", "id", "entities", "more", "offset", "more") if rng.random() < 0.7]
    stream = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_arrays([_column(rng, name, n) for name in names], names), stream)
    except (pa.ArrowException, OSError):  # Parquet has no such type
        return
    stream.seek(0)
    for document in herdner.read_documents(stream, "parquet", strict=bool(rng.random() < 0.2)):
        for entity in document.entities:
            assert document.text[entity.start : entity.end] == entity.text, entity
        herdner.write_documents([document], io.BytesIO(), "jsonl")


def scans(rng: Rng) -> None:
    """Read a scan file: it must be a list of variable indices, and unknown variables must be refused."""
    from herdner.cli.scan import _read_scan
    from herdner.graph import ising
    from herdner.graph.scan import fixed_scan
    from herdner.inference.backends.gibbs import Gibbs

    lines = "".join(f"{i}\n" for i in rng.integers(0, 12, int(rng.integers(0, 9))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scan"
        path.write_bytes(changed_bytes(rng, lines.encode()) if rng.random() < 0.6 else lines.encode())
        order = _read_scan(path)
    assert (order >= 0).all(), order
    Gibbs(n_sweeps=2, scan=fixed_scan(order)).infer(ising(0.1, np.zeros((3, 3))), 1)


class _Echo:
    """Stand-in for the worker pool that returns the request if it is sound."""

    about: ClassVar = {"model": "m", "labels": ["PER"], "rules": []}

    def __init__(self, source: object, limits: Any, names: object) -> None:
        self.limits = limits

    def run(self, request: bytes, **_: object) -> bytes:
        asked = json.loads(request)
        assert len(asked["text"]) <= 1000, asked
        return json.dumps({"echo": asked["text"]}).encode()

    def close(self) -> None:
        pass


@cache
def client() -> Any:
    from fastapi.testclient import TestClient

    app = import_module("herdner.integrations.serve.app")
    app.Pool = _Echo
    from herdner.integrations.serve import Limits

    made = app.create_app("en", limits=Limits(characters=1000), hosts=["herdner.example"])
    return TestClient(made, base_url="http://localhost", raise_server_exceptions=False)


HEADERS = [
    ("Host", "evil.example"), ("Host", ""), ("Host", "[::1"), ("Host", "localhost:99999999"), ("Content-Length", "-1"),
    ("Content-Length", "9" * 20), ("Content-Type", "text/plain"), ("Content-Type", "application/json;" * 99),
    ("Origin", "http://evil.example"), ("Accept", "\0"), ("Transfer-Encoding", "chunked"), ("X-A", "a" * 5000),
]  # fmt: skip


def requests(rng: Rng) -> None:
    """Send random requests: each response must have a documented status and reveal no internals."""
    asked: Any = {"text": "Ada met Bob.", "backends": [{"backend": "gibbs", "options": {"n_sweeps": 5}}], "seed": 1}
    if rng.random() < 0.4:
        asked = {"text": "Ada met Bob.", "start": 0, "end": 3, "backend": {"backend": None}, "against": None}
    body = json.dumps(mutated(rng, asked)).encode("utf-8", "surrogatepass")
    body = changed_bytes(rng, body) if rng.random() < 0.3 else body
    path = pick(rng, "/api/tag", "/api/tag", "/api/explain", "/api/about", "/", "/../etc", "//", "/api/tag?a=%00")
    headers = dict([pick(rng, *HEADERS)]) if rng.random() < 0.3 else {}
    headers = {"Content-Type": "application/json", **headers}
    method = pick(rng, "POST", "POST", "POST", "GET", "PUT", "BREW")
    answer = client().request(method, path, content=body, headers=headers)
    known = {200, 400, 404, 405, 408, 413, 422, 503, 504}
    assert answer.status_code in known, f"{answer.status_code} {answer.text:.200} for {body!r:.300} {headers}"
    assert "Traceback" not in answer.text, answer.text
    if answer.status_code in (400, 413, 422):
        message = answer.json()["detail"]
        assert "\n" not in message, message
        assert len(message) < 1000, message


@cache
def _model_file() -> str:
    path = Path(tempfile.mkdtemp()) / "small.model"
    path.write_bytes(model())
    return str(path)


def spacy(rng: Rng) -> None:
    """Build a component from a random configuration: it must annotate a text, or raise an error."""
    import spacy as library
    from confection import ConfigValidationError

    from herdner.integrations.spacy import HerdnerConsistency, HerdnerTagger

    name = pick(rng, "herdner", "herdner_consistency")
    parameters = inspect.signature(HerdnerTagger if name == "herdner" else HerdnerConsistency).parameters
    defaults = {key: each.default for key, each in parameters.items() if key not in ("nlp", "name", "scorer")}
    config = {"model": _model_file()} if name == "herdner" else {}
    for _ in range(int(pick(rng, 1, 1, 2))):
        key = pick(rng, *defaults)
        config[key] = pick(rng, mutated(rng, defaults[key]), pick(rng, *VALUES), "gibbs", "dhg", ["same-stem"], True)
    nlp = library.blank("en")
    try:
        nlp.add_pipe(name, config=config)
    except ConfigValidationError:  # spaCy's message about values of the wrong type has several lines
        return
    except ValueError as error:
        if str(error).startswith("[E"):  # spaCy's own messages
            return
        raise
    doc = nlp("Ada Lovelace met Charles Babbage in New York. Ada paid Charles.")
    assert len(doc) == 13, doc
