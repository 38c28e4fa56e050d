"""Every reader takes linear time for repetitive input."""

from __future__ import annotations

import io
from contextlib import suppress
from importlib.util import find_spec

import pytest
from cpu import cpu_seconds

from herdner.corpora.formats import FORMATS, read_documents
from herdner.text.io.source import Source, read_raw_lines

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
MISSING = {"html"} if find_spec("turbohtml") is None else set[str]()
READERS = [name for name, entry in FORMATS.items() if entry.read is not None and name not in {"spacy", *MISSING}]


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


def test_one_long_line_takes_linear_time_in_small_chunks() -> None:
    def read(n: int) -> float:
        source = Source("long", "long", None, Trickle(b"a" * n))
        return cpu_seconds(lambda: list(read_raw_lines(source)))

    small = min(read(250_000) for _ in range(3))
    assert min(read(4_000_000) for _ in range(2)) < 4 * 16 * small + 0.25  # quadratic time would be 256 times as long


def test_lines_do_not_depend_on_the_chunks() -> None:
    data = b"one\ntwo\r\n\n\nfour" + b"x" * 250 + b"\nlast"
    assert list(read_raw_lines(Source("a", "a", None, Trickle(data)))) == data.decode().splitlines(keepends=True)
