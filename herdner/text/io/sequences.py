"""Check of the tags of a file for sequences that do not fit one scheme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.partial import is_ambiguous
from herdner.text.tags import split_tag

_INITIAL_I = "a name begins with I-, although other names begin with B-; the I- is read as its first tag"
_INITIAL_B = "a name begins with B-, although other names begin with I-; the B- is read as its first tag"
_LAST = "an E-, S-, L- or U-"
_BROKEN = "a name has no first tag (B-) or no last tag (E- or L-); it is read as conlleval reads it"


class SequenceChecker:
    """Counter of unusual tag sequences in a file of tagged sentences.

    In IOB1 names begin with I-, and B- only separates adjacent names of one label; in IOB2 every name begins with B-.
    If a file mixes both, the less frequent form is unusual. In IOBES and BILOU names begin with B-, S- or U- and
    end with E-, L-, S- or U-.
    """

    def __init__(self) -> None:
        """Create a checker that has not read any sentence."""
        self.count: Counter[str] = Counter()
        self.first_line: dict[str, int] = {}

    def read(self, tags: Sequence[str], lines: Sequence[int]) -> None:
        """Check ``tags``, the tags of the next sentence in the file, and count unusual sequences.

        Args:
            tags: The tags.
            lines: Line number of each tag.
        """
        for before, tag, line in zip(["O", *tags], [*tags, "O"], [*lines, lines[-1] if lines else 0], strict=True):
            for message in _findings(before, tag):
                self.count[message] += 1
                self.first_line.setdefault(message, line)

    def report(self, warnings: ParseWarnings) -> None:
        """Add one warning to ``warnings`` if the file contains unusual tag sequences.

        Args:
            warnings: List of warnings, which is extended.
        """
        rarer = _INITIAL_I if self.count[_INITIAL_I] <= self.count[_INITIAL_B] else _INITIAL_B
        message = _BROKEN if self.count[_LAST] else rarer
        if message in self.first_line:
            warnings.add(message, self.first_line[message], times=self.count[message])


@lru_cache(maxsize=4096)
def _findings(left: str, right: str) -> tuple[str, ...]:
    """Return a message for each unusual feature of two adjacent tags. A sentence border counts as the tag O."""
    (before, left_label), (prefix, label) = (
        ("?", "") if is_ambiguous(tag) else split_tag(tag) for tag in (left, right)
    )
    is_same, is_within = label == left_label != "", before in "BI"
    findings = [_LAST] if prefix in "ES" else []
    if prefix == "I" and before != "?" and not is_same:
        findings.append(_INITIAL_I)
    if prefix == "B" and before != "?" and not (is_same and is_within):
        findings.append(_INITIAL_B)
    if (prefix in "IE" and before != "?" and not (is_same and is_within)) or (prefix in "OBS" and is_within):
        findings.append(_BROKEN)
    return tuple(findings)
