"""Clusters of mentions: each mention joins the name with the highest score or begins a new name.

Mentions of several words come first, then mentions of one word, each in the order of the text. A short form such as
"Reyes" is thus compared with all full names of the document. Names are found by their words in an index, and a mention
is compared with at most eight names for each of its words. Time and memory are linear in the document.
"""

from __future__ import annotations

import importlib.resources
import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import repeat

from herdner.ner.identity.features import (
    PronounCounts,
    WordFeatures,
    features_of_new,
    features_of_pair,
    match,
    nicknames,
    word_features,
)
from herdner.ner.identity.forms import N_CACHED, SMALL_WORDS, MentionForm, is_person_label, parse_form
from herdner.text.document import Document

MOST_CANDIDATES = 8  # names per word and stage
MOST_FORMS = 6  # forms per name that are compared
LONGEST_REACH = 150  # characters between the name of a person and a pronoun
_BEFORE = 20  # characters in front of a mention in which a title is searched
_PRONOUN = re.compile(r"(?<=\s)[HhSs](?:(e|is|im|imself)|er|ers|he|erself)\b")


class NameCluster:
    """Mentions of one name, while a document is clustered.

    Attributes:
        forms: First six distinct forms.
        labels: Labels of the mentions.
        genders: Genders that titles determine.
        titles: Titles of the mentions.
        first_names: First words of persons' names with several words.
        n_mentions: Number of mentions.
        keys: Keys of the name in the index.
        word_features: Word features of the forms that were compared with the name since its last new form.
    """

    __slots__ = (
        "_latest", "_positions", "_seen", "_sorted", "first_names", "forms", "genders", "keys", "labels", "n_mentions",
        "titles", "word_features",
    )  # fmt: skip

    def __init__(self) -> None:
        """Create a name without mentions."""
        self.forms: list[MentionForm] = []
        self.labels: set[str] = set()
        self.genders: set[str] = set()
        self.titles: set[str] = set()
        self.first_names: set[str] = set()
        self.keys: set[str] = set()
        self.n_mentions = 0
        self.word_features: dict[MentionForm, WordFeatures] = {}
        self._seen: set[MentionForm] = set()
        self._positions: list[int] = []
        self._sorted: list[int] = []
        self._latest = -1

    def add(self, form: MentionForm, positions: Sequence[int]) -> bool:
        """Add mentions that have the same form to the name; return True if the name did not have this form yet.

        Args:
            form: Form of the mentions.
            positions: Offsets of the mentions, ascending.
        """
        self.n_mentions += len(positions)
        if form.is_full:
            self._positions += positions
        self._latest = positions[0]
        if form in self._seen:
            return False
        self._seen.add(form)
        self.word_features = {}
        if len(self.forms) < MOST_FORMS and all(each.words != form.words for each in self.forms):
            self.forms.append(form)
        if form.is_person and form.is_full and len(self.first_names) < MOST_FORMS:
            self.first_names.add(form.words[0])
        self.labels.add(form.label)
        self.genders |= {form.gender} if form.gender else set()
        self.titles |= {form.title} if form.title else set()
        return True

    def sort(self) -> None:
        """Sort the positions, after the mentions of several words have been added."""
        self._sorted = sorted(self._positions)
        self._latest = -1

    def position_before(self, position: int) -> int:
        """Return the offset of the last known mention before ``position``, or -1."""
        index = bisect_left(self._sorted, position)
        latest = self._latest if self._latest < position else -1
        return max(self._sorted[index - 1] if index else -1, latest)


class _Index:
    """Index of the names of a document by the words of their mentions."""

    def __init__(self) -> None:
        self._names: defaultdict[str, list[NameCluster]] = defaultdict(list)
        self._starts: defaultdict[str, list[int]] = defaultdict(list)

    def candidates(self, form: MentionForm, position: int) -> list[NameCluster]:
        """Return the names that share a key with a mention: names that begin before it and a few later names."""
        names: dict[NameCluster, None] = {}
        for key in _keys(form):
            if same := self._names.get(key):
                end = bisect_left(self._starts[key], position) + MOST_CANDIDATES // 4
                names.update(dict.fromkeys(same[max(min(end, len(same)) - MOST_CANDIDATES, 0) : end]))
        return [name for name in names if any(match(form, other) for other in name.forms)]

    def add(self, form: MentionForm, name: NameCluster, position: int) -> None:
        """Add a name to the index under the keys of one of its forms."""
        for key in _keys(form):
            if key not in name.keys:
                name.keys.add(key)
                starts, names = self._starts[key], self._names[key]
                if not starts or starts[-1] <= position:
                    starts.append(position)
                    names.append(name)
                else:
                    index = bisect_left(starts, position)
                    starts.insert(index, position)
                    names.insert(index, name)


