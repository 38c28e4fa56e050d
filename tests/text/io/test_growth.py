"""Every reader takes linear time for repetitive input."""

from __future__ import annotations

import io
from contextlib import suppress
from importlib.util import find_spec

import pytest
from cpu import cpu_seconds

from herdner.corpora.formats import FORMATS, read_documents

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
