"""Tags that do not follow each other as the scheme of their file says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.partial import is_ambiguous
from herdner.text.tags import split_tag

_OPENING = "an I- that continues no name, where others begin with B-, begins one"
_NEEDLESS = "a B- that parts no names, where others begin with I-, begins one"
_ENDS = "an E-, S-, L- or U-"
_BROKEN = "a name breaks off, or goes on without a beginning; it is read as conlleval does"


class Sequences:
    """What is in doubt about the tags of a file.

    An I- that continues no name begins one in IOB1, where B- parts it from a name of its own class before; in IOB2 each
    name begins with B-. Either is a scheme; a file that has both is in doubt about those that are fewer. In IOBES and
    BILOU names begin with B-, S- or U- and end with E-, L-, S- or U-.
    """

    def __init__(self) -> None:
        self.number: Counter[str] = Counter()
        self.first: dict[str, int] = {}  # line of the first of a kind

    def read(self, tags: Sequence[str], lines: Sequence[int]) -> None:
        """The tags of one more sentence, and their lines."""
        for before, tag, line in zip(["O", *tags], [*tags, "O"], [*lines, lines[-1] if lines else 0], strict=True):
            for what in _faults(before, tag):
                self.number[what] += 1
                self.first.setdefault(what, line)

    def tell(self, doubts: ParseWarnings) -> None:
        """What is in doubt by now."""
        fewer = _OPENING if self.number[_OPENING] <= self.number[_NEEDLESS] else _NEEDLESS
        what = _BROKEN if self.number[_ENDS] else fewer
        if what in self.first:
            doubts.add(what, self.first[what], times=self.number[what])


@lru_cache(maxsize=4096)
def _faults(left: str, right: str) -> tuple[str, ...]:
    """What is in doubt, in one scheme or another, about a tag behind another; O stands at both ends of a sentence."""
    (before, named), (prefix, label) = (("?", "") if is_ambiguous(tag) else split_tag(tag) for tag in (left, right))
    is_same, is_within = label == named != "", before in "BI"
    found = [_ENDS] if prefix in "ES" else []
    if prefix == "I" and before != "?" and not is_same:
        found.append(_OPENING)
    if prefix == "B" and before != "?" and not (is_same and is_within):
        found.append(_NEEDLESS)
    if (prefix in "IE" and before != "?" and not (is_same and is_within)) or (prefix in "OBS" and is_within):
        found.append(_BROKEN)
    return tuple(found)
