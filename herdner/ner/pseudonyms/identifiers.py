"""Structured identifiers in texts: e-mail addresses, phone numbers, IBANs, payment cards, URLs, IP addresses.

A pattern finds candidates. A library that knows the format checks each of them, with its checksum if there is one.
"""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from herdner.base.extras import import_extra

NEED = "structured identifiers need email-validator, phonenumbers and python-stdnum"

REGIONS = (
    "US", "GB", "DE", "FR", "ES", "IT", "NL", "BE", "CH", "AT", "SE", "NO", "DK", "FI", "PL", "CZ", "HU", "PT", "IE",
    "IS", "EE", "SI", "HR", "GR", "CY", "BR", "IN", "IL", "AU", "NZ", "ZA", "UY", "TN",
)  # fmt: skip
"""Regions whose phone numbers are found without a country code, too."""

_PHONE_WORDS = re.compile(
    r"\b(?:(?:tele|cell)?phones?|tel|mobile|cell|fax|call(?:s|ed|ing)?|dial|ring|whatsapp|text|sms|reach|contact|numbers?"
    r"|hotline|answer(?:s|ed|ing)?|messages?|office|desk)\b",
    re.IGNORECASE,
)
PHONE_CONTEXT = 60  # characters before and after a phone number that are searched for a word such as "call"


class Identifier(NamedTuple):
    """Structured identifier in a text, such as an e-mail address.

    Attributes:
        start: Offset of the first character.
        end: Offset behind the last character.
        label: "EMAIL", "URL", "IBAN", "CARD", "SSN", "IP" or "PHONE".
        key: Standard form, which is equal for different spellings of one identifier.
    """

    start: int
    end: int
    label: str
    key: str


class IdentifierKind(NamedTuple):
    """Kind of structured identifier, such as phone numbers, with a pattern and a function that validates candidates.

    Attributes:
        label: Label of the identifiers.
        pattern: Pattern of candidates.
        standard_form: Function of a text and a match of the pattern. It returns the end of the identifier and its
            standard form, or None if the match is not a valid identifier.
    """

    label: str
    pattern: re.Pattern[str]
    standard_form: Callable[[str, re.Match[str]], tuple[int, str] | None]


def find_identifiers(text: str) -> list[Identifier]:
    """Find the structured identifiers in a text.

    If identifiers overlap, the longest is kept, and among equally long identifiers the first in the order of `KINDS`.

    Args:
        text: The text.

    Returns:
        Disjoint identifiers in the order of the text.

    Raises:
        MissingExtra: A library is not installed.
    """
    candidates: list[tuple[int, int, Identifier]] = []
    for rank, kind in enumerate(KINDS):
        for start, end, key in _matches(kind, text):
            candidates.append((start - end, rank, Identifier(start, end, kind.label, key)))
    candidates.sort()
    is_taken = bytearray(len(text)) if candidates else bytearray()
    result: list[Identifier] = []
    for _, _, identifier in candidates:
        if not any(is_taken[identifier.start : identifier.end]):
            is_taken[identifier.start : identifier.end] = b"\1" * (identifier.end - identifier.start)
            result.append(identifier)
    return sorted(result)


def _matches(kind: IdentifierKind, text: str) -> Iterator[tuple[int, int, str]]:
    position = 0
    while match := kind.pattern.search(text, position):
        found = kind.standard_form(text, match)
        if found is None:
            position = match.start() + 1
            while position < match.end() and text[position].isalnum() and text[position - 1].isalnum():
                position += 1  # an identifier does not begin within a word
        else:
            yield match.start(), found[0], found[1]
            position = found[0]


def _email(text: str, match: re.Match[str]) -> tuple[int, str] | None:
    validator = import_extra("email_validator", NEED)
    try:
        checked = validator.validate_email(match[0], check_deliverability=False, test_environment=True)
    except validator.EmailNotValidError:
        return None
    return match.end(), str(checked.normalized).casefold()


def _phone(text: str, match: re.Match[str]) -> tuple[int, str] | None:
    phonenumbers = import_extra("phonenumbers", NEED)
    digits = re.sub(r"\D", "", match["number"])
    if not 7 <= len(digits) <= 15 or _DATE.match(match[0]):
        return None
    offsets = _phone_words(text)
    next_word = bisect_left(offsets, match.start() - PHONE_CONTEXT)
    has_context = next_word < len(offsets) and offsets[next_word] < match.end() + PHONE_CONTEXT
    if not (has_context or _PHONE_FORM.match(match["number"])):
        return None
    key = _parsed_phone(phonenumbers, match[0], has_context)
    return None if key is None else (match.end(), key)


@lru_cache(maxsize=1)
def _phone_words(text: str) -> list[int]:
    return [match.start() for match in _PHONE_WORDS.finditer(text)]


