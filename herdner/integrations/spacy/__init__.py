"""spaCy components: ``herdner`` finds names, ``herdner_consistency`` makes the entities of other components consistent.

spaCy finds both without an import: ``nlp.add_pipe("herdner")``.
"""

from herdner.integrations.spacy.consistency import HerdnerConsistency
from herdner.integrations.spacy.tagger import HerdnerTagger

__all__ = ["HerdnerConsistency", "HerdnerTagger"]
