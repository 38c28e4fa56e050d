"""Every reader takes linear time for repetitive input."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec

import pytest
from cpu import cpu_seconds

from herdner.corpora.formats import FORMATS, read_documents, write_documents
from herdner.text.document import Document
from herdner.text.io.source import Source, open_compressed, read_raw_lines

UNITS = [
    b"<DOC>\n", b"<TEXT>", b"</TEXT>", b"<DOCNO>", b'<b_enamex type="PERSON">', b"<e_enamex>", b"<b_enamex",
    b'<b_enamex a="', b'<b_enamex type="PERSON">A<e_enamex>', b"&AMP;", b"& ", b"{", b"[", b'"', b"\\", b"\\u0041",
    b'{"text": "Ada"}\n', b"\n", b" ", b"\t", b"a", b"a b ", b"-DOCSTART-\n", b"a B-PER\n", b"a\tI-PER\n",
    b"# text = a\n1\ta\tO\t-\tx\n\n", b"# newdoc\n", b"http://a ", b"\r", b"\xe2\x80\xa8", b". ", b"-", b"U.S. ",
]  # fmt: skip
BARE = (b"", b"")
STORY = (b"<DOC>\n<TEXT>\n", b"\n</TEXT>\n</DOC>\n")
RECORDS = ((b'{"text": "', b'"}\n'), (b'{"tokens": ["a"', b"]}\n"))
SENTENCE = (b"# text = ", b"\n1\ta\tO\t-\tx\n")
FRAMES = {
    "ieer": [STORY],
    "uner": [SENTENCE],
    **dict.fromkeys(("jsonl", "label-studio", "doccano", "prodigy"), RECORDS),
}  # what begins and ends a file of these formats; each format is given the bare units, too
SMALL, TIMES = 16_000, 8  # bytes, and times as many


def seconds(format: str, data: bytes) -> float:
    def reading() -> None:
        with suppress(ValueError):
            for _ in read_documents(io.BytesIO(data), format):
                pass

    return cpu_seconds(reading)


QUICK = {"ieer", "jsonl", "uner"}  # the others share their code
MISSING = {name for name, module in {"html": "turbohtml", "docx": "mammoth"}.items() if find_spec(module) is None}
READERS = [name for name, entry in FORMATS.items() if entry.read is not None and name not in {"spacy", *MISSING}]


@pytest.mark.slow
@pytest.mark.parametrize(
    "format", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in READERS]
)
def test_time_grows_with_the_size_of_the_input(format: str) -> None:
    for before, after in (BARE, *FRAMES.get(format, ())):
        for unit in UNITS:
            small, large = (before + unit * (n // len(unit)) + after for n in (SMALL, SMALL * TIMES))
            allowed = 4 * TIMES * min(seconds(format, small), seconds(format, small)) + 0.25
            # A second look only where something else may have kept the processor busy.
            took = seconds(format, large)
            assert min(took, took if took < allowed else seconds(format, large)) < allowed, (before, unit)


class Trickle(io.BytesIO):
    """A stream that returns at most 100 bytes at a time, as a pipe or a compressed file may."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(100)


def outcome(stream: io.BytesIO, format: str) -> tuple[list[str], str]:
    """Return the documents of a stream, and the error that ends them, or ""."""
    found, error = [], ""
    try:
        for document in read_documents(stream, format):
            found.append(document.to_json())
    except ValueError as raised:
        error = str(raised)
    return found, error


@pytest.mark.parametrize("format", READERS)
def test_documents_and_errors_do_not_depend_on_the_chunks(format: str) -> None:
    examples = [before + unit * 20 + after for before, after in (BARE, *FRAMES.get(format, ())) for unit in UNITS]
    if FORMATS[format].write is not None:
        target = io.BytesIO()
        write_documents([Document.from_tokens([["Ada", "met", "Bob"]] * 50)], target, format)
        examples.append(target.getvalue())
    for data in examples:
        assert outcome(Trickle(data), format) == outcome(io.BytesIO(data), format), data


def test_one_long_line_takes_linear_time_in_small_chunks() -> None:
    def read(n: int) -> float:
        source = Source("long", "long", None, Trickle(b"a" * n))
        return cpu_seconds(lambda: list(read_raw_lines(source)))

    small = min(read(250_000) for _ in range(3))
    assert min(read(4_000_000) for _ in range(2)) < 4 * 16 * small + 0.25  # quadratic time would be 256 times as long


