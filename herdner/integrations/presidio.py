"""herdner as a recogniser of Presidio, which finds and masks personal data.

from presidio_analyzer import AnalyzerEngine
from herdner.integrations.presidio import HerdnerRecognizer

analyzer = AnalyzerEngine()
analyzer.registry.add_recognizer(HerdnerRecognizer())
analyzer.analyze(text, language="en", entities=["PERSON"])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from herdner.base.extras import import_extra
from herdner.ner.tagger import Tagger, load

_presidio = import_extra("presidio_analyzer", "the recogniser needs Presidio")

if TYPE_CHECKING:
    Base = object
else:
    Base = _presidio.EntityRecognizer

ENTITIES: Mapping[str, str] = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}


class HerdnerRecognizer(Base):
    """People, places and organisations by a herdner model, consistent across each text.

    A result's score is the confidence of the name.

    Args:
        model: A shipped model, a model file or a `Tagger`.
        entities: Presidio's names of the model's classes; classes that are not named keep theirs.
        language: Of the texts it is asked about.
        options: Keyword arguments of `Tagger.inference`, such as ``names``.
    """

    def __init__(
        self,
        model: str | Tagger = "en",
        *,
        entities: Mapping[str, str] = ENTITIES,
        language: str = "en",
        name: str = "herdner",
        **options: Any,
    ) -> None:
        self.tagger = model if isinstance(model, Tagger) else load(model)
        self.inference = self.tagger.inference(**options)
        self.entities = {label: entities.get(label, label) for label in self.tagger.labels}
        start: Any = super().__init__
        start(supported_entities=sorted(set(self.entities.values())), name=name, supported_language=language)

    def load(self) -> None:
        """Nothing: the model is there when the recogniser is made."""

    def analyze(self, text: str, entities: Sequence[str] | None = None, nlp_artifacts: object = None) -> list[Any]:
        """Presidio's results for the names of these classes (None or none: all) in the text."""
        found: list[Any] = []
        for entity in self.tagger.tag(text, self.inference).entities:
            kind = self.entities[entity.label]
            if not entities or kind in entities:
                sure = 0.0 if entity.confidence is None else float(entity.confidence)
                found.append(_presidio.RecognizerResult(kind, entity.start, entity.end, sure))
        return found