def _parsed_phone(phonenumbers: Any, candidate: str, is_possible_enough: bool) -> str | None:
    """Return the standard form of a phone number; return None if the candidate is not a phone number.

    The standard form of a number that is valid in a region is the international form. With ``is_possible_enough``, a
    number that is not valid is accepted if its length is possible; its standard form is its digits.
    """
    possible: str | None = None
    regions = (None,) if candidate.startswith("+") else REGIONS
    for region in regions:
        try:
            number = phonenumbers.parse(candidate, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164))
        if is_possible_enough and possible is None and phonenumbers.is_possible_number(number):
            possible = re.sub(r"\D", "", candidate)
    return possible


def _iban(text: str, match: re.Match[str]) -> tuple[int, str] | None:
    iban = import_extra("stdnum.iban", NEED)
    # A word behind the IBAN may look like another group of it.
    borders = [m.end() for m in re.finditer(r"[A-Za-z0-9]+", match[0])]
    for length in reversed(borders):
        compact = re.sub("[ -]", "", match[0][:length]).upper()
        checksum = int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4])) % 97
        if checksum == 1 and iban.is_valid(compact):  # the quick check is first, because the library is slow
            return match.start() + length, compact
    return None


def _card(text: str, match: re.Match[str]) -> tuple[int, str] | None:
    luhn = import_extra("stdnum.luhn", NEED)
    digits = re.sub(r"\D", "", match[0])
    is_card = 12 <= len(digits) <= 19 and len(set(digits)) > 1 and luhn.is_valid(digits)
    return (match.end(), digits) if is_card else None


def _ssn(text: str, match: re.Match[str]) -> tuple[int, str] | None:
    ssn = import_extra("stdnum.us.ssn", NEED)
    return (match.end(), match[0]) if ssn.is_valid(match[0]) else None


def _url(text: str, match: re.Match[str]) -> tuple[int, str] | None:
    candidate = match[0].rstrip(".,;:!?'\"’”»")
    for opening, closing in ("()", "[]", "{}"):
        while candidate.endswith(closing) and candidate.count(closing) > candidate.count(opening):
            candidate = candidate[:-1].rstrip(".,;:!?'\"’”»")
    try:
        parts = urlsplit(candidate if "://" in candidate else f"http://{candidate}")
        host = parts.hostname or ""
        parts.port  # noqa: B018  # raises ValueError for an invalid port
    except ValueError:
        return None
    if "." not in host.strip(".") and host != "localhost" and ":" not in host:
        return None
    return match.start() + len(candidate), candidate


def _ip(text: str, match: re.Match[str]) -> tuple[int, str] | None:
    try:
        return match.end(), str(ipaddress.ip_address(match[0]))
    except ValueError:
        return None


# Dates, and ranges of years.
_DATE = re.compile(
    r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{2,4}|(?:1[5-9]|20)\d\d ?[-/] ?(?:1[5-9]|20)\d\d)"
    r"(?![-/.]?\d)"
)
# Forms of phone numbers that need no word such as "call" near them: an international or trunk prefix, or three groups.
_PHONE_FORM = re.compile(r"\+|\(?0[1-9]|\([1-9]\d{2}\) ?\d{3}|\d{3}[-. ]\d{3}[-. ]\d{4}$")
_LETTERS = r"[^\W\d_]"

_EMAIL = re.compile(
    rf"(?<![\w.+-])[\w!#$%&'*+/=?^`{{|}}~.-]{{1,64}}@(?:[\w-]{{1,63}}\.){{1,8}}{_LETTERS}{{2,63}}(?!\w)"
)
_URL = re.compile(r"(?<!\w)(?:(?:https?|ftps?)://|www\.)[^\s<>\"“”]+", re.IGNORECASE)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}(?!\w)", re.IGNORECASE | re.ASCII)
_CARD = re.compile(r"(?<![\w.-])(?:[2-6]|1800)(?:[ -]?[0-9]){8,18}(?![\w-])", re.ASCII)
_SSN = re.compile(r"(?<![\w-])[0-9]{3}-[0-9]{2}-[0-9]{4}(?![\w-])", re.ASCII)
_IP = re.compile(
    r"(?<![\w.:])(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w]|\.\d)|"
    r"(?=[a-f:]*[0-9])(?=[0-9a-f:]*:[0-9a-f:]*:)[0-9a-f:]{2,39}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3})?(?<!(?<!:):)(?![\w:]))",
    re.IGNORECASE | re.ASCII,
)
_PHONE = re.compile(
    r"(?<![\w./-])(?<![0-9],)"
    r"(?P<number>\+?\(?[0-9]{1,15}(?:(?:[ ./-]{1,2}\(?|\)[ ./-]{0,2}\(?|\()[0-9]{1,10}){0,6})"
    r"(?:\s?(?:x|ext\.?|extension)\s?[0-9]{1,6})?(?!\w|[,/-][0-9])",
    re.IGNORECASE | re.ASCII,
)
KINDS = (
    IdentifierKind("EMAIL", _EMAIL, _email),
    IdentifierKind("URL", _URL, _url),
    IdentifierKind("IBAN", _IBAN, _iban),
    IdentifierKind("CARD", _CARD, _card),
    IdentifierKind("SSN", _SSN, _ssn),
    IdentifierKind("IP", _IP, _ip),
    IdentifierKind("PHONE", _PHONE, _phone),
)
"""Kinds of structured identifiers, in order of precedence."""
