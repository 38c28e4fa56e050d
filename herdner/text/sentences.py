"""Sentence segmentation by line breaks and punctuation; the loops are compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, cast

from herdner._ext.text import SentenceLoop

# Titles and similar words. A name or number follows them, never a new sentence.
TITLES = """Adm. Atty. Brig. Capt. Cmdr. Col. Cpl. Dr. Drs. Fr. Ft. Gen. Gov. Govs. Hon. Lt. Maj. Messrs. Mme. Mlle.
Mr. Mrs. Ms. Msgr. Mt. No. Nos. Pfc. Pres. Prof. Pvt. Rep. Reps. Rev. Sen. Sens. Sgt. St. Ste. Supt. cf. e.g. i.e.
v. vs."""
# Abbreviations that may end a sentence.
ABBREVIATIONS = """a.m. al. Ala. approx. Ariz. Ark. Assn. Aug. Ave. Blvd. Bros. Calif. Co. Colo. Conn. Corp. Cos. Ct.
Dak. Dec. Del. Dept. est. etc. Feb. Fla. Fri. Ga. Ill. Inc. Ind. Jan. Jr. Kan. Ky. La. Ltd. Mass. Md. Mich. Minn.
Miss. Mo. Mon. Mont. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nev. Nov. Oct. Okla. Ont. Ore. p.m. Pa. Penn. Ph.D. Plc. plc.
Que. Rd. S.C. S.D. Sat. Sept. Sr. Sun. Tenn. Tex. Thurs. Tues. Univ. Va. Vt. W.Va. Wash. Wed. Wis. Wyo."""
# Only these words begin a sentence after an abbreviation; other capitalised words are usually names there.
STARTERS = """A After All Also Although An And Another Any As At Because Before Both But By During Each Even Every For
From He Her Here His How However I If In Instead It Its Last Many Meanwhile More Most My Nearly No Nor Not Now Of On
Once One Only Or Other Others Our Over Several She Since So Some Still Such That The Their Then There These They This
Those Though Through To Two Under Until We What When Where Whether Which While Who Why With Yet You Your"""
CLOSERS = "\"'\u2019\u201d)]}\u00bb`\u203a"
OPENERS = "\"'\u2018\u201c([{\u00ab`\u201e\u201a\u2039"
ENDS = ".!?\u2026\u3002\uff01\uff1f"


@dataclass(frozen=True)
class SentenceRules:
    """Word lists that decide whether a full stop ends a sentence.

    Attributes:
        titles: Words that never end a sentence, such as "Mr.".
        endings: Abbreviations that end a sentence only before a word of ``starters``. Initials and "U.S." always
            follow this rule.
        starters: Words that begin a sentence after an abbreviation.
    """

    titles: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    starters: tuple[str, ...] = ()

    @property
    def abbreviations(self) -> tuple[str, ...]:
        """Titles and abbreviations whose full stop is part of the token, and their upper-case forms such as "INC."."""
        words = self.titles + self.endings
        return tuple(dict.fromkeys(words + tuple(word.upper() for word in words if len(word) > 3)))

    @cached_property
    def loop(self) -> SentenceLoop:
        """Compiled segmenter, which finds the sentence boundaries of a tokenized text.

        Its method ``offsets(text, tokens, starts, ends)`` takes the character offsets of the tokens, int64[n] each, and
        returns the sentence offsets, int64[S + 1] ([0] without tokens). A sentence begins after a blank line, at a line
        that does not continue a wrapped line, at each line of a list, and after a tab or four spaces within a line. It
        may begin after a full stop, question or exclamation mark.
        """
        titles = {*self.titles, *map(str.upper, self.titles)}
        return SentenceLoop(titles, self.starters, ENDS, CLOSERS, OPENERS)

    def to_dict(self) -> dict[str, Any]:
        """Return the sentence rules as a dict for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> SentenceRules:
        """Build sentence rules from the dict that ``to_dict`` returns.

        Args:
            values: Lists of words by the names of the attributes.

        Returns:
            The rules.

        Raises:
            ValueError: A key is unknown or a value is not a list of words.
        """
        for name, words in values.items():
            if name not in {field.name for field in fields(cls)}:
                raise ValueError(f"sentence rules: unknown key {name!r}; install a newer herdner")
            listed = cast(Sequence[object], words) if isinstance(words, list | tuple) else [None]
            if not all(isinstance(word, str) and word for word in listed):
                raise ValueError(f"sentence rules: {name!r} must be a list of words, got {words!r:.80}")
        return cls(**{name: tuple(words) for name, words in values.items()})


ENGLISH = SentenceRules(tuple(TITLES.split()), tuple(ABBREVIATIONS.split()), tuple(STARTERS.split()))
