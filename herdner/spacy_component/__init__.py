"""herdner in spaCy's pipelines: the component ``herdner``.

spaCy finds it by itself: ``nlp.add_pipe("herdner")`` needs no import.
"""

from herdner.spacy_component.tagger import HerdnerTagger, make_tagger

__all__ = ["HerdnerTagger", "make_tagger"]
