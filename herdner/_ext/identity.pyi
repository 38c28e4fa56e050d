from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

MATCHES: tuple[str, ...]
FEATURES: tuple[str, ...]
PUNCTUATION: str

class NameWeights:
    def __new__(cls, weights: Mapping[str, float]) -> NameWeights: ...

class NameCluster: ...

@final
class MentionForm:
    words: tuple[str, ...]
    label: str
    is_person: bool
    title: str
    gender: str
    numbers: frozenset[str]
    is_group: bool
    initials: str
    acronym: str
    is_full: bool
    content: frozenset[str]
    keys: tuple[str, ...]
    nicknames: frozenset[str]
    def __new__(
        cls,
        words: tuple[str, ...],
        label: str,
        is_person: bool,
        title: str,
        gender: str,
        numbers: frozenset[str],
        is_group: bool,
        initials: str,
        acronym: str,
        content: frozenset[str],
        keys: tuple[str, ...],
        nicknames: frozenset[str],
        address: str,
        name_gender: str,
        has_known_first_name: bool,
    ) -> MentionForm: ...

class SimpleNames:
    def __new__(
        cls,
        special: frozenset[str],
        titles: dict[str, tuple[str, str, str]],
        nicknames: dict[str, frozenset[str]],
        genders: dict[str, str],
    ) -> SimpleNames: ...
    def parse(self, text: str, label: str, before: str) -> MentionForm | None: ...

def read_forms(
    text: str, entities: tuple[Any, ...], parse: Callable[[str, str, str], MentionForm], titles: frozenset[str]
) -> list[MentionForm]: ...
def is_person_label(label: str) -> bool: ...
def match(a: MentionForm, b: MentionForm) -> str: ...
def cluster_mentions(
    text: str,
    entities: tuple[Any, ...],
    forms: list[MentionForm],
    choose: NameWeights | Callable[[int, list[NameCluster], list[list[str]]], NameCluster],
) -> list[int]: ...
def short_form_candidates(
    tokens: Sequence[str],
    spans: Sequence[tuple[int, int, str]],
    entities: tuple[Any, ...],
    person: str,
    organisation: str,
) -> tuple[dict[str, dict[str, int]], list[int], list[int], dict[str, int], list[int]]: ...
