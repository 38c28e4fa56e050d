"""Archives of arrays and a header, packed again after a change."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable

from herdner.base.npz import NpzError, read_arrays
from herdner.ner.model_file import checksum

Members = dict[str, bytes]


def members_of(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: Members, *, plain: bool = False) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED if plain else zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def altered(data: bytes, change: Callable[[Members], object], *, summed: bool = True) -> bytes:
    """A model file after a change of its members; ``summed``: with the checksum that somebody hostile would give it."""
    members = members_of(data)
    change(members)
    return packed(with_checksum(members) if summed else members)


def with_checksum(members: Members) -> Members:
    """The members with the right checksum, where they can be read at all."""
    try:
        header = json.loads(members["header.json"])
        arrays = read_arrays(io.BytesIO(packed(members)), texts=["header.json"])
    except (KeyError, ValueError, RecursionError, NpzError):
        return members
    if not isinstance(header, dict):
        return members
    header.pop("checksum", None)
    header["checksum"] = checksum(header, arrays)
    return {**members, "header.json": json.dumps(header).encode()}
