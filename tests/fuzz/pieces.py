"""Random changes of bytes, for all targets that alter files."""

from __future__ import annotations

from fuzz.graphs import Rng

PIECES = [
    b"\0", b"\xff", b"\n", b"\n\n", b"\r", b" ", b"\t", b'"', b"{", b"[", b"<DOC>", b"</DOC>", b"<TEXT>", b"<e_enamex>",
    b'<b_enamex type="PERSON">', b"-DOCSTART-", b"B-PER", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"-1",
    b'"start": 9', b"NaN", b"\x1f\x8b", b"\xf0\x9f\x8f\xa0", b"null", b"}", b"]", b",", b"9" * 25, b"1e999", b"\\ud800",
]  # fmt: skip


def changed_bytes(rng: Rng, data: bytes, pieces: list[bytes] = PIECES) -> bytes:
    """Return bytes of which some are flipped, deleted, inserted, repeated, or whose lines are swapped."""
    found = bytearray(data)
    draw = rng.random
    for _ in range((1, 1, 2, 8)[int(draw() * 4)]):
        n = len(found)
        if not n:
            break
        at, kind, number = int(draw() * n), int(draw() * 9), draw()
        if kind < 2:
            found[at] ^= 1 << int(number * 8)
        elif kind == 2:
            found[at] = int(number * 256)
        elif kind == 3:
            del found[at : at + 1 + int(number * 8)]
        elif kind < 6:
            found[at:at] = pieces[int(number * len(pieces))]
        elif kind == 6:
            found[at:at] = found[at : at + 1 + int(number * 40)]
        elif kind == 7:
            lines = bytes(found).split(b"\n")
            i, k = int(number * len(lines)), int(draw() * len(lines))
            lines[i], lines[k] = lines[k], lines[i]
            found = bytearray(b"\n".join(lines))
        elif draw() < 0.3:
            del found[at:]
    return bytes(found)