@lru_cache(N_CACHED)
def _keys(form: MentionForm) -> tuple[str, ...]:
    keys = [word for word in form.words if word not in SMALL_WORDS]
    if form.acronym:
        keys.append(f"acronym {form.acronym}")
    elif 2 <= len(form.initials) <= 6:
        keys.append(f"acronym {form.initials}")
    if form.is_person and len(first := form.words[0]) > 2:
        keys += [f"beginning {first[:3]}", *(f"nickname {name}" for name in (first, *nicknames().get(first, ())))]
    return tuple(dict.fromkeys(keys))


Choose = Callable[[int, Sequence[NameCluster], Callable[[], list[list[str]]]], NameCluster]
"""Function of the index of a mention, the names to which it may belong, and a function that returns the features of a
new name and of each of these names. It returns the name of the mention, possibly a new `NameCluster`."""


def cluster_mentions(
    forms: Sequence[MentionForm], positions: Sequence[int], pronouns: PronounCounts, choose: Choose
) -> list[int]:
    """Assign the mentions of a document to names.

    Args:
        forms: Form of each mention. Mentions with the same text, label and title share one object.
        positions: Offset of each mention, ascending.
        pronouns: Numbers of male and female pronouns behind the mentions with a form.
        choose: Function that decides to which name a mention belongs.

    Returns:
        The name of each mention, numbered from 0 in the order of first mentions.
    """
    index = _Index()
    names: dict[int, NameCluster] = {}

    def assign(form: MentionForm, mentions: Sequence[int]) -> NameCluster:
        position = positions[mentions[0]]
        candidates = index.candidates(form, position)
        name = choose(mentions[0], candidates, lambda: _rows(form, position, pronouns, candidates))
        if name.add(form, [positions[mention] for mention in mentions]):
            index.add(form, name, position)
        for mention in mentions:
            names[mention] = name
        return name

    full: dict[MentionForm, list[int]] = {}
    for mention, form in enumerate(forms):
        if form.is_full:
            full.setdefault(form, []).append(mention)
    for form, mentions in full.items():
        assign(form, mentions)
    for name in dict.fromkeys(names[mentions[0]] for mentions in full.values()):
        name.sort()
    for mention, form in enumerate(forms):
        if not form.is_full:
            assign(form, [mention])
    ids: dict[NameCluster, int] = {}
    return [ids.setdefault(names[mention], len(ids)) for mention in range(len(forms))]


def _rows(
    form: MentionForm, position: int, pronouns: PronounCounts, candidates: Sequence[NameCluster]
) -> list[list[str]]:
    """Return one row of features for each choice of a mention's name: a new name first, then each candidate."""
    before = [name.position_before(position) for name in candidates]
    rows, latest, n_rivals = [features_of_new(form)], max(before), len(candidates) - 1
    for name, offset in zip(candidates, before, strict=True):
        words = name.word_features.get(form)
        if words is None:
            words = name.word_features[form] = word_features(form, name, pronouns)
        distance = None if offset < 0 else position - offset
        rows.append(features_of_pair(words, name, distance, is_nearest=offset == latest, n_rivals=n_rivals))
    return rows


class Pronouns:
    """Counts of pronouns between each mention of a person and the next mention of a person, lazily computed.

    Args:
        text: Text of the document.
        forms: Form of each mention.
        ends: Offset behind each mention, ascending.
    """

    def __init__(self, text: str, forms: Sequence[MentionForm], ends: Sequence[int]) -> None:
        """Store the arguments."""
        self._text, self._forms, self._ends = text, forms, ends

    def __call__(self, form: MentionForm) -> tuple[int, int]:
        """Return the numbers of male and female pronouns behind the mentions with a form."""
        return self._counts.get(form, (0, 0))

    @cached_property
    def _counts(self) -> dict[MentionForm, tuple[int, int]]:
        people = [mention for mention, form in enumerate(self._forms) if form.is_person]
        ends = [self._ends[mention] for mention in people]
        counts: dict[MentionForm, tuple[int, int]] = {}
        for pronoun in _PRONOUN.finditer(self._text):
            last = bisect_left(ends, pronoun.start() + 1) - 1
            if last >= 0 and pronoun.start() - ends[last] < LONGEST_REACH:
                form = self._forms[people[last]]
                male, female = counts.get(form, (0, 0))
                counts[form] = (male + 1, female) if pronoun[1] else (male, female + 1)
        return counts


