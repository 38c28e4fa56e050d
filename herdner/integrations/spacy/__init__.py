"""herdner in spaCy's pipelines: the components ``herdner`` and ``herdner_consistency``.

spaCy finds them by itself: ``nlp.add_pipe("herdner")`` needs no import.
"""

from herdner.integrations.spacy.consistency import HerdnerConsistency, make_consistency
from herdner.integrations.spacy.tagger import HerdnerTagger, make_tagger

__all__ = ["HerdnerConsistency", "HerdnerTagger", "make_consistency", "make_tagger"]