def compressed(kind: str | None, data: bytes) -> bytes:
    if kind is None:
        return data
    target = io.BytesIO()
    with open_compressed(kind, target, "wb") as stream:
        stream.write(data)
    return target.getvalue()


def one_line(format: str, n: int) -> bytes:
    """Return a file whose only document is a line with a word of n characters."""
    before, after = {"jsonl": (b'{"text": "', b'"}'), "conll": (b"", b"\tO"), "csv": (b"text\n", b"")}.get(format, BARE)
    return before + b"a" * n + after + b"\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "gzip", "bzip2", "xz", "zstd"])
@pytest.mark.parametrize("format", ["text", "lines", "jsonl", "conll", "csv"])
def test_one_line_of_20_megabytes_takes_at_most_five_seconds(format: str, kind: str | None) -> None:
    """Usually about a second. A reader that joined the line to itself for each chunk took 14 seconds."""
    data = compressed(kind, one_line(format, 20_000_000))
    (document,) = read_documents(io.BytesIO(data), format)
    assert len(document.text.strip()) == 20_000_000
    assert seconds(format, data) < 5.0


@pytest.mark.slow
@pytest.mark.parametrize("format", ["text", "lines", "jsonl", "conll", "csv"])
def test_the_time_of_one_line_is_linear_up_to_64_megabytes(format: str) -> None:
    """Four times the length takes less than ten times as long; quadratic time would be 16 times as long."""
    small, large = (
        min(seconds(format, one_line(format, length)) for _ in range(2)) for length in (16_000_000, 64_000_000)
    )
    assert large < 10 * small


def tar(text: str, annotation: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in (("a.txt", text), ("a.ann", annotation)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))
    return stream.getvalue()


def utf16_spans(n: int) -> bytes:
    """Spans whose offsets count UTF-16 units."""
    value = [{"start": 5 * i + 2, "end": 5 * i + 6, "text": "word", "labels": ["P"]} for i in range(n)]
    result = [{"type": "labels", "value": each} for each in value]
    return json.dumps([{"data": {"text": "😀" + "word " * n}, "annotations": [{"result": result}]}]).encode()


HOSTILE: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "UTF-16 offsets": ("label-studio", utf16_spans),
    "many entities that cover one text": (
        "jsonl",
        lambda n: json.dumps(
            {"text": "a" * 40 * n, "entities": [{"start": 0, "end": 40 * n, "label": "X"}] * n}
        ).encode(),
    ),
    "many spans that cover one text": (
        "doccano",
        lambda n: json.dumps({"text": "a" * 40 * n, "label": [[0, 40 * n, "X"]] * n}).encode(),
    ),
    "pieces at both ends of a text": (
        "brat",
        lambda n: tar("a" + " " * 40 * n + "b", f"T1\tX 0 1;{40 * n + 1} {40 * n + 2}\ta b\n" * n),
    ),
    "the last key occurs twice": (
        "jsonl",
        lambda n: ("{" + ", ".join(f'"k{i}": 1' for i in range(n)) + ', "z": 1, "z": 2}').encode(),
    ),
    "the last column occurs twice": (
        "csv",
        lambda n: ("text," + ",".join(f"c{i}" for i in range(n)) + ",z,z\n").encode(),
    ),
    "unannotated ranges and entities": (
        "jsonl",
        lambda n: json.dumps(
            {
                "text": "word " * n,
                "entities": [{"start": 5 * i, "end": 5 * i + 4, "label": "X"} for i in range(n)],
                "unannotated": [{"start": 5 * i + 4, "end": 5 * i + 5, "tags": "?"} for i in range(n)],
            }
        ).encode(),
    ),
    "annotated labels": (
        "jsonl",
        lambda n: json.dumps({"text": "a", "annotated_labels": [f"L{i}" for i in range(n)]}).encode(),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_annotations_that_once_took_quadratic_time_or_memory(name: str) -> None:
    format, make = HOSTILE[name]
    small, large = make(2_000), make(32_000)
    allowed = 4 * 16 * min(seconds(format, small) for _ in range(3)) + 0.5
    assert min(seconds(format, large) for _ in range(2)) < allowed


def test_lines_do_not_depend_on_the_chunks() -> None:
    data = b"one\ntwo\r\n\n\nfour" + b"x" * 250 + b"\nlast"
    assert list(read_raw_lines(Source("a", "a", None, Trickle(data)))) == data.decode().splitlines(keepends=True)