def parse_mentions(text: str, mentions: Iterable[tuple[int, int, str]]) -> list[MentionForm]:
    """Return the form of each mention; mentions with the same text, label and title share one object.

    Args:
        text: Text of the document.
        mentions: Start, end and label of each mention.
    """
    forms: dict[tuple[str, str, str], MentionForm] = {}
    parsed: list[MentionForm] = []
    for start, end, label in mentions:
        before = text[max(start - _BEFORE, 0) : start].rsplit(None, 1) if is_person_label(label) else ()
        key = text[start:end], label, before[-1] if before else ""
        form = forms.get(key)
        if form is None:
            form = parse_form(*key)
            form = forms[key] = forms.setdefault((key[0], label, form.title), form)
        parsed.append(form)
    return parsed


@cache
def weights() -> Mapping[str, float]:
    """Return the weight of each feature, learned by ``scripts/models/train_identity.py``."""
    path = importlib.resources.files("herdner") / "data" / "identity.json"
    return json.loads(path.read_text(encoding="utf-8"))["weights"]


def scorer(weights: Mapping[str, float]) -> Choose:
    """Return a function that chooses the name with the highest sum of feature weights for a mention.

    Args:
        weights: Weight of each feature; others have the weight 0.
    """

    def choose(_mention: int, candidates: Sequence[NameCluster], rows: Callable[[], list[list[str]]]) -> NameCluster:
        if not candidates:
            return NameCluster()
        new, *scores = [sum(map(weights.get, row, repeat(0.0))) for row in rows()]
        best = max(range(len(scores)), key=scores.__getitem__)
        return candidates[best] if scores[best] > new else NameCluster()

    return choose


def with_names(document: Document) -> Document:
    """Return the document with a `name_id` for each entity.

    Names are numbered from 0 in the order of their first mentions.

    Args:
        document: Document with entities.

    Returns:
        The document, whose `Document.names` lists the names.
    """
    entities = document.entities
    if not entities:
        return document
    forms = _forms_of(document)
    shared = _forms_with_rivals(forms)
    if not shared:
        names: Iterable[object] = forms
    else:
        choose, pronouns = scorer(weights()), Pronouns(document.text, forms, [entity.end for entity in entities])
        rest = [mention for mention, form in enumerate(forms) if form in shared]
        starts = [entities[mention].start for mention in rest]
        clusters = iter(cluster_mentions([forms[mention] for mention in rest], starts, pronouns, choose))
        names = (next(clusters) if form in shared else form for form in forms)
    ids: dict[object, int] = {}
    return document.with_name_ids([ids.setdefault(name, len(ids)) for name in names])


def _forms_of(document: Document) -> list[MentionForm]:
    return parse_mentions(document.text, ((entity.start, entity.end, entity.label) for entity in document.entities))


def _forms_with_rivals(forms: Sequence[MentionForm]) -> set[MentionForm]:
    """Return the forms whose mentions may belong to several names. Mentions of other forms need no comparison.

    These are forms that share a key with another form, and single words that occur several times.
    """
    owners: dict[str, MentionForm] = {}
    seen: set[MentionForm] = set()
    shared: set[MentionForm] = set()
    for form in forms:
        if form not in seen:
            seen.add(form)
            for key in _keys(form):
                owner = owners.setdefault(key, form)
                if owner is not form:
                    shared |= {owner, form}
        elif not form.is_full:
            shared.add(form)
    return shared


def assign_names(document: Document, choose: Choose) -> Document:
    """Return the document with a `name_id` for each entity; a function chooses the name of each mention.

    Args:
        document: Document with entities.
        choose: Function that decides to which name a mention belongs.
    """
    entities = document.entities
    if not entities:
        return document
    forms = _forms_of(document)
    pronouns = Pronouns(document.text, forms, [entity.end for entity in entities])
    return document.with_name_ids(cluster_mentions(forms, [entity.start for entity in entities], pronouns, choose))
