"""A recognizer for Presidio, which finds and masks personal data.

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

_presidio = import_extra("presidio_analyzer", "the recognizer needs Presidio")

if TYPE_CHECKING:
    EntityRecognizer = object
else:
    EntityRecognizer = _presidio.EntityRecognizer

ENTITIES: Mapping[str, str] = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}


class HerdnerRecognizer(EntityRecognizer):
    """Presidio recognizer of people, places and organisations, whose labels are consistent within each text.

    Args:
        model: A shipped model, a model file or a `Tagger`.
        entities: Presidio's entity type for each label of the model. Labels that are not listed keep their names.
        language: Language of the texts.
        name: Name of the recognizer.
        options: Options of `Tagger.pipe`, such as ``names``.

    Raises:
        MissingExtra: Presidio is not installed (when the module is imported).
        ModelError: The model does not exist or is invalid.
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
        """Load the model of the recognizer."""
        self.tagger = model if isinstance(model, Tagger) else load(model)
        self.inference = self.tagger.inference(**options)
        self.entities = {label: entities.get(label, label) for label in self.tagger.labels}
        initialize: Any = super().__init__
        initialize(supported_entities=sorted(set(self.entities.values())), name=name, supported_language=language)

    def load(self) -> None:
        """Do nothing, because the constructor has already loaded the model."""

    def analyze(self, text: str, entities: Sequence[str] | None = None, nlp_artifacts: object = None) -> list[Any]:
        """Find the entities of a text for Presidio.

        Args:
            text: The text.
            entities: Presidio's entity types to return; None or an empty sequence: all.
            nlp_artifacts: spaCy's analysis from Presidio; it is not used.

        Returns:
            A ``RecognizerResult`` for each entity; its score is the confidence. The value "name_id" of its
            ``recognition_metadata`` is the same for all mentions of a name.
        """
        results: list[Any] = []
        for entity in self.tagger.tag(text, self.inference).entities:
            entity_type = self.entities[entity.label]
            if not entities or entity_type in entities:
                score = 0.0 if entity.confidence is None else float(entity.confidence)
                metadata = {"name_id": entity.name_id}  # Presidio adds the name of the recognizer
                results.append(
                    _presidio.RecognizerResult(
                        entity_type, entity.start, entity.end, score, recognition_metadata=metadata
                    )
                )
        return results
