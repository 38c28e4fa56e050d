"""Models with hostile headers of the archive, of its arrays and of the model. Loading must take little memory."""

from __future__ import annotations

import io
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from altered import Members, members_of, packed, with_checksum

import herdner
from fuzz.files import layer, model, mutated
from fuzz.graphs import Rng, pick
from fuzz.pieces import changed_bytes
from herdner import SkipChainLayer
from herdner.ner.model import TaggerModel

MOST_BYTES = 256 << 20  # limit for loading a file of a few kilobytes; most of it is for 4 MiB of JSON

SHAPES = [
    "()", "(0,)", "(-1,)", "(1,)", "(5, 5)", "(10**12,)", "(1000000000000,)", "(9223372036854775807,)", "(True,)",
    "(4294967296, 4294967296)", "(0, 1000000000000)", "(18446744073709551616, 0)", "(1.5,)", "('a',)", "((1,),)",
    "[5]", "5", "None", "(5, 5) * 3", "(" + "1, " * 64 + ")", "(" + "0, " * 3000 + ")", "(" * 200, "(1e999,)",
    "(0x10,)", "(1j,)", "(-0,)",
]  # fmt: skip
TYPES = [
    "'<f8'", "'>f8'", "'|O'", "'O8'", "'|V1000000000'", "'<U1000000000'", "'|S9999999999'", "'<c16'", "'<M8[s]'",
    "'<f2'", "'<f16'", "'|b1'", "'|u1'", "'<u8'", "'<i3'", "'(1000000,1000000)<f8'", "'f8,f8'", "[('a', '<f8')]",
    "[('a', '<f8', (10**9,))]", "[('a', '|O')]", "{}", "None", "5", "''", "'\\x00'", "b'<f8'",
    "{'names': ['a'], 'formats': ['<f8'], 'offsets': [-8]}",
]  # fmt: skip
NUMBERS = [0, 1, 2**16 - 1, 2**31, 2**32 - 1, 2**32 - 2, 99]


def _array_header(rng: Rng, data: bytes) -> bytes:
    """Return an array with a header that numpy would not write."""
    text = (
        f"{{'descr': {pick(rng, *TYPES)}, 'fortran_order': {pick(rng, 'False', 'False', 'True', '0', 'None')},"
        f" 'shape': {pick(rng, *SHAPES)}, {pick(rng, '', '', chr(34) + 'x', '1: 1', '}', '#', chr(0))}}}"
    ).encode()
    text = changed_bytes(rng, text) if rng.random() < 0.3 else text
    version = pick(rng, (1, 0), (1, 0), (2, 0), (3, 0), (9, 9))
    length = len(text) if rng.random() < 0.8 else int(pick(rng, 0, 1, 65535, len(text) + 1, 2**32 - 1))
    size = struct.pack("<H", length % 2**16) if version == (1, 0) else struct.pack("<I", length)
    return b"\x93NUMPY" + bytes(version) + size + text + data[128 : 128 + int(pick(rng, 0, 8, 10**6))]


def _header(rng: Rng, data: bytes) -> bytes:
    """Return a JSON header with several changes, invalid JSON, or too much of it."""
    kind = pick(rng, "values", "values", "values", "bytes", "deep", "wide", "number", "twice", "other")
    if kind == "values":
        value: Any = json.loads(data)
        for _ in range(int(pick(rng, 1, 2, 5))):
            value = mutated(rng, value)
        return json.dumps(value).encode("utf-8", "surrogatepass")
    if kind == "bytes":
        return changed_bytes(rng, data)
    if kind == "deep":
        return pick(rng, b"[", b'{"a":', b"[[],") * int(pick(rng, 100, 900, 100_000))
    if kind == "wide":
        piece = pick(rng, b"[],", b"{},", b"1,", b'"a",', b"1e9,")
        return (
            b'{"format": "herdner-model", "format_version": 1, "x": ['
            + piece * int(pick(rng, 10, 99, 10**6 if rng.random() < 0.05 else 5))
            + b"1]}"
        )
    if kind == "number":
        return data.replace(b'"format_version": 1', b'"format_version": 1' + b"0" * int(pick(rng, 1, 400, 5000)))
    if kind == "twice":
        return data[:-1] + b"," + data[1:]
    return pick(rng, b"", b"null", b"[]", b"\xff\xfe{}", b"\0", b'"x"', b"{}", data.decode().encode("utf-16"))


def _archive(rng: Rng, data: bytes) -> bytes:
    """Return an archive with changed numbers in its directory or in the header of a member."""
    found = bytearray(data)
    for _ in range(int(pick(rng, 1, 1, 3))):
        mark = pick(rng, b"PK\1\2", b"PK\1\2", b"PK\3\4", b"PK\5\6")
        places = [i for i in range(len(found)) if found.startswith(mark, i)]
        if not places:
            break
        at = int(pick(rng, *places)) + 4 + int(rng.integers({b"PK\1\2": 42, b"PK\3\4": 26, b"PK\5\6": 18}[mark]))
        number = int(pick(rng, *NUMBERS, int(rng.integers(len(found)))))
        piece = struct.pack("<I", number)[: int(pick(rng, 1, 2, 4))]
        found[at : at + len(piece)] = piece
    return bytes(found)


def _packed_small(rng: Rng, members: Members) -> Members:
    """Return an archive with a member that expands a thousandfold, or with very many members."""
    if rng.random() < 0.5:
        return {**members, **{f"{i}.npy": b"\x93NUMPY" for i in range(int(pick(rng, 10, 300)))}}
    name = pick(rng, *members)
    return {
        **members,
        name: members[name]
        + pick(rng, b"\0", b" ", b"9") * int(pick(rng, 10**3, 10**4, 20 * 10**6 if rng.random() < 0.03 else 10**5)),
    }


def _hostile(rng: Rng, whole: bytes) -> bytes:
    kind = pick(rng, "header", "header", "array", "array", "archive", "archive", "small")
    members = members_of(whole)
    if kind == "header":
        members["header.json"] = _header(rng, members["header.json"])
    elif kind == "array":
        name = pick(rng, *(name for name in members if name.endswith(".npy")))
        members[name] = _array_header(rng, members[name])
    elif kind == "small":
        members = _packed_small(rng, members)
    else:
        return _archive(rng, whole)
    if rng.random() < 0.5 and kind != "small":
        members = with_checksum(members)
    with np.errstate(all="ignore"):
        data = packed(members, plain=bool(rng.random() < 0.2))
    return _archive(rng, data) if rng.random() < 0.1 else data


@cache
def limit_memory(more: int = MOST_BYTES) -> None:
    """Limit the further memory of this process; allocations above it raise `MemoryError`."""
    if Path("/proc/self/statm").exists():
        import resource

        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + more, resource.RLIM_INFINITY))


def headers(rng: Rng) -> None:
    """Load a model with a hostile header: it must load or raise `ModelError`, and take little memory."""
    load, whole = pick(rng, (TaggerModel.load, model), (TaggerModel.load, model), (SkipChainLayer.load, layer))
    data = _hostile(rng, whole())
    limit_memory()
    try:
        load(io.BytesIO(data))
    except herdner.ModelError:
        raise
    except (ValueError, MemoryError) as error:
        raise AssertionError(f"no ModelError but {error!r:.300}, for {len(data)} bytes") from None
