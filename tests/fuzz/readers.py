"""Randomly altered documents in every format: the result must be sound, or the error must name the position."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
import zlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from word_files import docx_file

import herdner
from fuzz.files import mutated
from fuzz.graphs import Rng, pick
from fuzz.pieces import changed_bytes
from herdner import Document
from herdner.corpora.formats import FORMATS

IEER = b"""<DOC>\n<DOCNO> x1 </DOCNO>\n<BODY>\n<HEADLINE>\n<b_enamex type="LOCATION">Oslo<e_enamex> calls
</HEADLINE>\n<TEXT>\n<b_enamex type="PERSON">Ada Lovelace<e_enamex> paid <b_numex type="MONEY">$ 5<e_numex> to
<b_enamex type="ORGANIZATION" status="opt">AT&AMP;T<e_enamex>.\n</TEXT>\n</BODY>\n</DOC>\n"""
CONLL = b"-DOCSTART- -X- O O\n\nAda NNP I-NP B-PER\nLee NNP I-NP I-PER\nmet VBD I-VP O\n\nBob NNP I-NP B-PER\n. . O O\n"
WNUT = b"Ada\tB-person\nmet\tO\n\nBob\tB-person\n"
JSONL = b'{"text": "Ada met.", "entities": [{"start": 0, "end": 3, "label": "PER"}], "tokens": ["Ada", "met", "."]}\n'
UNER = b"# newdoc id = d\n# sent_id = 1\n# text = Ada met Bob\n1\tAda\tB-PER\t-\tx\n2\tmet\tO\t-\tx\n\n"
URL = b"http://www.x.org/a\tO\n\nAda\tB-PER\n"
PAGE = b"<html><h1>Oslo</h1><p>Ada &amp; Bob <b>met</b>.<script>x</script><ul><li>one<li>two</ul></p></body></html>"
MARKS = b"T1\tPER 0 12\tAda Lovelace\n#1\tAnnotatorNotes T1\tconfidence 0.9\nT2\tLOC 24 27;28 32\tNew York\nR1\tx y\n"
PLAIN = b"Ada Lovelace met Bob in New York. Bob paid.\n"
SEEDS = [IEER, CONLL, WNUT, JSONL, UNER, PLAIN, URL, PAGE]
MARKDOWN = (
    b"# Ada *Lovelace*\n\n> met [Bob](http://x.org) in\n> **New York**\n\n| a | b |\n|---|---|\n| c | <b>d</b> |\n"
)
OF_FORMAT = {"ieer": IEER, "uner": UNER, "worldwide": URL, "html": PAGE, "lines": PLAIN, "text": PLAIN}
OF_FORMAT |= {"markdown": MARKDOWN, "docx": docx_file("Ada met.", "Bob paid.")}
# Arrow's own reader crashes on such files, so it only gets files that are not Parquet at all.
NOT_WRITTEN = ("parquet", "text", "html")
REQUIRED = {"html": "turbohtml", "parquet": "pyarrow", "docx": "mammoth"}


@cache
def seeds(name: str) -> tuple[bytes, ...]:
    """Return valid files of a format, one of them written by herdner; none is compressed."""
    own = OF_FORMAT.get(name) or (WNUT if FORMATS[name].layout is not None else JSONL)
    if FORMATS[name].write is None or name in NOT_WRITTEN:
        return (own, CONLL) if FORMATS[name].layout is not None else (own,)
    stream = io.BytesIO()
    document = herdner.Tokenizer()(PLAIN.decode())
    tags = ["B-PER" if token in ("Ada", "Bob") else "O" for token in document.tokens]
    herdner.write_documents([document.with_tags(tags)] * (1 if name == "spacy" else 2), stream, name)
    written = stream.getvalue()
    if name == "spacy":
        return (zlib.decompress(written),)
    return (gzip.decompress(written) if name == "brat" else written, own)


def _docbin(rng: Rng) -> bytes:
    """Return a DocBin whose inner message was altered."""
    import srsly

    (whole,) = seeds("spacy")
    if rng.random() < 0.6:
        return zlib.compress(changed_bytes(rng, whole), 1)
    message: Any = srsly.msgpack_loads(whole)
    key = pick(rng, *message)
    value = message[key]
    message[key] = changed_bytes(rng, value) if isinstance(value, bytes) and rng.random() < 0.7 else mutated(rng, value)
    try:
        return zlib.compress(srsly.msgpack_dumps(message), 1)
    except Exception:  # msgpack cannot write the value
        return zlib.compress(changed_bytes(rng, whole), 1)


def _bytes(rng: Rng, name: str) -> bytes:
    if name == "spacy" and rng.random() < 0.8:
        return _docbin(rng)
    data = changed_bytes(rng, pick(rng, *(SEEDS if rng.random() < 0.3 else seeds(name))))
    return changed_bytes(rng, gzip.compress(data, 1)) if rng.random() < 0.01 else data


@cache
def formats() -> tuple[str, ...]:
    """Return the formats to read. DocBin is rare, because each reading searches for plugins and is slow."""
    missing = {name for name, module in REQUIRED.items() if find_spec(module) is None}
    names = [name for name, entry in FORMATS.items() if entry.read is not None and name not in missing]
    return tuple(names + [name for name in names if name != "spacy"] * 4)


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp())


def _file(rng: Rng, name: str, data: bytes) -> str:
    """Return the path of a file with these bytes; for brat, of a text and its annotation."""
    path = folder() / ("file.ann" if name == "brat" else "file")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(descriptor, data)
    os.close(descriptor)
    if name == "brat":
        path.with_suffix(".txt").write_bytes(PLAIN)
    return str(path)


def readers(rng: Rng) -> None:
    """Read altered documents: they must be sound and writable, or `FormatError` must be raised."""
    name = pick(rng, *formats())
    if name == "brat" and rng.random() < 0.5:
        where: Any = _file(rng, name, changed_bytes(rng, MARKS))
    elif name != "brat" and rng.random() < 0.1:
        where = _file(rng, name, _bytes(rng, name))
    else:
        where = io.BytesIO(_bytes(rng, name))
    found = list(_read(where, name, strict=rng.random() < 0.1))
    for document in found:
        assert isinstance(document, Document), document
        for entity in document.entities:
            assert document.text[entity.start : entity.end] == entity.text, entity
    if found:
        herdner.write_documents(found, io.BytesIO(), "jsonl")


def _read(where: Any, name: str, *, strict: bool) -> Iterator[Document]:
    place = str(folder()) if isinstance(where, str) else "<stream>"
    try:
        yield from herdner.read_documents(where, name, strict=strict)
    except herdner.FormatError as error:
        assert place in str(error), f"no place in {error!s:.200}"  # noqa: PT017
        raise
    except ValueError as error:
        raise AssertionError(f"no FormatError but {error!r:.300}") from None
