"""A recognizer for Presidio, which finds and masks personal data, and an NLP engine that needs no download.

from presidio_analyzer import AnalyzerEngine
from herdner.integrations.presidio import BlankNlpEngine, HerdnerRecognizer

analyzer = AnalyzerEngine(nlp_engine=BlankNlpEngine())
analyzer.registry.add_recognizer(HerdnerRecognizer())
analyzer.analyze(text, language="en", entities=["PERSON"])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from herdner.base.extras import import_extra
from herdner.base.locks import ForkLock
from herdner.ner.tagger import Tagger, load

_presidio = import_extra("presidio_analyzer", "the recognizer needs Presidio")

if TYPE_CHECKING:
    EntityRecognizer = object
    SpacyNlpEngine = object
else:
    EntityRecognizer = _presidio.EntityRecognizer
    SpacyNlpEngine = import_module("presidio_analyzer.nlp_engine").SpacyNlpEngine

_loaded: WeakValueDictionary[tuple[object, ...], Tagger] = WeakValueDictionary()
_lock = ForkLock()
_LEMMATIZER = "herdner_lower_case_lemmas"

ENTITIES: Mapping[str, str] = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}


def shared_tagger(model: str) -> Tagger:
    """Return the tagger of a model. All recognizers of a process share it, so that the model is loaded once.

    Args:
        model: A shipped model or a model file. A file that has changed is loaded again.

    Raises:
        ModelError: The model does not exist or is invalid.
    """
    path = Path(model)
    state = path.stat() if path.is_file() else None
    key = model, state and (state.st_mtime_ns, state.st_size)
    with _lock.current:
        tagger = _loaded.get(key)
        if tagger is None:
            tagger = _loaded[key] = load(model)
        return tagger


class BlankNlpEngine(SpacyNlpEngine):
    """NLP engine of Presidio that only splits texts into tokens; it needs neither a trained model nor network access.

    The lemma of each token is its text in lower case, so that recognizers find their context words.

    Args:
        languages: Languages of the texts.
    """

    def __init__(self, languages: Sequence[str] = ("en",)) -> None:
        """Store ``languages``, the languages that the engine supports."""
        initialize: Any = super().__init__
        initialize(models=[{"lang_code": language, "model_name": "blank"} for language in languages])
        self.languages = tuple(languages)

    def load(self) -> None:
        """Create a spaCy pipeline without trained components for each language."""
        import spacy
        from spacy.language import Language

        Language.component(_LEMMATIZER, func=_add_lemmas)
        self.nlp = {language: spacy.blank(language) for language in self.languages}
        for pipeline in self.nlp.values():
            pipeline.add_pipe(_LEMMATIZER)


def _add_lemmas(doc: Any) -> Any:
    """Set the lemma of each token to its text in lower case."""
    for token in doc:
        token.lemma_ = token.lower_
    return doc


class HerdnerRecognizer(EntityRecognizer):
    """Presidio recognizer of people, places and organisations that labels the mentions of a name consistently.

    Args:
        model: A shipped model, a model file or a `Tagger`. Recognizers with the same model share one tagger
            (`shared_tagger`).
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
        """Load ``model``, with which the recognizer finds entities."""
        self.tagger = model if isinstance(model, Tagger) else shared_tagger(model)
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
