"""Where sentences begin: line breaks first, then punctuation, over the tokens of one text.

Works on the offsets of all tokens at once; Python code runs only where a token ends in ``. ! ?`` or a line begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Titles and the like: a name or a number follows, never a new sentence.
TITLES = """Adm. Atty. Brig. Capt. Cmdr. Col. Cpl. Dr. Drs. Fr. Ft. Gen. Gov. Govs. Hon. Lt. Maj. Messrs. Mme. Mlle.
Mr. Mrs. Ms. Msgr. Mt. No. Nos. Pfc. Pres. Prof. Pvt. Rep. Reps. Rev. Sen. Sens. Sgt. St. Ste. Supt. cf. e.g. i.e.
v. vs."""
# Abbreviations that may stand at the end of a sentence.
ABBREVIATIONS = """a.m. al. Ala. approx. Ariz. Ark. Assn. Aug. Ave. Blvd. Bros. Calif. Co. Colo. Conn. Corp. Cos. Ct.
Dak. Dec. Del. Dept. est. etc. Feb. Fla. Fri. Ga. Ill. Inc. Ind. Jan. Jr. Kan. Ky. La. Ltd. Mass. Md. Mich. Minn.
Miss. Mo. Mon. Mont. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nev. Nov. Oct. Okla. Ont. Ore. p.m. Pa. Penn. Ph.D. Plc. plc.
Que. Rd. S.C. S.D. Sat. Sept. Sr. Sun. Tenn. Tex. Thurs. Tues. Univ. Va. Vt. W.Va. Wash. Wed. Wis. Wyo."""
# After an abbreviation a sentence begins only with one of these words; names are far more frequent there.
STARTERS = """A After All Also Although An And Another Any As At Because Before Both But By During Each Even Every For
From He Her Here His How However I If In Instead It Its Last Many Meanwhile More Most My Nearly No Nor Not Now Of On
Once One Only Or Other Others Our Over Several She Since So Some Still Such That The Their Then There These They This
Those Though Through To Two Under Until We What When Where Whether Which While Who Why With Yet You Your"""
CLOSERS = "\"'\u2019\u201d)]}\u00bb`\u203a"
OPENERS = "\"'\u2018\u201c([{\u00ab`\u201e\u201a\u2039"
ENDS = np.array([ord(mark) for mark in ".!?\u2026\u3002\uff01\uff1f"])
NEWLINES = np.array([0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029])
# Lines longer than this are paragraphs, not wrapped text.
WIDEST_WRAP = 100


@dataclass(frozen=True)
class SentenceRules:
    """Words that decide at a full stop.

    ``titles`` never end a sentence; ``endings``, initials and words such as "U.S." end one only before a word of
    ``starters``.
    """

    titles: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    starters: tuple[str, ...] = ()

    @property
    def abbreviations(self) -> tuple[str, ...]:
        """All words that keep their full stop as part of the token, as they stand in a headline as well ("INC.")."""
        words = self.titles + self.endings
        return tuple(dict.fromkeys(words + tuple(word.upper() for word in words if len(word) > 3)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> SentenceRules:
        """The inverse of ``to_dict``; ValueError names what is wrong."""
        for name, words in values.items():
            if name not in {field.name for field in fields(cls)}:
                raise ValueError(f"sentence rules: unknown key {name!r}; install a newer herdner")
            if not isinstance(words, list | tuple) or not all(isinstance(word, str) and word for word in words):
                raise ValueError(f"sentence rules: {name!r} is no list of words")
        return cls(**{name: tuple(words) for name, words in values.items()})


ENGLISH = SentenceRules(tuple(TITLES.split()), tuple(ABBREVIATIONS.split()), tuple(STARTERS.split()))


def sentence_offsets(
    codes: NDArray[Any], tokens: Sequence[str], starts: NDArray[np.int64], ends: NDArray[np.int64], rules: SentenceRules
) -> NDArray[np.int64]:
    """First token of each sentence and the number of tokens: int64[S + 1], or [0] for a text without tokens.

    ``codes`` are the text's code points, ``starts`` and ``ends`` the tokens' offsets into it.
    """
    if not len(tokens):
        return np.zeros(1, np.int64)
    found = [0, len(tokens), *_after_punctuation(codes, tokens, starts, ends, rules)]
    return np.union1d(np.array(found, np.int64), block_starts(codes, starts, ends))


def _after_punctuation(
    codes: NDArray[Any], tokens: Sequence[str], starts: NDArray[np.int64], ends: NDArray[np.int64], rules: SentenceRules
) -> list[int]:
    titles = frozenset(rules.titles).union(map(str.upper, rules.titles))
    starters = frozenset(rules.starters)
    spaced = np.append(starts[1:] > ends[:-1], True)
    found = []
    for end in map(int, np.flatnonzero(np.isin(codes[ends - 1], ENDS))):
        after = end + 1
        while after < len(tokens) and not spaced[after - 1] and tokens[after][0] in CLOSERS:
            after += 1
        if after < len(tokens) and spaced[after - 1]:
            word = after
            while word < len(tokens) - 1 and tokens[word][0] in OPENERS:
                word += 1
            if _begins(tokens[end], tokens[word], titles, starters, closed=after > end + 1):
                found.append(after)
    return found


def _begins(end: str, word: str, titles: frozenset[str], starters: frozenset[str], closed: bool) -> bool:
    """Whether a sentence may begin with ``word`` after the token ``end``, whose last character is a final mark.

    ``closed``: a quote or bracket was closed behind the mark, so that a reporting clause may follow ("he asked").
    """
    if end[-1] == "." and len(end) > 1 and end.strip("."):
        return end not in titles and word in starters
    if word[0].islower():
        # People who write to each other often begin in lower case; after "..." the sentence goes on.
        return len(end) == 1 and end != "\u2026" and not closed
    return True


def block_starts(codes: NDArray[Any], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The tokens that begin a block: after a blank line, and after a line break that is no wrap.

    A line was wrapped if the first word of the next line had no room left in it; the room is the width of the text's
    longer lines. Texts with lines of more than ``WIDEST_WRAP`` characters are not wrapped: each line is a block.
    """
    breaks = np.flatnonzero(np.isin(codes, NEWLINES))
    # Carriage return and line feed are one break.
    breaks = breaks[~((codes[breaks] == 0x0D) & (codes[np.minimum(breaks + 1, len(codes) - 1)] == 0x0A))]
    line = np.searchsorted(breaks, starts)
    first = np.flatnonzero(np.diff(line, prepend=-1))
    if len(first) < 2:
        return first
    # One row per line that holds a token.
    begin = np.append(0, breaks + 1)[line[first]]
    last = np.append(first[1:], len(starts)) - 1
    width, indent = ends[last] - begin, starts[first] - begin
    blank_before = np.diff(line[first], prepend=-2) > 1
    room = np.sort(width)[int(np.ceil(0.95 * (len(width) - 1)))]
    if room > WIDEST_WRAP:
        return first
    fits = width[:-1] + 1 + _word_lengths(codes, starts, ends, first[1:]) <= room
    # Wrapped by hand, with a ragged edge: a line goes on in lower case where the one before was not short.
    goes_on = _in_lower_case(codes, starts[first[1:]]) & (width[:-1] > 0.6 * room)
    indented = (indent[1:] > indent[:-1]) & ~np.isin(codes[ends[last[:-1]] - 1], LETTERS_AND_COMMAS)
    return first[blank_before | np.append(True, (fits & ~goes_on) | indented)]


LETTERS_AND_COMMAS = np.array([ord(c) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,;-"])


def _word_lengths(
    codes: NDArray[Any], starts: NDArray[np.int64], ends: NDArray[np.int64], tokens: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Characters from each token's start to the next white space."""
    before_space = np.flatnonzero(np.append(starts[1:] > ends[:-1], True))
    return ends[before_space[np.searchsorted(before_space, tokens)]] - starts[tokens]


def _in_lower_case(codes: NDArray[Any], positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.array([chr(code).islower() for code in codes[positions].tolist()], dtype=bool)
