"""Is a name what it is everywhere in its document? Names that are tagged in two ways, or here and not there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from herdner.text.document import Document

Name = tuple[str, ...]
"""The tokens of a name, as they are written."""


class Repeated(NamedTuple):
    """A name that stands in a document more than once.

    ``labels`` counts its mentions by label. ``n_bare`` are its places that no entity touches at all: a name inside a
    longer one ("Clinton" in "Bill Clinton") is neither.
    """

    document: int
    name: Name
    labels: Mapping[str, int]
    n_bare: int

    @property
    def n_mentions(self) -> int:
        return sum(self.labels.values())

    @property
    def differs(self) -> bool:
        """Whether its mentions carry more than one label."""
        return len(self.labels) > 1

    @property
    def is_partly_missed(self) -> bool:
        """Whether it is tagged at one place and bare at another."""
        return self.n_bare > 0


@dataclass(frozen=True, slots=True)
class Repeats:
    """How consistently repeated names are tagged; names are counted once for each document.

    Attributes:
        n_repeated: Names with two mentions or more.
        n_differing: Those of them whose mentions carry different labels.
        n_occurring: Names that are tagged somewhere and stand at two places or more, tagged or bare.
        n_partly_missed: Those of them that are bare somewhere.
        n_unlike_reference: Of n_differing, those of one label alone in the reference; None without a reference.
        n_right: Of n_repeated, those whose every mention is in the reference, with its borders and label; None without
            a reference.
    """

    n_repeated: int
    n_differing: int
    n_occurring: int
    n_partly_missed: int
    n_unlike_reference: int | None = None
    n_right: int | None = None

    @property
    def share_differing(self) -> float:
        """In [0, 1], 0 where no name is repeated."""
        return self.n_differing / max(1, self.n_repeated)

    @property
    def share_right(self) -> float | None:
        """In [0, 1], 0 where no name is repeated; None without a reference."""
        return None if self.n_right is None else self.n_right / max(1, self.n_repeated)

    @property
    def share_partly_missed(self) -> float:
        """In [0, 1], 0 where no name occurs twice."""
        return self.n_partly_missed / max(1, self.n_occurring)

    def to_dict(self) -> dict[str, Any]:
        shares = {"share_differing": self.share_differing, "share_partly_missed": self.share_partly_missed}
        return {**asdict(self), **shares, "share_right": self.share_right}


def count_repeats(documents: Sequence[Document], reference: Sequence[Document] | None = None) -> Repeats:
    """How consistently the entities of the documents are tagged, each document by itself.

    ``reference`` are the gold documents, with the same tokens: names may differ in truth ("Washington").
    """
    names = repeated_names(documents)
    repeated = [name for name in names if name.n_mentions > 1]
    differing = [name for name in repeated if name.differs]
    unlike = right = None
    if reference is not None:
        counts = right_mentions(documents, reference)
        right = sum(counts[name.document, name.name] == name.n_mentions for name in repeated)
        true = {(name.document, name.name): name for name in repeated_names(reference)}
        alone = [true.get((name.document, name.name)) for name in differing]
        unlike = sum(name is not None and name.n_mentions > 1 and not name.differs for name in alone)
    missed = sum(name.is_partly_missed for name in names)
    return Repeats(len(repeated), len(differing), len(names), missed, unlike, right)


@dataclass(frozen=True, slots=True)
class InconsistentName:
    """A name with several labels in one document: how often it has which, in the prediction and in the gold.

    "-" counts its places that no entity touches. ``n_right`` of its predicted mentions are gold ones.
    """

    document: str | None
    name: str
    labels: dict[str, int]
    gold_labels: dict[str, int]
    n_right: int

    @property
    def n_mentions(self) -> int:
        """Predicted ones."""
        return sum(n for label, n in self.labels.items() if label != "-")


def inconsistent_names(gold: Sequence[Document], predicted: Sequence[Document], n: int) -> list[InconsistentName]:
    """The ``n`` names with the most mentions that the prediction labels in several ways."""
    true = {(name.document, name.name): name for name in repeated_names(gold)}
    right = right_mentions(predicted, gold)
    names = [name for name in repeated_names(predicted) if name.differs]
    return [
        InconsistentName(
            gold[name.document].id, " ".join(name.name), _labels(name), _labels(true.get((name.document, name.name))),
            right[name.document, name.name],
        )
        for name in sorted(names, key=lambda name: -name.n_mentions)[:n]
    ]  # fmt: skip


def _labels(name: Repeated | None) -> dict[str, int]:
    if name is None:
        return {}
    counts = dict(sorted(name.labels.items(), key=lambda item: (-item[1], item[0])))
    return {**counts, "-": name.n_bare} if name.n_bare else counts


def right_mentions(documents: Sequence[Document], reference: Sequence[Document]) -> Counter[tuple[int, Name]]:
    """By document and name: the mentions that are in the reference, with their borders and label."""
    counts: Counter[tuple[int, Name]] = Counter()
    for number, (document, truth) in enumerate(zip(documents, reference, strict=True)):
        for start, end, _ in set(document.spans or ()) & set(truth.spans or ()):
            counts[number, tuple(document.tokens[start:end])] += 1
    return counts


def repeated_names(documents: Sequence[Document]) -> list[Repeated]:
    """The names that are tagged somewhere in a document and stand in it twice or more, in the order of the text.

    Names are equal where their tokens are; upper and lower case differ, and none crosses the border of a sentence
    unless it is tagged there.
    """
    found: list[Repeated] = []
    for number, document in enumerate(documents):
        labels: dict[Name, Counter[str]] = defaultdict(Counter)
        spans = document.spans or []
        tokens = list(document.tokens)
        for start, end, label in spans:
            labels[tuple(tokens[start:end])][label] += 1
        bare = Counter(_bare(document, labels, [(start, end) for start, end, _ in spans]))
        names = (Repeated(number, name, dict(counts), bare[name]) for name, counts in labels.items())
        found += [name for name in names if name.n_mentions + name.n_bare > 1]
    return found


def _bare(document: Document, names: Mapping[Name, object], spans: Sequence[tuple[int, int]]) -> Iterator[Name]:
    """Each place of a name, side by side, that lies in one sentence and touches no span."""
    lengths: dict[str, set[int]] = defaultdict(set)  # of the names that begin with a token
    for name in names:
        lengths[name[0]].add(len(name))
    free_until = _free_stretches(document, spans)
    tokens = list(document.tokens)
    done: dict[Name, int] = {}
    for start, token in enumerate(tokens):
        for length in lengths.get(token, ()):
            name = tuple(tokens[start : start + length])
            if start + length <= free_until[start] and name in names and done.get(name, 0) <= start:
                done[name] = start + length
                yield name


def _free_stretches(document: Document, spans: Sequence[tuple[int, int]]) -> list[int]:
    """For each token, where the stretch without entities that it lies in ends, or its sentence; itself if in a span."""
    stop = [0] * document.n_tokens
    for start, end in zip(document.sentence_offsets[:-1].tolist(), document.sentence_offsets[1:].tolist(), strict=True):
        stop[start:end] = [end] * (end - start)
    last = 0
    for start, end in spans:
        for token in range(start - 1, last - 1, -1):
            if stop[token] <= start:
                break
            stop[token] = start
        stop[start:end] = range(start, end)
        last = end
    return stop
