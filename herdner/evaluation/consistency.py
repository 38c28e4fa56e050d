"""Consistent, and rightly so? Repeated names and short forms of several predictions side by side, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from herdner.evaluation.repeats import InconsistentName, Repeats, count_repeats, inconsistent_names
from herdner.evaluation.short_forms import KEPT_WORD, ShortForms, count_short_forms
from herdner.evaluation.tabular import Tabulated, percent
from herdner.text.document import Document


@dataclass(frozen=True, slots=True)
class Differing(Tabulated):
    """The names that one prediction labels in several ways within a document, those with most mentions first."""

    header: ClassVar[tuple[str, ...]] = ("name", "document", "labels", "gold", "right")

    of: str
    names: tuple[InconsistentName, ...]

    def rows(self) -> list[tuple[str, ...]]:
        return [
            (each.name, each.document or "", _told(each.labels), _told(each.gold_labels),
             f"{each.n_right} of {each.n_mentions}")
            for each in self.names
        ]  # fmt: skip

    def summary(self) -> str:
        found = "Names with differing labels" if self.names else "No name has differing labels"
        return f"{found}, {self.of}; '-' counts places that are no entity, right are mentions that the gold has too"


def _told(labels: Mapping[str, int]) -> str:
    """Labels with their counts, in words."""
    return ", ".join(f"{label}\N{NO-BREAK SPACE}{n}" for label, n in labels.items())


@dataclass(frozen=True, slots=True)
class Consistency(Tabulated):
    """How consistently the gold documents and predictions tag a name, by what they are called, and how rightly.

    ``repeats`` has the gold too; ``differing`` are names that the first prediction labels in several ways.
    """

    header: ClassVar[tuple[str, ...]] = (
        "", "repeated names", "labels differ", "all right", "%", "found in part",
        *(cell for label in KEPT_WORD for cell in (f"short forms, {label}", "right", "%")),
    )  # fmt: skip

    repeats: Mapping[str, Repeats]
    short_forms: Mapping[str, Mapping[str, ShortForms]]
    differing: Differing

    def rows(self) -> list[tuple[str, ...]]:
        return [
            (name, *_repeats(found), *_short(self.short_forms.get(name, {}))) for name, found in self.repeats.items()
        ]

    def summary(self) -> str:
        return (
            "Names that a document repeats; all right: each mention has its borders and label; found in part: tagged"
            " here and bare there. Short forms: one word of a longer name before it, the first of an organisation's,"
            " the last of a person's"
        )

    def to_dict(self) -> dict[str, Any]:
        short = {name: {label: s.to_dict() for label, s in each.items()} for name, each in self.short_forms.items()}
        return {
            "repeated_names": {name: found.to_dict() for name, found in self.repeats.items()},
            "short_forms": short,
            "differing": [asdict(name) for name in self.differing.names],
        }


def consistency(
    gold: Sequence[Document], predicted: Mapping[str, Sequence[Document]], n_names: int = 20
) -> Consistency:
    """Of predictions, by what they are called, on the tokens of the gold documents; lists ``n_names`` of the first."""
    repeats = {"gold": count_repeats(gold)} | {name: count_repeats(each, gold) for name, each in predicted.items()}
    first = next(iter(predicted))
    differing = Differing(first, tuple(inconsistent_names(gold, predicted[first], n_names)))
    return Consistency(repeats, {name: count_short_forms(gold, each) for name, each in predicted.items()}, differing)


def _repeats(found: Repeats) -> tuple[str, ...]:
    counts = f"{found.n_repeated:,}", f"{found.n_differing:,}"
    right = ("", "") if found.n_right is None else (f"{found.n_right:,}", percent(found.share_right or 0))
    return (*counts, *right, f"{found.n_partly_missed:,}")


def _short(found: Mapping[str, ShortForms]) -> tuple[str, ...]:
    cells: list[str] = []
    for label in KEPT_WORD:
        each = found.get(label)
        cells += ["", "", ""] if each is None else [f"{each.n:,}", f"{each.n_right:,}", percent(each.share_right)]
    return tuple(cells)
