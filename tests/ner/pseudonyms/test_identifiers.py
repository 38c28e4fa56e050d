"""Structured identifiers: formats, checksums, overlaps, and times on hostile text."""

from __future__ import annotations

import time

import pytest

from herdner.ner.pseudonyms.identifiers import find_identifiers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mail ana.rivera@example.org.", [("EMAIL", "ana.rivera@example.org", "ana.rivera@example.org")]),
        ("<Ana@münchen.de>", [("EMAIL", "Ana@münchen.de", "ana@münchen.de")]),
        ("a@b, a@b..org, @x.org", []),
        ("(see https://www.x.com/a_(b)?q=1).", [("URL", "https://www.x.com/a_(b)?q=1", "https://www.x.com/a_(b)?q=1")]),
        ("www.foo.org, awww.foo.org", [("URL", "www.foo.org", "www.foo.org")]),
        ("https://x.org/?mail=ana@x.org!", [("URL", "https://x.org/?mail=ana@x.org", "https://x.org/?mail=ana@x.org")]),
        ("http://[zz", []),
        ("GB29 NWBK 6016 1331 9268 19 and", [("IBAN", "GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819")]),
        ("gb29nwbk60161331926819", [("IBAN", "gb29nwbk60161331926819", "GB29NWBK60161331926819")]),
        ("GB29 NWBK 6016 1331 9268 18", []),
        ("4111-1111-1111-1111", [("CARD", "4111-1111-1111-1111", "4111111111111111")]),
        ("4111111111111112 and 4444 4444 4444 4444", []),
        ("SSN 536-90-4399", [("SSN", "536-90-4399", "536-90-4399")]),
        ("10.0.0.1 1.2.3.4.5 999.1.1.1", [("IP", "10.0.0.1", "10.0.0.1")]),
        ("2001:DB8::1, at 12:30:45 ::", [("IP", "2001:DB8::1", "2001:db8::1")]),
        ("+44 20 7031 3000", [("PHONE", "+44 20 7031 3000", "+442070313000")]),
        ("call 905-674-3793x12", [("PHONE", "905-674-3793x12", "+19056743793")]),
        ("Phone: 60-56-85-91", [("PHONE", "60-56-85-91", None)]),
        ("60-56-85-91 apples", []),
        ("called on 2000-04-16, 12/1/1981 and 1980-1985; 1,234,567.89", []),
    ],
)
def test_identifiers(text: str, expected: list[tuple[str, str, str | None]]) -> None:
    found = find_identifiers(text)
    assert [(each.label, text[each.start : each.end]) for each in found] == [each[:2] for each in expected]
    for each, (_, _, key) in zip(found, expected, strict=True):
        assert key in (None, each.key)


@pytest.mark.parametrize(
    "unit",
    ["1", "1 ", "a@", "a", ":", "1.1.", "GB29 ", "GB29AAAA", "(", "www.", "+1 (2) ", "a.b-", "é@x.", "1-", "call 12 "],
)  # fmt: skip
def test_time_is_linear_in_hostile_texts(unit: str) -> None:
    seconds = []
    for n in (4_000, 16_000):
        start = time.process_time()
        find_identifiers(unit * (n // len(unit)))
        seconds.append(time.process_time() - start)
    assert seconds[1] < 8 * seconds[0] + 0.5
